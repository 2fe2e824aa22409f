/*
 * relation.c: how the rows of a relation are published: one entry a relation,
 * made at its first row and again after an invalidation.
 *
 * Rows are taken apart by the relation as their transaction saw it, but
 * published by the tracked schema, which may be newer.
 *
 * In: relations of the historic view, the tracked schema.  Out: encoders.
 * Runs in: decoder, in callbacks.  Locks: none.
 *
 * States of an entry: valid or not.  The invalidation callback may be called
 * at any time, also between transactions: it only clears the flag.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "nodes/bitmapset.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "relation.h"
#include "track.h"

/* So many entries are kept whatever their state. */
#define ENTRIES_KEPT 4096

struct SluiceRelations
{
	HTAB	   *entries;
};

static void
invalidate(Datum argument, Oid relid)
{
	HTAB	   *entries = ((SluiceRelations *) DatumGetPointer(argument))->entries;
	HASH_SEQ_STATUS status;
	SluiceRelation *entry;

	if (OidIsValid(relid))
	{
		entry = hash_search(entries, &relid, HASH_FIND, NULL);
		if (entry != NULL)
			entry->valid = false;
		return;
	}
	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
		entry->valid = false;
}

/* Once in the life of the process: callbacks cannot be taken back. */
SluiceRelations *
sluice_relations_create(SluiceDecoder *decoder)
{
	SluiceRelations *relations = MemoryContextAlloc(decoder->context, sizeof(SluiceRelations));
	HASHCTL		control = {.keysize = sizeof(Oid), .entrysize = sizeof(SluiceRelation),
	.hcxt = decoder->context};

	relations->entries = hash_create("sluice decoded relations", 256, &control,
									 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(invalidate, PointerGetDatum(relations));
	return relations;
}

static int
attribute_by_name(TupleDesc desc, const char *name)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0)
			return attribute->attnum;
	}
	return InvalidAttrNumber;
}

/* Do old rows, as this relation's transaction logged them, carry the key? */
static bool
carries_key(Relation relation, const SluiceTable *table)
{
	Bitmapset  *logged;

	if (relation->rd_rel->relreplident == REPLICA_IDENTITY_FULL)
		return true;
	if (table->nkey == 0)
		return false;
	logged = RelationGetIdentityKeyBitmap(relation);
	for (int i = 0; i < table->nkey; i++)
	{
		const SluiceColumn *column = &table->columns[table->key[i]];
		int			attnum = column->attnum;

		/* a leaf may have other numbers than its root */
		if (RelationGetRelid(relation) != table->oid)
			attnum = attribute_by_name(RelationGetDescr(relation), column->name);
		if (attnum == InvalidAttrNumber ||
			!bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, logged))
			return false;
	}
	return true;
}

/* The same for what the filter looks at; PostgreSQL sees to it, once it knows of the filter. */
static bool
carries_filter(Relation relation, const SluiceFilter *filter)
{
	Bitmapset  *logged;
	int			attnum = -1;

	if (filter == NULL || relation->rd_rel->relreplident == REPLICA_IDENTITY_FULL)
		return true;
	logged = RelationGetIdentityKeyBitmap(relation);
	while ((attnum = bms_next_member(sluice_filter_columns(filter), attnum)) >= 0)
		if (!bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, logged))
			return false;
	return true;
}

static void
fill(SluiceDecoder *decoder, SluiceRelation *entry, Relation relation)
{
	TupleDesc	desc = RelationGetDescr(relation);
	Oid			root = sluice_schema_publish_as(decoder->schema, entry->relid);
	char	   *mismatch = NULL;
	MemoryContext old;

	if (!OidIsValid(root))
		return;
	entry->table = (SluiceTable *) sluice_schema_find(decoder->schema, root);
	if (entry->table == NULL || entry->table->problem != NULL)
		return;

	if (entry->context == NULL)
		entry->context = AllocSetContextCreate(decoder->context, "sluice decoded relation",
											   ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(entry->context);
	entry->encoder = sluice_row_encoder(entry->table, entry->relid, desc, &decoder->options,
										&mismatch);
	if (mismatch == NULL)
		entry->filter = sluice_filter_create(entry->table, entry->relid, desc, false, &mismatch);
	if (mismatch != NULL)
		sluice_decoder_stop(decoder, "table %s: %s",
							quote_qualified_identifier(entry->table->schema, entry->table->name),
							mismatch);
	entry->values = palloc(desc->natts * sizeof(Datum) + 1);
	entry->nulls = palloc(desc->natts * sizeof(bool) + 1);
	entry->old_values = palloc(desc->natts * sizeof(Datum) + 1);
	entry->old_nulls = palloc(desc->natts * sizeof(bool) + 1);
	entry->full = relation->rd_rel->relreplident == REPLICA_IDENTITY_FULL;
	entry->has_key = carries_key(relation, entry->table);
	entry->filter_logged = carries_filter(relation, entry->filter);
	MemoryContextSwitchTo(old);
}

/* Tables come and go: entries of those that are gone must not stay for ever. */
static void
forget_invalid(HTAB *entries)
{
	HASH_SEQ_STATUS status;
	SluiceRelation *entry;

	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->valid)
			continue;
		if (entry->context != NULL)
			MemoryContextDelete(entry->context);
		hash_search(entries, &entry->relid, HASH_REMOVE, NULL);
	}
}

void
sluice_relations_forget(SluiceRelations *relations)
{
	invalidate(PointerGetDatum(relations), InvalidOid);
}

SluiceRelation *
sluice_relation_get(SluiceDecoder *decoder, ReorderBufferTXN *txn, Relation relation)
{
	Oid			relid = RelationGetRelid(relation);
	bool		found;
	SluiceRelation *entry;

	entry = hash_search(decoder->relations->entries, &relid, HASH_FIND, NULL);
	if (entry != NULL && entry->valid)
		return entry;

	/* the transaction may have changed it before this row */
	(void) sluice_track_row(decoder, txn, relid);

	if (entry == NULL && hash_get_num_entries(decoder->relations->entries) >= ENTRIES_KEPT)
		forget_invalid(decoder->relations->entries);
	entry = hash_search(decoder->relations->entries, &relid, HASH_ENTER, &found);
	if (!found)
	{
		/* an ERROR below leaves an entry that is not valid, but whole */
		entry->valid = false;
		entry->context = NULL;
	}
	if (entry->context != NULL)
		MemoryContextReset(entry->context);
	entry->table = NULL;
	entry->encoder = NULL;
	entry->filter = NULL;

	/* set first: an invalidation that comes while it is filled counts */
	entry->valid = true;
	fill(decoder, entry, relation);
	return entry;
}
