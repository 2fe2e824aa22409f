/*
 * drift.c: has a transaction changed what is published, or how?
 *
 * The tracked schema moves in commit order only (track.c): it is compared at
 * the commit of a transaction that changed catalogs, with the view of that
 * transaction, and only as far as its own invalidation messages touch what
 * matters here.  What this file finds needs rows that the WAL does not have:
 * it stops the shard before the transaction's COMMIT is on the ring, and
 * whoever has a part of it rolls it back.
 *
 * Rows that come and go without WAL of their own are differences, too: a
 * partition that is attached with rows in it, detached or dropped; a renamed
 * label of an enum type; a changed composite type.
 *
 * In: a transaction, the catalogs as it saw them.  Out: nothing, or the end.
 * Runs in: decoder, in the commit callback.
 * Locks: ACCESS SHARE on catalogs while they are scanned.
 *
 * States: until the stream has passed `seen`, the partitions that were read at
 * the start may be ahead of the stream; until then a message of a relation
 * that is gone or no partition counts as one of a root's that was touched.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/indexing.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "drift.h"
#include "schema_reader.h"
#include "track.h"
#include "watch.h"

struct SluiceDrift
{
	SluiceWatch *watch;
	MemoryContext context;		/* of watch */
	XLogRecPtr	seen;
};

/* ---- partitions ---- */

typedef struct Partition
{
	Oid			relid;
	bool		attached_here;	/* by the transaction that is looked at */
} Partition;

/* Was the tuple written by the transaction or a subtransaction of it? */
static bool
written_by(HeapTuple tuple, const ReorderBufferTXN *txn)
{
	TransactionId xmin;
	dlist_iter	iter;

	if (txn == NULL || HeapTupleHeaderXminFrozen(tuple->t_data))
		return false;
	xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
	if (xmin == txn->xid)
		return true;
	dlist_foreach(iter, &((ReorderBufferTXN *) txn)->subtxns)
	{
		if (dlist_container(ReorderBufferTXN, node, iter.cur)->xid == xmin)
			return true;
	}
	return false;
}

/* All partitions below the root, of every level, as Partition *. */
static List *
partitions_of(Oid root, const ReorderBufferTXN *txn)
{
	List	   *pending = list_make1_oid(root);
	List	   *partitions = NIL;

	while (pending != NIL)
	{
		SluiceCatalogScan scan;
		ScanKeyData key;
		HeapTuple	tuple;

		sluice_catalog_key_oid(&key, Anum_pg_inherits_inhparent, llast_oid(pending));
		pending = list_delete_last(pending);
		sluice_catalog_begin(&scan, InheritsRelationId, InheritsParentIndexId, NULL, 1, &key);
		while (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
		{
			Form_pg_inherits form = (Form_pg_inherits) GETSTRUCT(tuple);
			Partition  *partition;

			if (form->inhdetachpending)
				continue;
			partition = palloc(sizeof(Partition));
			partition->relid = form->inhrelid;
			partition->attached_here = written_by(tuple, txn);
			partitions = lappend(partitions, partition);
			pending = lappend_oid(pending, form->inhrelid);
		}
		sluice_catalog_end(&scan);
	}
	return partitions;
}

/*
 * Made by the transaction: its system columns, which nothing ever changes, are
 * as old as it is.  (ALTER TABLE … SET SCHEMA writes its type anew, and ATTACH
 * its row of pg_class.)
 */
bool
sluice_drift_created_by(Oid relid, const ReorderBufferTXN *txn)
{
	SluiceCatalogScan scan;
	ScanKeyData keys[2];
	HeapTuple	tuple;
	bool		created;

	ScanKeyInit(&keys[0], Anum_pg_attribute_attrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	ScanKeyInit(&keys[1], Anum_pg_attribute_attnum, BTEqualStrategyNumber, F_INT2EQ,
				Int16GetDatum(SelfItemPointerAttributeNumber));
	sluice_catalog_begin(&scan, AttributeRelationId, AttributeRelidNumIndexId, NULL, 2, keys);
	tuple = sluice_catalog_next(&scan);
	created = HeapTupleIsValid(tuple) && written_by(tuple, txn);
	sluice_catalog_end(&scan);
	return created;
}

static const char *
relation_name(Oid relid)
{
	const char *name = get_rel_name(relid);

	return name != NULL ? quote_identifier(name) : psprintf("with OID %u", relid);
}

/*
 * A partition that the transaction made itself has all its rows in the stream,
 * unless some of them came before it was attached.
 */
static void
check_attached(SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTable *table,
			   Oid relid)
{
	if (!sluice_drift_created_by(relid, txn) || list_member_oid(decoder->skipped, relid))
		sluice_decoder_stop(decoder, "table %s: partition %s was attached",
							quote_qualified_identifier(table->schema, table->name),
							relation_name(relid));
	sluice_watch_add_partition(decoder->drift->watch, relid, table->oid);
}

static bool
has_partition(const List *partitions, Oid relid)
{
	ListCell   *cell;

	foreach(cell, partitions)
	{
		if (((Partition *) lfirst(cell))->relid == relid)
			return true;
	}
	return false;
}

/* While the partitions that we know may be ahead of the stream. */
static void
check_unknown(SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTable *table,
			  const SluiceTouched *touched)
{
	ListCell   *cell;

	if (txn->final_lsn >= decoder->drift->seen)
		return;
	foreach(cell, touched->others)
	{
		Oid			relid = lfirst_oid(cell);
		char		kind = get_rel_relkind(relid);

		if (kind == '\0' ||
			((kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE) &&
			 !get_rel_relispartition(relid) && !sluice_drift_created_by(relid, txn)))
			sluice_decoder_stop(decoder,
								"table %s: a partition was detached or dropped, as far as can be told",
								quote_qualified_identifier(table->schema, table->name));
	}
}

static void
check_partitions(SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTable *table,
				 const SluiceTouched *touched)
{
	SluiceWatch *watch = decoder->drift->watch;
	List	   *partitions = partitions_of(table->oid, txn);
	ListCell   *cell;

	foreach(cell, sluice_watch_partitions(watch, table->oid))
	{
		if (!has_partition(partitions, lfirst_oid(cell)))
			sluice_decoder_stop(decoder, "table %s: partition %s was detached or dropped",
								quote_qualified_identifier(table->schema, table->name),
								relation_name(lfirst_oid(cell)));
	}
	foreach(cell, partitions)
	{
		Partition  *partition = lfirst(cell);

		if (partition->attached_here ||
			!sluice_watch_has_partition(watch, partition->relid, table->oid))
			check_attached(decoder, txn, table, partition->relid);
	}
	check_unknown(decoder, txn, table, touched);
}

/* ---- types ---- */

static void
check_composite(SluiceDecoder *decoder, ReorderBufferTXN *txn, Oid relid)
{
	SluiceCatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	bool		changed = false;

	sluice_catalog_key_oid(&key, Anum_pg_attribute_attrelid, relid);
	sluice_catalog_begin(&scan, AttributeRelationId, AttributeRelidNumIndexId, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
		changed |= written_by(tuple, txn);
	sluice_catalog_end(&scan);
	if (changed)
		sluice_decoder_stop(decoder, "composite type %s was changed", relation_name(relid));
}

/* ---- life ---- */

SluiceDrift *
sluice_drift_create(SluiceDecoder *decoder)
{
	SluiceDrift *drift = MemoryContextAllocZero(decoder->context, sizeof(SluiceDrift));
	MemoryContext old;

	drift->context = AllocSetContextCreate(decoder->context, "sluice watched relations",
										   ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(drift->context);
	drift->watch = sluice_watch_create(decoder->schema);
	for (uint32 i = 0; i < decoder->schema->ntables; i++)
	{
		const SluiceTable *table = &decoder->schema->tables[i];
		ListCell   *cell;

		if ((table->flags & SLUICE_TABLE_PARTITIONED) == 0)
			continue;
		foreach(cell, partitions_of(table->oid, NULL))
			sluice_watch_add_partition(drift->watch, ((Partition *) lfirst(cell))->relid,
									   table->oid);
	}
	MemoryContextSwitchTo(old);
	return drift;
}

void
sluice_drift_seen(SluiceDrift *drift, XLogRecPtr position)
{
	drift->seen = position;
}

/*
 * The partitions that were known stay known; those of a new root have been
 * looked at when it was created.
 */
void
sluice_drift_schema_changed(SluiceDecoder *decoder)
{
	SluiceDrift *drift = decoder->drift;
	SluiceWatch *old = drift->watch;
	MemoryContext context = AllocSetContextCreate(decoder->context, "sluice watched relations",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);

	drift->watch = sluice_watch_create(decoder->schema);
	for (uint32 i = 0; i < decoder->schema->ntables; i++)
	{
		const SluiceTable *table = &decoder->schema->tables[i];
		ListCell   *cell;

		if ((table->flags & SLUICE_TABLE_PARTITIONED) == 0)
			continue;
		foreach(cell, sluice_watch_partitions(old, table->oid))
			sluice_watch_add_partition(drift->watch, lfirst_oid(cell), table->oid);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(drift->context);
	drift->context = context;
}

/* ---- the check ---- */

const SluiceTouched *
sluice_drift_touched(SluiceDecoder *decoder, ReorderBufferTXN *txn)
{
	MemoryContext caller;

	if (decoder->touched != NULL)
		return decoder->touched;
	caller = MemoryContextSwitchTo(decoder->txn);
	decoder->touched = palloc(sizeof(SluiceTouched));
	sluice_watch_look(decoder->drift->watch, txn, decoder->touched);
	MemoryContextSwitchTo(caller);
	return decoder->touched;
}

/* A relation that is gone at the end, as the new heap of a rewrite is. */
static bool
has_gone(const SluiceTouched *touched)
{
	ListCell   *cell;

	foreach(cell, touched->others)
	{
		if (get_rel_relkind(lfirst_oid(cell)) == '\0')
			return true;
	}
	return false;
}

/*
 * ALTER COLUMN … TYPE … USING gives a column new values without a row in the
 * WAL, and may leave its type as it was.  It writes the column's description
 * anew and makes a heap that goes; VACUUM FULL does the second only, a change
 * of a default the first only.
 */
static void
check_rewrite(SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTable *table)
{
	SluiceCatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;

	sluice_catalog_key_oid(&key, Anum_pg_attribute_attrelid, table->oid);
	sluice_catalog_begin(&scan, AttributeRelationId, AttributeRelidNumIndexId, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		Form_pg_attribute form = (Form_pg_attribute) GETSTRUCT(tuple);

		if (form->attisdropped || !written_by(tuple, txn) ||
			sluice_table_column_by_attnum(table, form->attnum) < 0)
			continue;
		sluice_decoder_stop(decoder, "table %s: column %s may have been given new values (ALTER COLUMN … TYPE)",
							quote_qualified_identifier(table->schema, table->name),
							quote_identifier(NameStr(form->attname)));
	}
	sluice_catalog_end(&scan);
}

static void
check_rewrites(SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTouched *touched)
{
	ListCell   *cell;

	if (!has_gone(touched))
		return;
	foreach(cell, touched->tables)
	{
		const SluiceTable *table = sluice_schema_find(decoder->schema, lfirst_oid(cell));

		if (table != NULL && table->problem == NULL)
			check_rewrite(decoder, txn, table);
	}
}

void
sluice_drift_check(SluiceDecoder *decoder, ReorderBufferTXN *txn)
{
	const SluiceTouched *touched = sluice_drift_touched(decoder, txn);
	ListCell   *cell;

	if (touched->enum_renamed)
		sluice_decoder_stop(decoder, "a label of an enum type was renamed");
	foreach(cell, touched->composites)
		check_composite(decoder, txn, lfirst_oid(cell));

	if (!touched->all && touched->tables == NIL && touched->others == NIL)
		return;
	check_rewrites(decoder, txn, touched);
	sluice_track_commit(decoder, txn, touched);

	for (uint32 i = 0; i < decoder->schema->ntables; i++)
	{
		const SluiceTable *table = &decoder->schema->tables[i];

		if ((table->flags & SLUICE_TABLE_PARTITIONED) != 0 && table->problem == NULL &&
			(touched->all || list_member_oid(touched->tables, table->oid)))
			check_partitions(decoder, txn, table, touched);
	}
}
