/*
 * replicas.c: cdc_<shard>.replicas, what known replicas have durably.
 *
 * A row is a delete and an insert at heap level, so it cannot be waited for by
 * its own lock: writers take an object lock of the table that nothing else
 * uses (a lock on the table itself would meet VACUUM's) and then a snapshot.
 *
 * In: positions that replicas report.  Out: the floor for purge; a list.
 * Runs in: sender, storer (purge), sluice.forget_replica.
 * Locks: as above, until the transaction ends.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "fmgr.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "changelog.h"
#include "error.h"
#include "heap.h"

enum
{
	REPLICA_NAME = 1,
	REPLICA_DURABLE,
	REPLICA_LINEAGE,
	REPLICA_SEEN_AT,
	REPLICA_COLUMNS = REPLICA_SEEN_AT
};

PG_FUNCTION_INFO_V1(sluice_forget_replica);

static SluiceHeap *
open_to_write(const char *shard)
{
	SluiceHeap *heap = sluice_heap_open(shard, "replicas", RowExclusiveLock);

	LockDatabaseObject(RelationRelationId, RelationGetRelid(heap->relation), 0, ExclusiveLock);
	return heap;
}

void
sluice_replicas_lock(const char *shard)
{
	sluice_heap_close(open_to_write(shard));
}

static SluiceWatermark
watermark_datum(Datum value)
{
	SluiceWatermark watermark = {0, 0};

	if (!sluice_watermark_parse(TextDatumGetCString(value), &watermark))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("a change log's replicas table holds an invalid watermark")));
	return watermark;
}

static Datum
watermark_text(SluiceWatermark watermark)
{
	char		string[SLUICE_WATERMARK_TEXT_MAX];

	sluice_watermark_format(watermark, string);
	return CStringGetTextDatum(string);
}

static bool
delete_row(SluiceHeap *heap, const char *name)
{
	Snapshot	snapshot = sluice_heap_snapshot();
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found;

	ScanKeyInit(&key, REPLICA_NAME, BTEqualStrategyNumber, F_TEXTEQ, CStringGetTextDatum(name));
	key.sk_collation = C_COLLATION_OID;
	scan = systable_beginscan_ordered(heap->relation, heap->key, snapshot, 1, &key);
	tuple = systable_getnext_ordered(scan, ForwardScanDirection);
	found = HeapTupleIsValid(tuple);
	if (found)
		sluice_heap_delete(heap, &tuple->t_self);
	systable_endscan_ordered(scan);
	UnregisterSnapshot(snapshot);
	return found;
}

/* What is lost in a crash is an older position: purge keeps more, never less. */
static void
commit_without_waiting(void)
{
	(void) set_config_option("synchronous_commit", "off", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
}

void
sluice_replicas_save(const char *shard, const char *name, SluiceWatermark durable,
					 SluiceWatermark lineage)
{
	SluiceHeap *heap = open_to_write(shard);
	Datum		values[REPLICA_COLUMNS];
	bool		nulls[REPLICA_COLUMNS] = {0};

	delete_row(heap, name);
	values[REPLICA_NAME - 1] = CStringGetTextDatum(name);
	values[REPLICA_DURABLE - 1] = watermark_text(durable);
	values[REPLICA_LINEAGE - 1] = watermark_text(lineage);
	values[REPLICA_SEEN_AT - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
	sluice_heap_insert(heap, values, nulls);
	sluice_heap_close(heap);
	commit_without_waiting();
}

bool
sluice_replicas_forget(const char *shard, const char *name)
{
	SluiceHeap *heap = open_to_write(shard);
	bool		found = delete_row(heap, name);

	sluice_heap_close(heap);
	return found;
}

static int
by_name(const ListCell *a, const ListCell *b)
{
	return strcmp(((SluiceReplica *) lfirst(a))->name, ((SluiceReplica *) lfirst(b))->name);
}

List *
sluice_replicas_list(const char *shard)
{
	SluiceHeap *heap = sluice_heap_open(shard, "replicas", AccessShareLock);
	TupleDesc	desc = RelationGetDescr(heap->relation);
	Snapshot	snapshot = sluice_heap_snapshot();
	SysScanDesc scan = systable_beginscan(heap->relation, InvalidOid, false, snapshot, 0, NULL);
	List	   *replicas = NIL;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		SluiceReplica *replica = palloc0(sizeof(SluiceReplica));
		Datum		values[REPLICA_COLUMNS];
		bool		nulls[REPLICA_COLUMNS];

		heap_deform_tuple(tuple, desc, values, nulls);
		replica->name = TextDatumGetCString(values[REPLICA_NAME - 1]);
		replica->durable = watermark_datum(values[REPLICA_DURABLE - 1]);
		replica->lineage = watermark_datum(values[REPLICA_LINEAGE - 1]);
		replica->seen_at = DatumGetTimestampTz(values[REPLICA_SEEN_AT - 1]);
		replicas = lappend(replicas, replica);
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	sluice_heap_close(heap);
	list_sort(replicas, by_name);
	return replicas;
}

bool
sluice_replicas_floor(const char *shard, SluiceWatermark *floor)
{
	bool		known = false;
	ListCell   *cell;

	foreach(cell, sluice_replicas_list(shard))
	{
		SluiceWatermark durable = ((SluiceReplica *) lfirst(cell))->durable;

		if (!known || sluice_watermark_compare(durable, *floor) < 0)
			*floor = durable;
		known = true;
	}
	return known;
}

/* sluice.forget_replica(shard text, name text) returns void */
Datum
sluice_forget_replica(PG_FUNCTION_ARGS)
{
	char	   *shard = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(1));

	sluice_shmem_require();
	if (!sluice_replicas_forget(shard, name))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("shard \"%s\" knows no replica \"%s\"", shard, name),
				 errhint("The view sluice.replica_status lists them.")));
	PG_RETURN_VOID();
}
