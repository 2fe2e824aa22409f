/*
 * lineage.c: see lineage.h.
 *
 * A reset makes a slot as create_shard does, in the decoder's process, which
 * has not taken the old slot: that one stays until the new lineage is
 * committed.  The storer is ended before, so that nothing of the old lineage
 * can reach the new log.
 *
 * In: the wish in the stream's entry, the state row.  Out: the new lineage; or
 * a shard that is stopped (auto_reset is off) or paused.
 * Runs in: decoder, at its start, without a slot.
 * Locks: SHARE on state for a moment; none across a wait.
 *
 * States: wish -> allowed -> its turn -> storer ended -> newslot.c.
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "lineage.h"
#include "newslot.h"
#include "reset.h"
#include "worker.h"

#define AGAIN_AFTER 1000		/* ms between signals to a storer that does not go */

typedef struct Facts
{
	bool		ours;			/* the shard is there, and has this slot */
	bool		paused;
	bool		auto_reset;
	uint32		n;
} Facts;

/* Waits for who is about to change the row. */
static void
read_facts(SluiceStream *stream, Facts *facts)
{
	SluiceState *state;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	state = sluice_state_read(stream->shard, ShareLock, true);
	memset(facts, 0, sizeof(*facts));
	if (state != NULL && state->slot != NULL &&
		strcmp(state->slot, NameStr(stream->slot)) == 0)
	{
		facts->ours = true;
		facts->paused = state->paused;
		facts->auto_reset = state->options.auto_reset;
		facts->n = state->n;
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/* One that fails, or is needed again and again, must not spin. */
static void
wait_turn(SluiceStream *stream, const char *reason)
{
	TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													sluice_reset_delay(stream));
	char		message[SLUICE_MESSAGE_MAX];
	long		left;

	snprintf(message, sizeof(message), "reset: %s", reason);
	if (until > GetCurrentTimestamp())
		snprintf(message, sizeof(message), "reset (not before %s, because there was one just now): %s",
				 timestamptz_to_str(until), reason);
	sluice_stream_set_state(stream, SLUICE_STREAM_RESETTING, 0, message);
	while (sluice_reset_wished(stream, NULL) == SLUICE_RESET_AUTO &&
		   (left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), until)) > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, left,
						 sluice_wait_event(SLUICE_WAIT_PROGRESS));
		ResetLatch(MyLatch);
		sluice_worker_interrupts();
	}
	sluice_reset_tried(stream);
}

static bool
storer_runs(SluiceStream *stream, bool end)
{
	pid_t		pid;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	pid = stream->storer_pid;
	if (end && pid != 0)
		kill(pid, SIGTERM);
	LWLockRelease(sluice_shmem->lock);
	return pid != 0;
}

/* None starts while the entry names a next slot. */
static void
end_storer(SluiceStream *stream)
{
	bool		end = true;

	ConditionVariablePrepareToSleep(&stream->progress);
	while (storer_runs(stream, end))
		end = ConditionVariableTimedSleep(&stream->progress, AGAIN_AFTER,
										  sluice_wait_event(SLUICE_WAIT_PROGRESS));
	ConditionVariableCancelSleep();
}

void
sluice_lineage_attend(SluiceDecoder *decoder)
{
	SluiceStream *stream = decoder->stream;
	char		reason[SLUICE_MESSAGE_MAX];
	SluiceResetWish wish = sluice_reset_wished(stream, reason);
	Facts		facts;

	if (wish == SLUICE_RESET_NONE)
		return;
	read_facts(stream, &facts);
	if (facts.ours && facts.paused)
	{
		sluice_reset_forget(stream);
		sluice_stream_set_state(stream, SLUICE_STREAM_PAUSED, 0, "");
		proc_exit(0);
	}
	if (!facts.ours)
	{
		/* whoever has the slot now, or nobody: attach.c finds out */
		sluice_reset_forget(stream);
		return;
	}
	if (wish == SLUICE_RESET_AUTO && !facts.auto_reset)
	{
		sluice_reset_forget(stream);
		sluice_decoder_stop_plain(decoder,
								  "%s. CALL sluice.reset('%s') makes the shard anew from its tables; replicas keep serving the file they have and then copy afresh",
								  reason, stream->shard);
	}

	ereport(LOG,
			(errmsg("sluice shard \"%s\" has to be reset: %s", stream->shard, reason),
			 errhint("Its replicas will copy afresh. With option auto_reset off it would stop and wait for CALL sluice.reset('%s').",
					 stream->shard)));
	if (wish == SLUICE_RESET_AUTO)
		wait_turn(stream, reason);
	sluice_stream_name_next(stream, facts.n);
	end_storer(stream);
	sluice_create_slot(decoder);
	proc_exit(0);
}
