/*
 * state.c: cdc_<shard>.state, the one row that says what a shard is and who
 * owns its change log.
 *
 * In: SluiceState.  Out: the row, and back.
 * Runs in: whoever has an open transaction.
 * Locks: the table's lock named by the caller, taken before the snapshot that
 * reads the row: SHARE for checks, SHARE ROW EXCLUSIVE for changes.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "error.h"
#include "heap.h"
#include "state.h"
#include "state_columns.h"

void
sluice_state_schema(char *schema, const char *shard)
{
	snprintf(schema, NAMEDATALEN, "cdc_%s", shard);
}

static char *
text_column(HeapTuple tuple, TupleDesc desc, int column)
{
	bool		null;
	Datum		value = heap_getattr(tuple, column, desc, &null);

	return null ? NULL : TextDatumGetCString(value);
}

static int64
int_column(HeapTuple tuple, TupleDesc desc, int column)
{
	bool		null;
	Datum		value = heap_getattr(tuple, column, desc, &null);

	return null ? 0 : DatumGetInt64(value);
}

static bool
bool_column(HeapTuple tuple, TupleDesc desc, int column)
{
	bool		null;
	Datum		value = heap_getattr(tuple, column, desc, &null);

	return !null && DatumGetBool(value);
}

static SluiceWatermark
watermark_column(HeapTuple tuple, TupleDesc desc, int column)
{
	SluiceWatermark watermark = {0, 0};
	char	   *string = text_column(tuple, desc, column);

	if (string == NULL || !sluice_watermark_parse(string, &watermark))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the state of a change log holds no valid watermark in column %d", column)));
	return watermark;
}

static List *
publications_column(HeapTuple tuple, TupleDesc desc)
{
	bool		null;
	Datum		value = heap_getattr(tuple, STATE_PUBLICATIONS, desc, &null);
	Datum	   *elements;
	int			n;
	List	   *names = NIL;

	if (null)
		return NIL;
	deconstruct_array(DatumGetArrayTypeP(value), TEXTOID, -1, false, TYPALIGN_INT, &elements, NULL, &n);
	for (int i = 0; i < n; i++)
		names = lappend(names, TextDatumGetCString(elements[i]));
	return names;
}

static SluiceState *
state_from_tuple(HeapTuple tuple, TupleDesc desc)
{
	SluiceState *state = palloc0(sizeof(SluiceState));

	state->owner = text_column(tuple, desc, STATE_OWNER);
	state->owner_address = text_column(tuple, desc, STATE_OWNER_ADDRESS);
	state->slot = text_column(tuple, desc, STATE_SLOT);
	state->n = (uint32) int_column(tuple, desc, STATE_N);
	state->first = watermark_column(tuple, desc, STATE_FIRST);
	state->replica_version = watermark_column(tuple, desc, STATE_REPLICA_VERSION);
	state->epoch = (uint64) int_column(tuple, desc, STATE_EPOCH);
	state->publications = publications_column(tuple, desc);
	state->reset_required = bool_column(tuple, desc, STATE_RESET_REQUIRED);
	state->reset_reason = text_column(tuple, desc, STATE_RESET_REASON);
	state->options.auto_reset = bool_column(tuple, desc, STATE_AUTO_RESET);
	state->options.retention_ms = int_column(tuple, desc, STATE_RETENTION_MS);
	state->options.retention_bytes = int_column(tuple, desc, STATE_RETENTION_BYTES);
	state->options.timestamps_text = bool_column(tuple, desc, STATE_TIMESTAMPS_TEXT);
	state->options.numerics_double = bool_column(tuple, desc, STATE_NUMERICS_DOUBLE);
	state->paused = bool_column(tuple, desc, STATE_PAUSED);
	state->default_publication = bool_column(tuple, desc, STATE_DEFAULT_PUBLICATION);
	state->system_id = (uint64) int_column(tuple, desc, STATE_SYSTEM_ID);
	state->timeline = (uint32) int_column(tuple, desc, STATE_TIMELINE);
	return state;
}

/* The row as the snapshot shows it; NULL: there is none. */
static SluiceState *
fetch(SluiceHeap *heap, Snapshot snapshot)
{
	SysScanDesc scan = systable_beginscan(heap->relation, InvalidOid, false, snapshot, 0, NULL);
	HeapTuple	tuple = systable_getnext(scan);
	SluiceState *state = NULL;

	if (HeapTupleIsValid(tuple))
		state = state_from_tuple(tuple, RelationGetDescr(heap->relation));
	systable_endscan(scan);
	return state;
}

SluiceState *
sluice_state_read_at(const char *shard, Snapshot snapshot)
{
	SluiceHeap *heap = sluice_heap_open(shard, "state", AccessShareLock);
	SluiceState *state = fetch(heap, snapshot);

	sluice_heap_close(heap);
	if (state == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the change log of shard \"%s\" has no state", shard),
				 errhint("Drop the shard with CALL sluice.drop_shard('%s') and create it again.", shard)));
	return state;
}

SluiceState *
sluice_state_read(const char *shard, LOCKMODE lockmode, bool missing_ok)
{
	Oid			relid = sluice_heap_find(shard, "state");
	Snapshot	snapshot;
	SluiceState *state;

	if (!OidIsValid(relid) && missing_ok)
		return NULL;

	/*
	 * The lock first, then the snapshot: a row that is deleted and inserted
	 * anew cannot be waited for by its own lock.
	 */
	if (lockmode != NoLock)
		sluice_heap_close(sluice_heap_open(shard, "state", lockmode));
	snapshot = sluice_heap_snapshot();
	state = sluice_state_read_at(shard, snapshot);
	UnregisterSnapshot(snapshot);
	return state;
}

static void
set_text(Datum *values, bool *nulls, int column, const char *string)
{
	nulls[column - 1] = string == NULL;
	values[column - 1] = string == NULL ? (Datum) 0 : CStringGetTextDatum(string);
}

static void
set_watermark(Datum *values, int column, SluiceWatermark watermark)
{
	char		string[SLUICE_WATERMARK_TEXT_MAX];

	sluice_watermark_format(watermark, string);
	values[column - 1] = CStringGetTextDatum(string);
}

static Datum
publications_array(List *names)
{
	Datum	   *elements = palloc(sizeof(Datum) * Max(list_length(names), 1));
	int			n = 0;
	ListCell   *cell;

	foreach(cell, names)
		elements[n++] = CStringGetTextDatum((char *) lfirst(cell));
	return PointerGetDatum(construct_array(elements, n, TEXTOID, -1, false, TYPALIGN_INT));
}

void
sluice_state_write(const char *shard, const SluiceState *state)
{
	SluiceHeap *heap = sluice_heap_open(shard, "state", ShareRowExclusiveLock);
	Datum		values[STATE_COLUMNS] = {0};
	bool		nulls[STATE_COLUMNS] = {0};
	Snapshot	snapshot;

	set_text(values, nulls, STATE_OWNER, state->owner);
	set_text(values, nulls, STATE_OWNER_ADDRESS, state->owner_address);
	set_text(values, nulls, STATE_SLOT, state->slot);
	values[STATE_N - 1] = Int64GetDatum(state->n);
	set_watermark(values, STATE_FIRST, state->first);
	set_watermark(values, STATE_REPLICA_VERSION, state->replica_version);
	values[STATE_EPOCH - 1] = Int64GetDatum((int64) state->epoch);
	values[STATE_PUBLICATIONS - 1] = publications_array(state->publications);
	values[STATE_RESET_REQUIRED - 1] = BoolGetDatum(state->reset_required);
	set_text(values, nulls, STATE_RESET_REASON, state->reset_reason);
	values[STATE_AUTO_RESET - 1] = BoolGetDatum(state->options.auto_reset);
	values[STATE_RETENTION_MS - 1] = Int64GetDatum(state->options.retention_ms);
	values[STATE_RETENTION_BYTES - 1] = Int64GetDatum(state->options.retention_bytes);
	values[STATE_TIMESTAMPS_TEXT - 1] = BoolGetDatum(state->options.timestamps_text);
	values[STATE_NUMERICS_DOUBLE - 1] = BoolGetDatum(state->options.numerics_double);
	values[STATE_PAUSED - 1] = BoolGetDatum(state->paused);
	values[STATE_DEFAULT_PUBLICATION - 1] = BoolGetDatum(state->default_publication);
	values[STATE_SYSTEM_ID - 1] = Int64GetDatum((int64) state->system_id);
	values[STATE_TIMELINE - 1] = Int64GetDatum(state->timeline);

	snapshot = sluice_heap_snapshot();
	sluice_heap_delete_all(heap, snapshot);
	UnregisterSnapshot(snapshot);
	sluice_heap_insert(heap, values, nulls);
	sluice_heap_close(heap);
}
