/*
 * test_wire.c: messages, both ways, whole, cut and damaged.
 */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "read_frame.h"
#include "sample.h"
#include "unit.h"

static SluiceArena arena;

static void
check_cut_frame(const char *frame_bytes, size_t n)
{
	SluiceFrame frame;
	char	   *exact = malloc(n + 1);

	memcpy(exact, frame_bytes, n);
	CU_ASSERT_EQUAL(sluice_wire_frame(exact, n, &frame), SLUICE_WIRE_MORE);
	CU_ASSERT_TRUE(n < SLUICE_FRAME_HEADER ? frame.total == 0 : frame.total > n);
	if (n >= SLUICE_FRAME_HEADER)
	{
		/* the same with a length that tells of the cut */
		uint32_t	size = (uint32_t) (n - SLUICE_FRAME_HEADER);

		memcpy(exact, &size, 4);
		CU_ASSERT_EQUAL(sluice_wire_frame(exact, n, &frame), SLUICE_WIRE_OK);
		CU_ASSERT_FALSE(read_frame(&frame, &arena.allocator));
		sluice_arena_reset(&arena);
	}
	free(exact);
}

/*
 * One frame is in the buffer: it reads as a whole, none of its truncations
 * does, nor with a byte more, and damage does no harm.
 */
static SluiceFrame
check_frame(SluiceBuffer *out, SluiceTag tag)
{
	SluiceFrame frame;
	size_t		size = out->length;
	uint32_t	longer;

	for (size_t n = 0; n < size; n++)
		check_cut_frame(out->data, n);

	for (size_t n = SLUICE_FRAME_HEADER; n < size; n++)
	{
		char		kept = out->data[n];

		for (int bit = 0; bit < 8; bit++)
		{
			out->data[n] = (char) (kept ^ (1 << bit));
			if (sluice_wire_frame(out->data, size, &frame) == SLUICE_WIRE_OK)
				read_frame(&frame, &arena.allocator);
			sluice_arena_reset(&arena);
		}
		out->data[n] = kept;
	}

	sluice_wire_put_u8(out, 0);
	CU_ASSERT_EQUAL(sluice_wire_frame(out->data, out->length, &frame), SLUICE_WIRE_OK);
	CU_ASSERT_EQUAL(frame.tag, tag);
	CU_ASSERT_EQUAL(frame.total, size);
	CU_ASSERT_EQUAL(frame.size, size - SLUICE_FRAME_HEADER);
	CU_ASSERT_TRUE(read_frame(&frame, &arena.allocator));
	longer = frame.size + 1;
	memcpy(out->data, &longer, 4);
	CU_ASSERT_EQUAL(sluice_wire_frame(out->data, out->length, &frame), SLUICE_WIRE_OK);
	CU_ASSERT_FALSE(read_frame(&frame, &arena.allocator));
	longer--;
	memcpy(out->data, &longer, 4);
	CU_ASSERT_EQUAL(sluice_wire_frame(out->data, size, &frame), SLUICE_WIRE_OK);
	return frame;
}

static void
transaction_frames(void)
{
	SluiceBuffer out;
	SluiceFrame frame;
	SluiceBegin begin = {{UINT64_MAX, 7}, UINT64_C(0x100000003), INT64_MIN, SLUICE_BEGIN_SKIP_ACK};
	SluiceBegin begin_back;
	SluiceCommit commit = {{5, UINT64_MAX}, UINT64_C(0xfedcba9876543210)};
	SluiceCommit commit_back;
	SluiceStatus status = {UINT64_C(0x123456789abcdef), -1};
	SluiceStatus status_back;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_wire_begin(&out, &begin);
	frame = check_frame(&out, SLUICE_TAG_BEGIN);
	CU_ASSERT_TRUE(sluice_wire_get_begin(&frame, &begin_back));
	CU_ASSERT_EQUAL(sluice_watermark_compare(begin.watermark, begin_back.watermark), 0);
	CU_ASSERT_EQUAL(begin_back.xid, begin.xid);
	CU_ASSERT_EQUAL(begin_back.commit_time, INT64_MIN);
	CU_ASSERT_EQUAL(begin_back.flags, SLUICE_BEGIN_SKIP_ACK);

	sluice_buffer_reset(&out);
	sluice_wire_commit(&out, &commit);
	frame = check_frame(&out, SLUICE_TAG_COMMIT);
	CU_ASSERT_TRUE(sluice_wire_get_commit(&frame, &commit_back));
	CU_ASSERT_EQUAL(sluice_watermark_compare(commit.watermark, commit_back.watermark), 0);
	CU_ASSERT_EQUAL(commit_back.end_lsn, commit.end_lsn);

	sluice_buffer_reset(&out);
	sluice_wire_status(&out, &status);
	frame = check_frame(&out, SLUICE_TAG_STATUS);
	CU_ASSERT_TRUE(sluice_wire_get_status(&frame, &status_back));
	CU_ASSERT_EQUAL(status_back.position, status.position);
	CU_ASSERT_EQUAL(status_back.server_time, -1);

	sluice_buffer_reset(&out);
	sluice_wire_rollback(&out);
	check_frame(&out, SLUICE_TAG_ROLLBACK);
	sluice_buffer_release(&out);
}

static void
put_samples(SluiceBuffer *out, int n)
{
	for (int i = 0; i < n; i++)
	{
		switch (i % 5)
		{
			case 0:
				sluice_wire_put_integer(out, INT64_MIN + i);
				break;
			case 1:
				sluice_wire_put_text(out, "", 0);
				break;
			case 2:
				sluice_wire_put_null(out);
				break;
			case 3:
				sluice_wire_put_real(out, -0.0);
				break;
			case 4:
				sluice_wire_put_blob(out, "\0\1\2", 3);
				break;
		}
	}
}

static bool
row_reads(SluiceTag tag, SluiceRowHead head, int nvalues)
{
	SluiceBuffer out;
	SluiceFrame frame;
	SluiceRowHead back;
	SluiceCursor cursor;
	size_t		at;
	bool		ok;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	at = sluice_wire_open_row(&out, tag, &head);
	put_samples(&out, nvalues);
	CU_ASSERT_TRUE(sluice_wire_close(&out, at));
	ok = sluice_wire_frame(out.data, out.length, &frame) == SLUICE_WIRE_OK &&
		sluice_wire_get_row(&frame, &back, &cursor);
	if (ok && read_frame(&frame, &arena.allocator))
	{
		check_frame(&out, tag);
		CU_ASSERT_TRUE(back.table_oid == head.table_oid && back.fingerprint == head.fingerprint);
		CU_ASSERT_TRUE(back.old == head.old && back.nold == head.nold && back.nnew == head.nnew);
	}
	else
		ok = false;
	sluice_buffer_release(&out);
	return ok;
}

static void
rows(void)
{
	CU_ASSERT_TRUE(row_reads(SLUICE_TAG_INSERT, (SluiceRowHead) {1, 2, SLUICE_OLD_NONE, 0, 7}, 7));
	CU_ASSERT_TRUE(row_reads(SLUICE_TAG_INSERT, (SluiceRowHead) {UINT32_MAX, UINT32_MAX, SLUICE_OLD_NONE, 0, 1600}, 1600));
	CU_ASSERT_TRUE(row_reads(SLUICE_TAG_UPDATE, (SluiceRowHead) {1, 2, SLUICE_OLD_NONE, 0, 7}, 7));
	CU_ASSERT_TRUE(row_reads(SLUICE_TAG_UPDATE, (SluiceRowHead) {1, 2, SLUICE_OLD_KEY, 2, 7}, 9));
	CU_ASSERT_TRUE(row_reads(SLUICE_TAG_UPDATE, (SluiceRowHead) {1, 2, SLUICE_OLD_FULL, 7, 7}, 14));
	CU_ASSERT_TRUE(row_reads(SLUICE_TAG_DELETE, (SluiceRowHead) {1, 2, SLUICE_OLD_KEY, 2, 0}, 2));
	CU_ASSERT_TRUE(row_reads(SLUICE_TAG_DELETE, (SluiceRowHead) {1, 2, SLUICE_OLD_FULL, 7, 0}, 7));

	CU_ASSERT_FALSE(row_reads(SLUICE_TAG_INSERT, (SluiceRowHead) {1, 2, SLUICE_OLD_KEY, 1, 7}, 8));
	CU_ASSERT_FALSE(row_reads(SLUICE_TAG_UPDATE, (SluiceRowHead) {1, 2, SLUICE_OLD_FULL, 6, 7}, 13));
	CU_ASSERT_FALSE(row_reads(SLUICE_TAG_UPDATE, (SluiceRowHead) {1, 2, SLUICE_OLD_KEY, 0, 7}, 7));
	CU_ASSERT_FALSE(row_reads(SLUICE_TAG_UPDATE, (SluiceRowHead) {1, 2, SLUICE_OLD_NONE, 2, 7}, 9));
	CU_ASSERT_FALSE(row_reads(SLUICE_TAG_DELETE, (SluiceRowHead) {1, 2, SLUICE_OLD_NONE, 0, 0}, 0));
	CU_ASSERT_FALSE(row_reads(SLUICE_TAG_DELETE, (SluiceRowHead) {1, 2, SLUICE_OLD_KEY, 2, 1}, 3));
	CU_ASSERT_FALSE(row_reads(SLUICE_TAG_DELETE, (SluiceRowHead) {1, 2, (SluiceOldRow) 3, 2, 0}, 2));
	CU_ASSERT_FALSE(row_reads(SLUICE_TAG_INSERT, (SluiceRowHead) {1, 2, SLUICE_OLD_NONE, 0, 65535}, 7));
	CU_ASSERT_FALSE(row_reads(SLUICE_TAG_INSERT, (SluiceRowHead) {1, 2, SLUICE_OLD_NONE, 0, 7}, 8));
}

static void
truncates(void)
{
	static const uint32_t oids[] = {1, 4294967295u, 7};
	SluiceTruncate truncate = {3, oids};
	SluiceTruncate back;
	SluiceFrame frame;
	SluiceBuffer out;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_wire_truncate(&out, &truncate);
	frame = check_frame(&out, SLUICE_TAG_TRUNCATE);
	CU_ASSERT_TRUE(sluice_wire_get_truncate(&frame, &arena.allocator, &back));
	CU_ASSERT_EQUAL(back.ntables, 3);
	CU_ASSERT_EQUAL(memcmp(back.table_oids, oids, sizeof(oids)), 0);
	memset(out.data + SLUICE_FRAME_HEADER, 0xff, 4);
	CU_ASSERT_FALSE(sluice_wire_get_truncate(&frame, &arena.allocator, &back));
	sluice_buffer_reset(&out);
	truncate.ntables = 0;
	sluice_wire_truncate(&out, &truncate);
	check_frame(&out, SLUICE_TAG_TRUNCATE);
	sluice_buffer_release(&out);
}

static void
create_and_drop(void)
{
	uint8_t		bits[1] = {0x15};
	SluiceCreateTable create = {sample_table(16384), bits};
	SluiceCreateTable back;
	SluiceFrame frame;
	SluiceBuffer out;
	uint32_t	oid;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_wire_create_table(&out, &create);
	frame = check_frame(&out, SLUICE_TAG_CREATE_TABLE);
	CU_ASSERT_TRUE(sluice_wire_get_create_table(&frame, &arena.allocator, &back));
	CU_ASSERT_TRUE(sluice_table_equal(&back.table, &create.table));
	CU_ASSERT_EQUAL(back.backfill[0], 0x15);

	sluice_buffer_reset(&out);
	create.backfill = NULL;
	create.table = sample_empty_table(5);
	sluice_wire_create_table(&out, &create);
	frame = check_frame(&out, SLUICE_TAG_CREATE_TABLE);
	CU_ASSERT_TRUE(sluice_wire_get_create_table(&frame, &arena.allocator, &back));
	CU_ASSERT_TRUE(sluice_table_equal(&back.table, &create.table));
	CU_ASSERT_PTR_NULL(back.backfill);

	sluice_buffer_reset(&out);
	sluice_wire_drop_table(&out, 4294967295u);
	frame = check_frame(&out, SLUICE_TAG_DROP_TABLE);
	CU_ASSERT_TRUE(sluice_wire_get_drop_table(&frame, &oid));
	CU_ASSERT_EQUAL(oid, 4294967295u);
	sluice_buffer_release(&out);
	sluice_arena_reset(&arena);
}

static void
schema_changes(void)
{
	SluiceTableChange table = {16384, sample_table(16384)};
	SluiceTableChange table_back;
	SluiceColumnChange column = {sample_table(16384), 9, true, {SLUICE_TEXT, {.bytes = {"abc", 3}}}};
	SluiceColumnChange column_back;
	SluiceIndexChange index = {sample_table(16384), 16501, "i"};
	SluiceIndexChange index_back;
	SluiceFrame frame;
	SluiceBuffer out;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_wire_table_change(&out, SLUICE_TAG_RENAME_TABLE, &table);
	frame = check_frame(&out, SLUICE_TAG_RENAME_TABLE);
	CU_ASSERT_TRUE(sluice_wire_get_table_change(&frame, &arena.allocator, &table_back));
	CU_ASSERT_TRUE(sluice_table_equal(&table_back.table, &table.table));
	CU_ASSERT_EQUAL(table_back.table_oid, 16384);

	sluice_buffer_reset(&out);
	sluice_wire_table_change(&out, SLUICE_TAG_TABLE_METADATA, &table);
	check_frame(&out, SLUICE_TAG_TABLE_METADATA);

	sluice_buffer_reset(&out);
	sluice_wire_column_change(&out, SLUICE_TAG_ADD_COLUMN, &column);
	frame = check_frame(&out, SLUICE_TAG_ADD_COLUMN);
	CU_ASSERT_TRUE(sluice_wire_get_column_change(&frame, &arena.allocator, &column_back));
	CU_ASSERT_TRUE(sluice_table_equal(&column_back.table, &column.table));
	CU_ASSERT_EQUAL(column_back.attnum, 9);
	CU_ASSERT_TRUE(column_back.backfill);
	memset(out.data, 'z', out.length);	/* the value does not point into it */
	CU_ASSERT_EQUAL(column_back.initial.class, SLUICE_TEXT);
	CU_ASSERT_EQUAL(column_back.initial.u.bytes.size, 3);
	CU_ASSERT_EQUAL(memcmp(column_back.initial.u.bytes.data, "abc", 3), 0);

	sluice_buffer_reset(&out);
	sluice_wire_column_change(&out, SLUICE_TAG_DROP_COLUMN, &column);
	check_frame(&out, SLUICE_TAG_DROP_COLUMN);
	sluice_buffer_reset(&out);
	sluice_wire_column_change(&out, SLUICE_TAG_UPDATE_COLUMN, &column);
	check_frame(&out, SLUICE_TAG_UPDATE_COLUMN);

	sluice_buffer_reset(&out);
	sluice_wire_index_change(&out, SLUICE_TAG_CREATE_INDEX, &index);
	frame = check_frame(&out, SLUICE_TAG_CREATE_INDEX);
	CU_ASSERT_TRUE(sluice_wire_get_index_change(&frame, &arena.allocator, &index_back));
	CU_ASSERT_TRUE(sluice_table_equal(&index_back.table, &index.table));
	CU_ASSERT_EQUAL(index_back.index_oid, 16501);
	CU_ASSERT_STRING_EQUAL(index_back.name, "i");
	sluice_buffer_reset(&out);
	sluice_wire_index_change(&out, SLUICE_TAG_DROP_INDEX, &index);
	check_frame(&out, SLUICE_TAG_DROP_INDEX);
	sluice_buffer_release(&out);
	sluice_arena_reset(&arena);
}

static void
problems(void)
{
	SluiceTableProblem problem = {9, "no key"};
	SluiceTableProblem back;
	SluiceFrame frame;
	SluiceBuffer out;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_wire_table_problem(&out, &problem);
	frame = check_frame(&out, SLUICE_TAG_TABLE_PROBLEM);
	CU_ASSERT_TRUE(sluice_wire_get_table_problem(&frame, &arena.allocator, &back));
	CU_ASSERT_EQUAL(back.table_oid, 9);
	CU_ASSERT_STRING_EQUAL(back.problem, "no key");
	sluice_buffer_reset(&out);
	problem.problem = "";
	sluice_wire_table_problem(&out, &problem);
	check_frame(&out, SLUICE_TAG_TABLE_PROBLEM);
	sluice_buffer_release(&out);
	sluice_arena_reset(&arena);
}

static void
backfills(void)
{
	static const int16_t attnums[] = {1, 2, 9};
	SluiceBackfill note = {3, 4, {5, 6}, true, 2, 1, attnums, 0};
	SluiceBackfill back;
	SluiceCursor cursor;
	SluiceFrame frame;
	SluiceBuffer out;
	size_t		at;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_wire_backfill_note(&out, SLUICE_TAG_BACKFILL_MARK, &note);
	check_frame(&out, SLUICE_TAG_BACKFILL_MARK);
	sluice_buffer_reset(&out);
	sluice_wire_backfill_note(&out, SLUICE_TAG_BACKFILL_COMPLETED, &note);
	frame = check_frame(&out, SLUICE_TAG_BACKFILL_COMPLETED);
	CU_ASSERT_TRUE(sluice_wire_get_backfill(&frame, &arena.allocator, &back, &cursor));
	CU_ASSERT_TRUE(back.table_oid == 3 && back.fingerprint == 4 && back.resync);
	CU_ASSERT_TRUE(back.low.major == 5 && back.low.minor == 6);
	CU_ASSERT_TRUE(back.nkey == 2 && back.ncolumns == 1 && back.nrows == 0);
	CU_ASSERT_EQUAL(memcmp(back.attnums, attnums, sizeof(attnums)), 0);

	sluice_buffer_reset(&out);
	note.nrows = 3;
	at = sluice_wire_open_backfill(&out, &note);
	put_samples(&out, 9);
	CU_ASSERT_TRUE(sluice_wire_close(&out, at));
	frame = check_frame(&out, SLUICE_TAG_BACKFILL);

	/* a count of rows that loops for ever, or that the bytes cannot hold */
	note = (SluiceBackfill) {.nrows = UINT32_MAX};
	sluice_buffer_reset(&out);
	at = sluice_wire_open_backfill(&out, &note);
	CU_ASSERT_TRUE(sluice_wire_close(&out, at));
	CU_ASSERT_EQUAL(sluice_wire_frame(out.data, out.length, &frame), SLUICE_WIRE_OK);
	CU_ASSERT_FALSE(sluice_wire_get_backfill(&frame, &arena.allocator, &back, &cursor));
	note = (SluiceBackfill) {.nkey = 2, .ncolumns = 1, .attnums = attnums, .nrows = UINT32_MAX};
	sluice_buffer_reset(&out);
	at = sluice_wire_open_backfill(&out, &note);
	put_samples(&out, 9);
	CU_ASSERT_TRUE(sluice_wire_close(&out, at));
	CU_ASSERT_EQUAL(sluice_wire_frame(out.data, out.length, &frame), SLUICE_WIRE_OK);
	CU_ASSERT_FALSE(sluice_wire_get_backfill(&frame, &arena.allocator, &back, &cursor));
	sluice_buffer_release(&out);
	sluice_arena_reset(&arena);
}

static void
bad_headers(void)
{
	SluiceFrame frame;
	int			known = 0;

	for (int tag = 0; tag < 256; tag++)
	{
		char		data[SLUICE_FRAME_HEADER] = {0, 0, 0, 0, (char) tag};

		known += sluice_wire_frame(data, sizeof(data), &frame) == SLUICE_WIRE_OK;
	}
	CU_ASSERT_EQUAL(known, 21);
	CU_ASSERT_EQUAL(sluice_wire_frame("\x01\xff\xff\x7fI", 5, &frame), SLUICE_WIRE_DAMAGED);
	CU_ASSERT_EQUAL(sluice_wire_frame("\xff\xff\xff\xffI", 5, &frame), SLUICE_WIRE_DAMAGED);
	CU_ASSERT_EQUAL(sluice_wire_frame("\x00\xff\xff\x7fI", 5, &frame), SLUICE_WIRE_MORE);
	CU_ASSERT_EQUAL(frame.total, (size_t) SLUICE_FRAME_MAX + SLUICE_FRAME_HEADER);
}

/* Lengths are faked: nobody has 2 GB to spare. */
static void
too_large(void)
{
	SluiceBuffer out;
	size_t		frame;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_wire_put_u32(&out, 42);
	frame = sluice_wire_open(&out, SLUICE_TAG_INSERT);
	out.length += SLUICE_FRAME_MAX;
	CU_ASSERT_TRUE(sluice_wire_close(&out, frame));
	out.length = frame;
	frame = sluice_wire_open(&out, SLUICE_TAG_INSERT);
	out.length += (size_t) SLUICE_FRAME_MAX + 1;
	CU_ASSERT_FALSE(sluice_wire_close(&out, frame));
	CU_ASSERT_EQUAL(out.length, 4);
	sluice_buffer_release(&out);
}

static const UnitTest tests[] = {
	{"begin, commit, status, rollback", transaction_frames},
	{"rows", rows},
	{"truncate", truncates},
	{"create table, drop table", create_and_drop},
	{"schema messages", schema_changes},
	{"table problem", problems},
	{"backfill messages", backfills},
	{"unknown tags and impossible lengths", bad_headers},
	{"a frame too large is taken back", too_large},
};

int
main(void)
{
	int			result;

	sluice_arena_init(&arena);
	result = unit_main("wire", tests, sizeof(tests) / sizeof(tests[0]));
	sluice_arena_release(&arena);
	return result;
}
