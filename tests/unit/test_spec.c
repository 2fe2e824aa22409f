/*
 * test_spec.c: table specs: wire form, damage, fingerprint, copies.
 */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "sample.h"
#include "unit.h"
#include "wire.h"

static SluiceArena arena;

static SluiceBuffer
encoded(const SluiceTable *table)
{
	SluiceBuffer out;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_table_encode(&out, table);
	return out;
}

/* Decodes from memory of exactly that size, so that a sanitizer sees overruns. */
static bool
decodes(const char *data, size_t size, size_t *used, SluiceTable *table)
{
	char	   *exact = malloc(size + 1);
	bool		ok;

	memcpy(exact + 1, data, size);
	ok = sluice_table_decode(exact + 1, size, used, &arena.allocator, table);
	free(exact);
	return ok;
}

static void
round_trip(void)
{
	SluiceTable samples[2] = {sample_table(16384), sample_empty_table(4294967295u)};

	for (int i = 0; i < 2; i++)
	{
		SluiceBuffer out = encoded(&samples[i]);
		SluiceTable back;
		SluiceTable copy;
		size_t		used = 0;

		CU_ASSERT_TRUE(decodes(out.data, out.length, &used, &back));
		CU_ASSERT_EQUAL(used, out.length);
		CU_ASSERT_TRUE(sluice_table_equal(&samples[i], &back));
		CU_ASSERT_EQUAL(back.fingerprint, samples[i].fingerprint);
		CU_ASSERT_EQUAL(sluice_table_fingerprint(&back), samples[i].fingerprint);
		sluice_table_copy(&copy, &back, &arena.allocator);
		CU_ASSERT_TRUE(sluice_table_equal(&samples[i], &copy));
		CU_ASSERT_PTR_NOT_EQUAL(copy.name, back.name);
		sluice_buffer_release(&out);
	}
	sluice_arena_reset(&arena);
}

static void
fingerprint_filled_in(void)
{
	SluiceTable table = sample_table(1);
	uint32_t	expected = table.fingerprint;
	SluiceBuffer out;
	SluiceTable back;
	size_t		used;

	table.fingerprint = 0;
	out = encoded(&table);
	CU_ASSERT_TRUE(decodes(out.data, out.length, &used, &back));
	CU_ASSERT_EQUAL(back.fingerprint, expected);
	sluice_buffer_release(&out);
	sluice_arena_reset(&arena);
}

static void
truncations(void)
{
	SluiceTable table = sample_table(16384);
	SluiceBuffer out = encoded(&table);

	for (size_t n = 0; n < out.length; n++)
	{
		SluiceTable back = {.oid = 12345};
		size_t		used;

		CU_ASSERT_FALSE(decodes(out.data, n, &used, &back));
		CU_ASSERT_EQUAL(back.oid, 12345);
		sluice_arena_reset(&arena);
	}
	sluice_buffer_release(&out);
}

/* Every byte replaced by others: no crash, no hang, nothing beyond the input believed. */
static void
damage(void)
{
	SluiceTable table = sample_table(16384);
	SluiceBuffer out = encoded(&table);
	static const unsigned char others[] = {0, 1, 0x7f, 0x80, 0xff};

	for (size_t n = 0; n < out.length; n++)
	{
		char		kept = out.data[n];

		for (size_t k = 0; k < sizeof(others); k++)
		{
			SluiceTable back;
			size_t		used;

			out.data[n] = (char) others[k];
			if (decodes(out.data, out.length, &used, &back))
				CU_ASSERT_TRUE(used <= out.length);
			sluice_arena_reset(&arena);
		}
		out.data[n] = kept;
	}
	sluice_buffer_release(&out);
}

/* A spec as version 1 had it: no filter behind the problem. */
static void
earlier_version(void)
{
	SluiceTable table = sample_table(16384);
	SluiceTable tables[1];
	SluiceSchema schema = {1, tables};
	SluiceBuffer out;
	SluiceTable back;
	SluiceSchema all;
	size_t		used = 0;
	size_t		problem = 1 + 4 + 4 + 4 + 1 + 1 + 2 + 2 + 2 + (4 + 6) + (4 + 1);

	table.filter = NULL;
	out = encoded(&table);
	CU_ASSERT_EQUAL(out.data[0], 2);
	/* both are NULL, so that either may be taken out */
	CU_ASSERT_EQUAL(memcmp(out.data + problem, out.data + problem + 4, 4), 0);
	memmove(out.data + problem, out.data + problem + 4, out.length - problem - 4);
	out.length -= 4;
	out.data[0] = 1;
	CU_ASSERT_TRUE(decodes(out.data, out.length, &used, &back));
	CU_ASSERT_EQUAL(used, out.length);
	CU_ASSERT_TRUE(sluice_table_equal(&table, &back));
	CU_ASSERT_PTR_NULL(back.filter);
	sluice_buffer_release(&out);

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	tables[0] = table;
	sluice_schema_encode(&out, &schema);
	out.data[0] = 1;
	memmove(out.data + 5 + problem, out.data + 5 + problem + 4, out.length - 5 - problem - 4);
	out.length -= 4;
	out.data[5] = 1;
	CU_ASSERT_TRUE(sluice_schema_decode(out.data, out.length, &used, &arena.allocator, &all));
	CU_ASSERT_EQUAL(used, out.length);
	CU_ASSERT_TRUE(sluice_table_equal(&table, &all.tables[0]));
	out.data[5] = 0;
	CU_ASSERT_FALSE(sluice_schema_decode(out.data, out.length, &used, &arena.allocator, &all));
	sluice_buffer_release(&out);
	sluice_arena_reset(&arena);
}

static void
filters_count(void)
{
	SluiceTable table = sample_table(1);
	SluiceTable other = table;

	other.filter = NULL;
	CU_ASSERT_FALSE(sluice_table_equal(&table, &other));
	other.filter = "{CONST :consttype 17}";
	CU_ASSERT_FALSE(sluice_table_equal(&table, &other));
	CU_ASSERT_EQUAL(sluice_table_fingerprint(&other), table.fingerprint);
	other.filter = sluice_arena_strdup(&arena, table.filter);
	CU_ASSERT_TRUE(sluice_table_equal(&table, &other));
	sluice_arena_reset(&arena);
}

static bool
spoilt_decodes(const SluiceTable *table)
{
	SluiceBuffer out = encoded(table);
	SluiceTable back;
	size_t		used;
	bool		ok = decodes(out.data, out.length, &used, &back);

	sluice_buffer_release(&out);
	sluice_arena_reset(&arena);
	return ok;
}

static void
impossible(void)
{
	SluiceTable table = sample_table(1);
	SluiceColumn columns[5];
	SluiceIndex index = sample_indexes[0];
	SluiceIndexColumn index_column = {3, false};
	uint16_t	key[2] = {0, 5};

	memcpy(columns, sample_columns, sizeof(columns));
	table.columns = columns;
	CU_ASSERT_TRUE(spoilt_decodes(&table));

	columns[1].attnum = 1;		/* twice */
	CU_ASSERT_FALSE(spoilt_decodes(&table));
	columns[1].attnum = 2;
	columns[0].attnum = 0;
	CU_ASSERT_FALSE(spoilt_decodes(&table));
	columns[0].attnum = 1;
	columns[2].storage = (SluiceStorage) 'x';
	CU_ASSERT_FALSE(spoilt_decodes(&table));
	columns[2].storage = SLUICE_STORAGE_TEXT;
	columns[2].name = NULL;
	CU_ASSERT_FALSE(spoilt_decodes(&table));
	columns[2].name = "ok";
	CU_ASSERT_TRUE(spoilt_decodes(&table));

	table.fingerprint = 1;
	table.key = key;			/* no such column */
	CU_ASSERT_FALSE(spoilt_decodes(&table));
	key[1] = 4;
	CU_ASSERT_TRUE(spoilt_decodes(&table));

	table.indexes = &index;
	table.nindexes = 1;
	CU_ASSERT_TRUE(spoilt_decodes(&table));
	index.columns = &index_column;	/* attnum 3 is not there */
	CU_ASSERT_FALSE(spoilt_decodes(&table));
}

static void
fingerprints(void)
{
	SluiceTable table = sample_table(1);
	SluiceTable other;
	SluiceColumn columns[5];
	uint16_t	key[2] = {0, 2};

	memcpy(columns, sample_columns, sizeof(columns));
	other = table;
	other.columns = columns;
	other.name = "renamed";
	other.nindexes = 0;
	columns[0].name = "renamed too";
	columns[0].default_sql = "1";
	columns[0].flags = 0;
	CU_ASSERT_EQUAL(sluice_table_fingerprint(&other), table.fingerprint);
	CU_ASSERT_FALSE(sluice_table_equal(&other, &table));

	columns[0].typmod = 5;
	CU_ASSERT_NOT_EQUAL(sluice_table_fingerprint(&other), table.fingerprint);
	columns[0].typmod = -1;
	columns[0].type_oid = 20;
	CU_ASSERT_NOT_EQUAL(sluice_table_fingerprint(&other), table.fingerprint);
	columns[0].type_oid = 23;
	columns[0].storage = SLUICE_STORAGE_ANY;
	CU_ASSERT_NOT_EQUAL(sluice_table_fingerprint(&other), table.fingerprint);
	columns[0].storage = SLUICE_STORAGE_INTEGER;
	CU_ASSERT_EQUAL(sluice_table_fingerprint(&other), table.fingerprint);
	other.key = key;			/* the same columns in another order */
	CU_ASSERT_NOT_EQUAL(sluice_table_fingerprint(&other), table.fingerprint);
	other.key = table.key;
	other.identity = 'f';
	CU_ASSERT_NOT_EQUAL(sluice_table_fingerprint(&other), table.fingerprint);
	other.identity = 'd';
	other.oid = 2;
	CU_ASSERT_NOT_EQUAL(sluice_table_fingerprint(&other), table.fingerprint);
}

/* Part of what is stored on both sides: it may not change by accident. */
static void
fingerprint_is_stable(void)
{
	SluiceTable table = sample_table(16384);

	CU_ASSERT_EQUAL(table.fingerprint, 1597563140u);
}

static void
lookups(void)
{
	SluiceTable tables[3] = {sample_table(10), sample_table(20), sample_empty_table(4000000000u)};
	SluiceSchema schema = {3, tables};
	SluiceSchema none = {0, NULL};

	CU_ASSERT_EQUAL(sluice_table_column_by_attnum(&tables[0], 1), 0);
	CU_ASSERT_EQUAL(sluice_table_column_by_attnum(&tables[0], 4), 2);
	CU_ASSERT_EQUAL(sluice_table_column_by_attnum(&tables[0], 32767), 4);
	CU_ASSERT_EQUAL(sluice_table_column_by_attnum(&tables[0], 3), -1);
	CU_ASSERT_EQUAL(sluice_table_column_by_attnum(&tables[0], -1), -1);
	CU_ASSERT_EQUAL(sluice_table_column_by_attnum(&tables[2], 1), -1);
	CU_ASSERT_EQUAL(sluice_table_column_by_name(&tables[0], "moods"), 2);
	CU_ASSERT_EQUAL(sluice_table_column_by_name(&tables[0], "nope"), -1);
	CU_ASSERT_PTR_EQUAL(sluice_schema_find(&schema, 10), &tables[0]);
	CU_ASSERT_PTR_EQUAL(sluice_schema_find(&schema, 20), &tables[1]);
	CU_ASSERT_PTR_EQUAL(sluice_schema_find(&schema, 4000000000u), &tables[2]);
	CU_ASSERT_PTR_NULL(sluice_schema_find(&schema, 15));
	CU_ASSERT_PTR_NULL(sluice_schema_find(&schema, 0));
	CU_ASSERT_PTR_NULL(sluice_schema_find(&none, 10));
}

static void
schemas(void)
{
	SluiceTable tables[3] = {sample_table(10), sample_empty_table(20), sample_table(30)};
	SluiceSchema schema = {3, tables};
	SluiceSchema back = {77, NULL};
	SluiceBuffer out;
	size_t		used = 0;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_schema_encode(&out, &schema);
	for (size_t n = 0; n < out.length; n++)
	{
		CU_ASSERT_FALSE(sluice_schema_decode(out.data, n, &used, &arena.allocator, &back));
		CU_ASSERT_EQUAL(back.ntables, 77);
	}
	CU_ASSERT_TRUE(sluice_schema_decode(out.data, out.length, &used, &arena.allocator, &back));
	CU_ASSERT_EQUAL(used, out.length);
	CU_ASSERT_EQUAL(back.ntables, 3);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_TRUE(sluice_table_equal(&back.tables[i], &tables[i]));

	/* an unknown version, a count beyond the input, OIDs that do not rise */
	out.data[0] = SLUICE_SPEC_VERSION + 1;
	CU_ASSERT_FALSE(sluice_schema_decode(out.data, out.length, &used, &arena.allocator, &back));
	out.data[0] = SLUICE_SPEC_VERSION;
	memset(out.data + 1, 0xff, 4);
	CU_ASSERT_FALSE(sluice_schema_decode(out.data, out.length, &used, &arena.allocator, &back));
	tables[1].oid = 10;
	sluice_buffer_reset(&out);
	sluice_schema_encode(&out, &schema);
	CU_ASSERT_FALSE(sluice_schema_decode(out.data, out.length, &used, &arena.allocator, &back));
	sluice_buffer_release(&out);
	sluice_arena_release(&arena);
}

static void
arena_grows(void)
{
	const SluiceAllocator *a = &arena.allocator;
	char	   *piece = a->grow(a->context, NULL, 3);

	memcpy(piece, "abc", 3);
	piece = a->grow(a->context, piece, 16);
	memcpy(piece, "abcdefghijklmnop", 16);
	CU_ASSERT_EQUAL((uintptr_t) piece % 16, 0);
	piece = a->grow(a->context, piece, 100000);
	CU_ASSERT_EQUAL(memcmp(piece, "abcdefghijklmnop", 16), 0);
	piece = a->grow(a->context, piece, 3000000);
	CU_ASSERT_EQUAL(memcmp(piece, "abcdefghijklmnop", 16), 0);
	CU_ASSERT_STRING_EQUAL(sluice_arena_printf(&arena, "%s-%d", "x", 7), "x-7");
	CU_ASSERT_STRING_EQUAL(sluice_arena_strdup(&arena, ""), "");
	sluice_arena_reset(&arena);
	sluice_arena_release(&arena);
}

static const UnitTest tests[] = {
	{"round trip and copy", round_trip},
	{"a missing fingerprint is filled in", fingerprint_filled_in},
	{"specs of version 1 are read", earlier_version},
	{"a filter counts", filters_count},
	{"truncated specs are refused", truncations},
	{"damaged specs do no harm", damage},
	{"impossible specs are refused", impossible},
	{"what a fingerprint depends on", fingerprints},
	{"fingerprints are stable", fingerprint_is_stable},
	{"look-ups", lookups},
	{"schemas", schemas},
	{"the arena keeps what it grows", arena_grows},
};

int
main(void)
{
	sluice_arena_init(&arena);
	return unit_main("spec", tests, sizeof(tests) / sizeof(tests[0]));
}
