/*
 * pause.c: CALL sluice.pause and sluice.resume, sluice.mark_reset_required.
 *
 * All change the state row, which outlives the server; workers look at it when
 * they start, and wait for whoever is changing it.
 *
 * In: a shard's name.  Out: the row; workers that end or begin.
 * Runs in: client backends; the procedures outside of transaction blocks.
 * Locks: SHARE ROW EXCLUSIVE on state until the transaction ends.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "admin.h"
#include "error.h"
#include "reset.h"

PG_FUNCTION_INFO_V1(sluice_pause);
PG_FUNCTION_INFO_V1(sluice_resume);
PG_FUNCTION_INFO_V1(sluice_mark_reset_required);

static void
require_made(const char *shard, const SluiceState *state)
{
	if (state->slot == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("shard \"%s\" was not made completely", shard),
				 errhint("CALL sluice.create_shard('%s', ...) again, or CALL sluice.drop_shard('%s').",
						 shard, shard)));
}

SluiceState *
sluice_pause_read(const char *shard)
{
	MemoryContext caller = CurrentMemoryContext;
	SluiceAdminStretch stretch;
	SluiceState *state;

	PushActiveSnapshot(GetTransactionSnapshot());
	sluice_admin_enter(&stretch);
	MemoryContextSwitchTo(caller);
	state = sluice_state_read(shard, NoLock, false);
	require_made(shard, state);
	sluice_admin_leave(&stretch);
	PopActiveSnapshot();
	SPI_commit();
	return state;
}

SluiceStream *
sluice_pause_find(const char *shard, const SluiceState *state)
{
	SluiceStream *stream = sluice_stream_claim(MyDatabaseId, shard, state->n, state->slot, false);

	if (stream == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("no room for shard \"%s\"", shard),
				 errhint("Raise sluice.max_shards (now %d) in postgresql.conf and restart the server.",
						 sluice_shmem->nstreams)));
	return stream;
}

/* Returns the row as it is now. */
static SluiceState *
set_paused(const char *shard, bool paused)
{
	MemoryContext caller = CurrentMemoryContext;
	SluiceAdminStretch stretch;
	SluiceState *state;

	PushActiveSnapshot(GetTransactionSnapshot());
	sluice_admin_enter(&stretch);
	MemoryContextSwitchTo(caller);
	state = sluice_state_read(shard, ShareRowExclusiveLock, false);
	require_made(shard, state);
	if (state->paused != paused)
	{
		state->paused = paused;
		sluice_state_write(shard, state);
	}
	sluice_admin_leave(&stretch);
	PopActiveSnapshot();
	SPI_commit();
	return state;
}

static char *
begin(FunctionCallInfo fcinfo, const char *what, const char *procedure)
{
	sluice_admin_require(what);
	sluice_admin_require_nonatomic(fcinfo, procedure);
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	return sluice_admin_text(fcinfo, 0, "shard");
}

static void
end(void)
{
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
}

/* Returns when nothing of it runs.  Broken off, it is paused nevertheless. */
Datum
sluice_pause(PG_FUNCTION_ARGS)
{
	char	   *shard = begin(fcinfo, "pause a shard", "sluice.pause");
	SluiceState *state = set_paused(shard, true);
	SluiceStream *stream = sluice_stream_find_slot(state->slot);

	if (stream != NULL)
	{
		sluice_reset_forget(stream);
		sluice_stream_set_state(stream, SLUICE_STREAM_PAUSED, 0, "");
		sluice_stop_wait(shard);
		/* a worker may have said something else at its end */
		sluice_stream_set_state(stream, SLUICE_STREAM_PAUSED, 0, "");
	}
	end();
	PG_RETURN_VOID();
}

Datum
sluice_resume(PG_FUNCTION_ARGS)
{
	char	   *shard = begin(fcinfo, "resume a shard", "sluice.resume");
	SluiceState *state = set_paused(shard, false);
	SluiceStream *stream = sluice_pause_find(shard, state);
	bool		paused;

	SpinLockAcquire(&stream->mutex);
	paused = stream->state == SLUICE_STREAM_PAUSED;
	SpinLockRelease(&stream->mutex);
	if (paused)
		sluice_stream_set_state(stream, SLUICE_STREAM_STARTING, 0, "");
	sluice_shmem_wake_launcher();
	end();
	PG_RETURN_VOID();
}

/*
 * The decoder that starts next waits for this transaction, and does what the
 * row then says.
 */
Datum
sluice_mark_reset_required(PG_FUNCTION_ARGS)
{
	SluiceAdminStretch stretch;
	SluiceState *state;
	SluiceStream *stream;
	char	   *shard;

	sluice_admin_require("mark a shard");
	shard = sluice_admin_text(fcinfo, 0, "shard");
	sluice_admin_enter(&stretch);
	state = sluice_state_read(shard, ShareRowExclusiveLock, false);
	require_made(shard, state);
	state->reset_required = true;
	state->reset_reason = PG_ARGISNULL(1) ? pstrdup("it was marked so with sluice.mark_reset_required") :
		text_to_cstring(PG_GETARG_TEXT_PP(1));
	sluice_state_write(shard, state);
	sluice_admin_leave(&stretch);

	stream = sluice_stream_find_slot(state->slot);
	if (stream != NULL)
		sluice_reset_end_decoder(stream);
	PG_RETURN_VOID();
}
