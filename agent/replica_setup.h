/*
 * replica_setup.h: our own tables in a replica file, and its pragmas.
 * For replica.c only.
 */
#ifndef SLUICE_REPLICA_SETUP_H
#define SLUICE_REPLICA_SETUP_H

#include "replica.h"

/* Journal mode, sync and cache of the writer's connection; load: of a first copy. */
extern SluiceOutcome sluice_replica_pragmas(SluiceReplica *replica, bool load);

/* Makes our tables in an empty file. */
extern SluiceOutcome sluice_replica_setup(SluiceReplica *replica);

/*
 * SLUICE_OK: a replica of a format we know.  COPY_AFRESH: an empty file.
 * DAMAGED: something else.  UNUSABLE: newer than this program.
 */
extern SluiceOutcome sluice_replica_check(SluiceReplica *replica);

/* Reads state, position, list; then the tables.  replica_state.c, replica_table.c */
extern SluiceOutcome sluice_replica_read_state(SluiceReplica *replica);
extern SluiceOutcome sluice_replica_write_position(SluiceReplica *replica,
												   const SluicePosition *position);
extern SluiceOutcome sluice_replica_read_tables(SluiceReplica *replica);
extern SluiceOutcome sluice_replica_reread_tables(SluiceReplica *replica);
extern void sluice_replica_release_tables(SluiceReplica *replica);

#endif
