/*
 * changelog.c: writing cdc_<shard>.slices, and the ends of the log.
 *
 * In: slices.  Out: rows of one heap page each, at heap level.
 * Runs in: storer.  Locks: ROW EXCLUSIVE on the table.
 */
#include "postgres.h"

#include "access/genam.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

#include "slices.h"
#include "wire.h"

StaticAssertDecl(SLUICE_SLICE_SIZE + 160 <= MaxHeapTupleSize,
				 "a slice fits a page without TOAST");

struct SluiceLogWriter
{
	SluiceHeap *heap;
	int64		last;
	uint64		bytes;
	struct varlena *data;		/* of SLUICE_SLICE_SIZE bytes */
};

SluiceLogWriter *
sluice_changelog_open_writer(const char *shard, int64 last, uint64 bytes)
{
	SluiceLogWriter *writer = palloc0(sizeof(SluiceLogWriter));

	writer->heap = sluice_heap_open(shard, "slices", RowExclusiveLock);
	writer->last = last;
	writer->bytes = bytes;
	writer->data = palloc(VARHDRSZ + SLUICE_SLICE_SIZE);
	return writer;
}

void
sluice_changelog_append(SluiceLogWriter *writer, SluiceSlice *slice)
{
	Datum		values[SLICE_COLUMNS];
	bool		nulls[SLICE_COLUMNS] = {0};

	Assert(slice->size > 0 && slice->size <= SLUICE_SLICE_SIZE);
	slice->number = ++writer->last;
	slice->bytes_before = writer->bytes;
	writer->bytes += slice->size;
	memcpy(VARDATA(writer->data), slice->data, slice->size);
	SET_VARSIZE(writer->data, VARHDRSZ + slice->size);

	values[SLICE_NUMBER - 1] = Int64GetDatum(slice->number);
	values[SLICE_FIRST_MAJOR - 1] = Int64GetDatum((int64) slice->first.major);
	values[SLICE_FIRST_MINOR - 1] = Int64GetDatum((int64) slice->first.minor);
	values[SLICE_LAST_MAJOR - 1] = Int64GetDatum((int64) slice->last.major);
	values[SLICE_LAST_MINOR - 1] = Int64GetDatum((int64) slice->last.minor);
	values[SLICE_COMMIT_TIME - 1] = TimestampTzGetDatum(slice->commit_time);
	values[SLICE_END_LSN - 1] = LSNGetDatum(slice->end_lsn);
	values[SLICE_XID - 1] = Int64GetDatum((int64) slice->xid);
	values[SLICE_BYTES_BEFORE - 1] = Int64GetDatum((int64) slice->bytes_before);
	values[SLICE_FLAGS - 1] = Int16GetDatum((int16) slice->flags);
	values[SLICE_FORMAT - 1] = Int16GetDatum((int16) slice->format);
	values[SLICE_DATA - 1] = PointerGetDatum(writer->data);
	sluice_heap_insert(writer->heap, values, nulls);
}

void
sluice_changelog_close_writer(SluiceLogWriter *writer)
{
	sluice_heap_close(writer->heap);
	pfree(writer->data);
	pfree(writer);
}

int64
sluice_changelog_remove_above(const char *shard, int64 number)
{
	SluiceSlices slices;
	SysScanDesc scan;
	HeapTuple	tuple;
	int64		removed = 0;

	sluice_slices_open(&slices, shard, RowExclusiveLock);
	scan = sluice_slices_scan(&slices, number + 1);
	while (HeapTupleIsValid(tuple = systable_getnext_ordered(scan, ForwardScanDirection)))
	{
		sluice_heap_delete(slices.heap, &tuple->t_self);
		removed++;
	}
	systable_endscan_ordered(scan);
	sluice_slices_close(&slices);
	return removed;
}

void
sluice_changelog_bounds(const char *shard, SluiceLogBounds *bounds)
{
	SluiceSlices slices;

	memset(bounds, 0, sizeof(*bounds));
	sluice_slices_open(&slices, shard, AccessShareLock);
	bounds->oldest = sluice_slices_first(&slices);
	bounds->empty = slices.head.number == 0;
	bounds->head = bounds->empty ? bounds->oldest : slices.head.last;
	bounds->oldest_number = bounds->empty ? 0 : sluice_slices_oldest(&slices);
	bounds->head_number = slices.head.number;
	bounds->head_end_lsn = slices.head.end_lsn;
	bounds->head_commit_time = slices.head.commit_time;
	bounds->bytes = slices.head.bytes_before + slices.head.size;
	sluice_slices_close(&slices);
}
