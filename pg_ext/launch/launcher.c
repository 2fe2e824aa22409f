/*
 * launcher.c: runs a decoder and a storer for every slot of plugin "sluice".
 *
 * The slots are the registry: a persistent slot of ours without an entry in
 * shared memory gets one, an entry whose slot is gone is given back.  A worker
 * that ends is started again, at first after 25 ms, then after twice as long
 * each time up to 10 s; progress or a long life sets that back.
 *
 * In: replication slots, entries of shmem.h, ends of workers.  Out: workers.
 * Runs in: a static background worker without a database, from the end of
 * recovery on.
 * Locks: ReplicationSlotControlLock and SluiceShmem.lock, one at a time.
 *
 * States of a worker as the launcher sees it: no handle (not started, or an
 * earlier launcher's), handle (started or starting), due at next_start.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "replication/slot.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "launcher.h"
#include "reset.h"
#include "shmem.h"
#include "shutdown.h"
#include "worker.h"

#define BACKOFF_FIRST 25		/* ms */
#define BACKOFF_LAST 10000
#define LONG_LIFE 30000			/* ms after which a worker counts as sound */
#define SLOT_INTERVAL 5000		/* ms; slots made or dropped by hand */
#define STOPPING_INTERVAL 1000	/* ms; only while replicas are connected */

extern PGDLLEXPORT void sluice_launcher_main(Datum argument);

typedef struct LaunchedWorker
{
	BackgroundWorkerHandle *handle; /* NULL: none of ours */
	TimestampTz started;
	TimestampTz next_start;
	int			delay;			/* ms, the last one; 0: none was needed */
	uint64		progress;		/* at its start */
	bool		crowded;		/* there was no free slot for it */
} LaunchedWorker;

typedef struct LaunchedStream
{
	uint64		generation;		/* of the entry that the rest is about */
	LaunchedWorker workers[2];	/* by SluiceWorkerKind: decoder, storer */
} LaunchedStream;

/* what this process remembers of each entry */
static LaunchedStream *launched;

/* ---- slots ---- */

typedef struct FoundSlot
{
	Oid			dboid;
	char		shard[SLUICE_SHARD_NAME_MAX + 1];
	uint32		n;
	NameData	name;
} FoundSlot;

/* False: the i-th slot is free, someone else's, or being made. */
static bool
read_slot(int i, FoundSlot *found)
{
	ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
	bool		ours = false;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	if (slot->in_use)
	{
		SpinLockAcquire(&slot->mutex);
		ours = slot->data.persistency == RS_PERSISTENT && OidIsValid(slot->data.database) &&
			strcmp(NameStr(slot->data.plugin), "sluice") == 0;
		found->dboid = slot->data.database;
		found->name = slot->data.name;
		SpinLockRelease(&slot->mutex);
	}
	LWLockRelease(ReplicationSlotControlLock);
	return ours && sluice_slot_name_parse(NameStr(found->name), found->shard, &found->n);
}

/* Entries for slots that have none. */
static void
adopt_slots(void)
{
	static bool crowded = false;

	for (int i = 0; i < max_replication_slots; i++)
	{
		FoundSlot	slot;

		if (!read_slot(i, &slot) || sluice_stream_find_slot(NameStr(slot.name)) != NULL)
			continue;
		if (sluice_stream_claim(slot.dboid, slot.shard, slot.n, NameStr(slot.name), false))
		{
			crowded = false;
			continue;
		}
		if (!crowded)
			ereport(LOG,
					(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
					 errmsg("no room for sluice shard \"%s\" (slot \"%s\")",
							slot.shard, NameStr(slot.name)),
					 errhint("Raise sluice.max_shards (now %d) and restart the server.",
							 sluice_shmem->nstreams)));
		crowded = true;
	}
}

static bool
slot_exists(const char *name)
{
	for (int i = 0; i < max_replication_slots; i++)
	{
		FoundSlot	slot;

		if (read_slot(i, &slot) && strcmp(NameStr(slot.name), name) == 0)
			return true;
	}
	return false;
}

/* ---- workers ---- */

typedef struct EntryView
{
	bool		in_use;
	bool		create;
	bool		dropping;
	bool		nobody;
	bool		resetting;
	uint64		generation;
	pid_t		pids[2];
	NameData	slot;
	SluiceStreamState state;
} EntryView;

static void
view_entry(SluiceStream *stream, EntryView *view)
{
	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	view->in_use = stream->in_use;
	view->create = stream->create;
	view->dropping = stream->dropping;
	view->nobody = stream->nobody;
	view->resetting = NameStr(stream->next_slot)[0] != '\0';
	view->generation = stream->generation;
	view->pids[SLUICE_WORKER_DECODER] = stream->decoder_pid;
	view->pids[SLUICE_WORKER_STORER] = stream->storer_pid;
	view->slot = stream->slot;
	LWLockRelease(sluice_shmem->lock);

	SpinLockAcquire(&stream->mutex);
	view->state = stream->state;
	view->resetting = view->resetting || stream->reset != SLUICE_RESET_NONE;
	SpinLockRelease(&stream->mutex);
}

static uint64
progress_of(SluiceStream *stream, SluiceWorkerKind kind)
{
	return kind == SLUICE_WORKER_DECODER ? pg_atomic_read_u64(&stream->decoded) :
		pg_atomic_read_u64(&stream->stored_transactions);
}

static int
next_delay(int delay)
{
	return delay == 0 ? BACKOFF_FIRST : Min(delay * 2, BACKOFF_LAST);
}

/* Notices that a worker has ended, and when to start another. */
static void
reap(SluiceStream *stream, const EntryView *view, SluiceWorkerKind kind, LaunchedWorker *worker)
{
	TimestampTz now = GetCurrentTimestamp();
	pid_t		pid;

	if (worker->handle == NULL || GetBackgroundWorkerPid(worker->handle, &pid) != BGWH_STOPPED)
		return;
	pfree(worker->handle);
	worker->handle = NULL;
	if (progress_of(stream, kind) != worker->progress ||
		TimestampDifferenceExceeds(worker->started, now, LONG_LIFE))
		worker->delay = 0;
	worker->delay = next_delay(worker->delay);
	worker->next_start = TimestampTzPlusMilliseconds(now, worker->delay);

	/* it may have ended before it could say why; create_shard waits for a word */
	if (view->create && view->state != SLUICE_STREAM_RETRYING &&
		view->state != SLUICE_STREAM_STOPPED)
		sluice_stream_set_state(stream, SLUICE_STREAM_RETRYING, ERRCODE_INTERNAL_ERROR, "");
}

static void
start(SluiceStream *stream, SluiceWorkerKind kind, LaunchedWorker *worker)
{
	TimestampTz now = GetCurrentTimestamp();
	static const char message[] = "no free background worker; raise max_worker_processes";

	worker->progress = progress_of(stream, kind);
	if (sluice_worker_launch(kind, stream, MyProcPid, &worker->handle))
	{
		worker->started = now;
		worker->crowded = false;
		return;
	}

	worker->handle = NULL;
	worker->delay = next_delay(worker->delay);
	worker->next_start = TimestampTzPlusMilliseconds(now, worker->delay);
	sluice_stream_set_state(stream, SLUICE_STREAM_RETRYING,
							ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, message);
	if (!worker->crowded)
		ereport(LOG,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("sluice shard \"%s\": no free background worker", stream->shard),
				 errhint("Raise max_worker_processes (now %d) and restart the server; "
						 "until then it is tried again.", max_worker_processes)));
	worker->crowded = true;
}

/* Each shard needs both; while its slot is being made, only the decoder, once. */
static bool
is_wanted(const EntryView *view, SluiceWorkerKind kind, const LaunchedWorker *worker)
{
	if (view->dropping || view->state == SLUICE_STREAM_STOPPED ||
		view->state == SLUICE_STREAM_PAUSED)
		return false;
	if (view->create)
		return kind == SLUICE_WORKER_DECODER && worker->started == 0;
	if (view->resetting)
		return kind == SLUICE_WORKER_DECODER;
	return true;
}

static void
terminate(pid_t pid)
{
	if (pid != 0)
		kill(pid, SIGTERM);
}

/* The slot is gone: so are its workers, then the entry. */
static void
forget(SluiceStream *stream, const EntryView *view, LaunchedStream *record)
{
	for (int kind = 0; kind < 2; kind++)
	{
		/* a worker that starts right now finds out by the generation */
		terminate(view->pids[kind]);
		if (record->workers[kind].handle)
			pfree(record->workers[kind].handle);
	}
	memset(record, 0, sizeof(*record));
	if (view->pids[0] == 0 && view->pids[1] == 0)
	{
		ereport(LOG, (errmsg("sluice shard \"%s\": slot \"%s\" is gone",
							 stream->shard, NameStr(view->slot))));
		sluice_stream_release(stream);
	}
}

/*
 * The slot is gone and no reset is on its way.  While a decoder lives it may
 * be that one's work.
 */
static bool
lost_slot(SluiceStream *stream, const EntryView *view)
{
	EntryView	after;

	if (view->create || view->dropping ||
		((view->resetting || view->pids[SLUICE_WORKER_DECODER] != 0) && !view->nobody) ||
		slot_exists(NameStr(view->slot)))
		return false;
	if (!view->nobody &&
		(view->state == SLUICE_STREAM_STOPPED || view->state == SLUICE_STREAM_PAUSED))
		return false;
	/* it may have been dropped with the shard meanwhile */
	view_entry(stream, &after);
	return after.in_use && !after.dropping && after.generation == view->generation;
}

/* Returns when it wants to be looked at again; 0: when something happens. */
static TimestampTz
tend(SluiceStream *stream, LaunchedStream *record)
{
	EntryView	view;
	TimestampTz wake = 0;

	view_entry(stream, &view);
	if (!view.in_use)
		return 0;
	if (record->generation != view.generation)
	{
		memset(record, 0, sizeof(*record));
		record->generation = view.generation;
	}
	if (lost_slot(stream, &view))
	{
		if (view.nobody)
		{
			forget(stream, &view, record);
			return 0;
		}
		sluice_reset_ask(stream, SLUICE_RESET_AUTO,
						 psprintf("replication slot \"%s\" does not exist any more",
								  NameStr(view.slot)));
		view_entry(stream, &view);
	}

	/* a decoder whose storer has stopped for good would only fill the ring */
	if (view.state == SLUICE_STREAM_STOPPED && view.pids[SLUICE_WORKER_STORER] == 0)
		terminate(view.pids[SLUICE_WORKER_DECODER]);

	for (int kind = 0; kind < 2; kind++)
	{
		LaunchedWorker *worker = &record->workers[kind];

		reap(stream, &view, kind, worker);
		if (worker->handle || view.pids[kind] != 0 || !is_wanted(&view, kind, worker))
			continue;
		if (worker->next_start <= GetCurrentTimestamp())
			start(stream, kind, worker);
		if (worker->handle == NULL && (wake == 0 || worker->next_start < wake))
			wake = worker->next_start;
	}
	return wake;
}

/* ---- life ---- */

static void
launcher_exit(int code, Datum argument)
{
	LWLockReleaseAll();
	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	if (sluice_shmem->launcher_pid == MyProcPid)
	{
		sluice_shmem->launcher_pid = 0;
		sluice_shmem->launcher_latch = NULL;
	}
	LWLockRelease(sluice_shmem->lock);
}

static void
begin(void)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	sluice_shmem->launcher_pid = MyProcPid;
	sluice_shmem->launcher_latch = &MyProc->procLatch;
	LWLockRelease(sluice_shmem->lock);
	before_shmem_exit(launcher_exit, (Datum) 0);

	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	launched = MemoryContextAllocZero(TopMemoryContext,
									  sluice_shmem->nstreams * sizeof(LaunchedStream));
}

/* ms until the earliest of the times; the slots' interval at the latest. */
static long
timeout_until(TimestampTz wake, bool replicas)
{
	long		timeout = replicas ? STOPPING_INTERVAL : SLOT_INTERVAL;

	if (wake != 0)
		timeout = Min(timeout, TimestampDifferenceMilliseconds(GetCurrentTimestamp(), wake));
	return timeout;
}

void
sluice_launcher_main(Datum argument)
{
	begin();
	MemoryContextSwitchTo(AllocSetContextCreate(TopMemoryContext, "Sluice launcher",
												ALLOCSET_DEFAULT_SIZES));
	for (;;)
	{
		TimestampTz wake = 0;
		bool		replicas;

		ResetLatch(MyLatch);
		sluice_worker_interrupts();

		adopt_slots();
		for (int i = 0; i < sluice_shmem->nstreams; i++)
		{
			TimestampTz next = tend(&sluice_shmem->streams[i], &launched[i]);

			if (next != 0 && (wake == 0 || next < wake))
				wake = next;
		}
		replicas = sluice_shutdown_watch();

		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 timeout_until(wake, replicas),
						 sluice_wait_event(SLUICE_WAIT_LAUNCHER));
	}
}

void
sluice_launcher_register(void)
{
	BackgroundWorker worker;

	/* pg_upgrade's server must change nothing by itself */
	if (IsBinaryUpgrade)
		return;

	memset(&worker, 0, sizeof(worker));
	snprintf(worker.bgw_name, BGW_MAXLEN, "sluice launcher");
	snprintf(worker.bgw_type, BGW_MAXLEN, "sluice launcher");
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 1;
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name), "sluice");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name), "sluice_launcher_main");
	RegisterBackgroundWorker(&worker);
}
