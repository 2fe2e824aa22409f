/*
 * row.h: one row frame to one prepared statement.
 *
 * In: INSERT, UPDATE, DELETE frames.  Values are bound from the frame's memory
 * without a copy; the frame must stay until the call returns.
 * Out: rows in the file.  An effect that is not exactly one row is an error.
 * Runs in the thread that owns the replica, inside its transaction.
 */
#ifndef SLUICE_ROW_H
#define SLUICE_ROW_H

#include "replica.h"

/*
 * First copy: a plain INSERT, _0_version by its DEFAULT.  Fingerprint is
 * checked.
 */
extern SluiceOutcome sluice_row_copy(SluiceReplica *replica, SluiceReplicaTable *table,
									 const SluiceFrame *frame);

extern void sluice_row_release_plans(SluiceReplica *replica, SluiceReplicaTable *table);

#endif
