/*
 * schema.h: the published schema of a set of publications, read from the
 * catalogs by scans under a given snapshot.
 *
 * snapshot: an MVCC snapshot, or NULL for the catalog snapshot of the moment
 * (inside decoding callbacks: the historic one).  Only valid indexes count.
 * Never part of a shard: our schemas (cdc_*, sluice), temporary and unlogged
 * tables, system catalogs.
 *
 * Results live in the current memory context.
 */
#ifndef SLUICE_SCHEMA_H
#define SLUICE_SCHEMA_H

#include "nodes/pg_list.h"
#include "utils/snapshot.h"

#include "allocator.h"
#include "spec.h"
#include "value.h"

/*
 * publications: list of char *.  ERROR (undefined_object) if one is missing.
 * A table that cannot be followed (column list that differs between
 * publications, partition with another identity, …) has `problem` set: a text
 * that says why and what to do.
 */
extern SluiceSchema *sluice_schema_read(List *publications, Snapshot snapshot,
										const SluiceEncodeOptions *options);

/* One table; NULL if it is gone or not published. */
extern SluiceTable *sluice_schema_read_table(Oid relid, List *publications, Snapshot snapshot,
											 const SluiceEncodeOptions *options);

/*
 * No replica identity to find old rows by: PostgreSQL refuses its updates and
 * deletes while they are published, its inserts and truncates are followed.
 * That alone is not a problem (above): create_shard's option keyless decides.
 */
extern bool sluice_schema_keyless(const SluiceTable *table);

/*
 * Where rows of `relid` are published: itself, the root of its partition tree
 * (publish_via_partition_root), or InvalidOid.  By the tracked schema, with
 * the ancestors as the snapshot shows them.
 */
extern Oid	sluice_schema_publish_as(const SluiceSchema *schema, Oid relid);

/* The relations that hold the rows of a partitioned table. */
extern List *sluice_schema_leaves(Oid root, Snapshot snapshot);

#endif
