/*
 * copy_worker.h: one of the connections of a first copy.
 *
 * In: batches of tables from the list.  Out: messages to copy_table.c.
 * A lost connection gives its unfinished tables back and tries again after a
 * while; the other connections go on.
 *
 * States: closed (until retry_at), idle (connected), calling.
 */
#ifndef SLUICE_COPY_WORKER_H
#define SLUICE_COPY_WORKER_H

#include "conn.h"
#include "copy_table.h"

#define SLUICE_COPY_BATCH 200	/* tables in one call at most */

typedef struct SluiceCopyWorker
{
	SluiceConn	conn;
	bool		open;
	bool		calling;
	int64_t		retry_at;		/* clock; while it is closed */
	int			delay;			/* ms, before the next attempt */
	SluiceCopyTable table;
	uint32_t	oids[SLUICE_COPY_BATCH];	/* asked for */
	size_t		noids;
} SluiceCopyWorker;

extern void sluice_copy_worker_init(SluiceCopyWorker *worker, SluiceReplica *replica,
									SluiceCopyList *list, SluiceProgress *progress);
extern void sluice_copy_worker_release(SluiceCopyWorker *worker);

/*
 * Gives an idle worker its next tables, on one of `jobs` connections.  OK also
 * if there is nothing to do, or not yet.
 */
extern SluiceOutcome sluice_copy_worker_start(SluiceCopyWorker *worker, int jobs);

/*
 * Takes messages that are there, up to some amount.  *some: there were any.
 * Inside a transaction of the replica.
 */
extern SluiceOutcome sluice_copy_worker_step(SluiceCopyWorker *worker, bool *some);

/* The connection is of no use any more: others may do its tables. */
extern SluiceOutcome sluice_copy_worker_lost(SluiceCopyWorker *worker);

/* The list of tables, over the same connection. */
extern SluiceOutcome sluice_copy_worker_list(SluiceCopyWorker *worker, SluiceCopyList *list);

#endif
