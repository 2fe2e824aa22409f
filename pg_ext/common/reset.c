/*
 * reset.c: see reset.h.
 *
 * In: wishes.  Out: the stream's entry.
 * Runs in: decoder, storer, launcher, CALLs.
 * Locks: the entry's spinlock, SluiceShmem.lock; one at a time.
 */
#include "postgres.h"

#include <signal.h>

#include "utils/timestamp.h"

#include "reset.h"

#define QUICK 60000				/* ms: a try this soon after another waits */
#define WAIT_FIRST 1000			/* ms */
#define WAIT_LAST 60000

void
sluice_reset_ask(SluiceStream *stream, SluiceResetWish wish, const char *reason)
{
	char		message[SLUICE_MESSAGE_MAX];
	bool		asked;

	SpinLockAcquire(&stream->mutex);
	asked = wish > stream->reset;
	if (asked)
	{
		stream->reset = wish;
		strlcpy(stream->reset_reason, reason, sizeof(stream->reset_reason));
	}
	SpinLockRelease(&stream->mutex);
	if (!asked)
		return;
	snprintf(message, sizeof(message), "reset: %s", reason);
	sluice_stream_set_state(stream, SLUICE_STREAM_RESETTING, 0, message);
}

SluiceResetWish
sluice_reset_wished(SluiceStream *stream, char *reason)
{
	SluiceResetWish wish;

	SpinLockAcquire(&stream->mutex);
	wish = stream->reset;
	if (reason)
		memcpy(reason, stream->reset_reason, SLUICE_MESSAGE_MAX);
	SpinLockRelease(&stream->mutex);
	return wish;
}

void
sluice_reset_forget(SluiceStream *stream)
{
	SpinLockAcquire(&stream->mutex);
	stream->reset = SLUICE_RESET_NONE;
	stream->reset_reason[0] = '\0';
	SpinLockRelease(&stream->mutex);
}

long
sluice_reset_delay(SluiceStream *stream)
{
	TimestampTz now = GetCurrentTimestamp();
	int			tries;

	SpinLockAcquire(&stream->mutex);
	if (stream->reset_tried_at != 0 &&
		now < TimestampTzPlusMilliseconds(stream->reset_tried_at, QUICK))
		stream->reset_tries++;
	else
		stream->reset_tries = 0;
	tries = stream->reset_tries;
	SpinLockRelease(&stream->mutex);
	return tries == 0 ? 0 : Min((long) WAIT_FIRST << Min(tries - 1, 10), WAIT_LAST);
}

void
sluice_reset_tried(SluiceStream *stream)
{
	TimestampTz now = GetCurrentTimestamp();

	SpinLockAcquire(&stream->mutex);
	stream->reset_tried_at = now;
	SpinLockRelease(&stream->mutex);
}

void
sluice_reset_done(SluiceStream *stream)
{
	TimestampTz now = GetCurrentTimestamp();

	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	stream->slot = stream->next_slot;
	stream->n = stream->next_n;
	memset(&stream->next_slot, 0, sizeof(stream->next_slot));
	LWLockRelease(sluice_shmem->lock);

	SpinLockAcquire(&stream->mutex);
	stream->resets++;
	stream->reset_at = now;
	memcpy(stream->reset_last, stream->reset_reason, sizeof(stream->reset_last));
	stream->reset = SLUICE_RESET_NONE;
	stream->reset_reason[0] = '\0';
	stream->low_valid = false;
	memset(&stream->head, 0, sizeof(stream->head));
	memset(&stream->stored, 0, sizeof(stream->stored));
	stream->stored_end_lsn = 0;
	memset(&stream->first, 0, sizeof(stream->first));
	stream->last_commit_time = 0;
	stream->stored_time = 0;
	SpinLockRelease(&stream->mutex);
	pg_atomic_write_u64(&stream->confirmed, 0);
}

void
sluice_reset_end_decoder(SluiceStream *stream)
{
	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	if (stream->in_use && stream->decoder_pid != 0)
		kill(stream->decoder_pid, SIGTERM);
	LWLockRelease(sluice_shmem->lock);
	sluice_shmem_wake_launcher();
}
