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
	int64_t		lag;			/* us from the last transaction's commit to its commit here */
} SluiceApplyCounts;

/* NULL: logged, *outcome says more. */
extern SluiceApply *sluice_apply_create(SluiceReplica *replica, bool row_log,
										SluiceOutcome *outcome);
extern void sluice_apply_destroy(SluiceApply *apply);	/* rolls back what is open */

/*
 * Bytes of a W message.  What is held back points into no memory of the
 * caller.  SLUICE_RETRY: the stream is to be asked for anew from the replica's
 * position (damaged bytes, or a failure that is to be tried alone).
 */
extern SluiceOutcome sluice_apply_bytes(SluiceApply *apply, const char *data, size_t size);

/* X, or a new connection: drops an unfinished frame and transaction. */
extern void sluice_apply_reset(SluiceApply *apply);

/* A keepalive: every commit that starts before that position was sent. */
extern void sluice_apply_seen(SluiceApply *apply, uint64_t position);

/* Nothing more waits: commits the group, and notes what was seen. */
extern SluiceOutcome sluice_apply_flush(SluiceApply *apply);

/* True inside a transaction of the stream (some of its bytes were taken). */
extern bool sluice_apply_in_transaction(const SluiceApply *apply);

/* Tables whose high is not passed yet, the list included. */
extern size_t sluice_apply_placed(const SluiceApply *apply);

/* What is committed, and how far the stream was seen beyond it. */
extern SluicePosition sluice_apply_position(const SluiceApply *apply);
extern SluiceApplyCounts sluice_apply_counts(const SluiceApply *apply);

#endif
