/*
 * schema.h: CREATE TABLE and CREATE INDEX of a replica from a SluiceTable.
 *
 * Tables are STRICT, columns INTEGER, ANY, TEXT or BLOB, _0_version TEXT NOT NULL last
 * (DEFAULT low: what copied rows have).  A key of one integer column is INTEGER
 * PRIMARY KEY; every other key is a unique index.  Deferrable constraints
 * become plain indexes.
 *
 * All inside the caller's SQLite transaction.
 */
#ifndef SLUICE_SCHEMA_H
#define SLUICE_SCHEMA_H

#include "replica.h"
#include "row.h"

/* INTEGER, ANY, TEXT or BLOB */
extern const char *sluice_schema_declared(SluiceStorage storage);

/* Creates the table (no index) and notes it; placed NULL: made by the stream. */
extern SluiceOutcome sluice_schema_create_table(SluiceReplica *replica, const SluiceTable *spec,
												const char *name, const SluicePlaced *placed,
												SluiceWatermark version,
												SluiceReplicaTable **table);

typedef enum SluiceIndexes
{
	SLUICE_INDEXES_KEY,			/* the index that finds rows by key, if one is needed */
	SLUICE_INDEXES_OTHERS,
	SLUICE_INDEXES_ALL
} SluiceIndexes;

/* Those that are there already stay. */
extern SluiceOutcome sluice_schema_create_indexes(SluiceReplica *replica,
												  SluiceReplicaTable *table, SluiceIndexes which);

/*
 * For many tables: the names of all indexes of all tables at once.  They
 * depend on which tables there are.  The arena is released by the caller.
 */
typedef struct SluiceIndexNames
{
	SluiceArena arena;
	struct SluiceName *names;	/* by OID */
	size_t		count;
} SluiceIndexNames;

extern void sluice_schema_name_indexes(SluiceReplica *replica, SluiceIndexNames *names);
extern SluiceOutcome sluice_schema_create_named_indexes(SluiceReplica *replica,
														SluiceReplicaTable *table,
														SluiceIndexes which,
														const SluiceIndexNames *names);

extern SluiceOutcome sluice_schema_drop_table(SluiceReplica *replica, SluiceReplicaTable *table);

/*
 * SQLite names for a set of tables, by the rule of names.h; names[i] belongs
 * to tables[i] (oid, schema, name are read).
 */
extern void sluice_schema_table_names(const SluiceTable *tables, size_t count,
									  const char **names, const SluiceAllocator *allocator);

#endif
