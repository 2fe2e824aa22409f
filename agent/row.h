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
#include "rowlog.h"

/* Of one transaction of the stream, for all its rows. */
typedef struct SluiceRowContext
{
	SluiceReplica *replica;
	SluiceRowLog *log;			/* NULL: off */
	const char *version;		/* _0_version: the transaction's watermark */
	int			version_size;
	SluiceValue *values;		/* scratch */
	size_t		capacity;
} SluiceRowContext;

extern SluiceOutcome sluice_row_apply(SluiceRowContext *context, SluiceReplicaTable *table,
									  const SluiceFrame *frame);

/* All rows of a table; they are logged as one. */
extern SluiceOutcome sluice_row_truncate(SluiceRowContext *context, SluiceReplicaTable *table);

/*
 * First copy: a plain INSERT, _0_version by its DEFAULT.  Fingerprint is
 * checked.
 */
extern SluiceOutcome sluice_row_copy(SluiceReplica *replica, SluiceReplicaTable *table,
									 const SluiceFrame *frame);

extern void sluice_row_release_plans(SluiceReplica *replica, SluiceReplicaTable *table);

#endif
