/*
 * test_apply.c: frames of the stream to rows of a file.
 */
#include "replica_fixture.h"

static void
test_rows(void)
{
	set_up();
	f_begin();
	f_insert(T, ROW(V_INT(1), V_TEXT("one"), V_REAL(1.5), V_INT(10)));
	f_insert(T, ROW(V_INT(2), V_TEXT(""), V_TEXT("NaN"), V_NULL));
	f_insert(T, ROW(V_INT(3), V_NULL, V_INT(INT64_MIN), V_NULL));
	f_insert(W, ROW(V_TEXT("x"), V_INT(1), V_NULL));
	f_row(SLUICE_TAG_UPDATE, T, SLUICE_OLD_NONE, NULL,
		  ROW(V_INT(1), V_TEXT("uno"), V_REAL(2.5), V_INT(11)));
	f_row(SLUICE_TAG_DELETE, T, SLUICE_OLD_KEY, ROW(V_INT(2)), NULL);
	f_commit();
	CU_ASSERT_EQUAL(feed(0), SLUICE_OK);
	/* not before the commit */
	CHECK_QUERY("SELECT count(*) FROM t", "0");
	CU_ASSERT_EQUAL(sluice_apply_flush(apply), SLUICE_OK);
	CHECK_QUERY("SELECT * FROM t ORDER BY id",
				"1|uno|2.5|11|1rs 3|null|-9223372036854775808|null|1rs");
	CHECK_QUERY("SELECT a, b, c FROM w", "x|1|null");
	CHECK_QUERY("SELECT stateVersion FROM \"_zero.replicationState\"", "1rs");
	CHECK_QUERY("SELECT xid, commitTime FROM \"_sluice.position\"", "1000|1700000000000000");
	CHECK_QUERY("SELECT typeof(n) FROM t ORDER BY id", "real integer");
	tear_down();
}

static void
test_keys_change(void)
{
	set_up();
	f_begin();
	f_insert(T, ROW(V_INT(1), V_TEXT("a"), V_NULL, V_NULL));
	f_insert(W, ROW(V_TEXT("x"), V_INT(1), V_BLOB("big")));
	f_commit();
	f_begin();
	f_row(SLUICE_TAG_UPDATE, T, SLUICE_OLD_KEY, ROW(V_INT(1)),
		  ROW(V_INT(1001), V_SAME, V_INT(5), V_NULL));
	/* old key in key order: b, a */
	f_row(SLUICE_TAG_UPDATE, W, SLUICE_OLD_KEY, ROW(V_INT(1), V_TEXT("x")),
		  ROW(V_TEXT("y"), V_INT(2), V_SAME));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	CHECK_QUERY("SELECT id, v, n FROM t", "1001|a|5");
	CHECK_QUERY("SELECT a, b, c FROM w", "y|2|big");
	CHECK_QUERY("SELECT \"table\", rowKey, op FROM \"_zero.changeLog2\" WHERE stateVersion = '1s2'"
				" AND \"table\" = 'w' ORDER BY pos", "w|{\"a\":\"x\",\"b\":1}|d w|{\"a\":\"y\",\"b\":2}|s");
	tear_down();
}

/* Every set of unchanged columns, and one update that changes nothing at all. */
static void
test_unchanged(void)
{
	set_up();
	f_begin();
	f_insert(T, ROW(V_INT(1), V_TEXT("v"), V_TEXT("n"), V_INT(7)));
	f_commit();
	for (int pattern = 0; pattern < 8; pattern++)
		for (int again = 0; again < 2; again++)
		{
			SluiceValue row[] = {V_INT(1), V_TEXT("V"), V_TEXT("N"), V_INT(8)};
			SluiceValue back[] = {V_INT(1), V_TEXT("v"), V_TEXT("n"), V_INT(7)};
			char		expected[40];

			for (int i = 0; i < 3; i++)
				if (pattern & (1 << i))
					row[i + 1].class = SLUICE_UNCHANGED;
			f_begin();
			f_row(SLUICE_TAG_UPDATE, T, SLUICE_OLD_NONE, NULL, row);
			f_commit();
			CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
			snprintf(expected, sizeof(expected), "%s|%s|%d", pattern & 1 ? "v" : "V",
					 pattern & 2 ? "n" : "N", pattern & 4 ? 7 : 8);
			CHECK_QUERY("SELECT v, n, u FROM t", expected);
			f_begin();
			f_row(SLUICE_TAG_UPDATE, T, SLUICE_OLD_NONE, NULL, back);
			f_commit();
		}
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	tear_down();
}

static void
test_truncate(void)
{
	const uint32_t oids[] = {T, W};
	SluiceTruncate truncate = {2, oids};

	set_up();
	f_begin();
	f_insert(T, ROW(V_INT(1), V_NULL, V_NULL, V_NULL));
	f_insert(W, ROW(V_TEXT("x"), V_INT(1), V_NULL));
	f_commit();
	f_begin();
	sluice_wire_truncate(&frames, &truncate);
	f_insert(T, ROW(V_INT(2), V_NULL, V_NULL, V_NULL));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	CHECK_QUERY("SELECT id FROM t", "2");
	CHECK_QUERY("SELECT count(*) FROM w", "0");
	CHECK_QUERY("SELECT \"table\", op, pos FROM \"_zero.changeLog2\" WHERE stateVersion = '1s2'",
				"t|t|-1 t|s|2 w|t|-1");
	tear_down();
}

/* A whole table's keys move by one, each onto the next row's: KEY-13. */
static void
test_late_keys(void)
{
	set_up();
	f_begin();
	for (int i = 1; i <= 1000; i++)
		f_insert(LATE, ROW(V_INT(i), V_TEXT("row")));
	f_commit();
	f_begin();
	for (int i = 1; i <= 1000; i++)
		f_row(SLUICE_TAG_UPDATE, LATE, SLUICE_OLD_FULL, ROW(V_INT(i), V_TEXT("row")),
			  ROW(V_INT(i + 1), i == 1 ? (SluiceValue) V_TEXT("first") : (SluiceValue) V_TEXT("row")));
	f_commit();
	/* two rows swap, KEY-15 */
	f_begin();
	f_row(SLUICE_TAG_UPDATE, LATE, SLUICE_OLD_FULL, ROW(V_INT(2), V_TEXT("first")),
		  ROW(V_INT(3), V_TEXT("first")));
	f_row(SLUICE_TAG_UPDATE, LATE, SLUICE_OLD_FULL, ROW(V_INT(3), V_TEXT("row")),
		  ROW(V_INT(2), V_TEXT("row")));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	CHECK_QUERY("SELECT count(*), count(DISTINCT id), min(id), max(id) FROM late",
				"1000|1000|2|1001");
	CHECK_QUERY("SELECT id FROM late WHERE v = 'first'", "3");
	tear_down();
}

/* A unique value wanders from row to row: KEY-16. */
static void
test_unique_wanders(void)
{
	set_up();
	f_begin();
	f_insert(T, ROW(V_INT(1), V_NULL, V_NULL, V_INT(5)));
	f_insert(T, ROW(V_INT(2), V_NULL, V_NULL, V_NULL));
	f_commit();
	f_begin();
	f_row(SLUICE_TAG_UPDATE, T, SLUICE_OLD_NONE, NULL, ROW(V_INT(1), V_NULL, V_NULL, V_NULL));
	f_row(SLUICE_TAG_UPDATE, T, SLUICE_OLD_NONE, NULL, ROW(V_INT(2), V_NULL, V_NULL, V_INT(5)));
	f_row(SLUICE_TAG_DELETE, T, SLUICE_OLD_KEY, ROW(V_INT(2)), NULL);
	f_insert(T, ROW(V_INT(3), V_NULL, V_NULL, V_INT(5)));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	CHECK_QUERY("SELECT id, u FROM t ORDER BY id", "1|null 3|5");
	tear_down();
}

/* Without a key one of equal rows goes, whatever is null. */
static void
test_no_key(void)
{
	set_up();
	f_begin();
	for (int i = 0; i < 3; i++)
		f_insert(BAG, ROW(V_INT(1), V_NULL));
	f_insert(BAG, ROW(V_NULL, V_TEXT("y")));
	f_row(SLUICE_TAG_DELETE, BAG, SLUICE_OLD_FULL, ROW(V_INT(1), V_NULL), NULL);
	f_row(SLUICE_TAG_UPDATE, BAG, SLUICE_OLD_FULL, ROW(V_INT(1), V_NULL),
		  ROW(V_INT(2), V_TEXT("z")));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	CHECK_QUERY("SELECT x, y FROM bag ORDER BY x", "null|y 1|null 2|z");
	f_begin();
	f_row(SLUICE_TAG_UPDATE, BAG, SLUICE_OLD_NONE, NULL, ROW(V_INT(2), V_NULL));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_INAPPLICABLE);
	CU_ASSERT_PTR_NOT_NULL(strstr(sluice_log_last_error(), "table \"bag\": it has no key"));
	tear_down();
}

/* What is not exactly one row stops, and leaves nothing behind. */
static void
test_unexpected(void)
{
	static const char *const messages[] = {"(id 9)", "(id 9)", "UNIQUE constraint failed: t.id",
	"UNIQUE constraint failed: t.u"};

	for (int i = 0; i < 4; i++)
	{
		set_up();
		f_begin();
		f_insert(T, ROW(V_INT(1), V_NULL, V_NULL, V_INT(5)));
		f_commit();
		CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
		f_begin();
		f_insert(T, ROW(V_INT(7), V_NULL, V_NULL, V_NULL));
		if (i == 0)
			f_row(SLUICE_TAG_UPDATE, T, SLUICE_OLD_NONE, NULL,
				  ROW(V_INT(9), V_NULL, V_NULL, V_NULL));
		else if (i == 1)
			f_row(SLUICE_TAG_DELETE, T, SLUICE_OLD_KEY, ROW(V_INT(9)), NULL);
		else
			f_insert(T, ROW(V_INT(i == 2 ? 1 : 2), V_NULL, V_NULL, V_INT(i == 2 ? 6 : 5)));
		f_commit();
		CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_INAPPLICABLE);
		CU_ASSERT_PTR_NOT_NULL(strstr(sluice_log_last_error(), messages[i]));
		CU_ASSERT_PTR_NOT_NULL(strstr(sluice_log_last_error(), "table \"t\""));
		CHECK_QUERY("SELECT id, u FROM t", "1|5");
		tear_down();
	}
}

static void
test_fingerprint(void)
{
	SluiceRowHead head = {.table_oid = T, .fingerprint = 1, .nnew = 4};
	size_t		frame;

	set_up();
	f_begin();
	frame = sluice_wire_open_row(&frames, SLUICE_TAG_INSERT, &head);
	for (int i = 0; i < 4; i++)
		sluice_wire_put_null(&frames);
	sluice_wire_close(&frames, frame);
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_INAPPLICABLE);
	CU_ASSERT_PTR_NOT_NULL(strstr(sluice_log_last_error(), "another form"));
	tear_down();
}

/* Rows of a table that cannot be followed are passed over; the others go on. */
static void
test_problem(void)
{
	SluiceTableProblem problem = {T, "its key is gone"};

	set_up();
	f_begin();
	sluice_wire_table_problem(&frames, &problem);
	f_insert(T, ROW(V_INT(1), V_NULL, V_NULL, V_NULL));
	f_insert(BAG, ROW(V_INT(1), V_NULL));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	CHECK_QUERY("SELECT count(*) FROM t", "0");
	CHECK_QUERY("SELECT count(*) FROM bag", "1");
	CHECK_QUERY("SELECT problem FROM \"_sluice.tables\" WHERE oid = 16384", "its key is gone");
	tear_down();
}

/* What the copied rows have is passed over, until high (N4, N8, N9). */
static void
test_placed(void)
{
	const uint64_t open_xids[] = {1020};
	SluicePlaced placed = {.low = {1000, 0}, .high = 1040, .xmin = 1020, .xmax = 1030, .nxids = 1, .xids = open_xids};

	set_up_placed(&placed);
	for (int i = 0; i < 6; i++)
	{
		/* watermarks 1000 … 1050, xids the same */
		f_begin();
		f_insert(T, ROW(V_INT((int64_t) next_lsn), V_NULL, V_NULL, V_NULL));
		f_commit();
		CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
		if (i == 2)
			CU_ASSERT_EQUAL(sluice_apply_placed(apply), 1);
		if (i == 2)
			start_apply(true);
	}
	/* 1000 is low, 1010 visible, 1020 in progress, 1030 not begun, 1040 at high */
	CHECK_QUERY("SELECT id FROM t ORDER BY id", "1020 1030 1040 1050");
	CU_ASSERT_EQUAL(sluice_apply_placed(apply), 0);
	CHECK_QUERY("SELECT snapshot, low FROM \"_sluice.tables\" WHERE oid = 16384", "null|null");
	tear_down();
}

static void
test_placed_by_keepalive(void)
{
	SluicePlaced placed = {.low = {1000, 0}, .high = 5000, .xmin = 1, .xmax = 1};

	set_up_placed(&placed);
	sluice_apply_seen(apply, 4999);
	CU_ASSERT_EQUAL(sluice_apply_flush(apply), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_apply_placed(apply), 1);
	sluice_apply_seen(apply, 5000);
	CU_ASSERT_EQUAL(sluice_apply_flush(apply), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_apply_placed(apply), 0);
	CHECK_QUERY("SELECT seen FROM \"_sluice.position\"", "5000");
	tear_down();
}

static void
test_row_log_switched(void)
{
	set_up();
	f_begin();
	f_insert(T, ROW(V_INT(1), V_NULL, V_NULL, V_NULL));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	CHECK_QUERY("SELECT count(*) FROM \"_sluice.rowLog\" WHERE json_valid(ops)", "1");
	start_apply(false);
	CHECK_QUERY("SELECT count(*) FROM \"_sluice.rowLog\"", "0");
	f_begin();
	f_insert(T, ROW(V_INT(2), V_NULL, V_NULL, V_NULL));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	CHECK_QUERY("SELECT count(*) FROM \"_sluice.rowLog\"", "0");
	start_apply(true);
	f_begin();
	f_insert(T, ROW(V_INT(3), V_NULL, V_NULL, V_NULL));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	CHECK_QUERY("SELECT \"table\", op FROM \"_zero.changeLog2\" ORDER BY op, \"table\"",
				"bag|r late|r t|r w|r t|s");
	tear_down();
}

/* Transactions of one and of several rows share a row of the log, each as itself. */
static void
test_row_log_runs(void)
{
	set_up();
	f_begin();
	f_commit();
	for (int t = 1; t <= 4; t++)
	{
		f_begin();
		for (int i = 0; i < t; i++)
			f_insert(T, ROW(V_INT(t * 10 + i), V_NULL, V_NULL, V_NULL));
		f_insert(W, ROW(V_TEXT("a\"b"), V_INT(t), V_NULL));
		f_commit();
	}
	f_begin();
	f_insert(W, ROW(V_TEXT("z"), V_INT(9), V_NULL));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	CHECK_QUERY("SELECT count(*) FROM \"_sluice.rowLog\"", "1");
	CHECK_QUERY("SELECT stateVersion, pos, rowKey FROM \"_sluice.changes\" WHERE \"table\" = 't'"
				" AND op = 's' ORDER BY 1, 2",
				"1s2|0|{\"id\":10} 1sc|0|{\"id\":20} 1sc|1|{\"id\":21} 1sm|0|{\"id\":30}"
				" 1sm|1|{\"id\":31} 1sm|2|{\"id\":32} 1sw|0|{\"id\":40} 1sw|1|{\"id\":41}"
				" 1sw|2|{\"id\":42} 1sw|3|{\"id\":43}");
	CHECK_QUERY("SELECT stateVersion, pos, rowKey FROM \"_sluice.changes\" WHERE \"table\" = 'w'"
				" AND op = 's' ORDER BY 1, 2",
				"1s2|1|{\"a\":\"a\\\"b\",\"b\":1} 1sc|2|{\"a\":\"a\\\"b\",\"b\":2}"
				" 1sm|3|{\"a\":\"a\\\"b\",\"b\":3} 1sw|4|{\"a\":\"a\\\"b\",\"b\":4}"
				" 1t6|0|{\"a\":\"z\",\"b\":9}");
	/* each row's version is that of its last change */
	CHECK_QUERY("SELECT count(*) FROM \"_zero.changeLog2\" l JOIN t ON t.id = l.rowKey ->> 'id'"
				" WHERE l.\"table\" = 't' AND op = 's' AND l.stateVersion = t._0_version", "10");
	tear_down();
}

static const UnitTest tests[] = {
	{"rows", test_rows},
	{"keys change", test_keys_change},
	{"unchanged columns", test_unchanged},
	{"truncate", test_truncate},
	{"keys checked late", test_late_keys},
	{"unique values wander", test_unique_wanders},
	{"no key", test_no_key},
	{"unexpected effects", test_unexpected},
	{"fingerprint", test_fingerprint},
	{"a table's problem", test_problem},
	{"what a copy has", test_placed},
	{"high passed by a keepalive", test_placed_by_keepalive},
	{"row log switched", test_row_log_switched},
	{"runs of the row log", test_row_log_runs},
};

UNIT_MAIN("apply", tests)
