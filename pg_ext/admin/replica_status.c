/*
 * replica_status.c: the view sluice.replica_status.
 *
 * In: senders' entries, the replicas tables.  Out: one row for each
 * connection of a replica, and one for each known replica without one.
 * Columns are explained in docs/sql.md.
 * Runs in: client backends.  Locks: SluiceShmem.lock, entries' spinlocks.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "admin.h"
#include "changelog.h"
#include "status.h"

PG_FUNCTION_INFO_V1(sluice_get_replica_status);

#define REPLICA_STATUS_COLUMNS 17

/* Copies the senders of the shard; the array has room for all. */
static int
copy_senders(const char *shard, SluiceSender *senders)
{
	int			count = 0;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	for (int i = 0; i < sluice_shmem->nsenders; i++)
	{
		SluiceSender *sender = &sluice_shmem->senders[i];

		if (!sender->in_use || sender->dboid != MyDatabaseId || strcmp(sender->shard, shard) != 0)
			continue;
		SpinLockAcquire(&sender->mutex);
		memcpy(&senders[count++], sender, sizeof(SluiceSender));
		SpinLockRelease(&sender->mutex);
	}
	LWLockRelease(sluice_shmem->lock);
	return count;
}

static const char *
sender_state_name(SluiceSenderState state)
{
	static const char *const names[] = {
		[SLUICE_SENDER_STARTING] = "starting",
		[SLUICE_SENDER_WAITING] = "waiting",
		[SLUICE_SENDER_CATCHUP] = "catchup",
		[SLUICE_SENDER_STREAMING] = "streaming",
		[SLUICE_SENDER_COPYING] = "copying"
	};

	return names[state];
}

static const SluiceReplica *
find_replica(List *replicas, const char *name)
{
	ListCell   *cell;

	foreach(cell, replicas)
	{
		const SluiceReplica *replica = lfirst(cell);

		if (strcmp(replica->name, name) == 0)
			return replica;
	}
	return NULL;
}

/* How far a position is behind the newest transaction; null if there is none. */
static void
put_lag(SluiceRow *row, SluiceWatermark head, SluiceWatermark position)
{
	if (position.major == 0 || head.major == 0)
		sluice_row_null(row);
	else
		sluice_row_distance(row, head.major, position.major);
}

static void
put_applied_lag(SluiceRow *row, const SluiceSender *sender, SluiceWatermark head, TimestampTz now)
{
	if (sender->applied.major == 0)
		sluice_row_null(row);
	else if (sluice_watermark_compare(sender->applied, head) >= 0 || sender->applied_since == 0)
		sluice_row_interval(row, 0);
	else
		sluice_row_interval(row, now - sender->applied_since);
}

static void
put_connected(const char *shard, const SluiceSender *sender, const SluiceReplica *replica,
			  SluiceWatermark head, ReturnSetInfo *result)
{
	SluiceWatermark durable = sender->durable;
	SluiceRow	row;

	/* a copy has no position of its own */
	if (durable.major == 0 && replica && strcmp(sender->mode, "copy") != 0)
		durable = replica->durable;

	sluice_row_begin(&row);
	sluice_row_text(&row, shard);
	sluice_row_text(&row, sender->replica);
	sluice_row_pid(&row, sender->pid);
	sluice_row_text(&row, sender_state_name(sender->state));
	sluice_row_text(&row, sender->mode);
	sluice_row_watermark(&row, sender->sent);
	sluice_row_watermark(&row, sender->applied);
	sluice_row_watermark(&row, durable);
	put_lag(&row, head, sender->sent);
	put_lag(&row, head, sender->applied);
	put_lag(&row, head, durable);
	put_applied_lag(&row, sender, head, GetCurrentTimestamp());
	sluice_row_int8(&row, sender->bytes_sent);
	sluice_row_text(&row, sender->waits_for);
	sluice_row_time(&row, sender->connected_at);
	sluice_row_time(&row, sender->reply_time);
	sluice_row_time(&row, replica ? replica->seen_at : 0);
	Assert(row.count == REPLICA_STATUS_COLUMNS);
	sluice_row_end(&row, result);
}

static void
put_disconnected(const char *shard, const SluiceReplica *replica, SluiceWatermark head,
				 ReturnSetInfo *result)
{
	SluiceRow	row;

	sluice_row_begin(&row);
	sluice_row_text(&row, shard);
	sluice_row_text(&row, replica->name);
	sluice_row_pid(&row, 0);
	sluice_row_text(&row, "disconnected");
	for (int i = 0; i < 3; i++)
		sluice_row_null(&row);
	sluice_row_watermark(&row, replica->durable);
	for (int i = 0; i < 2; i++)
		sluice_row_null(&row);
	put_lag(&row, head, replica->durable);
	for (int i = 0; i < 5; i++)
		sluice_row_null(&row);
	sluice_row_time(&row, replica->seen_at);
	Assert(row.count == REPLICA_STATUS_COLUMNS);
	sluice_row_end(&row, result);
}

static bool
is_connected(const SluiceSender *senders, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(senders[i].replica, name) == 0)
			return true;
	return false;
}

static void
replicas_of(const char *shard, SluiceSender *senders, ReturnSetInfo *result)
{
	List	   *replicas = sluice_replicas_list(shard);
	int			count = copy_senders(shard, senders);
	SluiceStreamView view;
	ListCell   *cell;

	sluice_view_stream(shard, &view);
	for (int i = 0; i < count; i++)
		put_connected(shard, &senders[i], find_replica(replicas, senders[i].replica),
					  view.head, result);
	foreach(cell, replicas)
	{
		const SluiceReplica *replica = lfirst(cell);

		if (!is_connected(senders, count, replica->name))
			put_disconnected(shard, replica, view.head, result);
	}
}

Datum
sluice_get_replica_status(PG_FUNCTION_ARGS)
{
	SluiceAdminStretch stretch;
	SluiceSender *senders;
	ListCell   *cell;

	sluice_shmem_require();
	InitMaterializedSRF(fcinfo, 0);
	senders = palloc(sluice_shmem->nsenders * sizeof(SluiceSender));
	sluice_admin_enter(&stretch);
	foreach(cell, sluice_admin_shards())
		replicas_of(lfirst(cell), senders, (ReturnSetInfo *) fcinfo->resultinfo);
	sluice_admin_leave(&stretch);
	return (Datum) 0;
}
