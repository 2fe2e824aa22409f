/*
 * apply.h: the frame stream to SQLite transactions.
 *
 * In: bytes of the stream, cut anywhere.  Out: the replica, one upstream
 * transaction visible at once or not at all.
 *
 * A transaction that is whole in memory joins the open group; a group is
 * committed when nothing more waits, or by its limits.  One that is too large
 * to be held back gets an SQLite transaction of its own, so that undoing it
 * never undoes another.
 *
 * Runs in the thread that owns the replica.
 */
#ifndef SLUICE_APPLY_H
#define SLUICE_APPLY_H

#include "replica.h"

typedef struct SluiceApply SluiceApply;

typedef struct SluiceApplyCounts
{
	uint64_t	transactions;
	uint64_t	rows;
	uint64_t	commits;		/* of SQLite */
	uint64_t	bytes;
} SluiceApplyCounts;

extern SluiceApply *sluice_apply_create(SluiceReplica *replica, bool row_log);
extern void sluice_apply_destroy(SluiceApply *apply);	/* rolls back what is open */

/* Bytes of a W message.  What is held back points into no memory of the caller. */
extern SluiceOutcome sluice_apply_bytes(SluiceApply *apply, const char *data, size_t size);

/* X: drops an unfinished frame and transaction. */
extern SluiceOutcome sluice_apply_reset(SluiceApply *apply);

/* Nothing more waits: commits the group. */
extern SluiceOutcome sluice_apply_flush(SluiceApply *apply);

/* True inside a transaction of the stream (some of its bytes were taken). */
extern bool sluice_apply_in_transaction(const SluiceApply *apply);
extern SluiceApplyCounts sluice_apply_counts(const SluiceApply *apply);

#endif
