/*
 * snapshot.c: see snapshot.h.
 *
 * In: the decoder's low and decoded position.  Out: a snapshot and its place.
 * Runs in: copiers (client backends), backfill workers.
 * Locks: the stream's spinlock; the caller's table locks are held throughout.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "snapshot.h"

#define MESSAGE_PREFIX "sluice"
#define LONGEST_WAIT 1000		/* ms */

static bool
read_low(SluiceStream *stream, SluiceWatermark *low)
{
	bool		valid;

	SpinLockAcquire(&stream->mutex);
	valid = stream->low_valid;
	*low = stream->low;
	SpinLockRelease(&stream->mutex);
	return valid;
}

/* The low that counts is read when nothing is waited for any more. */
static SluiceWatermark
wait_for_low(SluiceStream *stream, TimestampTz patience, void (*wait) (void *, long), void *argument)
{
	XLogRecPtr	target = GetFlushRecPtr(NULL);
	SluiceWatermark low;

	for (;;)
	{
		long		left = LONGEST_WAIT;
		bool		valid;

		ConditionVariablePrepareToSleep(&stream->progress);
		valid = read_low(stream, &low);
		if (valid && pg_atomic_read_u64(&stream->decoded) >= target)
			break;
		if (valid)
		{
			left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), patience);
			if (left <= 0)
				break;
		}
		sluice_shmem_wake_decoders();
		wait(argument, Min(left, LONGEST_WAIT));
	}
	ConditionVariableCancelSleep();
	return low;
}

/* Snapshots know 32 bits; none of their xids is 2^31 behind the next one. */
static uint64
widen(TransactionId xid, FullTransactionId next)
{
	uint32		epoch = EpochFromFullTransactionId(next);

	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return U64FromFullTransactionId(FullTransactionIdFromEpochAndXid(epoch, xid));
}

static void
describe(SluicePlacedSnapshot *placed)
{
	Snapshot	snapshot = placed->snapshot;
	FullTransactionId next = ReadNextFullTransactionId();

	placed->xmin = widen(snapshot->xmin, next);
	placed->xmax = widen(snapshot->xmax, next);
	placed->nxids = snapshot->xcnt;
	placed->xids = palloc(sizeof(uint64) * Max(snapshot->xcnt, 1));
	for (uint32 i = 0; i < snapshot->xcnt; i++)
		placed->xids[i] = widen(snapshot->xip[i], next);
}

void
sluice_snapshot_take(SluiceStream *stream, TimestampTz patience, void (*wait) (void *, long),
					 void *argument, SluicePlacedSnapshot *placed)
{
	Assert(!ActiveSnapshotSet());

	placed->low = wait_for_low(stream, patience, wait, argument);

	/* an xid of our own would be missing from the snapshot's list */
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		elog(ERROR, "a placed snapshot was asked for in a transaction that writes");
	placed->snapshot = RegisterSnapshot(GetLatestSnapshot());
	PushActiveSnapshot(placed->snapshot);
	describe(placed);

	/*
	 * The insert position would not do: at a page boundary it is behind
	 * anything that can be flushed or decoded.  The flush also makes durable
	 * whatever asynchronous commits the snapshot sees.
	 */
	placed->high = sluice_log_message(MESSAGE_PREFIX, "high", 4);
	XLogFlush(placed->high);
	sluice_shmem_wake_decoders();
}

void
sluice_snapshot_end(SluicePlacedSnapshot *placed)
{
	PopActiveSnapshot();
	UnregisterSnapshot(placed->snapshot);
	pfree(placed->xids);
	placed->snapshot = NULL;
	placed->xids = NULL;
}

void
sluice_snapshot_encode(SluiceBuffer *out, const SluicePlacedSnapshot *placed)
{
	sluice_wire_put_u64(out, placed->xmin);
	sluice_wire_put_u64(out, placed->xmax);
	sluice_wire_put_u32(out, placed->nxids);
	for (uint32 i = 0; i < placed->nxids; i++)
		sluice_wire_put_u64(out, placed->xids[i]);
}
