/*
 * copy.c: CALL sluice.copy: the list of tables, or some of them, to a replica.
 *
 * In: OIDs.  Out: for each a header (definition, snapshot, low, high), rows,
 * an end (docs/protocol.md).
 * Runs in: a client backend; each table in a transaction of its own, with
 * superuser rights, so that row security hides nothing (README.md says so).
 * Locks: ACCESS SHARE on one table (and its leaves) while it is copied.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/json.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "allocator.h"
#include "call.h"
#include "clock.h"
#include "compat.h"
#include "copyboth.h"
#include "scan.h"
#include "schema.h"
#include "sender.h"
#include "snapshot.h"

#define PATIENCE 5000			/* ms a call waits for a decoder that lags */
#define LOCK_RETRY 100			/* ms */
#define SIGN_OF_LIFE 1000		/* ms */

typedef struct Copier
{
	SluiceSenderTask task;
	SluiceState *state;
	SluiceEncodeOptions options;
	MemoryContext table;		/* reset for each table */
	TimestampTz patience;
	TimestampTz last_sign;
	StringInfoData ignored;
} Copier;

PG_FUNCTION_INFO_V1(sluice_copy);

/* ---- waiting ---- */

static void
heed(Copier *copier)
{
	sluice_sender_check(&copier->task);
	if (sluice_sender_stopping())
		ereport(ERROR,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("the server is shutting down")));
	while (sluice_copyboth_receive(&copier->ignored) == SLUICE_RECEIVE_MESSAGE)
		;
}

static void
show_life(Copier *copier)
{
	TimestampTz now = GetCurrentTimestamp();
	int64		time = sluice_unix_time(now);
	SluiceBuffer out;

	if (now < TimestampTzPlusMilliseconds(copier->last_sign, SIGN_OF_LIFE) ||
		sluice_copyboth_pending())
		return;
	sluice_buffer_init(&out, &sluice_palloc_allocator);
	sluice_wire_put_u64(&out, (uint64) time);
	sluice_copyboth_send('K', out.data, out.length);
	sluice_buffer_release(&out);
	copier->last_sign = now;
}

/* For who waits for something else than the client. */
static void
wait_alive(void *argument, long ms)
{
	Copier	   *copier = argument;

	heed(copier);
	show_life(copier);
	(void) sluice_copyboth_flush();
	sluice_copyboth_wait(Min(ms, SIGN_OF_LIFE));
}

/* Nothing new is made while the socket has not taken what there is. */
static void
drain(Copier *copier)
{
	while (!sluice_copyboth_flush())
	{
		heed(copier);
		sluice_copyboth_wait(SIGN_OF_LIFE);
	}
}

static void
set_waits_for(Copier *copier, const char *what)
{
	SluiceSender *entry = copier->task.entry;

	SpinLockAcquire(&entry->mutex);
	strlcpy(entry->waits_for, what, sizeof(entry->waits_for));
	SpinLockRelease(&entry->mutex);
}

/* ---- the list ---- */

static char *
publications_json(List *publications)
{
	StringInfoData json;
	ListCell   *cell;

	initStringInfo(&json);
	appendStringInfoChar(&json, '[');
	foreach(cell, publications)
	{
		if (json.len > 1)
			appendStringInfoChar(&json, ',');
		escape_json(&json, pg_server_to_any(lfirst(cell), strlen(lfirst(cell)), PG_UTF8));
	}
	appendStringInfoChar(&json, ']');
	return json.data;
}

static void
put_table(SluiceBuffer *out, const SluiceTable *table)
{
	int64		rows;
	int64		bytes;

	bytes = sluice_scan_estimate(sluice_scan_relations(table), &rows);
	sluice_wire_put_u32(out, table->oid);
	sluice_wire_put_string(out, table->schema);
	sluice_wire_put_string(out, table->name);
	sluice_wire_put_u64(out, (uint64) rows);
	sluice_wire_put_u64(out, (uint64) bytes);
	sluice_wire_put_string(out, table->problem);
}

static void
send_list(Copier *copier)
{
	const SluiceState *state = copier->state;
	char		version[SLUICE_WATERMARK_TEXT_MAX];
	SluicePlacedSnapshot placed;
	SluiceSchema *schema;
	SluiceBuffer out;

	sluice_copyboth_begin_transaction(false);
	MemoryContextSwitchTo(copier->table);
	sluice_snapshot_take(copier->task.stream, copier->patience, wait_alive, copier, &placed);
	schema = sluice_schema_read(state->publications, placed.snapshot, &copier->options);

	sluice_watermark_format(state->replica_version, version);
	sluice_buffer_init(&out, &sluice_palloc_allocator);
	sluice_wire_put_u64(&out, GetSystemIdentifier());
	sluice_wire_put_u32(&out, GetWALInsertionTimeLine());
	sluice_wire_put_string(&out, version);
	sluice_snapshot_encode(&out, &placed);
	sluice_wire_put_watermark(&out, placed.low);
	sluice_wire_put_u64(&out, placed.high);
	sluice_wire_put_u32(&out, schema->ntables);
	for (uint32 i = 0; i < schema->ntables; i++)
		put_table(&out, &schema->tables[i]);
	sluice_wire_put_u8(&out, copier->options.timestamps_text);
	sluice_wire_put_u8(&out, copier->options.numerics_double);
	sluice_wire_put_string(&out, publications_json(state->publications));

	sluice_snapshot_end(&placed);
	sluice_copyboth_commit_transaction();
	sluice_copyboth_send('L', out.data, out.length);
	drain(copier);
}

/* ---- a table ---- */

/*
 * Waits by trying, so that signs of life go out and the wait can be shown.
 * False: there is no such relation.
 */
static bool
lock_table(Copier *copier, Oid oid)
{
	while (!ConditionalLockRelationOid(oid, AccessShareLock))
	{
		set_waits_for(copier, psprintf("a lock on the table with OID %u", oid));
		wait_alive(copier, LOCK_RETRY);
	}
	set_waits_for(copier, "");
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(oid));
}

static void
emit(void *argument, SluiceBuffer *frames)
{
	Copier	   *copier = argument;
	SluiceSender *entry = copier->task.entry;

	drain(copier);
	sluice_copyboth_send('W', frames->data, frames->length);
	(void) sluice_copyboth_flush();
	SpinLockAcquire(&entry->mutex);
	entry->bytes_sent += frames->length;
	SpinLockRelease(&entry->mutex);
	sluice_buffer_reset(frames);
}

static void
send_header(const SluiceTable *table, const SluicePlacedSnapshot *placed, List *relations)
{
	SluiceBuffer out;
	int64		rows;
	int64		bytes = sluice_scan_estimate(relations, &rows);

	sluice_buffer_init(&out, &sluice_palloc_allocator);
	sluice_wire_put_u32(&out, table->oid);
	sluice_table_encode(&out, table);
	sluice_snapshot_encode(&out, placed);
	sluice_wire_put_watermark(&out, placed->low);
	sluice_wire_put_u64(&out, placed->high);
	sluice_wire_put_u64(&out, (uint64) rows);
	sluice_wire_put_u64(&out, (uint64) bytes);
	sluice_copyboth_send('H', out.data, out.length);
	sluice_buffer_release(&out);
}

static void
send_end(char type, Oid oid, uint64 rows)
{
	SluiceBuffer out;

	sluice_buffer_init(&out, &sluice_palloc_allocator);
	sluice_wire_put_u32(&out, oid);
	if (type == 'F')
		sluice_wire_put_u64(&out, rows);
	sluice_copyboth_send(type, out.data, out.length);
	sluice_buffer_release(&out);
}

static void
send_rows(Copier *copier, const SluiceTable *table, const SluicePlacedSnapshot *placed)
{
	List	   *relations = sluice_scan_relations(table);
	uint64		rows = 0;
	int			level = sluice_value_pin_settings();

	send_header(table, placed, relations);
	if (table->problem == NULL)
		rows = sluice_scan_table(table, relations, placed->snapshot, &copier->options, emit, copier);
	AtEOXact_GUC(true, level);
	send_end('F', table->oid, rows);
}

static void
send_table(Copier *copier, Oid oid)
{
	SluiceTable *table = NULL;

	MemoryContextReset(copier->table);
	sluice_copyboth_begin_transaction(false);
	MemoryContextSwitchTo(copier->table);
	if (lock_table(copier, oid))
	{
		SluicePlacedSnapshot placed;

		sluice_snapshot_take(copier->task.stream, copier->patience, wait_alive, copier, &placed);
		table = sluice_schema_read_table(oid, copier->state->publications, placed.snapshot,
										 &copier->options);
		if (table != NULL)
			send_rows(copier, table, &placed);
		sluice_snapshot_end(&placed);
	}
	if (table == NULL)
		send_end('N', oid, 0);
	sluice_copyboth_commit_transaction();
	drain(copier);
}

/* ---- entry ---- */

static void
copy_tables(Copier *copier, ArrayType *tables)
{
	Datum	   *oids;
	int			n;

	if (ARR_ELEMTYPE(tables) != OIDOID || array_contains_nulls(tables))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument tables of sluice.copy must not contain nulls")));
	deconstruct_array(tables, OIDOID, sizeof(Oid), true, TYPALIGN_INT, &oids, NULL, &n);
	for (int i = 0; i < n; i++)
	{
		heed(copier);
		send_table(copier, DatumGetObjectId(oids[i]));
	}
}

/*
 * Before the list is given the replica is known to the change log, so that
 * nothing behind the list's low is purged until it streams.
 */
static void
register_replica(Copier *copier)
{
	SluiceStream *stream = copier->task.stream;
	SluiceWatermark low;

	for (;;)
	{
		bool		valid;

		ConditionVariablePrepareToSleep(&stream->progress);
		SpinLockAcquire(&stream->mutex);
		valid = stream->low_valid;
		low = stream->low;
		SpinLockRelease(&stream->mutex);
		if (valid)
			break;
		set_waits_for(copier, "the decoder to start");
		wait_alive(copier, SIGN_OF_LIFE);
	}
	ConditionVariableCancelSleep();
	set_waits_for(copier, "");
	sluice_sender_save(&copier->task, low);
}

static void
copy(Copier *copier, ArrayType *tables)
{
	SluiceSenderTask *task = &copier->task;

	task->stream = sluice_call_find(task->shard, &copier->state, &task->generation);
	task->lineage = copier->state->replica_version;
	task->entry = sluice_sender_claim(MyDatabaseId, task->shard, task->replica, "copy");
	SpinLockAcquire(&task->entry->mutex);
	task->entry->state = SLUICE_SENDER_COPYING;
	SpinLockRelease(&task->entry->mutex);

	copier->options.timestamps_text = copier->state->options.timestamps_text;
	copier->options.numerics_double = copier->state->options.numerics_double;
	copier->table = AllocSetContextCreate(CurrentMemoryContext, "sluice copy",
										  ALLOCSET_DEFAULT_SIZES);
	copier->patience = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), PATIENCE);
	initStringInfo(&copier->ignored);

	if (tables != NULL && ArrayGetNItems(ARR_NDIM(tables), ARR_DIMS(tables)) > 0)
		copy_tables(copier, tables);
	else
	{
		register_replica(copier);
		send_list(copier);
	}
}

Datum
sluice_copy(PG_FUNCTION_ARGS)
{
	Copier		copier = {0};
	MemoryContext caller;

	sluice_shmem_require();
	sluice_copyboth_check(fcinfo, "copy");
	sluice_call_check_rights("copy");
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("arguments shard and replica of sluice.copy must not be null")));
	copier.task.shard = sluice_call_shard(PG_GETARG_TEXT_PP(0));
	copier.task.replica = sluice_call_replica(PG_GETARG_TEXT_PP(1));

	sluice_copyboth_begin();
	caller = CurrentMemoryContext;
	copy(&copier, PG_ARGISNULL(2) ? NULL : PG_GETARG_ARRAYTYPE_P(2));
	MemoryContextSwitchTo(caller);
	sluice_copyboth_end();
	sluice_sender_release(copier.task.entry);
	PG_RETURN_VOID();
}
