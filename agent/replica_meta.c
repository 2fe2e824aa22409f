/*
 * replica_meta.c: what the replica tells its readers about a table.
 *
 * In: a table as noted.  Out: rows of _zero.tableMetadata,
 * _zero.column_metadata and _sluice.names.
 * Runs in: the thread that owns the replica, inside its transaction.
 * Locks: none.
 */
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "log.h"
#include "replica_meta.h"

bool
sluice_replica_key_is_late(const SluiceTable *spec)
{
	bool		late = false;

	for (int i = 0; i < spec->nindexes; i++)
	{
		const SluiceIndex *index = &spec->indexes[i];
		int			same = 0;

		if (index->ncolumns != spec->nkey || (index->flags & SLUICE_INDEX_UNIQUE) == 0)
			continue;
		for (int c = 0; c < index->ncolumns; c++)
			for (int k = 0; k < spec->nkey; k++)
				same += spec->columns[spec->key[k]].attnum == index->columns[c].attnum;
		if (same != spec->nkey)
			continue;
		if ((index->flags & SLUICE_INDEX_DEFERRABLE) == 0)
			return false;
		late = true;
	}
	return late;
}

bool
sluice_replica_wants_integer_key(const SluiceTable *spec)
{
	return spec->nkey == 1 && spec->columns[spec->key[0]].storage == SLUICE_STORAGE_INTEGER &&
		(spec->columns[spec->key[0]].flags & SLUICE_COLUMN_NOT_NULL) != 0 &&
		!sluice_replica_key_is_late(spec);
}

SluiceOutcome
sluice_replica_write_name(SluiceReplica *replica, const char *kind, uint32_t oid, int attnum,
						  const char *schema, const char *name, const char *sqlite_name)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "INSERT OR REPLACE INTO \"_sluice.names\"(kind, oid, attnum, \"schema\", name,"
		" sqliteName) VALUES(?1, ?2, ?3, ?4, ?5, ?6)");

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_text(statement, 1, kind, -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, 2, oid);
	sqlite3_bind_int(statement, 3, attnum);
	sqlite3_bind_text(statement, 4, schema, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 5, name, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 6, sqlite_name, -1, SQLITE_STATIC);
	return sluice_replica_step(replica, statement, "note a name");
}

/* {"schemaOID":…,"relationOID":…,"rowKey":{"col":{"attNum":1}}} */
static void
put_metadata(SluiceBuffer *out, const SluiceTable *spec)
{
	char		number[64];
	int			n;

	n = snprintf(number, sizeof(number), "{\"schemaOID\":%u,\"relationOID\":%u,\"rowKey\":{",
				 spec->schema_oid, spec->oid);
	sluice_buffer_append(out, number, (size_t) n);
	for (int i = 0; i < spec->nkey; i++)
	{
		const SluiceColumn *column = &spec->columns[spec->key[i]];

		if (i > 0)
			sluice_buffer_append(out, ",", 1);
		sluice_json_string(out, column->name, strlen(column->name));
		n = snprintf(number, sizeof(number), ":{\"attNum\":%d}", column->attnum);
		sluice_buffer_append(out, number, (size_t) n);
	}
	sluice_buffer_append(out, "}}", 2);
}

static SluiceOutcome
write_table_row(SluiceReplica *replica, const SluiceTable *spec)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "INSERT INTO \"_zero.tableMetadata\"(\"schema\", \"table\", upstreamMetadata)"
		" VALUES(?1, ?2, ?3) ON CONFLICT DO UPDATE SET upstreamMetadata = ?3");
	SluiceBuffer metadata;
	SluiceOutcome outcome;

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sluice_buffer_init(&metadata, &sluice_malloc_allocator);
	put_metadata(&metadata, spec);
	sqlite3_bind_text(statement, 1, spec->schema, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, spec->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 3, metadata.data, (int) metadata.length, SQLITE_STATIC);
	outcome = sluice_replica_step(replica, statement, "note a table");
	sluice_buffer_release(&metadata);
	return outcome;
}

static SluiceOutcome
write_column_row(SluiceReplica *replica, const SluiceReplicaTable *table, int i)
{
	const SluiceColumn *column = &table->spec.columns[i];
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "INSERT OR REPLACE INTO \"_zero.column_metadata\"(table_name, column_name,"
		" upstream_type, is_not_null, is_enum, is_array, character_max_length)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)");

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_text(statement, 1, table->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, table->columns[i], -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 3, column->type, -1, SQLITE_STATIC);
	sqlite3_bind_int(statement, 4, (column->flags & SLUICE_COLUMN_NOT_NULL) != 0);
	sqlite3_bind_int(statement, 5, (column->flags & SLUICE_COLUMN_ENUM) != 0);
	sqlite3_bind_int(statement, 6, (column->flags & SLUICE_COLUMN_ARRAY) != 0);
	if (column->max_length >= 0)
		sqlite3_bind_int(statement, 7, column->max_length);
	return sluice_replica_step(replica, statement, "note a column");
}

SluiceOutcome
sluice_replica_write_meta(SluiceReplica *replica, const SluiceReplicaTable *table)
{
	const SluiceTable *spec = &table->spec;
	SluiceOutcome outcome = write_table_row(replica, spec);

	if (outcome == SLUICE_OK)
		outcome = sluice_replica_write_name(replica, "table", spec->oid, 0, spec->schema,
											spec->name, table->name);
	for (int i = 0; outcome == SLUICE_OK && i < spec->ncolumns; i++)
	{
		outcome = write_column_row(replica, table, i);
		/* a column's name is noted only where it is not the plain one */
		if (outcome == SLUICE_OK && strcmp(table->columns[i], spec->columns[i].name) != 0)
			outcome = sluice_replica_write_name(replica, "column", spec->oid,
												spec->columns[i].attnum, spec->schema,
												spec->columns[i].name, table->columns[i]);
	}
	return outcome;
}

SluiceOutcome
sluice_replica_bump(SluiceReplica *replica, const SluiceReplicaTable *table, const char *version)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "UPDATE \"_zero.tableMetadata\" SET minRowVersion = ?3"
		" WHERE \"schema\" = ?1 AND \"table\" = ?2");

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_text(statement, 1, table->spec.schema, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, table->spec.name, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 3, version, -1, SQLITE_STATIC);
	return sluice_replica_step(replica, statement, "note a changed table");
}

static SluiceOutcome
delete_with(SluiceReplica *replica, sqlite3_stmt *statement, const char *a, const char *b)
{
	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_text(statement, 1, a, -1, SQLITE_STATIC);
	if (b != NULL)
		sqlite3_bind_text(statement, 2, b, -1, SQLITE_STATIC);
	return sluice_replica_step(replica, statement, "forget a table");
}

SluiceOutcome
sluice_replica_erase_meta(SluiceReplica *replica, const SluiceReplicaTable *table)
{
	sqlite3_stmt *statement;
	SluiceOutcome outcome;

	outcome = delete_with(replica, sluice_replica_statement(
							  replica, "DELETE FROM \"_zero.column_metadata\""
							  " WHERE table_name = ?1"), table->name, NULL);
	if (outcome == SLUICE_OK)
		outcome = delete_with(replica, sluice_replica_statement(
								  replica, "DELETE FROM \"_zero.tableMetadata\""
								  " WHERE \"schema\" = ?1 AND \"table\" = ?2"),
							  table->spec.schema, table->spec.name);
	statement = sluice_replica_statement(
		replica, "DELETE FROM \"_sluice.names\" WHERE oid = ?1 AND kind IN ('table', 'column')");
	if (outcome != SLUICE_OK || statement == NULL)
		return outcome == SLUICE_OK ? SLUICE_INAPPLICABLE : outcome;
	sqlite3_bind_int64(statement, 1, table->spec.oid);
	return sluice_replica_step(replica, statement, "forget a table");
}
