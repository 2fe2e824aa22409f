/*
 * rename.h: tables, columns and indexes get the names that a fresh copy would
 * give them (names.h), and are noted with their new specs.
 *
 * Pointers to the tables concerned are void afterwards.
 */
#ifndef SLUICE_RENAME_H
#define SLUICE_RENAME_H

#include "replica.h"

/*
 * The set of tables changes: one has a new spec (noted if it is there, else it
 * only counts for the names), or one has gone (0: none).  *name: of the
 * changed one.
 */
extern SluiceOutcome sluice_rename_tables(SluiceReplica *replica, const SluiceTable *changed,
										  uint32_t gone, const SluiceAllocator *allocator,
										  const char **name);

/* A table's columns change: those that stay are renamed, the spec is noted. */
extern SluiceOutcome sluice_rename_columns(SluiceReplica *replica, SluiceReplicaTable *table,
										   const SluiceTable *spec);

/* One that the file has not is no error. */
extern SluiceOutcome sluice_rename_drop_index(SluiceReplica *replica, uint32_t oid);

#endif
