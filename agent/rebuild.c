/*
 * rebuild.c: see rebuild.h.
 *
 * In: a table, its new spec.  Out: the table under its old name, its indexes.
 * Runs in: the thread that owns the replica, inside its transaction.
 * Locks: none.
 */
#include <string.h>

#include "rebuild.h"
#include "rename.h"
#include "replica_meta.h"
#include "row.h"
#include "schema.h"
#include "sql_text.h"

#define NEW_TABLE "_sluice.rebuilt"

/* The columns that stay, by their old names; `to`: as the new table calls them. */
static void
put_columns(SluiceBuffer *sql, const SluiceReplicaTable *table, const SluiceTable *spec)
{
	for (int i = 0; i < spec->ncolumns; i++)
	{
		int			at = sluice_table_column_by_attnum(&table->spec, spec->columns[i].attnum);

		if (at < 0)
			continue;
		sluice_names_quote(sql, table->columns[at]);
		sluice_sql_put(sql, ", ");
	}
	sluice_sql_put(sql, "\"_0_version\"");
}

/* Under the old names of its columns: they are changed afterwards. */
static SluiceOutcome
make_table(SluiceReplica *replica, const SluiceReplicaTable *table, const SluiceTable *spec,
		   bool integer_key)
{
	SluiceBuffer sql;
	SluiceOutcome outcome;

	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	sluice_sql_put(&sql, "CREATE TABLE \"" NEW_TABLE "\"(");
	for (int i = 0; i < spec->ncolumns; i++)
	{
		int			at = sluice_table_column_by_attnum(&table->spec, spec->columns[i].attnum);

		if (at < 0)
			continue;
		sluice_names_quote(&sql, table->columns[at]);
		sluice_sql_put(&sql, " ");
		sluice_sql_put(&sql, sluice_schema_declared(spec->columns[i].storage));
		sluice_sql_put(&sql, integer_key && spec->key[0] == i ? " PRIMARY KEY, " : ", ");
	}
	sluice_sql_put(&sql, "\"_0_version\" TEXT NOT NULL) STRICT");
	outcome = sluice_sql_run(replica, &sql, "create a table");
	if (outcome != SLUICE_OK)
		return outcome;

	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	sluice_sql_put(&sql, "INSERT INTO \"" NEW_TABLE "\"(");
	put_columns(&sql, table, spec);
	sluice_sql_put(&sql, ") SELECT ");
	put_columns(&sql, table, spec);
	sluice_sql_put(&sql, " FROM ");
	sluice_names_quote(&sql, table->name);
	return sluice_sql_run(replica, &sql, "copy a table's rows");
}

static SluiceOutcome
take_place(SluiceReplica *replica, const SluiceReplicaTable *table)
{
	SluiceBuffer sql;

	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	sluice_sql_put(&sql, "DROP TABLE ");
	sluice_names_quote(&sql, table->name);
	sluice_sql_put(&sql, "; ALTER TABLE \"" NEW_TABLE "\" RENAME TO ");
	sluice_names_quote(&sql, table->name);
	return sluice_sql_alter(replica, &sql, "replace a table");
}

SluiceOutcome
sluice_rebuild_table(SluiceReplica *replica, SluiceReplicaTable *table, const SluiceTable *spec)
{
	bool		integer_key = sluice_replica_wants_integer_key(spec);
	uint32_t	oid = spec->oid;
	SluiceOutcome outcome;

	sluice_row_release_plans(replica, table);
	outcome = make_table(replica, table, spec, integer_key);
	if (outcome == SLUICE_OK)
		outcome = take_place(replica, table);
	if (outcome == SLUICE_OK)
	{
		table->integer_key = integer_key;
		outcome = sluice_rename_columns(replica, table, spec);
	}
	if (outcome == SLUICE_OK)
		outcome = sluice_schema_create_indexes(replica, sluice_replica_find(replica, oid),
											   SLUICE_INDEXES_ALL);
	return outcome;
}
