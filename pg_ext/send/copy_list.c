/*
 * copy_list.c: the list of tables of a first copy.
 *
 * In: the published schema under a placed snapshot.  Out: an L message.
 * Runs in: the client backend in CALL sluice.copy without tables.
 * Locks: none on tables: the list waits for nobody.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "mb/pg_wchar.h"
#include "utils/json.h"

#include "allocator.h"
#include "copier.h"
#include "copyboth.h"
#include "scan.h"
#include "schema.h"

#define RETRY 1000				/* ms */

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

/*
 * The replica is known to the change log before the list is given, so that
 * nothing behind the list's low is purged until it streams.
 */
static void
register_replica(SluiceCopier *copier)
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
		sluice_copier_waits_for(copier, "the decoder to start");
		sluice_copier_wait(copier, RETRY);
	}
	ConditionVariableCancelSleep();
	sluice_copier_waits_for(copier, "");
	sluice_sender_save(&copier->task, low);
}

static void
put_table(SluiceBuffer *out, const SluiceTable *table, Snapshot snapshot)
{
	int64		rows;
	int64		bytes = sluice_scan_estimate(sluice_scan_relations(table, snapshot), &rows);

	sluice_wire_put_u32(out, table->oid);
	sluice_wire_put_string(out, table->schema);
	sluice_wire_put_string(out, table->name);
	sluice_wire_put_u64(out, (uint64) rows);
	sluice_wire_put_u64(out, (uint64) bytes);
	sluice_wire_put_string(out, table->problem);
}

static void
put_list(SluiceCopier *copier, const SluicePlacedSnapshot *placed, SluiceBuffer *out)
{
	const SluiceState *state = copier->state;
	const SluiceSchema *schema = sluice_schema_read(state->publications, placed->snapshot,
													&copier->options);
	char		version[SLUICE_WATERMARK_TEXT_MAX];

	sluice_watermark_format(state->replica_version, version);
	sluice_wire_put_u64(out, GetSystemIdentifier());
	sluice_wire_put_u32(out, GetWALInsertionTimeLine());
	sluice_wire_put_string(out, version);
	sluice_snapshot_encode(out, placed);
	sluice_wire_put_watermark(out, placed->low);
	sluice_wire_put_u64(out, placed->high);
	sluice_wire_put_u32(out, schema->ntables);
	for (uint32 i = 0; i < schema->ntables; i++)
		put_table(out, &schema->tables[i], placed->snapshot);
	sluice_wire_put_u8(out, copier->options.timestamps_text);
	sluice_wire_put_u8(out, copier->options.numerics_double);
	sluice_wire_put_string(out, publications_json(state->publications));
}

void
sluice_copy_send_list(SluiceCopier *copier)
{
	SluicePlacedSnapshot placed;
	SluiceBuffer out;

	register_replica(copier);
	sluice_copyboth_begin_transaction(false);
	MemoryContextSwitchTo(copier->table);
	sluice_copier_snapshot(copier, &placed);
	sluice_buffer_init(&out, &sluice_palloc_allocator);
	put_list(copier, &placed, &out);
	sluice_snapshot_end(&placed);
	sluice_copyboth_commit_transaction();
	sluice_copyboth_send('L', out.data, out.length);
	sluice_copier_drain(copier);
}
