/*
 * low.c: up to which watermark every transaction has left the ProcArray.
 *
 * A queue of the transactions that were decoded, in stream order; those at its
 * front that are no longer in progress leave it.  Low is what came before the
 * front, so it is always a watermark of the stream.
 *
 * At the start the transactions that run now are asked: those that CLOG says
 * committed may lie before the place where decoding begins, so nothing is
 * known until they have left.  Those that it does not yet say so of are
 * decoded later.  In between are the few that have written their commit record
 * and not yet CLOG: they are waited for (it takes them a flush).
 *
 * In: decoded xids.  Out: low.
 * Runs in: decoder.  Locks: ProcArrayLock and XidGenLock, briefly.
 */
#include "postgres.h"

#include "access/transam.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/standby.h"

#include "compat.h"
#include "low.h"
#include "worker.h"

/* Above it, and above twice what was left last time, all entries are asked. */
#define SWEEP_AT 1024

typedef struct LowEntry
{
	TransactionId xid;
	SluiceWatermark before;
} LowEntry;

struct SluiceLow
{
	/* committed before decoding began, in progress then */
	int			nearly;
	TransactionId *early;

	/* the queue: entries[first..end) */
	int			first;
	int			end;
	int			capacity;
	int			sweep_at;
	LowEntry   *entries;
};

static void
wait_for_commits_under_way(void)
{
	int			n;
	VirtualTransactionId *vxids = GetVirtualXIDsDelayingChkpt(&n, DELAY_CHKPT_START);

	while (n > 0 && HaveVirtualXIDsDelayingChkpt(vxids, n, DELAY_CHKPT_START))
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 1,
						 sluice_wait_event(SLUICE_WAIT_PROGRESS));
		ResetLatch(MyLatch);
		sluice_worker_interrupts();
	}
	pfree(vxids);
}

static TransactionId *
running_now(int *n)
{
	RunningTransactions running = GetRunningTransactionData();
	TransactionId *xids;

	/* it comes with both locks held */
	LWLockRelease(ProcArrayLock);
	LWLockRelease(XidGenLock);

	/* in memory of procarray.c's own; top transactions come first */
	*n = running->xcnt;
	xids = palloc(Max(*n, 1) * sizeof(TransactionId));
	memcpy(xids, running->xids, *n * sizeof(TransactionId));
	return xids;
}

SluiceLow *
sluice_low_create(void)
{
	SluiceLow  *low = palloc0(sizeof(SluiceLow));
	int			n;

	low->early = running_now(&n);
	wait_for_commits_under_way();
	for (int i = 0; i < n; i++)
	{
		if (TransactionIdDidCommit(low->early[i]))
			low->early[low->nearly++] = low->early[i];
	}
	low->capacity = SWEEP_AT;
	low->sweep_at = SWEEP_AT;
	low->entries = palloc(low->capacity * sizeof(LowEntry));
	return low;
}

/* Makes room at the end: by what has left, else by more memory. */
static void
sweep(SluiceLow *low)
{
	int			kept = 0;
	int			n = low->end - low->first;

	memmove(low->entries, low->entries + low->first, n * sizeof(LowEntry));
	low->first = 0;
	low->end = n;
	if (n < low->sweep_at)
		return;

	for (int i = 0; i < n; i++)
	{
		if (TransactionIdIsInProgress(low->entries[i].xid))
			low->entries[kept++] = low->entries[i];
	}
	low->end = kept;
	low->sweep_at = Max(SWEEP_AT, 2 * kept);
	if (low->capacity < low->sweep_at)
	{
		low->capacity = low->sweep_at;
		low->entries = repalloc(low->entries, low->capacity * sizeof(LowEntry));
	}
}

void
sluice_low_add(SluiceLow *low, TransactionId xid, SluiceWatermark before)
{
	if (low->end == low->capacity)
		sweep(low);
	low->entries[low->end].xid = xid;
	low->entries[low->end].before = before;
	low->end++;
}

bool
sluice_low_get(SluiceLow *low, SluiceWatermark head, SluiceWatermark *result)
{
	while (low->nearly > 0 && !TransactionIdIsInProgress(low->early[low->nearly - 1]))
		low->nearly--;
	while (low->first < low->end && !TransactionIdIsInProgress(low->entries[low->first].xid))
		low->first++;
	if (low->first == low->end)
		low->first = low->end = 0;

	*result = low->end > 0 ? low->entries[low->first].before : head;
	return low->nearly == 0;
}
