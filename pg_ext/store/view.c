/*
 * view.c: the change log as rows of JSON, and its state, for SQL.
 *
 * In: a shard, bounds.  Out: sluice.change_log, sluice.replication_state,
 * sluice.replication_config (the views of cdc_<shard> stand on them).
 * Slices are read in number order from the lower bound on, frames put
 * together, and rows handed to a tuplestore (work_mem, then a file).
 * Runs in: a client's backend.  Locks: ACCESS SHARE on the log's tables.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "allocator.h"
#include "error.h"
#include "json.h"
#include "slices.h"
#include "state.h"

#define OUT_KEEP (1024 * 1024)	/* a larger text buffer is given back */

PG_FUNCTION_INFO_V1(sluice_change_log);
PG_FUNCTION_INFO_V1(sluice_replication_state);
PG_FUNCTION_INFO_V1(sluice_replication_config);

typedef struct LogView
{
	ReturnSetInfo *result;
	MemoryContext frame_context;	/* reset after each frame */
	SluiceJson *json;
	StringInfoData out;
	SluiceBuffer bytes;			/* of frames that are not whole yet */
	SluiceWatermark from;
	SluiceWatermark to;

	SluiceWatermark watermark;	/* of the open transaction */
	char		watermark_text[SLUICE_WATERMARK_TEXT_MAX];
	int64		pos;
	bool		wanted;
	bool		done;
} LogView;

static void
put_row(LogView *view, bool commit)
{
	Datum		values[4];
	bool		nulls[4] = {false, false, false, !commit};

	values[0] = CStringGetTextDatum(view->watermark_text);
	values[1] = Int64GetDatum(view->pos++);
	values[2] = PointerGetDatum(cstring_to_text_with_len(view->out.data, view->out.len));
	values[3] = values[0];
	tuplestore_putvalues(view->result->setResult, view->result->setDesc, values, nulls);
}

static void
begin_transaction(LogView *view, const SluiceFrame *frame)
{
	SluiceBegin begin;

	if (!sluice_wire_get_begin(frame, &begin))
		sluice_json_damaged(view->json);
	view->watermark = view->json->watermark = begin.watermark;
	sluice_watermark_format(begin.watermark, view->watermark_text);
	view->pos = 0;
	view->wanted = sluice_watermark_compare(begin.watermark, view->from) >= 0;
	view->done = sluice_watermark_compare(begin.watermark, view->to) > 0;
}

/* Schema changes of transactions that are not wanted count, too. */
static bool
changes_names(const SluiceFrame *frame)
{
	return strchr("crmaudxij", frame->tag) != NULL;
}

static void
take_frame(LogView *view, const SluiceFrame *frame)
{
	MemoryContext old;

	if (frame->tag == SLUICE_TAG_BEGIN)
		begin_transaction(view, frame);
	if (view->done || (!view->wanted && !changes_names(frame)))
		return;
	old = MemoryContextSwitchTo(view->frame_context);
	initStringInfo(&view->out);
	sluice_json_frame(view->json, frame, &view->out);
	if (view->wanted)
		put_row(view, frame->tag == SLUICE_TAG_COMMIT);
	MemoryContextSwitchTo(old);
	MemoryContextReset(view->frame_context);
}

/* Takes the whole frames of what is there; keeps the rest. */
static void
take_bytes(LogView *view, const SluiceSlice *slice)
{
	SluiceBuffer *bytes = &view->bytes;
	size_t		at = 0;
	SluiceFrame frame;
	SluiceWireResult result = SLUICE_WIRE_MORE;

	if (slice->format != SLUICE_WIRE_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("slice " INT64_FORMAT " of the change log has format %d, which this version does not know",
						slice->number, slice->format)));
	sluice_buffer_append(bytes, slice->data, slice->size);
	while (!view->done &&
		   (result = sluice_wire_frame(bytes->data + at, bytes->length - at, &frame)) == SLUICE_WIRE_OK)
	{
		take_frame(view, &frame);
		at += frame.total;
	}
	if (result == SLUICE_WIRE_DAMAGED)
		sluice_json_damaged(view->json);
	if (at > 0)
	{
		memmove(bytes->data, bytes->data + at, bytes->length - at);
		bytes->length -= at;
	}
	else if (result == SLUICE_WIRE_MORE && frame.total > bytes->capacity)
		(void) sluice_buffer_reserve(bytes, frame.total - bytes->length);
	if (bytes->length == 0 && bytes->capacity > OUT_KEEP)
	{
		sluice_buffer_release(bytes);
		sluice_buffer_init(bytes, &sluice_heap_allocator);
	}
}

/* The first slice with transactions at or behind `from`. */
static int64
first_number(SluiceSlices *slices, SluiceWatermark from)
{
	SluiceWatermark before = from;

	if (from.major == 0)
		return sluice_slices_oldest(slices);
	if (before.minor-- == 0)
		before.major--;
	return sluice_slices_behind(slices, before);
}

/* The tables as they were before the slice: its own messages change them. */
static void
load_names(SluiceJson *json, const char *shard, SluiceWatermark first)
{
	SluiceWatermark at;
	Size		size;
	size_t		used;
	SluiceSchema schema;
	SluiceWatermark before = {first.major - (first.minor == 0), first.minor - 1};
	char	   *data = sluice_schema_load(shard, before, &at, &size);

	if (data == NULL)
		return;
	if (!sluice_schema_decode(data, size, &used, &sluice_palloc_allocator, &schema))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the tracked schema of shard \"%s\" cannot be read", shard)));
	for (uint32 i = 0; i < schema.ntables; i++)
		sluice_json_set_table(json, &schema.tables[i]);
}

static void
read_slices(LogView *view, const char *shard)
{
	SluiceSlices slices;
	SysScanDesc scan;
	HeapTuple	tuple;
	SluiceSlice slice;
	bool		begun = false;

	sluice_slices_open(&slices, shard, AccessShareLock);
	scan = sluice_slices_scan(&slices, slices.newest == 0 ? 1 : first_number(&slices, view->from));
	while (!view->done && HeapTupleIsValid(tuple = systable_getnext_ordered(scan, ForwardScanDirection)))
	{
		CHECK_FOR_INTERRUPTS();
		sluice_slices_form(&slice, tuple, RelationGetDescr(slices.heap->relation));
		if (slice.number > slices.head.number)
			break;

		/* the beginning of this one may have been purged */
		if (!begun && (slice.flags & SLUICE_SLICE_OPEN_START))
			continue;
		if (!begun)
			load_names(view->json, shard, slice.first);
		begun = true;
		take_bytes(view, &slice);
	}
	systable_endscan_ordered(scan);
	sluice_slices_close(&slices);
}

static SluiceWatermark
bound(FunctionCallInfo fcinfo, int argument, SluiceWatermark unbounded)
{
	SluiceWatermark watermark;
	char	   *string;

	if (PG_ARGISNULL(argument))
		return unbounded;
	string = text_to_cstring(PG_GETARG_TEXT_PP(argument));
	if (!sluice_watermark_parse(string, &watermark))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" is not a watermark", string)));
	return watermark;
}

/* sluice.change_log(shard, from_watermark, to_watermark) */
Datum
sluice_change_log(PG_FUNCTION_ARGS)
{
	LogView		view;
	char	   *shard;

	sluice_shmem_require();
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the shard must be given")));
	shard = text_to_cstring(PG_GETARG_TEXT_PP(0));
	memset(&view, 0, sizeof(view));
	InitMaterializedSRF(fcinfo, 0);
	view.result = (ReturnSetInfo *) fcinfo->resultinfo;
	view.from = bound(fcinfo, 1, (SluiceWatermark) {0, 0});
	view.to = bound(fcinfo, 2, (SluiceWatermark) {PG_UINT64_MAX, PG_UINT64_MAX});
	view.frame_context = AllocSetContextCreate(CurrentMemoryContext, "change log frame",
											   ALLOCSET_DEFAULT_SIZES);
	view.json = sluice_json_create();
	sluice_buffer_init(&view.bytes, &sluice_heap_allocator);
	read_slices(&view, shard);
	return (Datum) 0;
}

static Datum
one_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

static Datum
watermark_datum(SluiceWatermark watermark)
{
	char		string[SLUICE_WATERMARK_TEXT_MAX];

	sluice_watermark_format(watermark, string);
	return CStringGetTextDatum(string);
}

/* sluice.replication_state(shard) */
Datum
sluice_replication_state(PG_FUNCTION_ARGS)
{
	char	   *shard = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SluiceState *state = sluice_state_read(shard, NoLock, false);
	SluiceLogBounds bounds;
	Datum		values[3];
	bool		nulls[3] = {false, state->owner == NULL, state->owner_address == NULL};

	sluice_changelog_bounds(shard, &bounds);
	values[0] = watermark_datum(bounds.head);
	values[1] = nulls[1] ? (Datum) 0 : CStringGetTextDatum(state->owner);
	values[2] = nulls[2] ? (Datum) 0 : CStringGetTextDatum(state->owner_address);
	return one_row(fcinfo, values, nulls);
}

/* sluice.replication_config(shard) */
Datum
sluice_replication_config(PG_FUNCTION_ARGS)
{
	char	   *shard = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SluiceState *state = sluice_state_read(shard, NoLock, false);
	Datum	   *names = palloc(sizeof(Datum) * Max(list_length(state->publications), 1));
	Datum		values[3];
	bool		nulls[3] = {false, false, false};
	int			n = 0;
	ListCell   *cell;

	foreach(cell, state->publications)
		names[n++] = CStringGetTextDatum((char *) lfirst(cell));
	values[0] = watermark_datum(state->replica_version);
	values[1] = PointerGetDatum(construct_array(names, n, TEXTOID, -1, false, TYPALIGN_INT));
	values[2] = BoolGetDatum(state->reset_required);
	return one_row(fcinfo, values, nulls);
}
