/*
 * scan.c: see scan.h.
 *
 * In: table, snapshot.  Out: INSERT frames, in physical order.
 * Runs in: copiers, backfill workers.  Locks: the caller's, on what is scanned.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "allocator.h"
#include "filter.h"
#include "row.h"
#include "scan.h"
#include "schema.h"

#define EMIT_SIZE (64 * 1024)

typedef struct Scan
{
	const SluiceTable *table;
	const SluiceEncodeOptions *options;
	Snapshot	snapshot;
	SluiceRowEncoder *encoder;	/* of the relation that is read */
	SluiceFilter *filter;
	MemoryContext row;			/* reset for each row */
	SluiceBuffer frames;
	void		(*emit) (void *argument, SluiceBuffer *frames);
	void	   *argument;
	uint64		rows;
	bool		ended;			/* by a problem */
} Scan;

List *
sluice_scan_candidates(Oid relid)
{
	if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return list_make1_oid(relid);
	return find_all_inheritors(relid, NoLock, NULL);
}

List *
sluice_scan_relations(const SluiceTable *table, Snapshot snapshot)
{
	if (!(table->flags & SLUICE_TABLE_PARTITIONED))
		return list_make1_oid(table->oid);
	return sluice_schema_leaves(table->oid, snapshot);
}

/* By what VACUUM and ANALYZE have noted. */
static int64
noted_size(Form_pg_class class)
{
	HeapTuple	toast = SearchSysCache1(RELOID, ObjectIdGetDatum(class->reltoastrelid));
	int64		pages = class->relpages;

	if (HeapTupleIsValid(toast))
	{
		pages += ((Form_pg_class) GETSTRUCT(toast))->relpages;
		ReleaseSysCache(toast);
	}
	return pages * BLCKSZ;
}

static int64
size_of(Oid relid, Form_pg_class class)
{
	int64		size;

	if (!ConditionalLockRelationOid(relid, AccessShareLock))
		return noted_size(class);
	size = SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)) ?
		DatumGetInt64(DirectFunctionCall1(pg_table_size, ObjectIdGetDatum(relid))) : 0;
	UnlockRelationOid(relid, AccessShareLock);
	return size;
}

int64
sluice_scan_estimate(List *relations, int64 *rows)
{
	int64		bytes = 0;
	double		tuples = 0;
	bool		known = relations != NIL;
	ListCell   *cell;

	foreach(cell, relations)
	{
		Oid			relid = lfirst_oid(cell);
		HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
		Form_pg_class class;

		if (!HeapTupleIsValid(tuple))
			continue;
		class = (Form_pg_class) GETSTRUCT(tuple);
		bytes += size_of(relid, class);
		if (class->reltuples >= 0)
			tuples += class->reltuples;
		else
			known = false;
		ReleaseSysCache(tuple);
	}
	*rows = known ? (int64) tuples : -1;
	return bytes;
}

/* What a user needs to find the row: its place, and its widest column. */
static void
report_problem(Scan *scan, TupleTableSlot *slot)
{
	SluiceTableProblem problem;
	int			widest = 0;
	Size		most = 0;

	for (int i = 0; i < slot->tts_tupleDescriptor->natts; i++)
	{
		Size		size;

		if (slot->tts_isnull[i] || TupleDescAttr(slot->tts_tupleDescriptor, i)->attlen != -1)
			continue;
		size = toast_raw_datum_size(slot->tts_values[i]);
		if (size > most)
		{
			most = size;
			widest = i;
		}
	}
	problem.table_oid = scan->table->oid;
	problem.problem = psprintf("a row is larger than a SQLite row may be: ctid (%u,%u), its largest column is \"%s\" with %zu bytes",
							   ItemPointerGetBlockNumber(&slot->tts_tid),
							   ItemPointerGetOffsetNumber(&slot->tts_tid),
							   NameStr(TupleDescAttr(slot->tts_tupleDescriptor, widest)->attname),
							   most);
	sluice_wire_table_problem(&scan->frames, &problem);
	scan->ended = true;
}

/* Is the row published?  Not if that cannot be told: then the scan ends. */
static bool
matches(Scan *scan, TupleTableSlot *slot)
{
	SluiceTableProblem problem = {.table_oid = scan->table->oid};
	char	   *said;
	bool		result;

	if (scan->filter == NULL)
		return true;
	result = sluice_filter_matches(scan->filter, slot->tts_values, slot->tts_isnull, NULL, NULL, &said);
	if (said != NULL)
	{
		problem.problem = said;
		sluice_wire_table_problem(&scan->frames, &problem);
		scan->ended = true;
	}
	return result;
}

static void
scan_row(Scan *scan, TupleTableSlot *slot)
{
	MemoryContext caller = MemoryContextSwitchTo(scan->row);

	slot_getallattrs(slot);
	if (matches(scan, slot))
	{
		if (sluice_row_insert(scan->encoder, slot->tts_values, slot->tts_isnull, true, &scan->frames))
			scan->rows++;
		else
			report_problem(scan, slot);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(scan->row);
}

/* How the rows of the relation are published, in a context of its own. */
static MemoryContext
open_relation(Scan *scan, Relation relation)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "sluice scanned relation",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	Oid			relid = RelationGetRelid(relation);
	TupleDesc	desc = RelationGetDescr(relation);
	char	   *mismatch = NULL;

	scan->encoder = sluice_row_encoder(scan->table, relid, desc, scan->options, &mismatch);
	if (mismatch == NULL)
		scan->filter = sluice_filter_create(scan->table, relid, desc, true, &mismatch);
	if (mismatch != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("table \"%s\" has changed while its copy began", RelationGetRelationName(relation)),
				 errdetail_internal("%s", mismatch),
				 errhint("The copy is tried again.")));
	MemoryContextSwitchTo(caller);
	return context;
}

static void
scan_relation(Scan *scan, Relation relation)
{
	MemoryContext context = open_relation(scan, relation);
	TupleTableSlot *slot = table_slot_create(relation, NULL);
	TableScanDesc rows;

	rows = table_beginscan_strat(relation, scan->snapshot, 0, NULL, true, false);
	while (!scan->ended && table_scan_getnextslot(rows, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		scan_row(scan, slot);
		if (scan->frames.length >= EMIT_SIZE)
			scan->emit(scan->argument, &scan->frames);
	}
	table_endscan(rows);
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextDelete(context);
}

uint64
sluice_scan_table(const SluiceTable *table, List *relations, Snapshot snapshot,
				  const SluiceEncodeOptions *options,
				  void (*emit) (void *argument, SluiceBuffer *frames), void *argument)
{
	Scan		scan = {0};
	ListCell   *cell;

	scan.table = table;
	scan.options = options;
	scan.snapshot = snapshot;
	scan.emit = emit;
	scan.argument = argument;
	scan.row = AllocSetContextCreate(CurrentMemoryContext, "sluice row", ALLOCSET_DEFAULT_SIZES);
	sluice_buffer_init(&scan.frames, &sluice_palloc_allocator);
	/* here, not in the row's context, which is where it grows */
	sluice_buffer_reserve(&scan.frames, EMIT_SIZE);

	foreach(cell, relations)
	{
		Relation	relation = table_open(lfirst_oid(cell), NoLock);

		scan_relation(&scan, relation);
		table_close(relation, NoLock);
		if (scan.ended)
			break;
	}
	if (scan.frames.length > 0)
		emit(argument, &scan.frames);
	sluice_buffer_release(&scan.frames);
	MemoryContextDelete(scan.row);
	return scan.rows;
}
