/*
 * track.c: see track.h.
 *
 * In: what a transaction's messages touch; the catalogs as it saw them.
 * Out: messages (evolve.c); a new tracked schema.
 * Runs in: decoder, in callbacks.  Locks: ACCESS SHARE on catalogs in reads.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "allocator.h"
#include "drift.h"
#include "evolve.h"
#include "relation.h"
#include "track.h"

/* ---- reading ---- */

static SluiceTable *
read_table(SluiceDecoder *decoder, Oid relid)
{
	if (get_rel_relkind(relid) == '\0')
		return NULL;
	return sluice_schema_read_table(relid, decoder->publications, NULL, &decoder->options);
}

static List *
add(List *evolutions, SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTable *from,
	const SluiceTable *to)
{
	SluiceEvolution *evolution = palloc0(sizeof(SluiceEvolution));

	evolution->from = from;
	evolution->to = to;
	/* one that is not followed stays so, whatever becomes of it, until it is gone */
	if (from != NULL && from->problem != NULL && to != NULL)
		return evolutions;
	if (!sluice_evolution_differs(evolution))
		return evolutions;
	if (from == NULL)
		evolution->complete = sluice_drift_created_by(to->oid, txn) &&
			!list_member_oid(decoder->skipped, to->oid);
	return lappend(evolutions, evolution);
}

static bool
may_be_published(Oid relid)
{
	char		kind = get_rel_relkind(relid);

	return (kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE) &&
		get_rel_persistence(relid) == RELPERSISTENCE_PERMANENT;
}

static List *
compare_touched_tables(SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTouched *touched)
{
	List	   *evolutions = NIL;
	ListCell   *cell;

	foreach(cell, touched->tables)
	{
		Oid			relid = lfirst_oid(cell);

		evolutions = add(evolutions, decoder, txn, sluice_schema_find(decoder->schema, relid),
						 read_table(decoder, relid));
	}
	return evolutions;
}

static List *
compare_touched(SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTouched *touched)
{
	List	   *evolutions = compare_touched_tables(decoder, txn, touched);
	ListCell   *cell;

	foreach(cell, touched->others)
	{
		Oid			relid = lfirst_oid(cell);

		/* it may have been created while the transaction's rows came */
		if (may_be_published(relid))
			evolutions = add(evolutions, decoder, txn, sluice_schema_find(decoder->schema, relid),
							 read_table(decoder, relid));
	}
	return evolutions;
}

/* Without one of its publications the shard is not what it was made to be. */
static SluiceSchema *
read_schema(SluiceDecoder *decoder)
{
	MemoryContext context = CurrentMemoryContext;
	SluiceSchema *volatile schema = NULL;

	PG_TRY();
	{
		schema = sluice_schema_read(decoder->publications, NULL, &decoder->options);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode != ERRCODE_UNDEFINED_OBJECT)
			PG_RE_THROW();
		FlushErrorState();
		sluice_decoder_stop(decoder, "%s", error->message);
	}
	PG_END_TRY();
	return schema;
}

static List *
compare_all(SluiceDecoder *decoder, ReorderBufferTXN *txn)
{
	const SluiceSchema *from = decoder->schema;
	SluiceSchema *to = read_schema(decoder);
	List	   *evolutions = NIL;
	uint32		i = 0;
	uint32		j = 0;

	while (i < from->ntables || j < to->ntables)
	{
		const SluiceTable *a = i < from->ntables ? &from->tables[i] : NULL;
		const SluiceTable *b = j < to->ntables ? &to->tables[j] : NULL;

		if (a != NULL && b != NULL && a->oid != b->oid)
		{
			if (a->oid < b->oid)
				b = NULL;
			else
				a = NULL;
		}
		evolutions = add(evolutions, decoder, txn, a, b);
		i += a != NULL;
		j += b != NULL;
	}
	return evolutions;
}

/* ---- the tracked schema ---- */

static const SluiceEvolution *
find_evolution(List *evolutions, Oid relid)
{
	ListCell   *cell;

	foreach(cell, evolutions)
	{
		const SluiceEvolution *evolution = lfirst(cell);

		if ((evolution->from != NULL ? evolution->from : evolution->to)->oid == relid)
			return evolution;
	}
	return NULL;
}

/* A table that cannot be followed any more keeps the shape that replicas have. */
static void
put_table(SluiceTable *at, const SluiceEvolution *evolution)
{
	const SluiceTable *to = evolution->to;

	if (evolution->from == NULL || to->problem == NULL)
	{
		sluice_table_copy(at, to, &sluice_palloc_allocator);
		return;
	}
	sluice_table_copy(at, evolution->from, &sluice_palloc_allocator);
	at->problem = pstrdup(to->problem);
}

static int
by_oid(const void *a, const void *b)
{
	Oid			x = ((const SluiceTable *) a)->oid;
	Oid			y = ((const SluiceTable *) b)->oid;

	return x < y ? -1 : x > y;
}

/* A whole new one, so that nothing of the old one stays behind in memory. */
static void
replace(SluiceDecoder *decoder, List *evolutions)
{
	MemoryContext context = AllocSetContextCreate(decoder->context, "sluice tracked schema",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	const SluiceSchema *from = decoder->schema;
	SluiceSchema *to = palloc0(sizeof(SluiceSchema));
	SluiceTable *tables = palloc((from->ntables + list_length(evolutions) + 1) *
								 sizeof(SluiceTable));
	ListCell   *cell;

	for (uint32 i = 0; i < from->ntables; i++)
	{
		const SluiceEvolution *evolution = find_evolution(evolutions, from->tables[i].oid);

		if (evolution == NULL)
			sluice_table_copy(&tables[to->ntables++], &from->tables[i], &sluice_palloc_allocator);
		else if (evolution->to != NULL)
			put_table(&tables[to->ntables++], evolution);
	}
	foreach(cell, evolutions)
	{
		const SluiceEvolution *evolution = lfirst(cell);

		if (evolution->from == NULL)
			put_table(&tables[to->ntables++], evolution);
	}
	qsort(tables, to->ntables, sizeof(SluiceTable), by_oid);
	to->tables = tables;

	MemoryContextSwitchTo(caller);
	MemoryContextDelete(decoder->schema_context);
	decoder->schema = to;
	decoder->schema_context = context;
	decoder->schema_changed = true;
	sluice_relations_forget(decoder->relations);
	sluice_drift_schema_changed(decoder);
}

static bool
move_on(SluiceDecoder *decoder, ReorderBufferTXN *txn, List *evolutions)
{
	if (evolutions == NIL)
		return false;
	sluice_evolve(decoder, txn, evolutions);
	replace(decoder, evolutions);
	return true;
}

/* ---- when ---- */

void
sluice_track_commit(SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTouched *touched)
{
	(void) move_on(decoder, txn, touched->all ? compare_all(decoder, txn) :
				   compare_touched(decoder, txn, touched));
}

bool
sluice_track_row(SluiceDecoder *decoder, ReorderBufferTXN *txn, Oid relid)
{
	const SluiceTouched *touched;
	MemoryContext caller;
	bool		changed = false;

	if (!rbtxn_has_catalog_changes(txn))
		return false;
	caller = MemoryContextSwitchTo(decoder->txn);
	touched = sluice_drift_touched(decoder, txn);
	/* those it has made itself are among the others */
	if (list_member_oid(touched->tables, relid) ||
		(list_member_oid(touched->others, relid) &&
		 sluice_schema_find(decoder->schema, relid) != NULL))
		changed = move_on(decoder, txn,
						  add(NIL, decoder, txn, sluice_schema_find(decoder->schema, relid),
							  read_table(decoder, relid)));
	else if (list_member_oid(touched->others, relid) && may_be_published(relid))
	{
		SluiceTable *table = read_table(decoder, relid);

		/* what the new one may stand in the place of goes first */
		if (table != NULL)
			changed = move_on(decoder, txn,
							  add(compare_touched_tables(decoder, txn, touched), decoder, txn,
								  NULL, table));
	}
	MemoryContextSwitchTo(caller);
	return changed;
}
