/*
 * walwait.c: sleeping until there is flushed WAL to decode.
 *
 * A commit wakes the decoder: by the commit hook (shmem.c), and from 16 on by
 * the server's own condition variable.  What is written without either, such
 * as an asynchronous commit, is found by the timeout, which is that of the
 * process that flushes it (wal_writer_delay).
 *
 * In: a WAL position.  Out: nothing; the caller looks anew.
 * Runs in: decoder.  Locks: none.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/latch.h"

#include "compat.h"
#include "walwait.h"

#define TIMEOUT 200				/* ms */

XLogRecPtr
sluice_walwait_flushed(void)
{
	return GetFlushRecPtr(NULL);
}

void
sluice_walwait(SluiceStream *stream, XLogRecPtr seen)
{
	sluice_flush_wait_prepare();
	pg_atomic_write_u32(&stream->wake_wanted, 1);

	/* a commit behind this barrier sees the flag, one before it has flushed */
	pg_memory_barrier();
	if (sluice_walwait_flushed() <= seen)
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, TIMEOUT,
						 sluice_wait_event(SLUICE_WAIT_WAL));
	pg_atomic_write_u32(&stream->wake_wanted, 0);
	sluice_flush_wait_cancel();
}
