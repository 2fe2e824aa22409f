/*
 * storer.c: the worker that makes the stream durable: ring → change log.
 *
 * In: the ring's bytes.  Out: rows of cdc_<shard>.slices, in local commits;
 * what is stored, in the stream's entry.
 * Runs in: a background worker for each slot.
 * Locks: SHARE on state and ROW EXCLUSIVE on slices while a local transaction
 * is open; none while it waits.
 *
 * Bytes are taken from the ring into memory (at most SLUICE_PACK_SLICES
 * slices) and given free there at once.  A local transaction is opened only
 * when slices are to be written, and is committed when the ring is empty, or
 * after some milliseconds or megabytes while it is not: so one transaction is
 * stored at once when idle, many together when behind.  It never waits for the
 * ring with a transaction open.  A local transaction that ends no transaction
 * of the stream is committed without waiting for the disk.
 *
 * States: looking for its place (the ring has no generation, or one that a
 * predecessor has eaten of); following; ended by a lost ownership.  When the
 * ring begins a new generation, what was in memory and what is stored of an
 * unfinished transaction goes, and it looks for its place again.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "replication/origin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "guc.h"
#include "owner.h"
#include "pack.h"
#include "purge.h"
#include "ring.h"
#include "worker.h"

#define READ_SIZE (64 * 1024)
#define GROUP_MS 15
#define GROUP_SLICES 2048

#define PURGE_STEP 512			/* slices */
#define PURGE_EVERY_SLICES 256	/* stored, while busy */
#define PURGE_BUSY_MS 60000
#define PURGE_IDLE_MS 10000

typedef struct Storer
{
	SluiceStream *stream;
	MemoryContext context;
	SluiceRingReader reader;
	SluicePack	pack;
	char	   *buffer;			/* READ_SIZE */

	/* the log, with what the open local transaction has added */
	int64		last;			/* newest slice */
	int64		last_whole;		/* newest slice that ends a transaction */
	uint64		bytes;			/* of the slices up to last */
	uint64		bytes_whole;

	/* the open local transaction */
	SluiceLogWriter *writer;	/* NULL: none is open */
	TimestampTz opened_at;
	int			nslices;
	bool		ends;			/* it ends transactions of the stream: */
	SluiceWatermark head;		/* the last of them */
	TimestampTz head_time;
	uint64		head_end_lsn;	/* of the last that is no backfill's; 0 none */
	int64		transactions;

	TimestampTz purged_at;
	int			since_purge;	/* slices stored */
	bool		purge_more;
	bool		purge_soon;		/* something is about to be old enough */
	bool		minimal;		/* nothing is left to purge */
} Storer;

extern PGDLLEXPORT void sluice_storer_main(Datum main_arg);

/* ---- what is known of the log, in the stream's entry ---- */

static void
wake_others(SluiceStream *stream)
{
	ConditionVariableBroadcast(&stream->progress);
	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	if (stream->decoder_latch != NULL)
		SetLatch(stream->decoder_latch);
	LWLockRelease(sluice_shmem->lock);
}

static void
publish_stored(Storer *storer)
{
	SluiceStream *stream = storer->stream;

	SpinLockAcquire(&stream->mutex);
	stream->stored = storer->head;
	stream->stored_time = storer->head_time;
	if (storer->head_end_lsn != 0)
		stream->stored_end_lsn = storer->head_end_lsn;
	SpinLockRelease(&stream->mutex);
	wake_others(stream);
}

static void
publish_first(SluiceStream *stream, SluiceWatermark first)
{
	SpinLockAcquire(&stream->mutex);
	stream->first = first;
	SpinLockRelease(&stream->mutex);
}

/* ---- local transactions ---- */

/* NULL: the shard is still being made, and the transaction is over again. */
static SluiceState *
begin_local(Storer *storer)
{
	SluiceState *state;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	state = sluice_owner_check(storer->stream);
	if (state == NULL)
	{
		CommitTransactionCommand();
		MemoryContextSwitchTo(storer->context);
		return NULL;
	}
	PushActiveSnapshot(GetTransactionSnapshot());
	return state;
}

static void
end_local(Storer *storer, bool wait)
{
	PopActiveSnapshot();
	SetConfigOption("synchronous_commit", wait ? "local" : "off", PGC_USERSET, PGC_S_OVERRIDE);
	CommitTransactionCommand();
	MemoryContextSwitchTo(storer->context);
}

static void
commit_slices(Storer *storer)
{
	SluiceStream *stream = storer->stream;

	if (storer->writer == NULL)
		return;
	sluice_changelog_close_writer(storer->writer);
	storer->writer = NULL;
	end_local(storer, storer->ends);
	storer->since_purge += storer->nslices;
	storer->minimal = false;
	if (storer->ends)
	{
		pg_atomic_fetch_add_u64(&stream->stored_transactions, storer->transactions);
		publish_stored(storer);
	}
}

static void
open_slices(Storer *storer)
{
	if (begin_local(storer) == NULL)
		elog(ERROR, "shard \"%s\" has no slot", storer->stream->shard);
	storer->writer = sluice_changelog_open_writer(storer->stream->shard, storer->last, storer->bytes);
	storer->opened_at = GetCurrentTimestamp();
	storer->nslices = 0;
	storer->ends = false;
	storer->head_end_lsn = 0;
	storer->transactions = 0;
	MemoryContextSwitchTo(storer->context);
}

/* Writes the ready slices into the local transaction, opened if need be. */
static void
write_slices(Storer *storer)
{
	SluicePack *pack = &storer->pack;
	MemoryContext old;
	uint64		before = storer->bytes;

	if (pack->nready == 0)
		return;
	if (storer->writer == NULL)
		open_slices(storer);
	old = MemoryContextSwitchTo(TopTransactionContext);
	for (int i = 0; i < pack->nready; i++)
	{
		SluiceSlice *slice = &pack->slices[i];

		sluice_changelog_append(storer->writer, slice);
		storer->last = slice->number;
		storer->bytes += slice->size;
		if (slice->flags & SLUICE_SLICE_OPEN_END)
			continue;
		storer->last_whole = storer->last;
		storer->bytes_whole = storer->bytes;
		storer->ends = true;
		storer->head = slice->last;
		storer->head_time = slice->commit_time;
		if (slice->end_lsn != 0)
			storer->head_end_lsn = slice->end_lsn;
	}
	MemoryContextSwitchTo(old);
	storer->nslices += pack->nready;
	storer->transactions += pack->transactions;
	pg_atomic_fetch_add_u64(&storer->stream->stored_bytes, storer->bytes - before);
	sluice_pack_taken(pack);
}

/* The slices of a transaction that will not end. */
static void
remove_unfinished(Storer *storer)
{
	int64		removed;

	if (storer->last == storer->last_whole)
		return;
	commit_slices(storer);
	if (begin_local(storer) == NULL)
		elog(ERROR, "shard \"%s\" has no slot", storer->stream->shard);
	removed = sluice_changelog_remove_above(storer->stream->shard, storer->last_whole);
	end_local(storer, false);
	storer->last = storer->last_whole;
	storer->bytes = storer->bytes_whole;
	ereport(DEBUG1,
			(errmsg_internal("sluice: removed " INT64_FORMAT " slices of a transaction without an end", removed)));
}

/* ---- finding its place ---- */

/* What the log holds; removes what a predecessor left behind.  False: no log yet. */
static bool
load_log(Storer *storer)
{
	SluiceStream *stream = storer->stream;
	SluiceLogBounds bounds;
	int64		removed;

	if (begin_local(storer) == NULL)
		return false;
	sluice_changelog_bounds(stream->shard, &bounds);
	removed = sluice_changelog_remove_above(stream->shard, bounds.head_number);
	end_local(storer, removed > 0);
	if (removed > 0)
		ereport(LOG,
				(errmsg("sluice: removed " INT64_FORMAT " slices of a transaction that was not stored to its end from the change log of shard \"%s\"",
						removed, stream->shard)));

	storer->last = storer->last_whole = bounds.head_number;
	storer->bytes = storer->bytes_whole = bounds.bytes;
	storer->head = bounds.head;
	storer->head_time = bounds.head_commit_time;
	storer->head_end_lsn = bounds.head_end_lsn;
	storer->minimal = false;
	publish_first(stream, bounds.oldest);
	publish_stored(storer);
	return true;
}

static void
wait_for_latch(long timeout)
{
	int			events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;

	if (timeout >= 0)
		events |= WL_TIMEOUT;
	(void) WaitLatch(MyLatch, events, timeout, PG_WAIT_EXTENSION);
}

static void
attach(Storer *storer)
{
	SluiceRing *ring = storer->stream->ring;

	/* readers and status want to know the log, whether the decoder runs or not */
	(void) load_log(storer);
	while (!sluice_ring_find_storer(ring, &storer->reader))
	{
		ResetLatch(MyLatch);
		sluice_worker_interrupts();
		sluice_ring_prepare_wait(ring);
		if (sluice_ring_find_storer(ring, &storer->reader))
			break;
		wait_for_latch(-1);
	}
	sluice_ring_cancel_wait();
	if (!load_log(storer))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the change log of shard \"%s\" has no owner yet", storer->stream->shard)));
	sluice_pack_restart(&storer->pack, storer->head);
}

/* ---- the stream ---- */

static bool
group_is_full(const Storer *storer)
{
	return storer->writer != NULL &&
		(storer->nslices >= GROUP_SLICES ||
		 GetCurrentTimestamp() - storer->opened_at >= GROUP_MS * INT64CONST(1000));
}

static void
take_bytes(Storer *storer, Size size)
{
	SluicePack *pack = &storer->pack;
	Size		used = 0;

	while (used < size)
	{
		SluicePackEvent event;

		used += sluice_pack_feed(pack, storer->buffer + used, size - used, &event);
		switch (event)
		{
			case SLUICE_PACK_NONE:
				break;
			case SLUICE_PACK_READY:
				write_slices(storer);
				break;
			case SLUICE_PACK_ROLLBACK:
				write_slices(storer);
				remove_unfinished(storer);
				break;
			case SLUICE_PACK_DAMAGED:
				ereport(ERROR,
						(errcode(ERRCODE_DATA_CORRUPTED),
						 errmsg("the stream of shard \"%s\" is damaged behind watermark %X/%X",
								storer->stream->shard, LSN_FORMAT_ARGS(pack->head.major)),
						 errhint("The workers start anew from what is stored; if it comes again, report it.")));
		}
	}
}

/*
 * Takes what is on the ring and commits it, up to the end or a full group.
 * False: nothing was there.
 */
static bool
follow(Storer *storer)
{
	bool		progress = false;

	for (;;)
	{
		Size		size;

		CHECK_FOR_INTERRUPTS();
		switch (sluice_ring_read(&storer->reader, storer->buffer, READ_SIZE, &size))
		{
			case SLUICE_RING_DATA:
				sluice_ring_consumed(&storer->reader);
				take_bytes(storer, size);
				progress = true;
				if (!group_is_full(storer))
					continue;
				commit_slices(storer);
				return true;
			case SLUICE_RING_EMPTY:
				sluice_pack_close_whole(&storer->pack);
				if (storer->pack.transactions > 0)
					write_slices(storer);
				commit_slices(storer);
				return progress;
			case SLUICE_RING_OVERRUN:
				elog(ERROR, "the ring overtook its storer");
				break;
			case SLUICE_RING_RESTARTED:
				commit_slices(storer);
				attach(storer);
				return true;
		}
	}
}

/* ---- purge ---- */

static long
purge_due_in(const Storer *storer, bool busy)
{
	TimestampTz due;
	bool		soon;

	if (storer->purge_more || (busy && storer->since_purge >= PURGE_EVERY_SLICES))
		return 0;
	if (storer->minimal && storer->since_purge == 0)
		return -1;
	soon = !busy && (storer->since_purge > 0 || storer->purge_soon);
	due = TimestampTzPlusMilliseconds(storer->purged_at, soon ? PURGE_IDLE_MS : PURGE_BUSY_MS);
	return TimestampDifferenceMilliseconds(GetCurrentTimestamp(), due);
}

static void
purge_step(Storer *storer)
{
	SluiceState *state = begin_local(storer);
	SluicePurge purge;

	if (state == NULL)
		return;
	sluice_purge_step(storer->stream, state, PURGE_STEP, &purge);
	end_local(storer, false);
	if (purge.removed > 0)
	{
		publish_first(storer->stream, purge.first);
		wake_others(storer->stream);
	}
	storer->purge_more = purge.more;
	storer->purge_soon = purge.young;
	storer->minimal = purge.minimal;
	storer->since_purge = 0;
	storer->purged_at = GetCurrentTimestamp();
}

/* ---- life ---- */

static void
set_up(Storer *storer, Datum main_arg)
{
	char		timeout[32];

	memset(storer, 0, sizeof(*storer));
	storer->stream = sluice_worker_start(SLUICE_WORKER_STORER, main_arg);
	storer->context = AllocSetContextCreate(TopMemoryContext, "sluice storer", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(storer->context);

	/* the decoder gives up on us after storer_timeout: say why before */
	snprintf(timeout, sizeof(timeout), "%d", sluice_storer_timeout / 2);
	SetConfigOption("lock_timeout", timeout, PGC_SUSET, PGC_S_OVERRIDE);
	replorigin_session_origin = DoNotReplicateId;

	storer->buffer = palloc(READ_SIZE);
	sluice_pack_init(&storer->pack);
	storer->purged_at = GetCurrentTimestamp();
}

static long
sooner(long a, long b)
{
	return a < 0 ? b : b < 0 ? a : Min(a, b);
}

/* Nothing was on the ring when the wait was prepared. */
static void
wait_for_work(Storer *storer)
{
	long		timeout = purge_due_in(storer, false);
	long		stats = pgstat_report_stat(false);

	if (stats > 0)
		timeout = sooner(timeout, stats);
	if (timeout != 0)
		wait_for_latch(timeout);
}

void
sluice_storer_main(Datum main_arg)
{
	Storer		storer;

	set_up(&storer, main_arg);
	attach(&storer);
	for (;;)
	{
		bool		busy = sluice_ring_unread(&storer.reader) > 0;

		Assert(CurrentMemoryContext == storer.context);
		ResetLatch(MyLatch);
		sluice_worker_interrupts();
		if (purge_due_in(&storer, busy) == 0)
			purge_step(&storer);

		/* whatever is done takes us off the list of who waits: look again */
		sluice_ring_prepare_wait(storer.stream->ring);
		if (follow(&storer))
			(void) pgstat_report_stat(false);
		else
			wait_for_work(&storer);
	}
}
