/*
 * test_scanner.c: transaction boundaries in a stream that is cut anywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "sample.h"
#include "unit.h"
#include "wire.h"

static SluiceArena arena;

#define MAX_EVENTS 64

typedef struct Seen
{
	int			n;
	SluiceScanEvent event[MAX_EVENTS];
	size_t		end[MAX_EVENTS];	/* offset behind the frame */
	uint64_t	major[MAX_EVENTS];
} Seen;

static void
put_begin(SluiceBuffer *out, uint64_t major)
{
	SluiceBegin begin = {{major, 0}, major * 10, (int64_t) major * 100, 0};

	sluice_wire_begin(out, &begin);
}

static void
put_commit(SluiceBuffer *out, uint64_t major)
{
	SluiceCommit commit = {{major, 0}, major + 50};

	sluice_wire_commit(out, &commit);
}

static void
put_row(SluiceBuffer *out, size_t size)
{
	SluiceRowHead head = {1, 2, SLUICE_OLD_NONE, 0, 1};
	size_t		at = sluice_wire_open_row(out, SLUICE_TAG_INSERT, &head);
	char	   *text = calloc(1, size + 1);

	sluice_wire_put_text(out, text, size);
	CU_ASSERT_TRUE(sluice_wire_close(out, at));
	free(text);
}

/* Three transactions, one rolled back, one empty; every kind of frame. */
static void
build_stream(SluiceBuffer *out)
{
	SluiceStatus status = {1, 2};
	SluiceCreateTable create = {sample_table(5), NULL};
	SluiceTruncate truncate = {0, NULL};

	sluice_wire_status(out, &status);
	put_begin(out, 100);
	put_row(out, 0);
	put_row(out, 70);
	sluice_wire_create_table(out, &create);
	put_commit(out, 100);
	sluice_wire_status(out, &status);
	sluice_wire_status(out, &status);
	put_begin(out, 200);
	put_commit(out, 200);
	put_begin(out, 300);
	sluice_wire_truncate(out, &truncate);
	put_row(out, 300);
	sluice_wire_rollback(out);
	put_begin(out, 300);
	put_row(out, 1);
	put_commit(out, 300);
	sluice_wire_status(out, &status);
}

static void
feed(SluiceScanner *scanner, Seen *seen, size_t offset, const char *data, size_t size)
{
	size_t		done = 0;

	while (done < size)
	{
		SluiceScanEvent event;
		size_t		n = sluice_scanner_feed(scanner, data + done, size - done, &event);

		CU_ASSERT_TRUE_FATAL(n <= size - done);
		done += n;
		if (event == SLUICE_SCAN_NONE)
		{
			CU_ASSERT_EQUAL(done, size);
			break;
		}
		CU_ASSERT_TRUE_FATAL(seen->n < MAX_EVENTS && event != SLUICE_SCAN_DAMAGED);
		CU_ASSERT_FALSE(scanner->in_frame);
		CU_ASSERT_EQUAL(scanner->in_transaction, event == SLUICE_SCAN_BEGIN);
		seen->event[seen->n] = event;
		seen->end[seen->n] = offset + done;
		seen->major[seen->n] = event == SLUICE_SCAN_COMMIT ?
			scanner->commit.watermark.major : scanner->begin.watermark.major;
		if (event == SLUICE_SCAN_COMMIT)
			CU_ASSERT_EQUAL(scanner->commit.end_lsn, scanner->commit.watermark.major + 50);
		if (event == SLUICE_SCAN_BEGIN)
			CU_ASSERT_EQUAL(scanner->begin.xid, scanner->begin.watermark.major * 10);
		seen->n++;
	}
}

static void
same(const Seen *a, const Seen *b)
{
	CU_ASSERT_EQUAL_FATAL(a->n, b->n);
	for (int i = 0; i < a->n; i++)
	{
		CU_ASSERT_EQUAL(a->event[i], b->event[i]);
		CU_ASSERT_EQUAL(a->end[i], b->end[i]);
		CU_ASSERT_EQUAL(a->major[i], b->major[i]);
	}
}

static void
cuts(void)
{
	static const SluiceScanEvent expected[] = {
		SLUICE_SCAN_BEGIN, SLUICE_SCAN_COMMIT, SLUICE_SCAN_BEGIN, SLUICE_SCAN_COMMIT,
		SLUICE_SCAN_BEGIN, SLUICE_SCAN_ROLLBACK, SLUICE_SCAN_BEGIN, SLUICE_SCAN_COMMIT
	};
	SluiceBuffer out;
	SluiceScanner scanner;
	Seen		whole = {0};
	Seen		single = {0};

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	build_stream(&out);
	sluice_scanner_init(&scanner);
	feed(&scanner, &whole, 0, out.data, out.length);
	CU_ASSERT_EQUAL_FATAL(whole.n, 8);
	for (int i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(whole.event[i], expected[i]);
	CU_ASSERT_TRUE(whole.major[0] == 100 && whole.major[3] == 200 && whole.major[7] == 300);
	CU_ASSERT_FALSE(scanner.in_transaction || scanner.in_frame || scanner.damaged);

	/* one byte at a time, from memory of one byte */
	sluice_scanner_init(&scanner);
	for (size_t i = 0; i < out.length; i++)
	{
		char	   *byte = malloc(1);

		*byte = out.data[i];
		feed(&scanner, &single, i, byte, 1);
		free(byte);
	}
	same(&whole, &single);

	/* two cuts, everywhere */
	for (size_t i = 0; i <= out.length; i++)
	{
		for (size_t j = i; j <= out.length; j += 1 + (j - i) / 8)
		{
			Seen		cut = {0};

			sluice_scanner_init(&scanner);
			feed(&scanner, &cut, 0, out.data, i);
			feed(&scanner, &cut, i, out.data + i, j - i);
			feed(&scanner, &cut, j, out.data + j, out.length - j);
			same(&whole, &cut);
		}
	}
	sluice_buffer_release(&out);
}

/* in_frame tells whether a cut lies inside a frame. */
static void
inside_a_frame(void)
{
	SluiceBuffer out;
	size_t		boundary = 0;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	build_stream(&out);
	for (size_t i = 0; i <= out.length; i++)
	{
		SluiceScanner scanner;
		Seen		seen = {0};
		SluiceFrame frame;

		if (boundary < i)
		{
			CU_ASSERT_EQUAL(sluice_wire_frame(out.data + boundary, out.length - boundary, &frame),
							SLUICE_WIRE_OK);
			if (boundary + frame.total == i)
				boundary = i;
		}
		sluice_scanner_init(&scanner);
		feed(&scanner, &seen, 0, out.data, i);
		CU_ASSERT_EQUAL(scanner.in_frame, boundary != i);
	}
	sluice_buffer_release(&out);
}

/* Damage is found, wherever the bytes are cut, and stays. */
static void
is_damaged(const SluiceBuffer *out)
{
	for (size_t cut = 0; cut <= out->length; cut++)
	{
		SluiceScanner scanner;
		SluiceScanEvent event = SLUICE_SCAN_NONE;
		size_t		at = 0;

		sluice_scanner_init(&scanner);
		while (at < cut && event != SLUICE_SCAN_DAMAGED)
			at += sluice_scanner_feed(&scanner, out->data + at, cut - at, &event);
		while (at < out->length && event != SLUICE_SCAN_DAMAGED)
			at += sluice_scanner_feed(&scanner, out->data + at, out->length - at, &event);
		CU_ASSERT_EQUAL(event, SLUICE_SCAN_DAMAGED);
		CU_ASSERT_TRUE(scanner.damaged);
		CU_ASSERT_EQUAL(sluice_scanner_feed(&scanner, out->data, out->length, &event), 0);
		CU_ASSERT_EQUAL(event, SLUICE_SCAN_DAMAGED);
	}
}

static void
damage(void)
{
	SluiceStatus status = {1, 2};
	SluiceBuffer out;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	put_commit(&out, 1);		/* without a begin */
	is_damaged(&out);
	sluice_buffer_reset(&out);
	sluice_wire_rollback(&out);
	is_damaged(&out);
	sluice_buffer_reset(&out);
	put_row(&out, 5);
	is_damaged(&out);
	sluice_buffer_reset(&out);
	put_begin(&out, 1);
	put_begin(&out, 1);
	is_damaged(&out);
	sluice_buffer_reset(&out);
	put_begin(&out, 1);
	sluice_wire_status(&out, &status);
	is_damaged(&out);
	sluice_buffer_reset(&out);
	put_begin(&out, 1);
	put_commit(&out, 2);		/* of another transaction */
	is_damaged(&out);
	sluice_buffer_reset(&out);
	put_begin(&out, 1);
	put_row(&out, 3);
	out.data[38 + 4] = '?';		/* unknown tag behind the begin */
	is_damaged(&out);
	sluice_buffer_reset(&out);
	put_begin(&out, 1);
	put_row(&out, 3);
	memset(out.data + 38, 0xff, 4); /* impossible length */
	is_damaged(&out);
	sluice_buffer_reset(&out);
	put_begin(&out, 1);
	out.data[0]++;				/* no begin is that long */
	sluice_wire_put_u8(&out, 0);
	is_damaged(&out);
	sluice_buffer_release(&out);
}

/* A payload of 2 GB passes without memory. */
static void
huge_payload(void)
{
	SluiceBuffer out;
	SluiceScanner scanner;
	SluiceScanEvent event;
	uint32_t	size = SLUICE_FRAME_MAX;
	uint64_t	left = size;
	char	   *piece = calloc(1, 1 << 20);

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_scanner_init(&scanner);
	put_begin(&out, 1);
	sluice_buffer_append(&out, &size, 4);
	sluice_buffer_append(&out, "I", 1);
	CU_ASSERT_EQUAL(sluice_scanner_feed(&scanner, out.data, out.length, &event), 38);
	CU_ASSERT_EQUAL(event, SLUICE_SCAN_BEGIN);
	CU_ASSERT_EQUAL(sluice_scanner_feed(&scanner, out.data + 38, 5, &event), 5);
	while (left > 0)
	{
		size_t		n = left < (1 << 20) ? left : (1 << 20);

		CU_ASSERT_TRUE(scanner.in_frame);
		CU_ASSERT_EQUAL(sluice_scanner_feed(&scanner, piece, n, &event), n);
		CU_ASSERT_EQUAL(event, SLUICE_SCAN_NONE);
		left -= n;
	}
	CU_ASSERT_FALSE(scanner.in_frame);
	sluice_buffer_reset(&out);
	put_commit(&out, 1);
	CU_ASSERT_EQUAL(sluice_scanner_feed(&scanner, out.data, out.length, &event), out.length);
	CU_ASSERT_EQUAL(event, SLUICE_SCAN_COMMIT);
	sluice_buffer_release(&out);
	free(piece);
}

static const UnitTest tests[] = {
	{"every cut finds the same boundaries", cuts},
	{"cuts inside frames are known", inside_a_frame},
	{"damage is found and stays", damage},
	{"the largest payload", huge_payload},
};

int
main(void)
{
	int			result;

	sluice_arena_init(&arena);
	result = unit_main("scanner", tests, sizeof(tests) / sizeof(tests[0]));
	sluice_arena_release(&arena);
	return result;
}
