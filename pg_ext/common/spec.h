/*
 * spec.h: what is known of a published table, and its form on the wire.
 *
 * The decoder's tracked schema, the copy's table headers, the schema messages
 * of the stream and the agent's own notes all use these structs.  A table is
 * known by its OID, a column by its attnum; names may change.
 *
 * Everything a SluiceTable points to lives in memory of the allocator that it
 * was decoded or copied with.  Pure C.  No locks.
 */
#ifndef SLUICE_SPEC_H
#define SLUICE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

/* How a column is declared in the STRICT table of a replica. */
typedef enum SluiceStorage
{
	SLUICE_STORAGE_INTEGER = 'i',
	SLUICE_STORAGE_ANY = 'a',
	SLUICE_STORAGE_TEXT = 't',
	SLUICE_STORAGE_BLOB = 'b'
} SluiceStorage;

/* column flags */
#define SLUICE_COLUMN_NOT_NULL	0x01
#define SLUICE_COLUMN_ENUM		0x02
#define SLUICE_COLUMN_ARRAY		0x04
#define SLUICE_COLUMN_GENERATED	0x08

typedef struct SluiceColumn
{
	int16_t		attnum;
	uint8_t		flags;
	SluiceStorage storage;
	uint32_t	type_oid;
	int32_t		typmod;
	int32_t		max_length;		/* of varchar(n), char(n); -1: none */
	const char *name;
	const char *type;			/* pg_type name; arrays: element name + "[]" */
	const char *default_sql;	/* NULL: none */
} SluiceColumn;

/* index flags */
#define SLUICE_INDEX_UNIQUE			0x01
#define SLUICE_INDEX_PRIMARY		0x02
#define SLUICE_INDEX_IDENTITY		0x04
#define SLUICE_INDEX_DEFERRABLE		0x08
#define SLUICE_INDEX_NULLS_EQUAL	0x10	/* NULLS NOT DISTINCT */

typedef struct SluiceIndexColumn
{
	int16_t		attnum;
	bool		descending;
} SluiceIndexColumn;

typedef struct SluiceIndex
{
	uint32_t	oid;
	uint8_t		flags;
	uint16_t	ncolumns;
	const SluiceIndexColumn *columns;	/* in key order */
	const char *name;			/* same schema as its table */
} SluiceIndex;

/* table flags */
#define SLUICE_TABLE_PARTITIONED	0x01	/* a root, its leaves' rows come under it */

typedef struct SluiceTable
{
	uint32_t	oid;
	uint32_t	schema_oid;
	uint8_t		flags;
	char		identity;		/* pg_class.relreplident: d, f, i, n */
	uint16_t	ncolumns;		/* published ones only */
	uint16_t	nkey;
	uint16_t	nindexes;
	const char *schema;
	const char *name;
	const SluiceColumn *columns;	/* by attnum, rising */
	const uint16_t *key;		/* positions in columns, in key order: the
								 * replica identity (full: the key of the
								 * table if it has one) */
	const SluiceIndex *indexes; /* by OID; only those a replica can hold */
	const char *problem;		/* why it cannot be followed; NULL: it can */
	const char *filter;			/* rows that are published: an expression on
								 * this table as the server's own node text;
								 * NULL: all */
	uint32_t	fingerprint;	/* sluice_table_fingerprint(); 0 in none */
} SluiceTable;

typedef struct SluiceSchema
{
	uint32_t	ntables;
	const SluiceTable *tables;	/* by OID, rising */
} SluiceSchema;

/*
 * What a row's values depend on: table OID, identity, key, and attnum, type,
 * typmod and storage of each column.  Names, defaults, indexes and the filter
 * do not count.  Never 0.
 */
extern uint32_t sluice_table_fingerprint(const SluiceTable *table);

/* Index into columns by attnum or by name; -1: none. */
extern int	sluice_table_column_by_attnum(const SluiceTable *table, int attnum);
extern int	sluice_table_column_by_name(const SluiceTable *table, const char *name);

/* NULL: none */
extern const SluiceTable *sluice_schema_find(const SluiceSchema *schema, uint32_t oid);

/*
 * Wire form; the version byte lets newer code read what older code stored.
 * 2: a table's filter, behind its problem.
 */
#define SLUICE_SPEC_VERSION 2
extern void sluice_table_encode(SluiceBuffer *out, const SluiceTable *table);
extern void sluice_schema_encode(SluiceBuffer *out, const SluiceSchema *schema);

/*
 * Decode from data[0..size).  On success *used is what was read; on damage or
 * an unknown version they return false and leave *table alone.
 */
/* (what was taken from the allocator until then stays with it: use an arena) */
extern bool sluice_table_decode(const void *data, size_t size, size_t *used,
								const SluiceAllocator *allocator, SluiceTable *table);
extern bool sluice_schema_decode(const void *data, size_t size, size_t *used,
								 const SluiceAllocator *allocator, SluiceSchema *schema);

/* Deep copy into the allocator's memory. */
extern void sluice_table_copy(SluiceTable *to, const SluiceTable *from,
							  const SluiceAllocator *allocator);
extern bool sluice_table_equal(const SluiceTable *a, const SluiceTable *b);

#endif
