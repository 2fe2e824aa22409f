/*
 * watch.c: which catalog entries matter to a shard, and what a transaction's
 * invalidation messages say of them.
 *
 * The messages are those of the transaction itself (txn->invalidations), in
 * commit order; callbacks would also tell of what is live, and of overflows.
 * Most transactions that change catalogs (temporary tables) touch nothing
 * here and cost a hash look-up for each message.
 *
 * In: the tracked schema; messages.  Out: what to look at more closely.
 * Runs in: decoder, in callbacks.  Locks: none.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_range.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/sinval.h"
#include "utils/catcache.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "schema_reader.h"
#include "watch.h"

typedef struct WatchedRelation
{
	Oid			relid;			/* hash key */
	SluiceWatched kind;
	Oid			table;			/* the tracked one; not of a composite */
} WatchedRelation;

struct SluiceWatch
{
	HTAB	   *relations;
	List	   *types;			/* OIDs, not of the server's own types */
	List	   *enums;
};

static void
watch_relation(SluiceWatch *watch, Oid relid, SluiceWatched kind, Oid table)
{
	bool		found;
	WatchedRelation *entry = hash_search(watch->relations, &relid, HASH_ENTER, &found);

	/* a tracked table may also be a column's type: the table counts more */
	if (found && kind == SLUICE_WATCHED_COMPOSITE)
		return;
	entry->kind = kind;
	entry->table = table;
}

static void watch_type(SluiceWatch *watch, Oid type);

static void
watch_composite(SluiceWatch *watch, Oid relid)
{
	TupleDesc	desc;
	Oid			type = get_rel_type_id(relid);

	watch_relation(watch, relid, SLUICE_WATCHED_COMPOSITE, InvalidOid);
	desc = lookup_rowtype_tupdesc_noerror(type, -1, true);
	if (desc == NULL)
		return;
	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			watch_type(watch, TupleDescAttr(desc, i)->atttypid);
	}
	ReleaseTupleDesc(desc);
}

/* The type and what its values are made of; one that is gone is left out. */
static void
watch_type(SluiceWatch *watch, Oid type)
{
	HeapTuple	tuple;
	Form_pg_type form;

	if (type < FirstNormalObjectId || list_member_oid(watch->types, type))
		return;
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_type) GETSTRUCT(tuple);
	watch->types = lappend_oid(watch->types, type);

	if (OidIsValid(form->typelem))
		watch_type(watch, form->typelem);
	if (form->typtype == TYPTYPE_DOMAIN)
		watch_type(watch, form->typbasetype);
	else if (form->typtype == TYPTYPE_ENUM)
		watch->enums = lappend_oid(watch->enums, type);
	else if (form->typtype == TYPTYPE_RANGE)
		watch_type(watch, get_range_subtype(type));
	else if (form->typtype == TYPTYPE_MULTIRANGE)
		watch_type(watch, get_multirange_range(type));
	else if (form->typtype == TYPTYPE_COMPOSITE && OidIsValid(form->typrelid))
		watch_composite(watch, form->typrelid);
	ReleaseSysCache(tuple);
}

SluiceWatch *
sluice_watch_create(const SluiceSchema *schema)
{
	SluiceWatch *watch = palloc0(sizeof(SluiceWatch));
	HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(WatchedRelation),
	.hcxt = CurrentMemoryContext};

	watch->relations = hash_create("sluice watched relations", 256, &control,
								   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	for (uint32 i = 0; i < schema->ntables; i++)
	{
		const SluiceTable *table = &schema->tables[i];

		for (int j = 0; j < table->ncolumns; j++)
			watch_type(watch, table->columns[j].type_oid);
	}
	for (uint32 i = 0; i < schema->ntables; i++)
	{
		const SluiceTable *table = &schema->tables[i];

		watch_relation(watch, table->oid, SLUICE_WATCHED_TABLE, table->oid);
		for (int j = 0; j < table->nindexes; j++)
			watch_relation(watch, table->indexes[j].oid, SLUICE_WATCHED_TABLE, table->oid);
	}
	return watch;
}

void
sluice_watch_add_partition(SluiceWatch *watch, Oid partition, Oid root)
{
	watch_relation(watch, partition, SLUICE_WATCHED_PARTITION, root);
}

bool
sluice_watch_has_partition(SluiceWatch *watch, Oid partition, Oid root)
{
	WatchedRelation *entry = hash_search(watch->relations, &partition, HASH_FIND, NULL);

	return entry != NULL && entry->kind == SLUICE_WATCHED_PARTITION && entry->table == root;
}

List *
sluice_watch_partitions(SluiceWatch *watch, Oid root)
{
	HASH_SEQ_STATUS status;
	WatchedRelation *entry;
	List	   *partitions = NIL;

	hash_seq_init(&status, watch->relations);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->kind == SLUICE_WATCHED_PARTITION && entry->table == root)
			partitions = lappend_oid(partitions, entry->relid);
	}
	return partitions;
}

/* ---- messages ---- */

static void
look_at_relation(SluiceWatch *watch, Oid relid, SluiceTouched *touched)
{
	WatchedRelation *entry;

	if (!OidIsValid(relid))
	{
		touched->all = true;
		return;
	}
	entry = hash_search(watch->relations, &relid, HASH_FIND, NULL);
	if (entry == NULL)
	{
		if (relid >= FirstNormalObjectId)
			touched->others = lappend_oid(touched->others, relid);
	}
	else if (entry->kind == SLUICE_WATCHED_COMPOSITE)
		touched->composites = list_append_unique_oid(touched->composites, relid);
	else
		touched->tables = list_append_unique_oid(touched->tables, entry->table);
}

static bool
is_watched_type(const SluiceWatch *watch, uint32 hash)
{
	ListCell   *cell;

	foreach(cell, watch->types)
	{
		if (GetSysCacheHashValue1(TYPEOID, ObjectIdGetDatum(lfirst_oid(cell))) == hash)
			return true;
	}
	return false;
}

/* Is one of the changed labels (their hashes) one of a type that we have? */
static bool
is_watched_label(const SluiceWatch *watch, const List *hashes)
{
	ListCell   *cell;
	bool		found = false;

	foreach(cell, watch->enums)
	{
		CatCList   *labels = SearchSysCacheList1(ENUMTYPOIDNAME,
												 ObjectIdGetDatum(lfirst_oid(cell)));

		for (int i = 0; i < labels->n_members && !found; i++)
		{
			Form_pg_enum form = (Form_pg_enum) GETSTRUCT(&labels->members[i]->tuple);

			found = list_member_int(hashes,
									(int) GetSysCacheHashValue1(ENUMOID,
																ObjectIdGetDatum(form->oid)));
		}
		ReleaseSysCacheList(labels);
	}
	return found;
}

void
sluice_watch_look(SluiceWatch *watch, const ReorderBufferTXN *txn, SluiceTouched *touched)
{
	List	   *labels = NIL;
	int			label_names = 0;

	memset(touched, 0, sizeof(*touched));
	for (uint32 i = 0; i < txn->ninvalidations; i++)
	{
		const SharedInvalidationMessage *message = &txn->invalidations[i];

		if (message->id == SHAREDINVALRELCACHE_ID)
		{
			if (message->rc.dbId == MyDatabaseId || message->rc.dbId == InvalidOid)
				look_at_relation(watch, message->rc.relId, touched);
			continue;
		}
		if (message->id < 0 || message->cc.dbId != MyDatabaseId)
			continue;
		switch (message->id)
		{
			case NAMESPACEOID:
			case PUBLICATIONOID:
			case PUBLICATIONREL:
			case PUBLICATIONNAMESPACE:
				touched->all = true;
				break;
			case TYPEOID:
				if (is_watched_type(watch, message->cc.hashValue))
					touched->all = true;
				break;
			case ENUMOID:
				labels = lappend_int(labels, (int) message->cc.hashValue);
				break;
			case ENUMTYPOIDNAME:
				label_names++;
				break;
		}
	}

	/*
	 * A label that is added or dropped makes one message for each of the two
	 * caches; one that is renamed has the same OID and two names.
	 */
	if (label_names > list_length(labels) && watch->enums != NIL)
		touched->enum_renamed = is_watched_label(watch, labels);
	/* one message for each command that touched it */
	list_sort(touched->others, list_oid_cmp);
	list_deduplicate_oid(touched->others);
}
