/*
 * snapshot.h: snapshots whose place in the stream is known (low, S, high).
 *
 * Every commit up to low is visible in S; everything visible in S is at or
 * before high; between them a transaction is in S exactly if its 64-bit top
 * xid is visible in S.
 *
 * Runs in a backend or worker without an xid (asserted).
 */
#ifndef SLUICE_SNAPSHOT_H
#define SLUICE_SNAPSHOT_H

#include "datatype/timestamp.h"
#include "utils/snapshot.h"

#include "shmem.h"
#include "wire.h"

typedef struct SluicePlacedSnapshot
{
	Snapshot	snapshot;		/* registered and active until sluice_snapshot_end */
	SluiceWatermark low;
	uint64		high;
	uint64		xmin;
	uint64		xmax;
	uint32		nxids;
	uint64	   *xids;			/* in progress, top level, 64-bit */
} SluicePlacedSnapshot;

/*
 * Inside an open transaction (READ COMMITTED, no xid, no active snapshot),
 * with the locks already taken.  Waits for the decoder to pass the flush
 * position until `patience` (the smaller the lag, the fewer transactions lie
 * between low and high), and for as long as it takes for low to be published.
 * wait() is called while it waits: it waits for the process latch for that
 * many ms at most and answers interrupts; condition variables are prepared.
 */
extern void sluice_snapshot_take(SluiceStream *stream, TimestampTz patience,
								 void (*wait) (void *argument, long ms), void *argument,
								 SluicePlacedSnapshot *placed);
extern void sluice_snapshot_end(SluicePlacedSnapshot *placed);

/* u64 xmin, xmax, u32 count, xids */
extern void sluice_snapshot_encode(SluiceBuffer *out, const SluicePlacedSnapshot *placed);

#endif
