/*
 * test_group.c: bytes cut anywhere to SQLite transactions; what a reader can
 * see, and what is left when something breaks off.
 */
#include <sys/wait.h>

#include "replica_fixture.h"

static void
f_rows(int64_t from, int n)
{
	for (int i = 0; i < n; i++)
		f_insert(T, ROW(V_INT(from + i), V_TEXT("some text for a row"), V_NULL, V_NULL));
}

/* Enough to be applied before its end is there. */
#define LARGE 20000

/* 1 … 40 rows a transaction, in pieces of 1 … 97 bytes: POS-12. */
static void
test_cut_anywhere(void)
{
	int64_t		id = 1;

	for (size_t step = 1; step < 100; step += 16)
	{
		set_up();
		for (int rows = 0; rows <= 40; rows++)
		{
			f_begin();
			f_rows(id, rows);
			id += rows;
			f_commit();
		}
		CU_ASSERT_EQUAL(feed(step), SLUICE_OK);
		CU_ASSERT_FALSE(sluice_apply_in_transaction(apply));
		CU_ASSERT_EQUAL(sluice_apply_flush(apply), SLUICE_OK);
		CHECK_QUERY("SELECT count(*), max(_0_version) = (SELECT stateVersion FROM"
					" \"_zero.replicationState\") FROM t", "820|1");
		tear_down();
	}
}

/* Many small ones are committed together, but not without limit: POS-12. */
static void
test_group_limits(void)
{
	static const int counts[] = {1, 2, 999, 1000, 1001, 1999, 2000, 2001};
	int64_t		id = 1;
	int64_t		total = 0;
	char		expected[30];

	set_up();
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
	{
		uint64_t	before = sluice_apply_counts(apply).commits;

		for (int n = 0; n < counts[i]; n++)
		{
			f_begin();
			f_rows(id++, 1);
			f_commit();
		}
		total += counts[i];
		CU_ASSERT_EQUAL(feed(50000), SLUICE_OK);
		CU_ASSERT_EQUAL(sluice_apply_flush(apply), SLUICE_OK);
		CU_ASSERT(sluice_apply_counts(apply).commits - before >= (uint64_t) counts[i] / 1000);
		CU_ASSERT(sluice_apply_counts(apply).commits - before < 20);
		snprintf(expected, sizeof(expected), "%lld", (long long) total);
		CHECK_QUERY("SELECT count(*) FROM t", expected);
	}
	tear_down();
}

/* A large one is written before its end, and seen by nobody before it. */
static void
test_large(void)
{
	set_up();
	f_begin();
	f_rows(1, 1);
	f_commit();
	f_begin();
	f_rows(2, LARGE);
	CU_ASSERT_EQUAL(feed(65536), SLUICE_OK);
	CU_ASSERT_TRUE(sluice_apply_in_transaction(apply));
	/* what came before it did not wait */
	CHECK_QUERY("SELECT count(*) FROM t", "1");
	CU_ASSERT_EQUAL(sluice_apply_flush(apply), SLUICE_OK);
	CHECK_QUERY("SELECT count(*) FROM t", "1");
	f_rows(LARGE + 2, 5);
	f_commit();
	f_begin();
	f_rows(LARGE + 10, 1);
	f_commit();
	CU_ASSERT_EQUAL(feed(65536), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_apply_flush(apply), SLUICE_OK);
	CHECK_QUERY("SELECT count(*) FROM t", "20007");
	tear_down();
}

/* A rollback and a reset undo their own transaction and no other. */
static void
test_undone(void)
{
	for (int large = 0; large < 2; large++)
		for (int reset = 0; reset < 2; reset++)
		{
			set_up();
			f_begin();
			f_rows(1, 1);
			f_commit();
			f_begin();
			f_rows(2, large ? LARGE : 3);
			if (!reset)
				sluice_wire_rollback(&frames);
			CU_ASSERT_EQUAL(feed(65536), SLUICE_OK);
			if (reset)
				sluice_apply_reset(apply);
			f_begin();
			f_rows(3, 1);
			f_commit();
			CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
			CHECK_QUERY("SELECT id, _0_version FROM t ORDER BY id", "1|1rs 3|1s2");
			CHECK_QUERY("SELECT count(*) FROM \"_sluice.changes\" WHERE op = 's'", "2");
			tear_down();
		}
}

/* What precedes a failure in its group is kept when it is tried again. */
static void
test_failure_in_group(void)
{
	set_up();
	for (int again = 0; again < 2; again++)
	{
		next_lsn = again ? 1010 : 1000;
		if (!again)
		{
			f_begin();
			f_rows(1, 1);
			f_commit();
		}
		f_begin();
		f_rows(1, 1);
		f_commit();
		CU_ASSERT_EQUAL(feed_and_flush(), again ? SLUICE_INAPPLICABLE : SLUICE_RETRY);
		sluice_apply_reset(apply);
		if (!again)
		{
			CHECK_QUERY("SELECT count(*) FROM t", "0");
			next_lsn = 1000;
			f_begin();
			f_rows(1, 1);
			f_commit();
			CU_ASSERT_EQUAL(feed(0), SLUICE_OK);
			CHECK_QUERY("SELECT count(*) FROM t", "1");
		}
	}
	CHECK_QUERY("SELECT id, _0_version FROM t", "1|1rs");
	tear_down();
}

static void
test_out_of_order(void)
{
	SluiceStatus status = {5000, 0};

	set_up();
	f_begin();
	f_rows(1, 1);
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	next_lsn = 1000;			/* the same again */
	f_begin();
	f_rows(2, 1);
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_RETRY);
	sluice_apply_reset(apply);
	f_rows(3, 1);				/* a row outside of a transaction */
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_RETRY);
	sluice_apply_reset(apply);
	sluice_wire_status(&frames, &status);
	CU_ASSERT_EQUAL(feed(3), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_apply_position(apply).seen, 5000);
	sluice_buffer_append(&frames, "\x01\0\0\0?x", 6);	/* an unknown tag */
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_RETRY);
	CHECK_QUERY("SELECT id FROM t", "1");
	tear_down();
}

/* One value that is larger than what is ever held back. */
static void
test_large_value(void)
{
	size_t		size = 30 * 1000 * 1000;
	SluiceValue value = {.class = SLUICE_TEXT};
	char	   *text = malloc(size);

	set_up();
	memset(text, 'x', size);
	value.u.bytes.data = text;
	value.u.bytes.size = (uint32_t) size;
	f_begin();
	f_insert(T, ROW(V_INT(1), value, V_NULL, V_NULL));
	f_commit();
	CU_ASSERT_EQUAL(feed(65536), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_apply_flush(apply), SLUICE_OK);
	CHECK_QUERY("SELECT length(v), length(trim(v, 'x')) FROM t", "30000000|0");
	free(text);
	tear_down();
}

/*
 * Killed at any moment, the file is that of a whole transaction: two rows are
 * moved from one to the other, their sum never changes, and neither is any
 * transaction there twice or missing.
 */
static void
test_killed(void)
{
	set_up();
	f_begin();
	f_insert(T, ROW(V_INT(1), V_NULL, V_INT(0), V_NULL));
	f_insert(T, ROW(V_INT(2), V_NULL, V_INT(0), V_NULL));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	for (int round = 0; round < 20; round++)
	{
		pid_t		child;
		int			status;
		uint64_t	at;

		sluice_apply_destroy(apply);
		apply = NULL;
		sluice_replica_close(replica);
		replica = NULL;
		child = fork();
		if (child == 0)
		{
			if (reopen() != SLUICE_OK)
				_exit(1);
			start_apply(true);
			at = replica->position.watermark.major;
			for (;;)
			{
				int64_t		n;

				next_lsn = at += 10;
				n = (int64_t) (at - 1000) / 10;
				f_begin();
				f_row(SLUICE_TAG_UPDATE, T, SLUICE_OLD_NONE, NULL, ROW(V_INT(1), V_NULL, V_INT(n), V_NULL));
				f_row(SLUICE_TAG_UPDATE, T, SLUICE_OLD_NONE, NULL, ROW(V_INT(2), V_NULL, V_INT(-n), V_NULL));
				f_insert(T, ROW(V_INT(n + 10), V_NULL, V_NULL, V_NULL));
				f_commit();
				if (feed(17) != SLUICE_OK || (n % 3 == 0 && sluice_apply_flush(apply) != SLUICE_OK))
					_exit(1);
			}
		}
		usleep(10000 + (useconds_t) (random() % 30000));
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		CU_ASSERT_TRUE(WIFSIGNALED(status));
		CU_ASSERT_EQUAL(reopen(), SLUICE_OK);
		start_apply(true);
		CHECK_QUERY("SELECT sum(n) FROM t WHERE id < 3", "0");
		/* n transactions: n rows, each of its own */
		CHECK_QUERY("SELECT (SELECT count(*) FROM t WHERE id > 2) = (SELECT n FROM t WHERE id = 1)",
					"1");
		CHECK_QUERY("SELECT max(_0_version) = stateVersion FROM t, \"_zero.replicationState\"", "1");
		CHECK_QUERY("PRAGMA integrity_check", "ok");
	}
	CU_ASSERT(replica->position.watermark.major > 1000);
	tear_down();
}

static const UnitTest tests[] = {
	{"cut anywhere", test_cut_anywhere},
	{"limits of a group", test_group_limits},
	{"large transaction", test_large},
	{"undone", test_undone},
	{"failure in a group", test_failure_in_group},
	{"out of order", test_out_of_order},
	{"large value", test_large_value},
	{"killed", test_killed},
};

UNIT_MAIN("group", tests)
