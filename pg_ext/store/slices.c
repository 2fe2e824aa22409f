/*
 * slices.c: looking slices up by number and by watermark, under one snapshot.
 *
 * In: numbers, watermarks.  Out: slices without their data.
 * Runs in: whoever has an open transaction.
 * Locks: the table's, as the opener says.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "utils/fmgroids.h"
#include "utils/pg_lsn.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "slices.h"
#include "state.h"

void
sluice_slices_form(SluiceSlice *slice, HeapTuple tuple, TupleDesc desc)
{
	Datum		values[SLICE_COLUMNS];
	bool		nulls[SLICE_COLUMNS];
	struct varlena *data;

	heap_deform_tuple(tuple, desc, values, nulls);
	slice->number = DatumGetInt64(values[SLICE_NUMBER - 1]);
	slice->first.major = (uint64) DatumGetInt64(values[SLICE_FIRST_MAJOR - 1]);
	slice->first.minor = (uint64) DatumGetInt64(values[SLICE_FIRST_MINOR - 1]);
	slice->last.major = (uint64) DatumGetInt64(values[SLICE_LAST_MAJOR - 1]);
	slice->last.minor = (uint64) DatumGetInt64(values[SLICE_LAST_MINOR - 1]);
	slice->commit_time = DatumGetTimestampTz(values[SLICE_COMMIT_TIME - 1]);
	slice->end_lsn = DatumGetLSN(values[SLICE_END_LSN - 1]);
	slice->xid = (uint64) DatumGetInt64(values[SLICE_XID - 1]);
	slice->bytes_before = (uint64) DatumGetInt64(values[SLICE_BYTES_BEFORE - 1]);
	slice->flags = (uint16) DatumGetInt16(values[SLICE_FLAGS - 1]);
	slice->format = (uint16) DatumGetInt16(values[SLICE_FORMAT - 1]);
	data = (struct varlena *) DatumGetPointer(values[SLICE_DATA - 1]);
	slice->size = VARSIZE_ANY_EXHDR(data);
	slice->data = VARDATA_ANY(data);
}

SysScanDesc
sluice_slices_scan(SluiceSlices *slices, int64 number)
{
	ScanKeyData key;

	ScanKeyInit(&key, SLICE_NUMBER, BTGreaterEqualStrategyNumber, F_INT8GE, Int64GetDatum(number));
	return systable_beginscan_ordered(slices->heap->relation, slices->heap->key, slices->snapshot, 1, &key);
}

bool
sluice_slices_get(SluiceSlices *slices, int64 number, SluiceSlice *slice)
{
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found;

	ScanKeyInit(&key, SLICE_NUMBER, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(number));
	scan = systable_beginscan_ordered(slices->heap->relation, slices->heap->key, slices->snapshot, 1, &key);
	tuple = systable_getnext_ordered(scan, ForwardScanDirection);
	found = HeapTupleIsValid(tuple);
	if (found)
	{
		sluice_slices_form(slice, tuple, RelationGetDescr(slices->heap->relation));
		slice->data = NULL;
	}
	systable_endscan_ordered(scan);
	return found;
}

static bool
get_newest(SluiceSlices *slices, SluiceSlice *slice)
{
	SysScanDesc scan = systable_beginscan_ordered(slices->heap->relation, slices->heap->key,
												  slices->snapshot, 0, NULL);
	HeapTuple	tuple = systable_getnext_ordered(scan, BackwardScanDirection);
	bool		found = HeapTupleIsValid(tuple);

	if (found)
	{
		sluice_slices_form(slice, tuple, RelationGetDescr(slices->heap->relation));
		slice->data = NULL;
	}
	systable_endscan_ordered(scan);
	return found;
}

/* What a search asks of a slice; true from some number on. */
typedef bool (*SliceTest) (SluiceSlices *slices, int64 number, const void *argument);

static bool
is_there(SluiceSlices *slices, int64 number, const void *argument)
{
	SluiceSlice slice;

	return sluice_slices_get(slices, number, &slice);
}

static bool
is_behind(SluiceSlices *slices, int64 number, const void *argument)
{
	SluiceSlice slice;

	/* what was purged is before every position that may be asked for */
	return sluice_slices_get(slices, number, &slice) &&
		sluice_watermark_compare(slice.last, *(const SluiceWatermark *) argument) > 0;
}

/*
 * The least number for which the test holds.  It holds for `from`; where it
 * holds, it does for all greater ones too.
 */
static int64
search(SluiceSlices *slices, int64 from, SliceTest test, const void *argument)
{
	int64		good = from;
	int64		bad = from - 1;
	int64		step = 1;

	while (bad > 0 && test(slices, bad, argument))
	{
		good = bad;
		step *= 2;
		bad = Max(good - step, 0);
	}
	while (good - bad > 1)
	{
		int64		middle = bad + (good - bad) / 2;

		if (test(slices, middle, argument))
			good = middle;
		else
			bad = middle;
	}
	return good;
}

int64
sluice_slices_behind(SluiceSlices *slices, SluiceWatermark w)
{
	if (!is_behind(slices, slices->newest, &w))
		return slices->newest + 1;
	return search(slices, slices->newest, is_behind, &w);
}

/* The newest slice may belong to a transaction whose end is not stored. */
static void
find_head(SluiceSlices *slices, const SluiceSlice *newest)
{
	SluiceWatermark before = newest->last;
	int64		number;

	slices->head = *newest;
	if (!(newest->flags & SLUICE_SLICE_OPEN_END))
		return;

	/* all slices of that transaction have its watermark as first and last */
	if (before.minor > 0)
		before.minor--;
	else
	{
		before.major--;
		before.minor = PG_UINT64_MAX;
	}
	number = search(slices, slices->newest, is_behind, &before) - 1;
	if (!sluice_slices_get(slices, number, &slices->head))
		memset(&slices->head, 0, sizeof(slices->head));
	else if (slices->head.flags & SLUICE_SLICE_OPEN_END)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("slice " INT64_FORMAT " of \"%s\" belongs to a transaction without an end",
						number, RelationGetRelationName(slices->heap->relation))));
}

void
sluice_slices_open(SluiceSlices *slices, const char *shard, LOCKMODE lockmode)
{
	SluiceSlice newest;

	memset(slices, 0, sizeof(*slices));
	slices->heap = sluice_heap_open(shard, "slices", lockmode);
	slices->snapshot = sluice_heap_snapshot();
	slices->shard = shard;
	if (!get_newest(slices, &newest))
		return;
	slices->newest = newest.number;
	find_head(slices, &newest);
}

void
sluice_slices_close(SluiceSlices *slices)
{
	UnregisterSnapshot(slices->snapshot);
	sluice_heap_close(slices->heap);
}

int64
sluice_slices_oldest(SluiceSlices *slices)
{
	if (slices->newest == 0)
		return 0;
	return search(slices, slices->newest, is_there, NULL);
}

SluiceWatermark
sluice_slices_first(SluiceSlices *slices)
{
	int64		oldest = sluice_slices_oldest(slices);
	SluiceSlice slice;

	if (oldest <= 1)
		return sluice_state_read_at(slices->shard, slices->snapshot)->first;
	if (!sluice_slices_get(slices, oldest, &slice))
		elog(ERROR, "slice " INT64_FORMAT " is gone", oldest);
	return slice.first;
}
