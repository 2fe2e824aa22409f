/*
 * schema_store.c: cdc_<shard>.table_schema, the tracked schema for exactly
 * the stored position.
 *
 * In: the schema's bytes (spec.h) and the watermark they hold for.  Out: the same.
 * Runs in: decoder (at creation), storer, view, sender.
 * Locks: ROW EXCLUSIVE on the table; writers hold the state's lock.
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

void
sluice_schema_store(const char *shard, SluiceWatermark at, const char *data, Size size)
{
	SluiceHeap *heap = sluice_heap_open(shard, "table_schema", RowExclusiveLock);
	Snapshot	snapshot = sluice_heap_snapshot();
	char		watermark[SLUICE_WATERMARK_TEXT_MAX];
	Datum		values[SCHEMA_COLUMNS];
	bool		nulls[SCHEMA_COLUMNS] = {0};

	sluice_heap_delete_all(heap, snapshot);
	UnregisterSnapshot(snapshot);
	sluice_watermark_format(at, watermark);
	values[SCHEMA_WATERMARK - 1] = CStringGetTextDatum(watermark);
	values[SCHEMA_DATA - 1] = PointerGetDatum(cstring_to_text_with_len(data, size));
	sluice_heap_insert(heap, values, nulls);
	sluice_heap_close(heap);
}

/* NULL: none is stored yet. */
char *
sluice_schema_load(const char *shard, SluiceWatermark *at, Size *size)
{
	SluiceHeap *heap = sluice_heap_open(shard, "table_schema", AccessShareLock);
	Snapshot	snapshot = sluice_heap_snapshot();
	SysScanDesc scan = systable_beginscan(heap->relation, InvalidOid, false, snapshot, 0, NULL);
	HeapTuple	tuple = systable_getnext(scan);
	char	   *data = NULL;

	if (HeapTupleIsValid(tuple))
	{
		Datum		values[SCHEMA_COLUMNS];
		bool		nulls[SCHEMA_COLUMNS];
		struct varlena *bytes;

		heap_deform_tuple(tuple, RelationGetDescr(heap->relation), values, nulls);
		if (!sluice_watermark_parse(TextDatumGetCString(values[SCHEMA_WATERMARK - 1]), at))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("the tracked schema of shard \"%s\" holds an invalid watermark", shard)));
		bytes = PG_DETOAST_DATUM_COPY(values[SCHEMA_DATA - 1]);
		*size = VARSIZE_ANY_EXHDR(bytes);
		data = VARDATA_ANY(bytes);
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	sluice_heap_close(heap);
	return data;
}
