/*
 * owner.c: who may write a shard's change log.
 *
 * In: the state row, the stream's slot.  Out: the state, or the worker's end.
 * Runs in: storer, inside the transaction that is to store.
 * Locks: SHARE on state, until that transaction ends; who changes the owner
 * takes SHARE ROW EXCLUSIVE, so the answer holds for what is stored.
 */
#include "postgres.h"

#include "storage/ipc.h"

#include "error.h"
#include "owner.h"
#include "reset.h"
#include "worker.h"

/* The next decoder does it. */
static void SLUICE_NORETURN
want_reset(SluiceStream *stream, const char *reason)
{
	sluice_reset_ask(stream, SLUICE_RESET_AUTO, reason ? reason : "it was marked so");
	sluice_reset_end_decoder(stream);
	proc_exit(0);
}

SluiceState *
sluice_owner_check(SluiceStream *stream)
{
	SluiceState *state = sluice_state_read(stream->shard, ShareLock, true);

	/* the decoder drops a slot that belongs to no shard; until then we only fail */
	if (state == NULL)
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_UNKNOWN_SHARD),
				 errmsg("the schema of shard \"%s\" is gone", stream->shard)));
	if (state->slot == NULL)
		return NULL;
	if (strcmp(state->slot, NameStr(stream->slot)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("slot \"%s\" does not own the change log of shard \"%s\": slot \"%s\" does",
						NameStr(stream->slot), stream->shard, state->slot)));
	if (state->reset_required)
		want_reset(stream, state->reset_reason);
	if (state->paused)
	{
		sluice_stream_set_state(stream, SLUICE_STREAM_PAUSED, 0, "");
		proc_exit(0);
	}
	return state;
}
