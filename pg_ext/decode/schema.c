/*
 * schema.c: the published schema of a set of publications.
 *
 * In: publication names, a snapshot.  Out: SluiceSchema, in the caller's
 * memory context.  The duties are split: schema_catalog.c scans,
 * schema_publication.c says what is published, schema_table.c and its
 * neighbours fill the spec of one table.
 * Runs in: the decoder (also in callbacks, under a historic snapshot), backends.
 * Locks: ACCESS SHARE on catalogs while they are scanned.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "schema_reader.h"

static HTAB *
facts_table(SluiceSchemaReader *reader, const char *name, Size entry)
{
	HASHCTL		control = {.keysize = sizeof(Oid), .entrysize = entry, .hcxt = reader->context};

	return hash_create(name, 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Leaves the reader's memory context as the current one. */
static SluiceSchemaReader *
open_reader(List *publications, Snapshot snapshot, const SluiceEncodeOptions *options)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "sluice schema reader",
												  ALLOCSET_DEFAULT_SIZES);
	SluiceSchemaReader *reader = MemoryContextAllocZero(context, sizeof(SluiceSchemaReader));

	/* one moment for all scans; inside decoding callbacks they have one anyway */
	if (snapshot == NULL && !HistoricSnapshotActive())
		snapshot = reader->registered = RegisterSnapshot(GetCatalogSnapshot(RelationRelationId));
	reader->snapshot = snapshot;
	reader->options = options;
	reader->context = context;
	reader->result = MemoryContextSwitchTo(context);
	reader->relations = facts_table(reader, "sluice relations", sizeof(SluiceRelationFacts));
	reader->types = facts_table(reader, "sluice types", sizeof(SluiceTypeFacts));
	reader->namespaces = facts_table(reader, "sluice schemas", sizeof(SluiceNamespaceFacts));
	sluice_publication_load(reader, publications);
	return reader;
}

static void
close_reader(SluiceSchemaReader *reader)
{
	if (reader->registered != NULL)
		UnregisterSnapshot(reader->registered);
	MemoryContextSwitchTo(reader->result);
	MemoryContextDelete(reader->context);
}

static int
compare_tables(const void *a, const void *b)
{
	uint32		x = ((const SluiceTable *) a)->oid;
	uint32		y = ((const SluiceTable *) b)->oid;

	return x < y ? -1 : x > y;
}

SluiceSchema *
sluice_schema_read(List *publications, Snapshot snapshot, const SluiceEncodeOptions *options)
{
	int			level = sluice_value_pin_settings();
	SluiceSchemaReader *reader = open_reader(publications, snapshot, options);
	SluiceSchema *schema = MemoryContextAllocZero(reader->result, sizeof(SluiceSchema));
	HASH_SEQ_STATUS status;
	SluiceRelationFacts *relation;
	List	   *relations = NIL;
	SluiceTable *tables;
	ListCell   *cell;

	sluice_catalog_relations(reader);
	/* the walk may not meet entries that it makes itself */
	hash_seq_init(&status, reader->relations);
	while ((relation = hash_seq_search(&status)) != NULL)
		relations = lappend(relations, relation);

	tables = MemoryContextAllocExtended(reader->result,
										Max(list_length(relations), 1) * sizeof(SluiceTable),
										MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	foreach(cell, relations)
	{
		List	   *by;

		relation = lfirst(cell);
		CHECK_FOR_INTERRUPTS();
		if (!sluice_publication_candidate(reader, relation) ||
			sluice_publication_publish_as(reader, relation, &by) != relation->oid)
			continue;
		sluice_schema_fill_table(reader, relation, by, &tables[schema->ntables++]);
	}
	qsort(tables, schema->ntables, sizeof(SluiceTable), compare_tables);
	schema->tables = tables;
	close_reader(reader);
	AtEOXact_GUC(true, level);
	return schema;
}

SluiceTable *
sluice_schema_read_table(Oid relid, List *publications, Snapshot snapshot,
						 const SluiceEncodeOptions *options)
{
	int			level = sluice_value_pin_settings();
	SluiceSchemaReader *reader = open_reader(publications, snapshot, options);
	const SluiceRelationFacts *relation = sluice_catalog_relation(reader, relid);
	SluiceTable *table = NULL;
	List	   *by;

	if (relation != NULL && sluice_publication_candidate(reader, relation) &&
		sluice_publication_publish_as(reader, relation, &by) == relid)
	{
		table = MemoryContextAllocZero(reader->result, sizeof(SluiceTable));
		sluice_schema_fill_table(reader, relation, by, table);
	}
	close_reader(reader);
	AtEOXact_GUC(true, level);
	return table;
}

Oid
sluice_schema_publish_as(const SluiceSchema *schema, Oid relid)
{
	Oid			topmost = sluice_schema_find(schema, relid) != NULL ? relid : InvalidOid;
	Oid			ancestor = relid;

	/* syscache, under the same snapshot as the scan */
	while (get_rel_relispartition(ancestor))
	{
		const SluiceTable *table;

		ancestor = sluice_catalog_parent(ancestor, NULL);
		if (!OidIsValid(ancestor))
			break;
		table = sluice_schema_find(schema, ancestor);
		if (table != NULL && (table->flags & SLUICE_TABLE_PARTITIONED) != 0)
			topmost = ancestor;
	}
	return topmost;
}

bool
sluice_schema_keyless(const SluiceTable *table)
{
	return table->nkey == 0 && table->identity != 'f';
}
