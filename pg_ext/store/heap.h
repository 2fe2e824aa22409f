/*
 * heap.h: heap-level access to our own tables in cdc_<shard>.
 *
 * Rows are inserted with HEAP_INSERT_NO_LOGICAL and their index entries made
 * by hand, rows are deleted under REPLICA IDENTITY NOTHING, all under the
 * origin DoNotReplicateId: no logical slot of the database sees them, and no
 * publication FOR ALL TABLES can refuse them.  Nothing is updated.
 *
 * In: column values.  Out: rows, and scans over them.
 * Runs in: whoever has an open transaction (storer, decoder, sender, CALLs).
 * Locks: the table lock the caller names, kept until the transaction ends.
 */
#ifndef SLUICE_HEAP_H
#define SLUICE_HEAP_H

#include "access/genam.h"
#include "access/heapam.h"
#include "access/skey.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "buffer.h"

#define SLUICE_HEAP_INDEXES 2

typedef struct SluiceHeap
{
	Relation	relation;
	Relation	key;			/* primary key's index, NULL: the table has none */
	LOCKMODE	lockmode;
	bool		written;
	BulkInsertState bulk;		/* NULL: ordinary inserts */
	TupleTableSlot *slot;		/* for index entries; made at the first insert */
	IndexInfo  *index_info;		/* of key */
} SluiceHeap;

/* "cdc_<shard>" of NAMEDATALEN is made by sluice_state_schema() (state.h). */
extern Oid	sluice_heap_find(const char *shard, const char *table);

/* Lives in the current memory context.  ERROR (SL007) if there is no such shard. */
extern SluiceHeap *sluice_heap_open(const char *shard, const char *table, LOCKMODE lockmode);
extern void sluice_heap_close(SluiceHeap *heap);

extern void sluice_heap_insert(SluiceHeap *heap, Datum *values, bool *nulls);
extern void sluice_heap_delete(SluiceHeap *heap, ItemPointer tid);

/* Every row that the snapshot shows. */
extern int	sluice_heap_delete_all(SluiceHeap *heap, Snapshot snapshot);

/* A registered snapshot newer than any lock taken before; unregister it. */
extern Snapshot sluice_heap_snapshot(void);

/* palloc in the current context, above 1 GB too. */
extern const SluiceAllocator sluice_heap_allocator;

#endif
