/*
 * clear.c: emptying a change log for a new lineage.
 *
 * The slices get a new file, as TRUNCATE would give them, but without its
 * message to logical slots; the small tables are deleted row by row.
 *
 * In: a shard's name.  Out: empty tables, once the transaction commits.
 * Runs in: decoder, in the transaction that gives the shard another slot.
 * Locks: ACCESS EXCLUSIVE on slices; ROW EXCLUSIVE on the others.  State first.
 */
#include "postgres.h"

#include "access/table.h"
#include "utils/snapmgr.h"

#include "changelog.h"
#include "compat.h"
#include "heap.h"

static const char *const small_tables[] = {
	"replicas", "table_schema", "tableMetadata", "backfilling"
};

void
sluice_changelog_clear(const char *shard)
{
	Relation	slices = table_open(sluice_heap_find(shard, "slices"), AccessExclusiveLock);

	sluice_relation_empty(slices);
	table_close(slices, NoLock);

	sluice_replicas_lock(shard);
	for (int i = 0; i < lengthof(small_tables); i++)
	{
		SluiceHeap *heap = sluice_heap_open(shard, small_tables[i], RowExclusiveLock);
		Snapshot	snapshot = sluice_heap_snapshot();

		(void) sluice_heap_delete_all(heap, snapshot);
		UnregisterSnapshot(snapshot);
		sluice_heap_close(heap);
	}
}
