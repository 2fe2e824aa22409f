/*
 * source.c: see source.h.
 *
 * In: change log, ring.  Out: bytes.  Runs in: the sender's backend.
 * Locks: those of the change log's reads, given back with each read.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "call.h"
#include "copyboth.h"
#include "source.h"

#define PIECE_SIZE (64 * 1024)
#define BATCH_SIZE (512 * 1024)

void
sluice_source_init(SluiceSource *source, const SluiceSenderTask *task)
{
	memset(source, 0, sizeof(*source));
	source->stream = task->stream;
	source->shard = task->shard;
	source->task = task;
	source->batch = AllocSetContextCreate(CurrentMemoryContext, "sluice slices",
										  ALLOCSET_DEFAULT_SIZES);
	source->piece = palloc(PIECE_SIZE);
}

/* ---- the ring ---- */

static bool
read_ring(SluiceSource *source, SluiceSubscriber *subscriber)
{
	Size		size;

	switch (sluice_ring_read(&source->reader, source->piece, PIECE_SIZE, &size))
	{
		case SLUICE_RING_DATA:
			sluice_subscriber_take(subscriber, source->piece, size);
			return true;
		case SLUICE_RING_EMPTY:
			return false;
		case SLUICE_RING_OVERRUN:
		case SLUICE_RING_RESTARTED:
			break;
	}
	sluice_subscriber_restart(subscriber);
	source->on_ring = false;
	source->placed = false;
	return true;
}

/* ---- the log ---- */

/* One short transaction; false: the log's end was reached. */
static bool
next_batch(SluiceSource *source, SluiceSubscriber *subscriber)
{
	SluiceState *state;
	MemoryContext caller;

	MemoryContextReset(source->batch);
	source->next = 0;
	source->nslices = 0;

	sluice_copyboth_begin_transaction(true);
	caller = MemoryContextSwitchTo(source->batch);
	if (!source->placed)
		sluice_changelog_place(source->shard, subscriber->sent, &source->place);
	source->placed = true;
	source->nslices = sluice_changelog_read(source->shard, &source->place, BATCH_SIZE,
											&source->slices);
	/* read after the slices: if it is the old one now, so they are */
	state = sluice_state_read(source->shard, NoLock, false);
	if (sluice_watermark_compare(state->replica_version, source->task->lineage) != 0)
		sluice_call_other_lineage(source->task->replica, source->shard, NULL);
	MemoryContextSwitchTo(caller);
	sluice_copyboth_commit_transaction();
	return source->nslices > 0;
}

/*
 * More of the log, or the ring where the log ends.  On an idle server the
 * ring begins behind a position that is ahead of the last transaction: what
 * lies before was in the log when that generation began, so who has read the
 * log to its end since then has it all.
 */
static bool
go_on(SluiceSource *source, SluiceSubscriber *subscriber)
{
	SluiceRing *ring = source->stream->ring;
	SluiceWatermark from;
	uint64		generation;

	if (!sluice_ring_base(ring, &generation, &from))
		generation = 0;
	if (next_batch(source, subscriber))
		return true;
	if (generation == 0 || sluice_watermark_compare(from, subscriber->sent) <= 0)
	{
		from = subscriber->sent;
		generation = 0;
	}
	source->on_ring = sluice_ring_find(ring, from, &source->reader) &&
		(generation == 0 || generation == source->reader.generation);
	return source->on_ring;
}

static bool
read_log(SluiceSource *source, SluiceSubscriber *subscriber)
{
	Size		size = 0;

	if (source->next >= source->nslices)
		return go_on(source, subscriber);
	while (source->next < source->nslices && size < PIECE_SIZE)
	{
		const SluiceSlice *slice = &source->slices[source->next++];

		sluice_subscriber_take(subscriber, slice->data, slice->size);
		size += slice->size;
	}
	return true;
}

bool
sluice_source_read(SluiceSource *source, SluiceSubscriber *subscriber)
{
	return source->on_ring ? read_ring(source, subscriber) : read_log(source, subscriber);
}

/* ---- waiting ---- */

void
sluice_source_prepare_wait(SluiceSource *source)
{
	if (source->on_ring)
		sluice_ring_prepare_wait(source->stream->ring);
	else
		ConditionVariablePrepareToSleep(&source->stream->progress);
}

void
sluice_source_cancel_wait(void)
{
	ConditionVariableCancelSleep();
}

/* The reader's generation goes on, and it has read all that is published. */
static bool
at_end_of_ring(const SluiceSource *source)
{
	SluiceRingReader probe = source->reader;
	char		byte;
	Size		size;

	return sluice_ring_read(&probe, &byte, 1, &size) == SLUICE_RING_EMPTY;
}

/*
 * decoded is read before the ring is looked at: what the decoder had decoded
 * by then was published before.  A decoder sets it back before it begins a
 * generation.
 */
uint64
sluice_source_position(const SluiceSource *source, const SluiceSubscriber *subscriber)
{
	uint64		decoded = pg_atomic_read_u64(&source->stream->decoded);

	pg_read_barrier();
	if (source->on_ring && !subscriber->scanner.in_transaction &&
		!subscriber->scanner.in_frame && at_end_of_ring(source) &&
		decoded > subscriber->sent.major)
		return decoded;
	return subscriber->sent.major + 1;
}
