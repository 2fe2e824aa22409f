/*
 * schema_index.c: indexes and key of a published table.
 *
 * In: pg_index and pg_class under the reader's snapshot.  Out: the indexes
 * that a replica can hold (btree and hash over plain published columns, no
 * predicate), and the key: the columns of the replica identity, with FULL
 * those of the best unique index.  Columns come from indkey, since names of
 * index attributes go stale.  Only valid indexes count.
 * Runs in: the decoder's callbacks, backends.  Locks: see schema_catalog.c.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/indexing.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "schema_reader.h"

/* A valid index, as pg_index has it. */
typedef struct IndexDraft
{
	Oid			oid;
	bool		unique;
	bool		nulls_equal;
	bool		primary;
	bool		exclusion;
	bool		immediate;
	bool		chosen;			/* REPLICA IDENTITY USING INDEX */
	bool		plain;			/* no predicate, no expressions */
	int			ncolumns;
	SluiceIndexColumn columns[INDEX_MAX_KEYS];
} IndexDraft;

static IndexDraft *
read_index(SluiceCatalogScan *scan, HeapTuple tuple)
{
	Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
	IndexDraft *draft = palloc0(sizeof(IndexDraft));
	bool		isnull;
	int2vector *options = (int2vector *)
		DatumGetPointer(sluice_catalog_value(scan, tuple, Anum_pg_index_indoption, &isnull));

	draft->oid = form->indexrelid;
	draft->unique = form->indisunique;
	draft->nulls_equal = form->indnullsnotdistinct;
	draft->primary = form->indisprimary;
	draft->exclusion = form->indisexclusion;
	draft->immediate = form->indimmediate;
	draft->chosen = form->indisreplident;
	(void) sluice_catalog_value(scan, tuple, Anum_pg_index_indpred, &isnull);
	draft->plain = isnull;
	draft->ncolumns = form->indnkeyatts;
	for (int i = 0; i < draft->ncolumns; i++)
	{
		draft->columns[i].attnum = form->indkey.values[i];
		draft->columns[i].descending = (options->values[i] & INDOPTION_DESC) != 0;
		if (form->indkey.values[i] <= 0)
			draft->plain = false;
	}
	return draft;
}

static int
compare_drafts(const ListCell *a, const ListCell *b)
{
	Oid			x = ((IndexDraft *) lfirst(a))->oid;
	Oid			y = ((IndexDraft *) lfirst(b))->oid;

	return x < y ? -1 : x > y;
}

static List *
read_indexes(SluiceSchemaReader *reader, Oid relid)
{
	SluiceCatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	List	   *drafts = NIL;

	sluice_catalog_key_oid(&key, Anum_pg_index_indrelid, relid);
	sluice_catalog_begin(&scan, IndexRelationId, IndexIndrelidIndexId, reader->snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);

		if (form->indisvalid && form->indislive)
			drafts = lappend(drafts, read_index(&scan, tuple));
	}
	sluice_catalog_end(&scan);
	list_sort(drafts, compare_drafts);
	return drafts;
}

/* What PostgreSQL takes for the replica identity; NULL: none. */
static const IndexDraft *
identity_index(const List *drafts, char identity)
{
	ListCell   *cell;

	foreach(cell, drafts)
	{
		const IndexDraft *draft = lfirst(cell);

		if (draft->unique && draft->immediate && draft->plain &&
			((identity == REPLICA_IDENTITY_DEFAULT && draft->primary) ||
			 (identity == REPLICA_IDENTITY_INDEX && draft->chosen)))
			return draft;
	}
	return NULL;
}

List *
sluice_schema_identity(SluiceSchemaReader *reader, const SluiceRelationFacts *relation)
{
	const IndexDraft *draft = identity_index(read_indexes(reader, relation->oid),
											 relation->identity);
	List	   *attnums = NIL;

	for (int i = 0; draft != NULL && i < draft->ncolumns; i++)
		attnums = lappend_int(attnums, draft->columns[i].attnum);
	return attnums;
}

/* All its columns are published; and, if asked, NOT NULL. */
static bool
covered(const SluiceTable *table, const IndexDraft *draft, bool not_null)
{
	for (int i = 0; i < draft->ncolumns; i++)
	{
		int			position = sluice_table_column_by_attnum(table, draft->columns[i].attnum);

		if (position < 0 ||
			(not_null && (table->columns[position].flags & SLUICE_COLUMN_NOT_NULL) == 0))
			return false;
	}
	return true;
}

/* Identity FULL: fewest columns, then the primary key, then the oldest. */
static const IndexDraft *
best_index(const SluiceTable *table, const List *drafts)
{
	const IndexDraft *best = NULL;
	ListCell   *cell;

	foreach(cell, drafts)
	{
		const IndexDraft *draft = lfirst(cell);

		if (draft->unique && draft->immediate && draft->plain && covered(table, draft, true) &&
			(best == NULL || draft->ncolumns < best->ncolumns ||
			 (draft->ncolumns == best->ncolumns && draft->primary)))
			best = draft;
	}
	return best;
}

/* Unequal numerics can become equal doubles. */
static bool
loses_digits(SluiceSchemaReader *reader, const SluiceTable *table, const IndexDraft *draft)
{
	if (!reader->options->numerics_double)
		return false;
	for (int i = 0; i < draft->ncolumns; i++)
	{
		int			position = sluice_table_column_by_attnum(table, draft->columns[i].attnum);
		const SluiceTypeFacts *type;

		if (position < 0)
			continue;
		type = sluice_catalog_type(reader, table->columns[position].type_oid);
		while (type->typtype == TYPTYPE_DOMAIN)
			type = sluice_catalog_type(reader, type->base);
		if (type->oid == NUMERICOID)
			return true;
	}
	return false;
}

static void
fill_key(SluiceSchemaReader *reader, SluiceTable *table, const IndexDraft *draft)
{
	uint16_t   *key;

	if (!covered(table, draft, false))
	{
		sluice_schema_problem(reader, table,
							  "its column list leaves out columns of its replica identity: add them to the list");
		return;
	}
	if (loses_digits(reader, table, draft))
		sluice_schema_problem(reader, table,
							  "its key has a numeric column, which would not stay unique as a double: "
							  "set the shard's option numerics to exact");
	key = MemoryContextAlloc(reader->result, draft->ncolumns * sizeof(uint16_t));
	for (int i = 0; i < draft->ncolumns; i++)
		key[i] = sluice_table_column_by_attnum(table, draft->columns[i].attnum);
	table->key = key;
	table->nkey = draft->ncolumns;
}

static void
fill_index(SluiceSchemaReader *reader, const SluiceTable *table, const IndexDraft *draft,
		   const SluiceRelationFacts *relation, bool identity, SluiceIndex *index)
{
	Size		size = draft->ncolumns * sizeof(SluiceIndexColumn);
	SluiceIndexColumn *columns = MemoryContextAllocZero(reader->result, size);

	memcpy(columns, draft->columns, size);
	index->oid = draft->oid;
	index->flags = (draft->primary ? SLUICE_INDEX_PRIMARY : 0) |
		(identity ? SLUICE_INDEX_IDENTITY : 0);
	if (draft->unique && !loses_digits(reader, table, draft))
		index->flags |= SLUICE_INDEX_UNIQUE |
			(draft->immediate ? 0 : SLUICE_INDEX_DEFERRABLE) |
			(draft->nulls_equal ? SLUICE_INDEX_NULLS_EQUAL : 0);
	index->ncolumns = draft->ncolumns;
	index->columns = columns;
	index->name = sluice_schema_string(reader, NameStr(relation->name));
}

void
sluice_schema_fill_indexes(SluiceSchemaReader *reader, SluiceTable *table)
{
	List	   *drafts = read_indexes(reader, table->oid);
	const IndexDraft *identity = identity_index(drafts, table->identity);
	const IndexDraft *key = table->identity == REPLICA_IDENTITY_FULL ?
		best_index(table, drafts) : identity;
	SluiceIndex *indexes;
	ListCell   *cell;

	if (key != NULL)
		fill_key(reader, table, key);
	indexes = MemoryContextAllocZero(reader->result,
									 Max(list_length(drafts), 1) * sizeof(SluiceIndex));
	foreach(cell, drafts)
	{
		const IndexDraft *draft = lfirst(cell);
		const SluiceRelationFacts *relation;

		if (!draft->plain || draft->exclusion || !covered(table, draft, false))
			continue;
		relation = sluice_catalog_relation(reader, draft->oid);
		if (relation != NULL && (relation->am == BTREE_AM_OID || relation->am == HASH_AM_OID))
			fill_index(reader, table, draft, relation, draft == identity,
					   &indexes[table->nindexes++]);
	}
	table->indexes = indexes;
}
