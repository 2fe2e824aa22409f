/*
 * copy_table.c: one table of a first copy: lock, low, S, high, rows.
 *
 * In: an OID.  Out: H, W and F messages, or N.
 * Runs in: the client backend in CALL sluice.copy; each table in a transaction
 * of its own, with superuser rights, so that row security hides nothing
 * (README.md says so).
 * Locks: ACCESS SHARE on the table and, of a root, all its partitions, from
 * before S until the rows are sent: rewrites and TRUNCATE are not MVCC-safe.
 */
#include "postgres.h"

#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "allocator.h"
#include "copier.h"
#include "copyboth.h"
#include "scan.h"
#include "schema.h"

#define FIRST_RETRY 1			/* ms, doubles */
#define LAST_RETRY 100

/* ---- locks ---- */

/* All or nothing: who waits by trying must not hold what others wait for. */
static bool
try_lock(List *relations)
{
	ListCell   *cell;

	foreach(cell, relations)
	{
		if (ConditionalLockRelationOid(lfirst_oid(cell), AccessShareLock))
			continue;
		for (int i = 0; i < foreach_current_index(cell); i++)
			UnlockRelationOid(list_nth_oid(relations, i), AccessShareLock);
		return false;
	}
	return true;
}

/*
 * By trying, so that signs of life go out and the wait can be shown.  Returns
 * what is locked; NIL: there is no such relation.
 */
static List *
lock_table(SluiceCopier *copier, Oid oid)
{
	List	   *relations;
	long		retry = FIRST_RETRY;

	while (!try_lock(relations = sluice_scan_candidates(oid)))
	{
		sluice_copier_waits_for(copier, psprintf("a lock on the table with OID %u", oid));
		sluice_copier_wait(copier, retry);
		retry = Min(2 * retry, LAST_RETRY);
	}
	sluice_copier_waits_for(copier, "");
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(oid)) ? relations : NIL;
}

/* ---- messages ---- */

static void
emit(void *argument, SluiceBuffer *frames)
{
	SluiceCopier *copier = argument;
	SluiceSender *entry = copier->task.entry;

	sluice_copier_drain(copier);
	sluice_copyboth_send('W', frames->data, frames->length);
	(void) sluice_copyboth_flush();
	SpinLockAcquire(&entry->mutex);
	entry->bytes_sent += frames->length;
	SpinLockRelease(&entry->mutex);
	sluice_buffer_reset(frames);
}

static void
send_header(const SluiceTable *table, const SluicePlacedSnapshot *placed, List *relations)
{
	SluiceBuffer out;
	int64		rows;
	int64		bytes = sluice_scan_estimate(relations, &rows);

	sluice_buffer_init(&out, &sluice_palloc_allocator);
	sluice_wire_put_u32(&out, table->oid);
	sluice_table_encode(&out, table);
	sluice_snapshot_encode(&out, placed);
	sluice_wire_put_watermark(&out, placed->low);
	sluice_wire_put_u64(&out, placed->high);
	sluice_wire_put_u64(&out, (uint64) rows);
	sluice_wire_put_u64(&out, (uint64) bytes);
	sluice_copyboth_send('H', out.data, out.length);
	sluice_buffer_release(&out);
}

static void
send_end(char type, Oid oid, uint64 rows)
{
	SluiceBuffer out;

	sluice_buffer_init(&out, &sluice_palloc_allocator);
	sluice_wire_put_u32(&out, oid);
	if (type == 'F')
		sluice_wire_put_u64(&out, rows);
	sluice_copyboth_send(type, out.data, out.length);
	sluice_buffer_release(&out);
}

/* ---- a table ---- */

static void
add_context(void *argument)
{
	const SluiceTable *table = argument;

	if (geterrcode() == ERRCODE_SNAPSHOT_TOO_OLD)
		errhint("The copy of the table takes longer than old_snapshot_threshold allows; set it to -1 and restart the server.");
	errcontext("copy of table \"%s\".\"%s\"", table->schema, table->name);
}

static void
send_rows(SluiceCopier *copier, const SluiceTable *table, const SluicePlacedSnapshot *placed,
		  List *relations)
{
	ErrorContextCallback context = {error_context_stack, add_context, unconstify(SluiceTable *, table)};
	uint64		rows = 0;
	int			level = sluice_value_pin_settings();

	error_context_stack = &context;
	send_header(table, placed, relations);
	if (table->problem == NULL)
		rows = sluice_scan_table(table, relations, placed->snapshot, &copier->options, emit, copier);
	AtEOXact_GUC(true, level);
	send_end('F', table->oid, rows);
	error_context_stack = context.previous;
}

/* False: a partition has come that was not locked before S; to be done again. */
static bool
send_locked(SluiceCopier *copier, Oid oid, List *locked)
{
	SluicePlacedSnapshot placed;
	const SluiceTable *table;
	List	   *relations;
	bool		complete = true;

	sluice_copier_snapshot(copier, &placed);
	table = sluice_schema_read_table(oid, copier->state->publications, placed.snapshot,
									 &copier->options);
	if (table == NULL)
		send_end('N', oid, 0);
	else
	{
		relations = sluice_scan_relations(table, placed.snapshot);
		complete = list_difference_oid(relations, locked) == NIL;
		if (complete)
			send_rows(copier, table, &placed, relations);
	}
	sluice_snapshot_end(&placed);
	return complete;
}

void
sluice_copy_send_table(SluiceCopier *copier, Oid oid)
{
	bool		done = true;

	do
	{
		List	   *locked;

		MemoryContextReset(copier->table);
		sluice_copyboth_begin_transaction(false);
		MemoryContextSwitchTo(copier->table);
		locked = lock_table(copier, oid);
		if (locked == NIL)
			send_end('N', oid, 0);
		else
			done = send_locked(copier, oid, locked);
		sluice_copyboth_commit_transaction();
	} while (!done);
	sluice_copier_drain(copier);
}
