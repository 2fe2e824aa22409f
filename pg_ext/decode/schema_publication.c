/*
 * schema_publication.c: which relations a set of publications publishes, and
 * under which table their rows come.
 *
 * In: names of publications, the catalogs under the reader's snapshot.
 * Out: membership by PostgreSQL's own rules (the topmost ancestor that is
 * published through its root wins).
 * Runs in: the decoder's callbacks, backends.  Locks: see schema_catalog.c.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/catalog.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_publication_namespace.h"
#include "catalog/pg_publication_rel.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

#include "schema_reader.h"

static int
compare_published(const void *a, const void *b)
{
	Oid			x = ((const SluicePublishedRelation *) a)->relid;
	Oid			y = ((const SluicePublishedRelation *) b)->relid;

	return x < y ? -1 : x > y;
}

static SluicePublication *
load_publication(SluiceSchemaReader *reader, const char *name)
{
	SluiceCatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	SluicePublication *publication = NULL;

	ScanKeyInit(&key, Anum_pg_publication_pubname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum(name));
	sluice_catalog_begin(&scan, PublicationRelationId, PublicationNameIndexId, reader->snapshot,
						 1, &key);
	if (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		Form_pg_publication form = (Form_pg_publication) GETSTRUCT(tuple);

		publication = palloc0(sizeof(SluicePublication));
		publication->oid = form->oid;
		publication->name = pstrdup(name);
		publication->all_tables = form->puballtables;
		publication->via_root = form->pubviaroot;
		publication->actions = (form->pubinsert ? SLUICE_PUBLISH_INSERT : 0) |
			(form->pubupdate ? SLUICE_PUBLISH_UPDATE : 0) |
			(form->pubdelete ? SLUICE_PUBLISH_DELETE : 0) |
			(form->pubtruncate ? SLUICE_PUBLISH_TRUNCATE : 0);
	}
	sluice_catalog_end(&scan);
	if (publication == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("publication \"%s\" does not exist", name),
				 errhint("Create it again, or give the shard other publications.")));
	return publication;
}

static void
load_namespaces(SluiceSchemaReader *reader)
{
	SluiceCatalogScan scan;
	HeapTuple	tuple;
	ListCell   *cell;

	sluice_catalog_begin(&scan, PublicationNamespaceRelationId, InvalidOid, reader->snapshot,
						 0, NULL);
	while (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		Form_pg_publication_namespace form = (Form_pg_publication_namespace) GETSTRUCT(tuple);

		foreach(cell, reader->publications)
		{
			SluicePublication *publication = lfirst(cell);

			if (publication->oid == form->pnpubid)
				publication->namespaces = lappend_oid(publication->namespaces, form->pnnspid);
		}
	}
	sluice_catalog_end(&scan);
}

/* A copy that is not toasted, so that it outlives the scan. */
static Bitmapset *
column_list(Datum value)
{
	ArrayType  *array = (ArrayType *) PG_DETOAST_DATUM(value);
	int16	   *attnums = (int16 *) ARR_DATA_PTR(array);
	Bitmapset  *columns = NULL;

	for (int i = 0; i < ARR_DIMS(array)[0]; i++)
		columns = bms_add_member(columns, attnums[i]);
	return columns;
}

static int
load_published(SluiceSchemaReader *reader, SluicePublication *publication, int *capacity)
{
	SluiceCatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;

	sluice_catalog_key_oid(&key, Anum_pg_publication_rel_prpubid, publication->oid);
	sluice_catalog_begin(&scan, PublicationRelRelationId, PublicationRelPrpubidIndexId,
						 reader->snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		SluicePublishedRelation *entry;
		Datum		value;
		bool		isnull;

		if (reader->npublished == *capacity)
		{
			*capacity *= 2;
			reader->published = repalloc(reader->published,
										 *capacity * sizeof(SluicePublishedRelation));
		}
		entry = &reader->published[reader->npublished++];
		entry->relid = ((Form_pg_publication_rel) GETSTRUCT(tuple))->prrelid;
		entry->publication = publication;
		value = sluice_catalog_value(&scan, tuple, Anum_pg_publication_rel_prqual, &isnull);
		entry->filter = isnull ? NULL : TextDatumGetCString(value);
		value = sluice_catalog_value(&scan, tuple, Anum_pg_publication_rel_prattrs, &isnull);
		entry->listed = !isnull;
		entry->columns = isnull ? NULL : column_list(value);
	}
	sluice_catalog_end(&scan);
	return reader->npublished;
}

/* Runs in the reader's memory context. */
void
sluice_publication_load(SluiceSchemaReader *reader, List *names)
{
	int			capacity = 64;
	ListCell   *cell;

	foreach(cell, names)
		reader->publications = lappend(reader->publications,
									   load_publication(reader, lfirst(cell)));
	load_namespaces(reader);
	reader->published = palloc(capacity * sizeof(SluicePublishedRelation));
	foreach(cell, reader->publications)
		load_published(reader, lfirst(cell), &capacity);
	qsort(reader->published, reader->npublished, sizeof(SluicePublishedRelation),
		  compare_published);
}

const SluicePublishedRelation *
sluice_publication_entry(SluiceSchemaReader *reader, const SluicePublication *publication,
						 Oid relid)
{
	int			low = 0;
	int			high = reader->npublished;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (reader->published[middle].relid < relid)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < reader->npublished && reader->published[low].relid == relid; low++)
		if (reader->published[low].publication == publication)
			return &reader->published[low];
	return NULL;
}

bool
sluice_publication_candidate(SluiceSchemaReader *reader, const SluiceRelationFacts *relation)
{
	const SluiceNamespaceFacts *namespace;

	if ((relation->kind != RELKIND_RELATION && relation->kind != RELKIND_PARTITIONED_TABLE) ||
		relation->persistence != RELPERSISTENCE_PERMANENT ||
		relation->oid < FirstNormalObjectId)
		return false;
	namespace = sluice_catalog_namespace(reader, relation->namespace);
	return namespace != NULL && !namespace->excluded;
}

/* Nearest first. */
static List *
ancestors_of(SluiceSchemaReader *reader, const SluiceRelationFacts *relation)
{
	List	   *ancestors = NIL;

	while (relation != NULL && relation->partition)
	{
		Oid			parent = sluice_catalog_parent(relation->oid, reader->snapshot);

		if (!OidIsValid(parent))
			break;
		ancestors = lappend_oid(ancestors, parent);
		relation = sluice_catalog_relation(reader, parent);
	}
	return ancestors;
}

/* Named by the publication, by its table list or its schemas. */
static bool
names(SluiceSchemaReader *reader, const SluicePublication *publication,
	  const SluiceRelationFacts *relation)
{
	return sluice_publication_entry(reader, publication, relation->oid) != NULL ||
		list_member_oid(publication->namespaces, relation->namespace);
}

/*
 * Under which relation the publication has the relation, and how many levels
 * above it that is.
 */
static Oid
publishes(SluiceSchemaReader *reader, const SluicePublication *publication,
		  const SluiceRelationFacts *relation, List *ancestors, int *level)
{
	Oid			topmost = InvalidOid;

	*level = 0;
	if (publication->all_tables)
	{
		if (!publication->via_root || ancestors == NIL)
			return relation->oid;
		*level = list_length(ancestors);
		return llast_oid(ancestors);
	}
	for (int i = 0; i < list_length(ancestors); i++)
	{
		const SluiceRelationFacts *ancestor;

		ancestor = sluice_catalog_relation(reader, list_nth_oid(ancestors, i));
		if (ancestor != NULL && names(reader, publication, ancestor))
		{
			topmost = ancestor->oid;
			*level = i + 1;
		}
	}
	if (OidIsValid(topmost) && publication->via_root)
		return topmost;
	*level = 0;
	return OidIsValid(topmost) || names(reader, publication, relation) ? relation->oid : InvalidOid;
}

Oid
sluice_publication_publish_as(SluiceSchemaReader *reader, const SluiceRelationFacts *relation,
							  List **publications)
{
	List	   *ancestors = ancestors_of(reader, relation);
	Oid			result = InvalidOid;
	int			result_level = 0;
	ListCell   *cell;

	*publications = NIL;
	foreach(cell, reader->publications)
	{
		SluicePublication *publication = lfirst(cell);
		int			level;
		Oid			target = publishes(reader, publication, relation, ancestors, &level);

		/* a partitioned table has rows of its own only in the root's name */
		if (!OidIsValid(target) ||
			(relation->kind == RELKIND_PARTITIONED_TABLE && !publication->via_root) ||
			(OidIsValid(result) && level < result_level))
			continue;
		if (level > result_level)
			*publications = NIL;
		result = target;
		result_level = level;
		*publications = lappend(*publications, publication);
	}
	return result;
}
