/*
 * schema_table.c: the spec of one published table.
 *
 * In: a relation and the publications that publish it.  Out: a SluiceTable in
 * the reader's result memory; what keeps it from being followed is told in
 * its problem, with what to do.
 * Runs in: the decoder's callbacks, backends.  Locks: see schema_catalog.c.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/indexing.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "schema_reader.h"

char *
sluice_schema_string(SluiceSchemaReader *reader, const char *string)
{
	return MemoryContextStrdup(reader->result, sluice_value_name(string));
}

void
sluice_schema_problem(SluiceSchemaReader *reader, SluiceTable *table, const char *format,...)
{
	StringInfoData message;
	int			needed;

	if (table->problem != NULL)
		return;
	initStringInfo(&message);
	do
	{
		va_list		args;

		va_start(args, format);
		needed = appendStringInfoVA(&message, format, args);
		va_end(args);
		if (needed > 0)
			enlargeStringInfo(&message, needed);
	} while (needed > 0);
	table->problem = sluice_schema_string(reader, message.data);
}

SluiceColumnDraft *
sluice_schema_columns(SluiceSchemaReader *reader, Oid relid, int *ncolumns)
{
	SluiceColumnDraft *columns = palloc(MaxHeapAttributeNumber * sizeof(SluiceColumnDraft));
	SluiceCatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;

	*ncolumns = 0;
	sluice_catalog_key_oid(&key, Anum_pg_attribute_attrelid, relid);
	sluice_catalog_begin(&scan, AttributeRelationId, AttributeRelidNumIndexId, reader->snapshot,
						 1, &key);
	while (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		Form_pg_attribute form = (Form_pg_attribute) GETSTRUCT(tuple);
		SluiceColumnDraft *column;

		/* a virtual generated column has no value in a tuple */
		if (form->attnum <= 0 || form->attisdropped || form->attgenerated == 'v')
			continue;
		column = &columns[(*ncolumns)++];
		column->attnum = form->attnum;
		column->not_null = form->attnotnull;
		column->generated = form->attgenerated != '\0';
		column->has_default = form->atthasdef && !column->generated;
		column->type = form->atttypid;
		column->typmod = form->atttypmod;
		column->name = form->attname;
	}
	sluice_catalog_end(&scan);
	return columns;
}

/*
 * Published attnums; NULL: all.  A list of all columns but generated ones is
 * the same as none to PostgreSQL, so those do not make lists differ.
 */
static Bitmapset *
published_columns(SluiceSchemaReader *reader, List *publications, SluiceTable *table,
				  const SluiceColumnDraft *drafts, int ndrafts)
{
	Bitmapset  *all = NULL;
	Bitmapset  *generated = NULL;
	Bitmapset  *result = NULL;
	ListCell   *cell;

	for (int i = 0; i < ndrafts; i++)
	{
		all = bms_add_member(all, drafts[i].attnum);
		if (drafts[i].generated)
			generated = bms_add_member(generated, drafts[i].attnum);
	}
	foreach(cell, publications)
	{
		const SluicePublishedRelation *entry;
		const Bitmapset *columns;

		entry = sluice_publication_entry(reader, lfirst(cell), table->oid);
		columns = entry != NULL && entry->listed ? entry->columns : all;
		if (cell != list_head(publications) &&
			!bms_equal(bms_difference(columns, generated), bms_difference(result, generated)))
			sluice_schema_problem(reader, table,
								  "its publications have different column lists for it: "
								  "give it the same list in all of them");
		result = bms_union(result, columns);
	}
	return result;
}

static const char *
type_name(SluiceSchemaReader *reader, const SluiceTypeFacts *type)
{
	if (!type->array)
		return sluice_schema_string(reader, NameStr(type->name));
	return sluice_schema_string(reader, psprintf("%s[]",
												 NameStr(sluice_catalog_type(reader, type->element)->name)));
}

static void
fill_column(SluiceSchemaReader *reader, Oid relid, const SluiceColumnDraft *draft,
			SluiceColumn *column)
{
	const SluiceTypeFacts *type = sluice_catalog_type(reader, draft->type);
	const SluiceTypeFacts *base = type;
	int32		typmod = draft->typmod;

	while (base->typtype == TYPTYPE_DOMAIN)
	{
		if (typmod < 0)
			typmod = base->base_typmod;
		base = sluice_catalog_type(reader, base->base);
	}
	column->attnum = draft->attnum;
	column->flags = (draft->not_null ? SLUICE_COLUMN_NOT_NULL : 0) |
		(base->typtype == TYPTYPE_ENUM ? SLUICE_COLUMN_ENUM : 0) |
		(base->array ? SLUICE_COLUMN_ARRAY : 0) |
		(draft->generated ? SLUICE_COLUMN_GENERATED : 0);
	column->storage = sluice_value_storage_of_base(base->oid, reader->options);
	column->type_oid = draft->type;
	column->typmod = draft->typmod;
	column->max_length = -1;
	if ((base->oid == VARCHAROID || base->oid == BPCHAROID) && typmod >= (int32) VARHDRSZ)
		column->max_length = typmod - VARHDRSZ;
	column->name = sluice_schema_string(reader, NameStr(draft->name));
	column->type = type_name(reader, type);
	column->default_sql = draft->has_default ?
		sluice_schema_default(reader, relid, draft->attnum) : NULL;
}

void
sluice_schema_fill_table(SluiceSchemaReader *reader, const SluiceRelationFacts *relation,
						 List *publications, SluiceTable *table)
{
	int			ndrafts;
	SluiceColumnDraft *drafts = sluice_schema_columns(reader, relation->oid, &ndrafts);
	SluiceColumn *columns;
	Bitmapset  *published;

	table->oid = relation->oid;
	table->schema_oid = relation->namespace;
	table->flags = relation->kind == RELKIND_PARTITIONED_TABLE ? SLUICE_TABLE_PARTITIONED : 0;
	table->identity = relation->identity;
	table->schema = sluice_schema_string(reader,
										 NameStr(sluice_catalog_namespace(reader, relation->namespace)->name));
	table->name = sluice_schema_string(reader, NameStr(relation->name));

	sluice_schema_fill_filter(reader, relation, publications, table);
	published = published_columns(reader, publications, table, drafts, ndrafts);
	columns = MemoryContextAllocZero(reader->result, Max(ndrafts, 1) * sizeof(SluiceColumn));
	for (int i = 0; i < ndrafts; i++)
		if (bms_is_member(drafts[i].attnum, published))
			fill_column(reader, relation->oid, &drafts[i], &columns[table->ncolumns++]);
	table->columns = columns;
	pfree(drafts);

	sluice_schema_fill_indexes(reader, table);
	if ((table->flags & SLUICE_TABLE_PARTITIONED) != 0)
		sluice_schema_check_leaves(reader, table);
	table->fingerprint = sluice_table_fingerprint(table);
}
