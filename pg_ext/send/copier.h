/*
 * copier.h: what the parts of CALL sluice.copy share: waiting for the client
 * and for everything else, with signs of life.
 *
 * Owner: the client backend in CALL sluice.copy (copy.c).  Locks: none kept.
 */
#ifndef SLUICE_COPIER_H
#define SLUICE_COPIER_H

#include "datatype/timestamp.h"
#include "lib/stringinfo.h"

#include "sender.h"
#include "snapshot.h"
#include "state.h"
#include "value.h"

typedef struct SluiceCopier
{
	SluiceSenderTask task;
	SluiceState *state;
	SluiceEncodeOptions options;
	MemoryContext table;		/* reset for each table */
	bool		lagging;		/* the decoder did not catch up when it was waited for */
	TimestampTz last_sign;
	StringInfoData ignored;		/* what the client says */
} SluiceCopier;

/* For who waits for something else than the client: at most so many ms. */
extern void sluice_copier_wait(void *copier, long ms);

/* Waits until the socket has taken what there is: nothing new is made before. */
extern void sluice_copier_drain(SluiceCopier *copier);

/* Shown in sluice.replica_status; "" nothing. */
extern void sluice_copier_waits_for(SluiceCopier *copier, const char *what);

/* sluice_snapshot_take() with some patience, unless the decoder had none left. */
extern void sluice_copier_snapshot(SluiceCopier *copier, SluicePlacedSnapshot *placed);

/* copy_list.c: notes the replica and sends the list. */
extern void sluice_copy_send_list(SluiceCopier *copier);
/* copy_table.c: one table, or that it is gone. */
extern void sluice_copy_send_table(SluiceCopier *copier, Oid oid);

#endif
