/*
 * status.c: the views sluice.shards and sluice.shard_status.
 *
 * In: state rows, shared memory, slots.  Out: one row a shard of this
 * database.  Columns are explained in docs/sql.md.
 * Runs in: client backends.  Locks: SluiceShmem.lock, ReplicationSlotControlLock,
 * entries' spinlocks, one at a time.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "admin.h"
#include "status.h"

PG_FUNCTION_INFO_V1(sluice_list_shards);
PG_FUNCTION_INFO_V1(sluice_get_shard_status);

#define LIST_SHARDS_COLUMNS 15
#define SHARD_STATUS_COLUMNS 32

/* ---- what is known of a stream ---- */

void
sluice_view_stream(const char *shard, SluiceStreamView *view)
{
	SluiceStream *stream = sluice_stream_find(MyDatabaseId, shard);

	memset(view, 0, sizeof(*view));
	if (stream == NULL)
		return;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	view->known = stream->in_use && strcmp(stream->shard, shard) == 0;
	view->slot = stream->slot;
	view->decoder_pid = stream->decoder_pid;
	view->storer_pid = stream->storer_pid;
	LWLockRelease(sluice_shmem->lock);

	SpinLockAcquire(&stream->mutex);
	view->state = stream->state;
	view->state_since = stream->state_since;
	memcpy(view->message, stream->message, sizeof(view->message));
	memcpy(view->waits_for, stream->waits_for, sizeof(view->waits_for));
	view->sqlerrcode = stream->sqlerrcode;
	view->low = stream->low;
	view->low_valid = stream->low_valid;
	view->head = stream->head;
	view->stored = stream->stored;
	view->first = stream->first;
	view->last_commit_time = stream->last_commit_time;
	view->stored_time = stream->stored_time;
	view->resets = stream->resets;
	view->reset_at = stream->reset_at;
	memcpy(view->reset_last, stream->reset_last, sizeof(view->reset_last));
	SpinLockRelease(&stream->mutex);

	view->decoded = pg_atomic_read_u64(&stream->decoded);
	view->confirmed = pg_atomic_read_u64(&stream->confirmed);
	view->transactions = pg_atomic_read_u64(&stream->transactions);
	view->changes = pg_atomic_read_u64(&stream->changes);
	view->bytes = pg_atomic_read_u64(&stream->bytes);
	view->stored_transactions = pg_atomic_read_u64(&stream->stored_transactions);
	view->stored_bytes = pg_atomic_read_u64(&stream->stored_bytes);
	view->current_at = (TimestampTz) pg_atomic_read_u64(&stream->current_at);
}

static XLogRecPtr
slot_restart_lsn(const char *name)
{
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];

		if (!slot->in_use || strcmp(NameStr(slot->data.name), name) != 0)
			continue;
		SpinLockAcquire(&slot->mutex);
		lsn = slot->data.restart_lsn;
		SpinLockRelease(&slot->mutex);
	}
	LWLockRelease(ReplicationSlotControlLock);
	return lsn;
}

static int
count_replicas(const char *shard)
{
	int			count = 0;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	for (int i = 0; i < sluice_shmem->nsenders; i++)
	{
		SluiceSender *sender = &sluice_shmem->senders[i];

		if (sender->in_use && sender->dboid == MyDatabaseId && strcmp(sender->shard, shard) == 0)
			count++;
	}
	LWLockRelease(sluice_shmem->lock);
	return count;
}

/* ---- sluice.shards ---- */

/* A shard whose slot is gone has no stream. */
static const char *
state_text(const SluiceState *state, const SluiceStreamView *view)
{
	if (view->known)
		return sluice_stream_state_name(view->state);
	return state->slot ? "slot missing" : "not created";
}

static void
list_shard(const char *shard, ReturnSetInfo *result)
{
	SluiceState *state = sluice_state_read(shard, NoLock, false);
	SluiceStreamView view;
	SluiceRow	row;

	sluice_view_stream(shard, &view);
	sluice_row_begin(&row);
	sluice_row_text(&row, shard);
	sluice_row_names(&row, state->publications);
	sluice_row_text(&row, state->slot);
	sluice_row_text(&row, state->owner);
	sluice_row_text(&row, state->owner_address);
	sluice_row_text(&row, state_text(state, &view));
	sluice_row_watermark(&row, state->replica_version);
	sluice_row_bool(&row, state->options.auto_reset);
	sluice_row_interval(&row, state->options.retention_ms * 1000);
	sluice_row_int8(&row, state->options.retention_bytes);
	sluice_row_text(&row, state->options.timestamps_text ? "text" : "epoch_ms");
	sluice_row_text(&row, state->options.numerics_double ? "double" : "exact");
	sluice_row_bool(&row, state->reset_required);
	sluice_row_text(&row, state->reset_reason);
	sluice_row_bool(&row, state->paused);
	Assert(row.count == LIST_SHARDS_COLUMNS);
	sluice_row_end(&row, result);
}

Datum
sluice_list_shards(PG_FUNCTION_ARGS)
{
	SluiceAdminStretch stretch;
	ListCell   *cell;

	sluice_shmem_require();
	InitMaterializedSRF(fcinfo, 0);
	sluice_admin_enter(&stretch);
	foreach(cell, sluice_admin_shards())
		list_shard(lfirst(cell), (ReturnSetInfo *) fcinfo->resultinfo);
	sluice_admin_leave(&stretch);
	return (Datum) 0;
}

/* ---- sluice.shard_status ---- */

/*
 * Since when something flushed is not decoded: at the earliest since nothing
 * was left, or since the newest decoded commit.
 */
static int64
decode_lag(const SluiceStreamView *view, XLogRecPtr flushed, TimestampTz now)
{
	TimestampTz since = Max(view->current_at, view->last_commit_time);

	if (view->decoded >= flushed || since == 0)
		return 0;
	return now - since;
}

/* Before its first transaction a decoder's head is where it began, behind which the log may end. */
static bool
all_stored(const SluiceStreamView *view)
{
	return view->transactions == 0 || sluice_watermark_compare(view->stored, view->head) >= 0;
}

/* Since when the oldest decoded transaction that is not stored waits, at most. */
static int64
store_lag(const SluiceStreamView *view, TimestampTz now)
{
	if (view->stored_time == 0 || all_stored(view))
		return 0;
	return now - view->stored_time;
}

static void
shard_status(const char *shard, ReturnSetInfo *result)
{
	XLogRecPtr	flushed = GetFlushRecPtr(NULL);
	TimestampTz now = GetCurrentTimestamp();
	SluiceState *state = sluice_state_read(shard, NoLock, false);
	SluiceStreamView view;
	SluiceRow	row;
	const char *slot;
	XLogRecPtr	restart;

	sluice_view_stream(shard, &view);
	slot = view.known ? NameStr(view.slot) : state->slot;
	restart = slot ? slot_restart_lsn(slot) : InvalidXLogRecPtr;

	sluice_row_begin(&row);
	sluice_row_text(&row, shard);
	sluice_row_text(&row, slot);
	sluice_row_text(&row, state_text(state, &view));
	sluice_row_time(&row, view.state_since);
	sluice_row_text(&row, view.waits_for);
	sluice_row_text(&row, view.message);
	sluice_row_text(&row, view.sqlerrcode ? unpack_sql_state(view.sqlerrcode) : NULL);
	sluice_row_pid(&row, view.decoder_pid);
	sluice_row_pid(&row, view.storer_pid);
	sluice_row_int4(&row, count_replicas(shard));
	sluice_row_watermark(&row, view.first.major ? view.first : state->first);
	sluice_row_watermark(&row, view.head);
	sluice_row_watermark(&row, view.stored);
	if (view.low_valid)
		sluice_row_watermark(&row, view.low);
	else
		sluice_row_null(&row);
	sluice_row_lsn(&row, flushed);
	sluice_row_lsn(&row, view.decoded);
	sluice_row_lsn(&row, view.confirmed);
	sluice_row_lsn(&row, restart);
	if (view.decoded)
	{
		sluice_row_distance(&row, flushed, view.decoded);
		sluice_row_interval(&row, decode_lag(&view, flushed, now));
		sluice_row_distance(&row, all_stored(&view) ? 0 : view.head.major, view.stored.major);
		sluice_row_interval(&row, store_lag(&view, now));
	}
	else
	{
		for (int i = 0; i < 4; i++)
			sluice_row_null(&row);
	}
	if (restart)
		sluice_row_distance(&row, flushed, restart);
	else
		sluice_row_null(&row);
	sluice_row_time(&row, view.last_commit_time);
	sluice_row_int8(&row, view.transactions);
	sluice_row_int8(&row, view.changes);
	sluice_row_int8(&row, view.bytes);
	sluice_row_int8(&row, view.stored_transactions);
	sluice_row_int8(&row, view.stored_bytes);
	sluice_row_int8(&row, view.resets);
	sluice_row_time(&row, view.reset_at);
	sluice_row_text(&row, view.reset_last);
	Assert(row.count == SHARD_STATUS_COLUMNS);
	sluice_row_end(&row, result);
}

Datum
sluice_get_shard_status(PG_FUNCTION_ARGS)
{
	SluiceAdminStretch stretch;
	ListCell   *cell;

	sluice_shmem_require();
	InitMaterializedSRF(fcinfo, 0);
	sluice_admin_enter(&stretch);
	foreach(cell, sluice_admin_shards())
		shard_status(lfirst(cell), (ReturnSetInfo *) fcinfo->resultinfo);
	sluice_admin_leave(&stretch);
	return (Datum) 0;
}
