/*
 * attach.c: what a shard is when its decoder starts: state, options, tracked
 * schema, slot.
 *
 * In: the catalogs of the shard.  Out: a decoder that can begin, or a shard
 * that is stopped with what is wrong and what to do; a slot that belongs to
 * no shard is dropped after a grace.
 * Runs in: decoder, at its start.  Locks: ACCESS SHARE on the shard's tables.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "attach.h"
#include "changelog.h"
#include "compat.h"
#include "drift.h"
#include "slot.h"
#include "worker.h"

#define ORPHAN_GRACE 10000		/* ms */

/* NULL, or why this slot is no (longer a) part of a shard. */
static const char *
orphaned(const SluiceStream *stream, const SluiceState *state)
{
	if (state == NULL)
		return "its shard does not exist";
	if (state->slot == NULL)
		return "its shard was not made completely";
	if (strcmp(state->slot, NameStr(stream->slot)) != 0)
		return psprintf("shard \"%s\" has slot \"%s\"", stream->shard, state->slot);
	return NULL;
}

static void
check_state(SluiceDecoder *decoder, const SluiceState *state)
{
	if (state->system_id != GetSystemIdentifier())
		sluice_decoder_stop(decoder,
							"its change log was made by another server (system identifier " UINT64_FORMAT ", here " UINT64_FORMAT ")",
							state->system_id, GetSystemIdentifier());
	if (state->reset_required)
		sluice_decoder_stop(decoder, "%s",
							state->reset_reason ? state->reset_reason : "it was marked so");
	if (state->publications == NIL)
		sluice_decoder_stop_plain(decoder, "its state names no publication");
}

static void
load_schema(SluiceDecoder *decoder)
{
	SluiceWatermark at;
	Size		size;
	size_t		used;
	char	   *data = sluice_schema_load(decoder->stream->shard, decoder->log_head, &at, &size);
	MemoryContext old;

	decoder->schema_context = AllocSetContextCreate(decoder->context, "sluice tracked schema",
													ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(decoder->schema_context);
	decoder->schema = palloc0(sizeof(SluiceSchema));
	if (data == NULL ||
		!sluice_schema_decode(data, size, &used, &sluice_palloc_allocator, decoder->schema))
		sluice_decoder_stop(decoder, "the published schema stored in its change log is damaged");
	MemoryContextSwitchTo(old);
}

static void
keep_options(SluiceDecoder *decoder, const SluiceState *state)
{
	MemoryContext old = MemoryContextSwitchTo(decoder->context);
	ListCell   *cell;

	decoder->options.timestamps_text = state->options.timestamps_text;
	decoder->options.numerics_double = state->options.numerics_double;
	decoder->publications = NIL;
	foreach(cell, state->publications)
		decoder->publications = lappend(decoder->publications, pstrdup(lfirst(cell)));
	MemoryContextSwitchTo(old);
}

/* Reads what the shard is and takes its slot.  False: it seems to be nobody's. */
static bool
open_shard(SluiceDecoder *decoder, const char **why, bool *superseded)
{
	SluiceStream *stream = decoder->stream;
	SluiceState *state;
	SluiceLogBounds bounds;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	/* who is about to change the row (pause, mark_reset_required) is waited for */
	state = sluice_state_read(stream->shard, ShareLock, true);
	*why = orphaned(stream, state);
	*superseded = state != NULL && state->slot != NULL && state->n > stream->n;
	if (state != NULL && state->slot != NULL && state->paused && *why == NULL)
	{
		sluice_stream_set_state(stream, SLUICE_STREAM_PAUSED, 0, "");
		proc_exit(0);
	}
	if (*why != NULL)
		*why = MemoryContextStrdup(decoder->context, *why);
	else
	{
		check_state(decoder, state);
		keep_options(decoder, state);
		sluice_changelog_bounds(stream->shard, &bounds);
		decoder->log_head = bounds.head;
		load_schema(decoder);
		decoder->drift = sluice_drift_create(decoder);
		sluice_slot_take(decoder);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(decoder->context);
	return *why == NULL;
}

/* Waits a grace for a slot that seems to belong to nobody. */
static void
wait_grace(void)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ORPHAN_GRACE);
	long		left;

	while ((left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end)) > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, left,
						 sluice_wait_event(SLUICE_WAIT_PROGRESS));
		ResetLatch(MyLatch);
		sluice_worker_interrupts();
	}
}

void
sluice_attach(SluiceDecoder *decoder)
{
	const char *why;
	bool		superseded;

	if (open_shard(decoder, &why, &superseded))
		return;
	if (!superseded)
	{
		/* one that is being made or dropped may settle meanwhile */
		wait_grace();
		if (open_shard(decoder, &why, &superseded))
			return;
	}
	sluice_slot_drop_orphan(decoder, why);
}
