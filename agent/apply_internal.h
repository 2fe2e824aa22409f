/*
 * apply_internal.h: what apply.c (bytes, groups) and change.c (messages)
 * share.
 */
#ifndef SLUICE_APPLY_INTERNAL_H
#define SLUICE_APPLY_INTERNAL_H

#include "apply.h"
#include "row.h"

struct SluiceApply
{
	SluiceReplica *replica;
	SluiceRowContext row;
	SluiceApplyCounts counts;

	/* bytes of the stream that are held back */
	SluiceBuffer held;
	size_t		walked;			/* of the bytes at hand, known to end no transaction */
	size_t		wanted;			/* what the frame at hand takes as a whole */

	/* the transaction of the stream that is being applied */
	bool		open;			/* BEGIN was taken, its end not */
	bool		alone;			/* it has an SQLite transaction of its own */
	SluiceBegin begin;
	uint64_t	number;			/* of the begin: tables remember what they judged for it */
	char		version[SLUICE_WATERMARK_TEXT_MAX];

	/* the group: whole transactions in the open SQLite transaction */
	uint32_t	single;			/* groups of one to come: to find which one fails */
	uint32_t	grouped;
	size_t		grouped_bytes;
	int64_t		grouped_since;
	SluicePosition next;		/* position once the group is committed */
	uint64_t	reached;		/* bare position: for the tables' highs */
	int64_t		seen_written;	/* when a position of a keepalive was last written */

	size_t		placed;			/* tables whose high is not passed, the list included */
	SluiceReplicaTable *last;	/* last table found */
	SluiceArena arena;			/* of one message */
};

/* change.c: one frame inside a transaction, but BEGIN, COMMIT, ROLLBACK. */
extern SluiceOutcome sluice_change_apply(SluiceApply *apply, const SluiceFrame *frame);
/* Forgets snapshots that the stream has passed; inside an SQLite transaction. */
extern SluiceOutcome sluice_change_passed(SluiceApply *apply, uint64_t position);
extern bool sluice_change_passes(const SluiceApply *apply, uint64_t position);
extern void sluice_change_count_placed(SluiceApply *apply);

#endif
