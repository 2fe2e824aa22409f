/*
 * worker.c: the start of every background worker of ours, and its end.
 *
 * In: the index and generation of a stream's entry.  Out: a process that is
 * connected, pinned to known settings and noted in the entry.
 * Runs in: decoder, storer, backfill; launching in the launcher.
 * Locks: SluiceShmem.lock for pid and latch.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "replication/slot.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"

#include "shmem.h"
#include "worker.h"

typedef struct KindInfo
{
	const char *name;
	const char *entry;
} KindInfo;

static const KindInfo kinds[] = {
	[SLUICE_WORKER_DECODER] = {"decoder", "sluice_decoder_main"},
	[SLUICE_WORKER_STORER] = {"storer", "sluice_storer_main"},
	[SLUICE_WORKER_BACKFILL] = {"backfill", "sluice_backfill_main"}
};

/* bgw_extra */
typedef struct WorkerArguments
{
	uint64		generation;
	SluiceWorkerKind kind;
} WorkerArguments;

StaticAssertDecl(sizeof(WorkerArguments) <= BGW_EXTRALEN, "arguments fit bgw_extra");

/* of this process, for its exit callback */
static SluiceStream *my_stream = NULL;
static SluiceWorkerKind my_kind;
static uint64 my_generation;

/* the last ERROR or FATAL that went to the log */
static emit_log_hook_type log_next = NULL;
static char last_message[SLUICE_MESSAGE_MAX];
static int	last_sqlerrcode;

static void
note_message(ErrorData *edata)
{
	if (edata->elevel >= ERROR && edata->message)
	{
		snprintf(last_message, sizeof(last_message), "%s%s%s%s", edata->message,
				 edata->detail ? " (" : "", edata->detail ? edata->detail : "",
				 edata->detail ? ")" : "");
		last_sqlerrcode = edata->sqlerrcode;
	}
	if (log_next)
		log_next(edata);
}

/* ---- the entry ---- */

static pid_t *
pid_of(SluiceStream *stream, SluiceWorkerKind kind)
{
	switch (kind)
	{
		case SLUICE_WORKER_DECODER:
			return &stream->decoder_pid;
		case SLUICE_WORKER_STORER:
			return &stream->storer_pid;
		case SLUICE_WORKER_BACKFILL:
			break;
	}
	return NULL;
}

static void
set_worker(SluiceStream *stream, SluiceWorkerKind kind, pid_t pid, Latch *latch)
{
	if (kind == SLUICE_WORKER_DECODER)
	{
		stream->decoder_pid = pid;
		stream->decoder_latch = latch;
		pg_atomic_write_u32(&stream->wake_wanted, 0);
	}
	else if (kind == SLUICE_WORKER_STORER)
	{
		stream->storer_pid = pid;
		stream->storer_latch = latch;
	}
}

/* False: the entry is another slot's by now, or has such a worker. */
static bool
claim_place(SluiceStream *stream, SluiceWorkerKind kind, uint64 generation)
{
	pid_t	   *pid = pid_of(stream, kind);
	bool		ours;

	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	ours = stream->in_use && stream->generation == generation && !stream->dropping &&
		(kind != SLUICE_WORKER_STORER || NameStr(stream->next_slot)[0] == '\0') &&
		(pid == NULL || *pid == 0);
	if (ours)
		set_worker(stream, kind, MyProcPid, &MyProc->procLatch);
	LWLockRelease(sluice_shmem->lock);
	return ours;
}

static void
record_failure(void)
{
	SluiceStreamState state;
	bool		has_message;

	SpinLockAcquire(&my_stream->mutex);
	state = my_stream->state;
	has_message = my_stream->message[0] != '\0';
	SpinLockRelease(&my_stream->mutex);

	if (state == SLUICE_STREAM_STOPPED || state == SLUICE_STREAM_PAUSED)
		return;
	/* whoever ended this worker may have said why */
	if (last_sqlerrcode == ERRCODE_ADMIN_SHUTDOWN && has_message)
		return;
	sluice_stream_set_state(my_stream, SLUICE_STREAM_RETRYING, last_sqlerrcode, last_message);
}

/*
 * Runs after the transaction was rolled back.  The slot is given back (and
 * dropped if it is not made yet) before the pid goes, so that who sees no pid
 * finds the slot free.
 */
static void
worker_exit(int code, Datum argument)
{
	LWLockReleaseAll();
	ConditionVariableCancelSleep();
	if (my_kind == SLUICE_WORKER_DECODER)
	{
		if (MyReplicationSlot != NULL)
			ReplicationSlotRelease();
		sluice_slot_cleanup();
	}

	if (code != 0 && last_message[0] != '\0')
		record_failure();

	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	if (my_stream->generation == my_generation)
	{
		set_worker(my_stream, my_kind, 0, NULL);
		if (my_kind == SLUICE_WORKER_DECODER)
			memset(&my_stream->next_slot, 0, sizeof(my_stream->next_slot));
	}
	LWLockRelease(sluice_shmem->lock);

	ConditionVariableBroadcast(&my_stream->progress);
	sluice_shmem_wake_launcher();
}

/* ---- settings ---- */

static void
pin(const char *name, const char *value)
{
	if (GetConfigOption(name, true, false) != NULL)
		SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
}

/*
 * What ALTER ROLE and ALTER DATABASE … SET may have brought along must not
 * reach a worker.  session_replication_role keeps event triggers out.
 */
static void
pin_settings(void)
{
	pin("role", "none");
	pin("search_path", "pg_catalog");
	pin("statement_timeout", "0");
	pin("lock_timeout", "0");
	pin("idle_in_transaction_session_timeout", "0");
	pin("idle_session_timeout", "0");
	pin("transaction_timeout", "0");
	pin("default_transaction_isolation", "read committed");
	pin("default_transaction_read_only", "off");
	pin("default_transaction_deferrable", "off");
	pin("row_security", "off");
	pin("session_replication_role", "replica");
	pin("default_tablespace", "");
	pin("default_table_access_method", "heap");
	pin("max_parallel_workers_per_gather", "0");
	pin("jit", "off");
	pin("application_name", MyBgworkerEntry->bgw_name);
}

/* ---- life ---- */

SluiceStream *
sluice_worker_start(SluiceWorkerKind kind, Datum main_arg)
{
	WorkerArguments arguments;
	int			index = DatumGetInt32(main_arg);

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	if (sluice_shmem == NULL || index < 0 || index >= sluice_shmem->nstreams)
		elog(ERROR, "sluice worker without a stream");
	memcpy(&arguments, MyBgworkerEntry->bgw_extra, sizeof(arguments));
	Assert(arguments.kind == kind);

	my_stream = &sluice_shmem->streams[index];
	my_kind = kind;
	my_generation = arguments.generation;
	if (!claim_place(my_stream, kind, my_generation))
		proc_exit(0);
	before_shmem_exit(worker_exit, (Datum) 0);

	log_next = emit_log_hook;
	emit_log_hook = note_message;

	BackgroundWorkerInitializeConnectionByOid(my_stream->dboid, InvalidOid,
											  BGWORKER_BYPASS_ALLOWCONN);
	pin_settings();
	sluice_shmem_wake_launcher();
	return my_stream;
}

bool
sluice_worker_launch(SluiceWorkerKind kind, SluiceStream *stream, pid_t notify,
					 BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker;
	WorkerArguments arguments;

	memset(&worker, 0, sizeof(worker));
	memset(&arguments, 0, sizeof(arguments));
	arguments.kind = kind;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	arguments.generation = stream->generation;
	snprintf(worker.bgw_name, BGW_MAXLEN, "sluice %s %s", kinds[kind].name,
			 NameStr(stream->slot));
	LWLockRelease(sluice_shmem->lock);

	snprintf(worker.bgw_type, BGW_MAXLEN, "sluice %s", kinds[kind].name);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name), "sluice");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name), "%s",
			 kinds[kind].entry);
	worker.bgw_main_arg = Int32GetDatum((int32) (stream - sluice_shmem->streams));
	memcpy(worker.bgw_extra, &arguments, sizeof(arguments));
	worker.bgw_notify_pid = notify;
	return RegisterDynamicBackgroundWorker(&worker, handle);
}

void
sluice_worker_stop(SluiceStream *stream, int sqlerrcode, const char *message)
{
	sluice_stream_set_state(stream, SLUICE_STREAM_STOPPED, sqlerrcode, message);
	ereport(LOG,
			(errcode(sqlerrcode),
			 errmsg("sluice shard \"%s\" has stopped: %s", stream->shard, message)));
	proc_exit(0);
}

void
sluice_worker_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}
