/*
 * replica_meta.h: what the replica tells its readers about a table
 * (_zero.tableMetadata, _zero.column_metadata, _sluice.names).
 * For replica_table.c and schema.c.
 */
#ifndef SLUICE_REPLICA_META_H
#define SLUICE_REPLICA_META_H

#include "replica.h"

extern SluiceOutcome sluice_replica_write_meta(SluiceReplica *replica,
											   const SluiceReplicaTable *table);
extern SluiceOutcome sluice_replica_erase_meta(SluiceReplica *replica,
											   const SluiceReplicaTable *table);
/* Every row of the table counts as changed in the transaction of this version. */
extern SluiceOutcome sluice_replica_bump(SluiceReplica *replica, const SluiceReplicaTable *table,
										 const char *version);
/* kind: "table", "column" or "index" */
extern SluiceOutcome sluice_replica_write_name(SluiceReplica *replica, const char *kind,
											   uint32_t oid, int attnum, const char *schema,
											   const char *name, const char *sqlite_name);

/*
 * The key is kept unique by a deferrable constraint only: within a transaction
 * two rows can have it.  Rows of such a table are found by all their values.
 */
extern bool sluice_replica_key_is_late(const SluiceTable *spec);

/* One key column of an integer type, never null, never taken twice. */
extern bool sluice_replica_wants_integer_key(const SluiceTable *spec);

#endif
