/*
 * create_wait.c: create_shard while the decoder makes the slot.
 *
 * A logical slot can only begin once every transaction that began before has
 * ended; that may take as long as the longest of them.  Who waits here is told
 * which session that is.
 *
 * In: the stream's entry, the decoder's locks.  Out: NOTICEs; success or an
 * ERROR with the decoder's message.
 * Runs in: CALL sluice.create_shard.  Locks: none across the wait.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "admin.h"
#include "compat.h"

#define LOOK_INTERVAL 1000		/* ms between looks at what the decoder waits for */

SluiceStream *
sluice_create_begin(const char *shard)
{
	SluiceStream *stream;
	pid_t		launcher;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	launcher = sluice_shmem->launcher_pid;
	LWLockRelease(sluice_shmem->lock);
	if (launcher == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the sluice launcher is not running"),
				 errhint("The server's log says why; it is started again within a second.")));

	stream = sluice_stream_claim_next(MyDatabaseId, shard);
	if (stream == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("no room for another shard"),
				 errhint("Raise sluice.max_shards (now %d) in postgresql.conf and restart the server.",
						 sluice_shmem->nstreams)));
	sluice_shmem_wake_launcher();
	return stream;
}

/* ---- whom the decoder waits for ---- */

static void
tell_blocker(int pid)
{
	SluiceBackendInfo info;

	if (pid == 0)
		ereport(NOTICE,
				(errmsg("the slot waits for a prepared transaction to end"),
				 errhint("See pg_prepared_xacts; COMMIT PREPARED or ROLLBACK PREPARED ends it.")));
	else if (sluice_backend_info(pid, &info))
		ereport(NOTICE,
				(errmsg("the slot waits for the transaction of process %d (application \"%s\", since %s) to end",
						pid, info.application,
						info.xact_start ? timestamptz_to_str(info.xact_start) : "?"),
				 errhint("SELECT pg_terminate_backend(%d) ends it; cancel this call to give up.", pid)));
}

List *
sluice_create_tell_blockers(int decoder_pid, List *told)
{
	Datum		result;
	Datum	   *pids;
	int			count;

	if (decoder_pid == 0)
		return told;
	result = DirectFunctionCall1(pg_blocking_pids, Int32GetDatum(decoder_pid));
	deconstruct_array(DatumGetArrayTypeP(result), INT4OID, sizeof(int32), true, TYPALIGN_INT,
					  &pids, NULL, &count);
	for (int i = 0; i < count; i++)
	{
		int			pid = DatumGetInt32(pids[i]);

		if (list_member_int(told, pid))
			continue;
		tell_blocker(pid);
		told = lappend_int(told, pid);
	}
	return told;
}

/* ---- how far it is ---- */

typedef struct CreateView
{
	bool		lost;			/* the entry is no longer ours */
	bool		created;		/* the decoder has made the slot */
	bool		served;			/* the storer runs too */
	int			decoder_pid;
	SluiceStreamState state;
	int			sqlerrcode;
	char		message[SLUICE_MESSAGE_MAX];
} CreateView;

static void
look(SluiceStream *stream, uint64 generation, CreateView *view)
{
	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	view->lost = !stream->in_use || stream->generation != generation || stream->dropping;
	view->created = !stream->create;
	view->served = stream->storer_pid != 0;
	view->decoder_pid = stream->decoder_pid;
	LWLockRelease(sluice_shmem->lock);

	SpinLockAcquire(&stream->mutex);
	view->state = stream->state;
	view->sqlerrcode = stream->sqlerrcode;
	memcpy(view->message, stream->message, sizeof(view->message));
	SpinLockRelease(&stream->mutex);
}

static void
fail(SluiceStream *stream, const CreateView *view)
{
	if (view->lost)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the creation of shard \"%s\" was broken off", stream->shard)));
	ereport(ERROR,
			(errcode(view->sqlerrcode ? view->sqlerrcode : ERRCODE_INTERNAL_ERROR),
			 errmsg("shard \"%s\" cannot be created: %s", stream->shard,
					view->message[0] ? view->message : "its decoder ended without a message"),
			 errhint("The server's log has more.")));
}

/* True: done.  ERRORs if it will never be. */
static bool
is_done(SluiceStream *stream, const CreateView *view)
{
	if (view->lost || view->state == SLUICE_STREAM_STOPPED ||
		view->state == SLUICE_STREAM_RETRYING)
		fail(stream, view);
	return view->created && view->served &&
		(view->state == SLUICE_STREAM_STREAMING || view->state == SLUICE_STREAM_CATCHING_UP);
}

void
sluice_create_wait(SluiceStream *stream)
{
	uint64		generation = stream->generation;
	List	   *told = NIL;
	CreateView	view;

	/* what this waits for may wait for our snapshot */
	InvalidateCatalogSnapshot();
	Assert(!TransactionIdIsValid(GetTopTransactionIdIfAny()));

	ConditionVariablePrepareToSleep(&stream->progress);
	for (;;)
	{
		look(stream, generation, &view);
		if (is_done(stream, &view))
			break;
		if (ConditionVariableTimedSleep(&stream->progress, LOOK_INTERVAL,
										sluice_wait_event(SLUICE_WAIT_PROGRESS)))
			told = sluice_create_tell_blockers(view.decoder_pid, told);
	}
	ConditionVariableCancelSleep();
}
