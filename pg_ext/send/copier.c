/*
 * copier.c: see copier.h.
 *
 * In: the client's messages.  Out: K messages; the copier's entry.
 * Runs in: the client backend in CALL sluice.copy.
 * Locks: the entry's spinlock.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "allocator.h"
#include "clock.h"
#include "copier.h"
#include "copyboth.h"
#include "guc.h"

#define PATIENCE 5000			/* ms a table waits for a decoder that lags */
#define SIGN_OF_LIFE 1000		/* ms */

static void
heed(SluiceCopier *copier)
{
	sluice_sender_check(&copier->task);
	if (sluice_sender_stopping())
		ereport(ERROR,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("the server is shutting down")));
	while (sluice_copyboth_receive(&copier->ignored) == SLUICE_RECEIVE_MESSAGE)
		;
}

static void
show_life(SluiceCopier *copier)
{
	TimestampTz now = GetCurrentTimestamp();
	SluiceBuffer out;

	if (now < TimestampTzPlusMilliseconds(copier->last_sign, SIGN_OF_LIFE) ||
		sluice_copyboth_pending())
		return;
	sluice_buffer_init(&out, &sluice_palloc_allocator);
	sluice_wire_put_u64(&out, (uint64) sluice_unix_time(now));
	sluice_copyboth_send('K', out.data, out.length);
	sluice_buffer_release(&out);
	copier->last_sign = now;
}

void
sluice_copier_wait(void *argument, long ms)
{
	SluiceCopier *copier = argument;

	heed(copier);
	sluice_sender_check_stopped(&copier->task);
	show_life(copier);
	(void) sluice_copyboth_flush();
	sluice_copyboth_wait(Min(ms, SIGN_OF_LIFE));
}

/*
 * A copy holds a lock and a snapshot, so a client that takes nothing is not
 * waited for without end.  It need not speak: that it reads is enough.
 */
void
sluice_copier_drain(SluiceCopier *copier)
{
	sluice_copyboth_heed_interrupts();
	while (!sluice_copyboth_flush())
	{
		int64		timeout = 2 * (int64) sluice_effective_sender_timeout();

		heed(copier);
		if (timeout > 0 && GetCurrentTimestamp() >=
			TimestampTzPlusMilliseconds(sluice_copyboth_moved_at(), timeout))
			sluice_copyboth_give_up(psprintf("replica \"%s\" has taken nothing of its copy for " INT64_FORMAT " ms (twice sluice.sender_timeout)",
											 copier->task.replica, timeout));
		sluice_copyboth_wait(SIGN_OF_LIFE);
	}
}

void
sluice_copier_waits_for(SluiceCopier *copier, const char *what)
{
	SluiceSender *entry = copier->task.entry;

	SpinLockAcquire(&entry->mutex);
	strlcpy(entry->waits_for, what, sizeof(entry->waits_for));
	SpinLockRelease(&entry->mutex);
}

void
sluice_copier_snapshot(SluiceCopier *copier, SluicePlacedSnapshot *placed)
{
	TimestampTz patience = GetCurrentTimestamp();

	if (!copier->lagging)
		patience = TimestampTzPlusMilliseconds(patience, PATIENCE);
	sluice_copier_waits_for(copier, "the decoder to reach the end of the WAL");
	sluice_snapshot_take(copier->task.stream, patience, sluice_copier_wait, copier, placed);
	sluice_copier_waits_for(copier, "");
	copier->lagging = GetCurrentTimestamp() >= patience;
}
