/*
 * fuzz_wire.c: the codec against bytes of any kind (libFuzzer).
 *
 * The first byte chooses: frames, table spec, schema spec, or the scanner,
 * which gets the rest in pieces and must find what it finds in the whole.
 * What decodes must encode to something that decodes to the same again.
 */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "read_frame.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static SluiceArena arena;

static void
fuzz_frames(const char *data, size_t size)
{
	SluiceFrame frame;

	while (sluice_wire_frame(data, size, &frame) == SLUICE_WIRE_OK)
	{
		if (frame.total > size)
			abort();
		read_frame(&frame, &arena.allocator);
		data += frame.total;
		size -= frame.total;
	}
}

static void
fuzz_table(const char *data, size_t size)
{
	SluiceTable table;
	SluiceTable back;
	SluiceTable copy;
	SluiceBuffer out;
	size_t		used;

	if (!sluice_table_decode(data, size, &used, &arena.allocator, &table))
		return;
	if (used > size)
		abort();
	sluice_table_copy(&copy, &table, &arena.allocator);
	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_table_encode(&out, &copy);
	if (!sluice_table_decode(out.data, out.length, &used, &arena.allocator, &back) ||
		used != out.length || !sluice_table_equal(&table, &back) ||
		sluice_table_fingerprint(&table) != sluice_table_fingerprint(&back))
		abort();
	sluice_buffer_release(&out);
}

static void
fuzz_schema(const char *data, size_t size)
{
	SluiceSchema schema;
	size_t		used;

	if (!sluice_schema_decode(data, size, &used, &arena.allocator, &schema))
		return;
	for (uint32_t i = 0; i < schema.ntables; i++)
	{
		if (sluice_schema_find(&schema, schema.tables[i].oid) != &schema.tables[i])
			abort();
	}
}

/* A number that depends on every event and where it was. */
static uint64_t
scan(const char *data, size_t size, size_t piece)
{
	SluiceScanner scanner;
	uint64_t	sum = 0;

	sluice_scanner_init(&scanner);
	for (size_t at = 0; at < size;)
	{
		size_t		n = size - at < piece ? size - at : piece;
		SluiceScanEvent event;
		size_t		taken = sluice_scanner_feed(&scanner, data + at, n, &event);

		if (taken > n || (event == SLUICE_SCAN_NONE && taken != n))
			abort();
		at += taken;
		if (event == SLUICE_SCAN_DAMAGED)
			return sum * 31 + 99;
		if (event != SLUICE_SCAN_NONE)
			sum = (sum * 31 + event) * 31 + at;
	}
	return sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *rest = (const char *) data + 1;

	if (size < 1)
		return 0;
	if (arena.allocator.grow == NULL)
		sluice_arena_init(&arena);
	size--;
	switch (data[0])
	{
		case 'f':
			fuzz_frames(rest, size);
			break;
		case 't':
			fuzz_table(rest, size);
			break;
		case 's':
			fuzz_schema(rest, size);
			break;
		case 'x':
			if (scan(rest, size, SIZE_MAX) != scan(rest, size, 1) ||
				scan(rest, size, SIZE_MAX) != scan(rest, size, 7))
				abort();
			break;
		default:
			break;
	}
	sluice_arena_reset(&arena);
	return 0;
}
