/*
 * sample.h: table specs for tests of the codec, specs and copies.
 */
#ifndef SLUICE_SAMPLE_H
#define SLUICE_SAMPLE_H

#include "spec.h"

static const SluiceColumn sample_columns[] = {
	{1, SLUICE_COLUMN_NOT_NULL, SLUICE_STORAGE_INTEGER, 23, -1, -1, "id", "int4", NULL},
	{2, 0, SLUICE_STORAGE_TEXT, 1043, 44, 40, "na\xc3\xafve \"name\"", "varchar", "'x'::character varying"},
	{4, SLUICE_COLUMN_ENUM | SLUICE_COLUMN_ARRAY, SLUICE_STORAGE_TEXT, 16400, -1, -1, "moods", "mood[]", ""},
	{9, SLUICE_COLUMN_GENERATED, SLUICE_STORAGE_ANY, 701, -1, -1, "", "float8", NULL},
	{32767, 0, SLUICE_STORAGE_BLOB, 17, -1, -1, "b", "bytea", NULL},
};
static const uint16_t sample_key[] = {2, 0};
static const SluiceIndexColumn sample_index1[] = {{1, false}};
static const SluiceIndexColumn sample_index2[] = {{9, true}, {1, false}, {32767, true}};
static const SluiceIndex sample_indexes[] = {
	{16500, SLUICE_INDEX_UNIQUE | SLUICE_INDEX_PRIMARY, 1, sample_index1, "t_pkey"},
	{16501, SLUICE_INDEX_DEFERRABLE | SLUICE_INDEX_NULLS_EQUAL, 3, sample_index2, ""},
};

static inline SluiceTable
sample_table(uint32_t oid)
{
	SluiceTable table = {
		.oid = oid,
		.schema_oid = 2200,
		.flags = SLUICE_TABLE_PARTITIONED,
		.identity = 'd',
		.ncolumns = 5,
		.nkey = 2,
		.nindexes = 2,
		.schema = "public",
		.name = "t",
		.columns = sample_columns,
		.key = sample_key,
		.indexes = sample_indexes,
		.filter = "{CONST :consttype 16}",
	};

	table.fingerprint = sluice_table_fingerprint(&table);
	return table;
}

static inline SluiceTable
sample_empty_table(uint32_t oid)
{
	SluiceTable table = {
		.oid = oid,
		.identity = 'n',
		.schema = "",
		.name = "",
		.problem = "it has no columns",
	};

	table.fingerprint = sluice_table_fingerprint(&table);
	return table;
}

#endif
