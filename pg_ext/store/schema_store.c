/*
 * schema_store.c: cdc_<shard>.table_schema, the tracked schema: a version for
 * each transaction that changed it.
 *
 * In: the schema's bytes (spec.h) and the watermark they hold for.  Out: the same.
 * Runs in: decoder, view.
 * Locks: ROW EXCLUSIVE on the table; writers hold the state's lock, SHARE at least.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "changelog.h"
#include "heap.h"

enum
{
	SCHEMA_WATERMARK = 1,
	SCHEMA_DATA,
	SCHEMA_COLUMNS = SCHEMA_DATA
};

static SluiceWatermark
version_of(HeapTuple tuple, TupleDesc desc, const char *shard)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, SCHEMA_WATERMARK, desc, &isnull);
	SluiceWatermark at = {0, 0};

	if (isnull || !sluice_watermark_parse(TextDatumGetCString(value), &at))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the tracked schema of shard \"%s\" holds an invalid watermark", shard)));
	return at;
}

/* A copy of the newest version at or before `upto`; NULL: none. */
static HeapTuple
newest_version(SluiceHeap *heap, Snapshot snapshot, const char *shard, SluiceWatermark upto,
			   SluiceWatermark *at)
{
	SysScanDesc scan = systable_beginscan(heap->relation, InvalidOid, false, snapshot, 0, NULL);
	HeapTuple	newest = NULL;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		SluiceWatermark version = version_of(tuple, RelationGetDescr(heap->relation), shard);

		if (sluice_watermark_compare(version, upto) > 0 ||
			(newest != NULL && sluice_watermark_compare(version, *at) <= 0))
			continue;
		newest = heap_copytuple(tuple);
		*at = version;
	}
	systable_endscan(scan);
	return newest;
}

/*
 * Versions that nobody can start from any more go, and those that a decoder
 * has left which did not get as far as their transaction.
 */
static void
delete_versions(SluiceHeap *heap, Snapshot snapshot, const char *shard, SluiceWatermark first,
				SluiceWatermark last)
{
	SysScanDesc scan = systable_beginscan(heap->relation, InvalidOid, false, snapshot, 0, NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		SluiceWatermark version = version_of(tuple, RelationGetDescr(heap->relation), shard);

		if (sluice_watermark_compare(version, first) < 0 ||
			sluice_watermark_compare(version, last) >= 0)
			sluice_heap_delete(heap, &tuple->t_self);
	}
	systable_endscan(scan);
}

void
sluice_schema_store(const char *shard, SluiceWatermark at, const char *data, Size size)
{
	SluiceHeap *heap = sluice_heap_open(shard, "table_schema", RowExclusiveLock);
	Snapshot	snapshot = sluice_heap_snapshot();
	SluiceWatermark first = {0, 0};
	SluiceLogBounds bounds;
	char		watermark[SLUICE_WATERMARK_TEXT_MAX];
	Datum		values[SCHEMA_COLUMNS];
	bool		nulls[SCHEMA_COLUMNS] = {0};

	sluice_changelog_bounds(shard, &bounds);
	(void) newest_version(heap, snapshot, shard, bounds.oldest, &first);
	delete_versions(heap, snapshot, shard, first, at);
	UnregisterSnapshot(snapshot);

	sluice_watermark_format(at, watermark);
	values[SCHEMA_WATERMARK - 1] = CStringGetTextDatum(watermark);
	values[SCHEMA_DATA - 1] = PointerGetDatum(cstring_to_text_with_len(data, size));
	sluice_heap_insert(heap, values, nulls);
	sluice_heap_close(heap);
}

char *
sluice_schema_load(const char *shard, SluiceWatermark upto, SluiceWatermark *at, Size *size)
{
	SluiceHeap *heap = sluice_heap_open(shard, "table_schema", AccessShareLock);
	Snapshot	snapshot = sluice_heap_snapshot();
	HeapTuple	tuple = newest_version(heap, snapshot, shard, upto, at);
	char	   *data = NULL;

	if (tuple != NULL)
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, SCHEMA_DATA, RelationGetDescr(heap->relation),
										 &isnull);
		struct varlena *bytes = PG_DETOAST_DATUM_COPY(value);

		*size = VARSIZE_ANY_EXHDR(bytes);
		data = VARDATA_ANY(bytes);
	}
	UnregisterSnapshot(snapshot);
	sluice_heap_close(heap);
	return data;
}
