/*
 * heap.c: heap-level access to our own tables in cdc_<shard>.
 *
 * In: column values.  Out: rows, and scans over them.
 * Runs in: whoever has an open transaction (storer, decoder, sender, CALLs).
 * Locks: the table lock the caller names, kept until the transaction ends.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "executor/tuptable.h"
#include "replication/origin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "error.h"
#include "heap.h"
#include "state.h"

static void *
heap_allocator_grow(void *context, void *old, size_t size)
{
	if (old == NULL)
		return MemoryContextAllocHuge(CurrentMemoryContext, size);
	return repalloc_huge(old, size);
}

static void
heap_allocator_release(void *context, void *old)
{
	pfree(old);
}

const SluiceAllocator sluice_heap_allocator = {heap_allocator_grow, heap_allocator_release, NULL};

Oid
sluice_heap_find(const char *shard, const char *table)
{
	char		schema[NAMEDATALEN];
	Oid			namespace;

	sluice_state_schema(schema, shard);
	namespace = get_namespace_oid(schema, true);
	return OidIsValid(namespace) ? get_relname_relid(table, namespace) : InvalidOid;
}

SluiceHeap *
sluice_heap_open(const char *shard, const char *table, LOCKMODE lockmode)
{
	SluiceHeap *heap = palloc0(sizeof(SluiceHeap));
	Oid			relid = sluice_heap_find(shard, table);
	Oid			index;

	if (OidIsValid(relid))
		heap->relation = try_relation_open(relid, lockmode);
	if (heap->relation == NULL)
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_UNKNOWN_SHARD),
				 errmsg("there is no shard \"%s\" in this database", shard),
				 errhint("See the view sluice.shards; a shard is made with CALL sluice.create_shard(…).")));
	heap->lockmode = lockmode;
	RelationGetIndexList(heap->relation);
	index = heap->relation->rd_pkindex;
	if (OidIsValid(index))
		heap->key = index_open(index, lockmode >= RowExclusiveLock ? RowExclusiveLock : AccessShareLock);
	return heap;
}

void
sluice_heap_close(SluiceHeap *heap)
{
	if (heap->bulk != NULL)
		FreeBulkInsertState(heap->bulk);
	if (heap->slot != NULL)
		ExecDropSingleTupleTableSlot(heap->slot);
	if (heap->key != NULL)
		index_close(heap->key, NoLock);
	table_close(heap->relation, NoLock);
	if (heap->written)
		CommandCounterIncrement();	/* later scans of this transaction see it */
	pfree(heap);
}

static void
insert_key(SluiceHeap *heap, HeapTuple tuple)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];

	if (heap->slot == NULL)
	{
		heap->slot = MakeSingleTupleTableSlot(RelationGetDescr(heap->relation), &TTSOpsHeapTuple);
		heap->index_info = BuildIndexInfo(heap->key);
	}
	ExecStoreHeapTuple(tuple, heap->slot, false);
	FormIndexDatum(heap->index_info, heap->slot, NULL, values, nulls);
	index_insert(heap->key, values, nulls, &tuple->t_self, heap->relation,
				 UNIQUE_CHECK_YES, false, heap->index_info);
	ExecClearTuple(heap->slot);
}

void
sluice_heap_insert(SluiceHeap *heap, Datum *values, bool *nulls)
{
	RepOriginId origin = replorigin_session_origin;
	HeapTuple	tuple = heap_form_tuple(RelationGetDescr(heap->relation), values, nulls);

	tuple->t_tableOid = RelationGetRelid(heap->relation);
	replorigin_session_origin = DoNotReplicateId;
	PG_TRY();
	{
		heap_insert(heap->relation, tuple, GetCurrentCommandId(true), HEAP_INSERT_NO_LOGICAL, heap->bulk);
		if (heap->key != NULL)
			insert_key(heap, tuple);
	}
	PG_FINALLY();
	{
		replorigin_session_origin = origin;
	}
	PG_END_TRY();
	heap_freetuple(tuple);
	heap->written = true;
}

void
sluice_heap_delete(SluiceHeap *heap, ItemPointer tid)
{
	RepOriginId origin = replorigin_session_origin;

	replorigin_session_origin = DoNotReplicateId;
	PG_TRY();
	{
		simple_heap_delete(heap->relation, tid);
	}
	PG_FINALLY();
	{
		replorigin_session_origin = origin;
	}
	PG_END_TRY();
	heap->written = true;
}

int
sluice_heap_delete_all(SluiceHeap *heap, Snapshot snapshot)
{
	SysScanDesc scan = systable_beginscan(heap->relation, InvalidOid, false, snapshot, 0, NULL);
	HeapTuple	tuple;
	int			n = 0;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		sluice_heap_delete(heap, &tuple->t_self);
		n++;
	}
	systable_endscan(scan);
	return n;
}

Snapshot
sluice_heap_snapshot(void)
{
	return RegisterSnapshot(GetLatestSnapshot());
}
