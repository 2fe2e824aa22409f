/*
 * purge.c: what the change log need not keep any more goes, in small steps.
 *
 * A slice may go when the next one's first watermark is at or before what
 * every known replica has durably (the log then still reaches back to it), at
 * or before low (a copy may begin there), and its own commit is some seconds
 * old (a copy that began there may not be registered yet).  Beyond
 * retention_time or retention_size it goes whoever needs it; the replica that
 * did is forgotten, and told so when it comes.  The newest transaction stays.
 *
 * In: the replicas table, connected senders, low, the shard's options.
 * Out: rows deleted at heap level, whole slices only, oldest first.
 * Runs in: storer, inside a transaction of its own.
 * Locks: ROW EXCLUSIVE on slices; SluiceShmem.lock (shared) for a moment.
 */
#include "postgres.h"

#include "access/genam.h"
#include "utils/timestamp.h"

#include "purge.h"
#include "slices.h"

#define KEEP_MS 10000

static void
lower(SluiceWatermark *floor, SluiceWatermark to)
{
	if (sluice_watermark_compare(to, *floor) < 0)
		*floor = to;
}

/* What connected replicas have durably; a copier is in the replicas table. */
static void
lower_by_senders(const SluiceStream *stream, SluiceWatermark *floor)
{
	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	for (int i = 0; i < sluice_shmem->nsenders; i++)
	{
		SluiceSender *sender = &sluice_shmem->senders[i];
		SluiceWatermark durable;
		bool		copies;

		if (!sender->in_use || sender->dboid != stream->dboid ||
			strcmp(sender->shard, stream->shard) != 0)
			continue;
		SpinLockAcquire(&sender->mutex);
		durable = sender->durable;
		copies = strcmp(sender->mode, "copy") == 0;
		SpinLockRelease(&sender->mutex);
		if (!copies)
			lower(floor, durable);
	}
	LWLockRelease(sluice_shmem->lock);
}

static SluiceWatermark
needed_from(SluiceStream *stream, const SluiceState *state, List *replicas)
{
	SluiceWatermark floor;
	bool		valid;
	ListCell   *cell;

	SpinLockAcquire(&stream->mutex);
	floor = stream->low;
	valid = stream->low_valid;
	SpinLockRelease(&stream->mutex);
	if (!valid)
		floor.major = floor.minor = 0;

	foreach(cell, replicas)
	{
		SluiceReplica *replica = lfirst(cell);

		/* one of another lineage has to be copied afresh anyway */
		if (sluice_watermark_compare(replica->lineage, state->replica_version) == 0)
			lower(&floor, replica->durable);
	}
	lower_by_senders(stream, &floor);
	return floor;
}

/* Replicas that the log does not reach back to any more. */
static void
give_up(const char *shard, const SluiceState *state, List *replicas, SluiceWatermark first)
{
	ListCell   *cell;

	foreach(cell, replicas)
	{
		SluiceReplica *replica = lfirst(cell);
		char		durable[SLUICE_WATERMARK_TEXT_MAX];

		if (sluice_watermark_compare(replica->durable, first) >= 0 ||
			sluice_watermark_compare(replica->lineage, state->replica_version) != 0)
			continue;
		sluice_watermark_format(replica->durable, durable);
		if (sluice_replicas_forget(shard, replica->name))
			ereport(LOG,
					(errmsg("sluice: the change log of shard \"%s\" is not kept for replica \"%s\" any more",
							shard, replica->name),
					 errdetail("It has everything up to %s and was seen last at %s; what follows is beyond retention_time or retention_size.",
							   durable, timestamptz_to_str(replica->seen_at)),
					 errhint("It will be copied afresh when it comes back.")));
	}
}

typedef struct Limits
{
	int64		keep;			/* this number and greater ones stay */
	SluiceWatermark floor;
	TimestampTz young;			/* commits after this are kept for copies */
	TimestampTz expired;		/* commits before this go */
	uint64		excess;			/* what ends at or before this many bytes goes */
} Limits;

static void
set_limits(SluiceSlices *slices, const SluiceState *state, SluiceWatermark floor, Limits *limits)
{
	SluiceWatermark before = slices->head.last;
	TimestampTz now = GetCurrentTimestamp();
	uint64		end = slices->head.bytes_before + slices->head.size;

	/* the newest transaction's first slice */
	if (before.minor-- == 0)
		before.major--;
	limits->keep = slices->head.number == 0 ? 0 : sluice_slices_behind(slices, before);
	limits->floor = floor;
	limits->young = TimestampTzPlusMilliseconds(now, -KEEP_MS);
	limits->expired = now - state->options.retention_ms * 1000;
	limits->excess = end > (uint64) state->options.retention_bytes
		? end - (uint64) state->options.retention_bytes : 0;
}

static bool
may_go(const Limits *limits, const SluiceSlice *slice, const SluiceSlice *next, bool *young)
{
	if (slice->commit_time < limits->expired || next->bytes_before <= limits->excess)
		return true;
	if (sluice_watermark_compare(next->first, limits->floor) > 0)
		return false;
	*young = slice->commit_time >= limits->young;
	return !*young;
}

/* Deletes from the oldest on; true if the log now begins later. */
static void
delete_slices(SluiceSlices *slices, const Limits *limits, int limit, SluicePurge *purge)
{
	int64		oldest = sluice_slices_oldest(slices);
	SysScanDesc scan = sluice_slices_scan(slices, oldest);
	HeapTuple	tuple;
	SluiceSlice slice;
	ItemPointerData tid;

	tuple = systable_getnext_ordered(scan, ForwardScanDirection);
	while (HeapTupleIsValid(tuple))
	{
		SluiceSlice next;

		sluice_slices_form(&slice, tuple, RelationGetDescr(slices->heap->relation));
		tid = tuple->t_self;
		if (slice.number >= limits->keep)
		{
			purge->minimal = true;
			break;
		}
		tuple = systable_getnext_ordered(scan, ForwardScanDirection);
		if (!HeapTupleIsValid(tuple))
			break;
		sluice_slices_form(&next, tuple, RelationGetDescr(slices->heap->relation));
		if (!may_go(limits, &slice, &next, &purge->young))
			break;
		if (purge->removed == limit)
		{
			purge->more = true;
			break;
		}
		sluice_heap_delete(slices->heap, &tid);
		purge->first = next.first;
		purge->removed++;
	}
	systable_endscan_ordered(scan);
}

void
sluice_purge_step(SluiceStream *stream, const SluiceState *state, int limit, SluicePurge *purge)
{
	List	   *replicas = sluice_replicas_list(stream->shard);
	SluiceSlices slices;
	Limits		limits;

	memset(purge, 0, sizeof(*purge));
	sluice_slices_open(&slices, stream->shard, RowExclusiveLock);
	purge->minimal = slices.head.number == 0;
	if (!purge->minimal)
	{
		set_limits(&slices, state, needed_from(stream, state, replicas), &limits);
		purge->first = sluice_slices_first(&slices);
		delete_slices(&slices, &limits, limit, purge);
	}
	sluice_slices_close(&slices);
	if (purge->removed > 0)
		give_up(stream->shard, state, replicas, purge->first);
}
