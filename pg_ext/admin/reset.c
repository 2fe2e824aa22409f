/*
 * reset.c: CALL sluice.reset: a new slot, a new lineage, an empty change log.
 *
 * The work is the decoder's (decode/lineage.c); here it is asked for and
 * waited for, as create_shard waits: without xid and without snapshot.  Until
 * the new lineage is committed, breaking off leaves the old one as it was.
 *
 * In: a shard's name.  Out: a shard that streams its new lineage.
 * Runs in: client backends, outside of transaction blocks.
 * Locks: none across the wait.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "admin.h"
#include "compat.h"
#include "error.h"
#include "reset.h"

#define LOOK_INTERVAL 1000		/* ms between looks at what the decoder waits for */

PG_FUNCTION_INFO_V1(sluice_reset);

typedef struct Reset
{
	char	   *shard;
	SluiceStream *stream;
	uint64		generation;
	uint32		n;				/* of the old slot */
} Reset;

typedef struct View
{
	bool		lost;			/* the entry is another's, or is being dropped */
	bool		done;			/* it has the new slot */
	bool		served;			/* the storer runs, too */
	int			decoder_pid;
	SluiceStreamState state;
	int			sqlerrcode;
	char		message[SLUICE_MESSAGE_MAX];
} View;

static void
look(const Reset *reset, View *view)
{
	SluiceStream *stream = reset->stream;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	view->lost = !stream->in_use || stream->generation != reset->generation || stream->dropping;
	view->done = stream->n != reset->n;
	view->served = stream->storer_pid != 0;
	view->decoder_pid = stream->decoder_pid;
	LWLockRelease(sluice_shmem->lock);

	SpinLockAcquire(&stream->mutex);
	view->state = stream->state;
	view->sqlerrcode = stream->sqlerrcode;
	memcpy(view->message, stream->message, sizeof(view->message));
	SpinLockRelease(&stream->mutex);
}

/* The old lineage goes on, unless the new one has just begun. */
static void
give_up(const Reset *reset)
{
	SluiceStream *stream = reset->stream;
	View		view;

	look(reset, &view);
	if (view.lost || view.done)
		return;
	sluice_reset_forget(stream);
	sluice_stream_set_state(stream, SLUICE_STREAM_STARTING, 0, "");
	sluice_reset_end_decoder(stream);
}

static void
give_up_at_exit(int code, Datum argument)
{
	LWLockReleaseAll();
	give_up((Reset *) DatumGetPointer(argument));
}

static void
fail(const Reset *reset, const View *view)
{
	if (view->lost)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("shard \"%s\" was dropped while it was reset", reset->shard)));
	ereport(ERROR,
			(errcode(view->sqlerrcode ? view->sqlerrcode : ERRCODE_INTERNAL_ERROR),
			 errmsg("shard \"%s\" cannot be reset: %s", reset->shard,
					view->message[0] ? view->message : "its decoder ended without a message"),
			 errdetail(view->done ? "It has its new slot and will go on by itself." :
					   "It goes on with the slot that it has, if it can."),
			 errhint("The server's log has more.")));
}

static bool
is_over(const Reset *reset, const View *view)
{
	if (view->lost || view->state == SLUICE_STREAM_STOPPED ||
		view->state == SLUICE_STREAM_RETRYING || view->state == SLUICE_STREAM_PAUSED)
		fail(reset, view);
	return view->done && view->served &&
		(view->state == SLUICE_STREAM_STREAMING || view->state == SLUICE_STREAM_CATCHING_UP);
}

static void
wait_for_it(const Reset *reset)
{
	SluiceStream *stream = reset->stream;
	List	   *told = NIL;
	View		view;

	/* what this waits for may wait for our snapshot */
	InvalidateCatalogSnapshot();
	Assert(!TransactionIdIsValid(GetTopTransactionIdIfAny()));

	ConditionVariablePrepareToSleep(&stream->progress);
	for (;;)
	{
		look(reset, &view);
		if (is_over(reset, &view))
			break;
		if (ConditionVariableTimedSleep(&stream->progress, LOOK_INTERVAL,
										sluice_wait_event(SLUICE_WAIT_PROGRESS)) && !view.done)
			told = sluice_create_tell_blockers(view.decoder_pid, told);
	}
	ConditionVariableCancelSleep();
}

static void
refuse(const char *shard, const SluiceState *state)
{
	if (state->paused)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("shard \"%s\" is paused", shard),
				 errhint("CALL sluice.resume('%s') first.", shard)));
}

/* Asks for it, and ends the decoder so that another begins. */
static void
ask(Reset *reset)
{
	SluiceStream *stream = reset->stream;
	SluiceResetWish before = sluice_reset_wished(stream, NULL);

	if (before == SLUICE_RESET_CALL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("shard \"%s\" is being reset by another session", reset->shard)));
	sluice_reset_ask(stream, SLUICE_RESET_CALL, "CALL sluice.reset");
	/* one that resets already, or waits for its turn, goes on with ours */
	if (before == SLUICE_RESET_NONE)
		sluice_reset_end_decoder(stream);
	else
	{
		LWLockAcquire(sluice_shmem->lock, LW_SHARED);
		if (stream->decoder_latch)
			SetLatch(stream->decoder_latch);
		LWLockRelease(sluice_shmem->lock);
		sluice_shmem_wake_launcher();
	}
}

static void
run(Reset *reset)
{
	before_shmem_exit(give_up_at_exit, PointerGetDatum(reset));
	PG_TRY();
	{
		wait_for_it(reset);
	}
	PG_CATCH();
	{
		cancel_before_shmem_exit(give_up_at_exit, PointerGetDatum(reset));
		ConditionVariableCancelSleep();
		give_up(reset);
		PG_RE_THROW();
	}
	PG_END_TRY();
	cancel_before_shmem_exit(give_up_at_exit, PointerGetDatum(reset));
}

Datum
sluice_reset(PG_FUNCTION_ARGS)
{
	Reset		reset = {0};
	SluiceState *state;

	sluice_admin_require("reset a shard");
	sluice_admin_require_nonatomic(fcinfo, "sluice.reset");
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");

	reset.shard = sluice_admin_text(fcinfo, 0, "shard");
	state = sluice_pause_read(reset.shard);
	refuse(reset.shard, state);
	reset.stream = sluice_pause_find(reset.shard, state);
	reset.generation = reset.stream->generation;
	reset.n = state->n;
	ask(&reset);
	run(&reset);

	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	PG_RETURN_VOID();
}
