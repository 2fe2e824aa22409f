/*
 * json_schema.c: schema changes as JSON: specs of tables, columns, indexes.
 *
 * Each message carries its table's spec after the change; what it was before
 * comes from the tables known so far, which then move on.
 *
 * In: frames.  Out: JSON.  Runs in: whoever asks for the view.  Locks: none.
 */
#include "postgres.h"

#include "allocator.h"
#include "json.h"

static void
put_id(SluiceJson *json, const char *name, const SluiceTable *table)
{
	sluice_json_name(json, name);
	sluice_json_raw(json, "{");
	sluice_json_pair(json, "schema", table ? table->schema : NULL);
	sluice_json_pair(json, "name", table ? table->name : NULL);
	sluice_json_raw(json, "}");
}

static void
put_column_spec(SluiceJson *json, const SluiceColumn *column)
{
	sluice_json_raw(json, "{");
	sluice_json_integer(json, "pos", column->attnum);
	sluice_json_pair(json, "dataType", column->type);
	sluice_json_integer(json, "typeOID", column->type_oid);
	if (column->flags & SLUICE_COLUMN_ENUM)
		sluice_json_pair(json, column->flags & SLUICE_COLUMN_ARRAY ? "elemPgTypeClass" : "pgTypeClass", "e");
	else if (column->flags & SLUICE_COLUMN_ARRAY)
		sluice_json_pair(json, "elemPgTypeClass", "b");
	if (column->max_length >= 0)
		sluice_json_integer(json, "characterMaximumLength", column->max_length);
	sluice_json_bool(json, "notNull", (column->flags & SLUICE_COLUMN_NOT_NULL) != 0);
	if (column->default_sql != NULL)
		sluice_json_pair(json, "dflt", column->default_sql);
	sluice_json_raw(json, "}");
}

/* "name": {"name": …, "spec": …} */
static void
put_column(SluiceJson *json, const char *name, const SluiceColumn *column)
{
	sluice_json_name(json, name);
	if (column == NULL)
	{
		sluice_json_raw(json, "null");
		return;
	}
	sluice_json_raw(json, "{");
	sluice_json_pair(json, "name", column->name);
	sluice_json_name(json, "spec");
	put_column_spec(json, column);
	sluice_json_raw(json, "}");
}

static void
put_primary_key(SluiceJson *json, const SluiceTable *table)
{
	for (int i = 0; i < table->nindexes; i++)
	{
		const SluiceIndex *index = &table->indexes[i];

		if (!(index->flags & SLUICE_INDEX_PRIMARY))
			continue;
		sluice_json_name(json, "primaryKey");
		sluice_json_raw(json, "[");
		for (int j = 0; j < index->ncolumns; j++)
		{
			int			column = sluice_table_column_by_attnum(table, index->columns[j].attnum);

			if (j > 0)
				sluice_json_raw(json, ",");
			sluice_json_cstring(json, column >= 0 ? table->columns[column].name : NULL);
		}
		sluice_json_raw(json, "]");
	}
}

static void
put_table_spec(SluiceJson *json, const SluiceTable *table)
{
	char		identity[2] = {table->identity, '\0'};

	sluice_json_name(json, "spec");
	sluice_json_raw(json, "{");
	sluice_json_pair(json, "schema", table->schema);
	sluice_json_pair(json, "name", table->name);
	sluice_json_name(json, "columns");
	sluice_json_raw(json, "{");
	for (int i = 0; i < table->ncolumns; i++)
	{
		sluice_json_name(json, table->columns[i].name);
		put_column_spec(json, &table->columns[i]);
	}
	sluice_json_raw(json, "}");
	put_primary_key(json, table);
	sluice_json_integer(json, "oid", table->oid);
	sluice_json_integer(json, "schemaOID", table->schema_oid);
	sluice_json_pair(json, "replicaIdentity", identity);
	sluice_json_raw(json, "}");
}

/* "name": {"schemaOID", "relationOID", "rowKey": {column: {"attNum"}}} */
static void
put_metadata(SluiceJson *json, const char *name, const SluiceTable *table)
{
	sluice_json_name(json, name);
	if (table == NULL)
	{
		sluice_json_raw(json, "null");
		return;
	}
	sluice_json_raw(json, "{");
	sluice_json_integer(json, "schemaOID", table->schema_oid);
	sluice_json_integer(json, "relationOID", table->oid);
	sluice_json_name(json, "rowKey");
	sluice_json_raw(json, "{");
	for (int i = 0; i < table->nkey; i++)
	{
		const SluiceColumn *column = &table->columns[table->key[i]];

		sluice_json_name(json, column->name);
		sluice_json_raw(json, "{");
		sluice_json_integer(json, "attNum", column->attnum);
		sluice_json_raw(json, "}");
	}
	sluice_json_raw(json, "}}");
}

static void
put_backfill_id(SluiceJson *json, const char *name, int attnum)
{
	sluice_json_name(json, name);
	sluice_json_raw(json, "{");
	sluice_json_integer(json, "attNum", attnum);
	sluice_json_raw(json, "}");
}

static void
create_table(SluiceJson *json, const SluiceFrame *frame)
{
	SluiceCreateTable create;

	if (!sluice_wire_get_create_table(frame, &sluice_palloc_allocator, &create))
		sluice_json_damaged(json);
	sluice_json_open(json, "create-table");
	put_table_spec(json, &create.table);
	put_metadata(json, "metadata", &create.table);
	if (create.backfill != NULL)
	{
		sluice_json_name(json, "backfill");
		sluice_json_raw(json, "{");
		for (int i = 0; i < create.table.ncolumns; i++)
			if (create.backfill[i / 8] & (1 << (i % 8)))
				put_backfill_id(json, create.table.columns[i].name, create.table.columns[i].attnum);
		sluice_json_raw(json, "}");
	}
	sluice_json_set_table(json, &create.table);
}

static void
drop_table(SluiceJson *json, const SluiceFrame *frame)
{
	uint32		oid;

	if (!sluice_wire_get_drop_table(frame, &oid))
		sluice_json_damaged(json);
	sluice_json_open(json, "drop-table");
	put_id(json, "id", sluice_json_table(json, oid));
	sluice_json_integer(json, "relationOid", oid);
	hash_search(json->tables, &oid, HASH_REMOVE, NULL);
}

static void
table_change(SluiceJson *json, const SluiceFrame *frame)
{
	SluiceTableChange change;
	const SluiceTable *old;

	if (!sluice_wire_get_table_change(frame, &sluice_palloc_allocator, &change))
		sluice_json_damaged(json);
	old = sluice_json_table(json, change.table_oid);
	if (frame->tag == SLUICE_TAG_RENAME_TABLE)
	{
		sluice_json_open(json, "rename-table");
		put_id(json, "old", old);
		put_id(json, "new", &change.table);
	}
	else
	{
		sluice_json_open(json, "update-table-metadata");
		put_id(json, "table", &change.table);
		put_metadata(json, "old", old);
		put_metadata(json, "new", &change.table);
	}
	sluice_json_set_table(json, &change.table);
}

static const SluiceColumn *
find_column(const SluiceTable *table, int attnum)
{
	int			i = table ? sluice_table_column_by_attnum(table, attnum) : -1;

	return i >= 0 ? &table->columns[i] : NULL;
}

static void
column_change(SluiceJson *json, const SluiceFrame *frame)
{
	SluiceColumnChange change;
	const SluiceColumn *old;
	const SluiceColumn *new;

	if (!sluice_wire_get_column_change(frame, &sluice_palloc_allocator, &change))
		sluice_json_damaged(json);
	old = find_column(sluice_json_table(json, change.table.oid), change.attnum);
	new = find_column(&change.table, change.attnum);
	if (frame->tag == SLUICE_TAG_DROP_COLUMN)
	{
		sluice_json_open(json, "drop-column");
		put_id(json, "table", &change.table);
		sluice_json_pair(json, "column", old ? old->name : NULL);
	}
	else if (frame->tag == SLUICE_TAG_ADD_COLUMN)
	{
		sluice_json_open(json, "add-column");
		put_id(json, "table", &change.table);
		put_column(json, "column", new);
		put_metadata(json, "tableMetadata", &change.table);
	}
	else
	{
		sluice_json_open(json, "update-column");
		put_id(json, "table", &change.table);
		put_column(json, "old", old);
		put_column(json, "new", new);
	}
	if (change.backfill)
		put_backfill_id(json, "backfill", change.attnum);
	sluice_json_set_table(json, &change.table);
}

static void
put_index_spec(SluiceJson *json, const SluiceTable *table, const SluiceIndex *index)
{
	sluice_json_name(json, "spec");
	sluice_json_raw(json, "{");
	sluice_json_pair(json, "schema", table->schema);
	sluice_json_pair(json, "name", index->name);
	sluice_json_pair(json, "tableName", table->name);
	sluice_json_bool(json, "unique", (index->flags & SLUICE_INDEX_UNIQUE) != 0);
	sluice_json_bool(json, "isPrimaryKey", (index->flags & SLUICE_INDEX_PRIMARY) != 0);
	sluice_json_bool(json, "isReplicaIdentity", (index->flags & SLUICE_INDEX_IDENTITY) != 0);
	sluice_json_bool(json, "isImmediate", (index->flags & SLUICE_INDEX_DEFERRABLE) == 0);
	sluice_json_name(json, "columns");
	sluice_json_raw(json, "{");
	for (int i = 0; i < index->ncolumns; i++)
	{
		const SluiceColumn *column = find_column(table, index->columns[i].attnum);

		if (column != NULL)
			sluice_json_pair(json, column->name, index->columns[i].descending ? "DESC" : "ASC");
	}
	sluice_json_raw(json, "}}");
}

static void
index_change(SluiceJson *json, const SluiceFrame *frame)
{
	SluiceIndexChange change;

	if (!sluice_wire_get_index_change(frame, &sluice_palloc_allocator, &change))
		sluice_json_damaged(json);
	if (frame->tag == SLUICE_TAG_DROP_INDEX)
	{
		sluice_json_open(json, "drop-index");
		sluice_json_name(json, "id");
		sluice_json_raw(json, "{");
		sluice_json_pair(json, "schema", change.table.schema);
		sluice_json_pair(json, "name", change.name);
		sluice_json_raw(json, "}");
	}
	else
	{
		sluice_json_open(json, "create-index");
		for (int i = 0; i < change.table.nindexes; i++)
			if (change.table.indexes[i].oid == change.index_oid)
				put_index_spec(json, &change.table, &change.table.indexes[i]);
	}
	sluice_json_set_table(json, &change.table);
}

static void
table_problem(SluiceJson *json, const SluiceFrame *frame)
{
	SluiceTableProblem problem;

	if (!sluice_wire_get_table_problem(frame, &sluice_palloc_allocator, &problem))
		sluice_json_damaged(json);
	sluice_json_open(json, "table-problem");
	put_id(json, "table", sluice_json_table(json, problem.table_oid));
	sluice_json_integer(json, "relationOid", problem.table_oid);
	sluice_json_pair(json, "problem", problem.problem);
}

void
sluice_json_schema_frame(SluiceJson *json, const SluiceFrame *frame)
{
	switch (frame->tag)
	{
		case SLUICE_TAG_CREATE_TABLE:
			create_table(json, frame);
			break;
		case SLUICE_TAG_DROP_TABLE:
			drop_table(json, frame);
			break;
		case SLUICE_TAG_RENAME_TABLE:
		case SLUICE_TAG_TABLE_METADATA:
			table_change(json, frame);
			break;
		case SLUICE_TAG_ADD_COLUMN:
		case SLUICE_TAG_UPDATE_COLUMN:
		case SLUICE_TAG_DROP_COLUMN:
			column_change(json, frame);
			break;
		case SLUICE_TAG_CREATE_INDEX:
		case SLUICE_TAG_DROP_INDEX:
			index_change(json, frame);
			break;
		case SLUICE_TAG_TABLE_PROBLEM:
			table_problem(json, frame);
			break;
		default:
			sluice_json_damaged(json);
	}
}
