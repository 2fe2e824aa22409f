/*
 * rename.c: see rename.h.
 *
 * Names can change places: whatever is renamed goes by a name that nothing
 * else can have.
 *
 * In: specs.  Out: ALTER TABLE … RENAME; notes.
 * Runs in: the thread that owns the replica, inside its transaction.
 * Locks: none.
 */
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "rename.h"
#include "replica_meta.h"
#include "row.h"
#include "schema.h"
#include "sql_text.h"

static SluiceOutcome
rename_table(SluiceReplica *replica, const char *from, const char *to)
{
	SluiceBuffer sql;

	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	sluice_sql_put(&sql, "ALTER TABLE ");
	sluice_names_quote(&sql, from);
	sluice_sql_put(&sql, " RENAME TO ");
	sluice_names_quote(&sql, to);
	return sluice_sql_alter(replica, &sql, "rename a table");
}

static SluiceOutcome
rename_column(SluiceReplica *replica, const char *table, const char *from, const char *to)
{
	SluiceBuffer sql;

	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	sluice_sql_put(&sql, "ALTER TABLE ");
	sluice_names_quote(&sql, table);
	sluice_sql_put(&sql, " RENAME COLUMN ");
	sluice_names_quote(&sql, from);
	sluice_sql_put(&sql, " TO ");
	sluice_names_quote(&sql, to);
	return sluice_sql_alter(replica, &sql, "rename a column");
}

/* What is known of the table apart from its spec stays. */
static SluiceOutcome
note(SluiceReplica *replica, SluiceReplicaTable *table, const SluiceTable *spec, const char *name)
{
	bool		copied = table->copied;
	SluiceReplicaTable *noted;
	SluiceOutcome outcome = sluice_replica_note(replica, spec, name, table->placed, &noted);

	if (outcome == SLUICE_OK && copied)
		outcome = sluice_replica_set_copied(replica, noted);
	return outcome;
}

/* ---- tables ---- */

typedef struct Moved
{
	uint32_t	oid;
	const SluiceTable *spec;
	const char *name;
} Moved;

static bool
has_no_table(const SluiceReplicaTable *table)
{
	return table->problem != NULL && strcmp(table->problem, SLUICE_PROBLEM_GONE) == 0;
}

/* To a name of its own, which its note has in memory from here on. */
static SluiceOutcome
set_aside(SluiceReplica *replica, SluiceReplicaTable *table)
{
	char		aside[64];
	SluiceOutcome outcome = SLUICE_OK;

	snprintf(aside, sizeof(aside), "_sluice.moved.%u", table->spec.oid);
	sluice_row_release_plans(replica, table);
	if (!has_no_table(table))
		outcome = rename_table(replica, table->name, aside);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_erase_meta(replica, table);
	table->name = sluice_arena_strdup(&table->arena, aside);
	return outcome;
}

static SluiceOutcome
put_back(SluiceReplica *replica, const Moved *moved, const SluiceAllocator *allocator)
{
	SluiceReplicaTable *table = sluice_replica_find(replica, moved->oid);
	SluiceTable spec;
	SluiceOutcome outcome = SLUICE_OK;

	if (!has_no_table(table))
		outcome = rename_table(replica, table->name, moved->name);
	if (outcome != SLUICE_OK)
		return outcome;
	/* the one it has goes with the old note */
	sluice_table_copy(&spec, moved->spec, allocator);
	return note(replica, table, &spec, moved->name);
}

/* All tables as they will be; how many. */
static size_t
gather(SluiceReplica *replica, const SluiceTable *changed, uint32_t gone, SluiceTable *specs)
{
	size_t		n = 0;
	bool		found = changed == NULL;

	for (size_t i = 0; i < sluice_replica_count(replica); i++)
	{
		const SluiceTable *spec = &sluice_replica_at(replica, i)->spec;

		if (spec->oid == gone)
			continue;
		if (changed != NULL && spec->oid == changed->oid)
		{
			found = true;
			spec = changed;
		}
		specs[n++] = *spec;
	}
	if (!found)
		specs[n++] = *changed;
	return n;
}

SluiceOutcome
sluice_rename_tables(SluiceReplica *replica, const SluiceTable *changed, uint32_t gone,
					 const SluiceAllocator *allocator, const char **name)
{
	size_t		most = sluice_replica_count(replica) + 1;
	SluiceTable *specs = allocator->grow(allocator->context, NULL, most * sizeof(*specs));
	const char **names = allocator->grow(allocator->context, NULL, most * sizeof(*names));
	Moved	   *moved = allocator->grow(allocator->context, NULL, most * sizeof(*moved));
	size_t		n = gather(replica, changed, gone, specs);
	size_t		nmoved = 0;
	SluiceOutcome outcome = SLUICE_OK;

	sluice_schema_table_names(specs, n, names, allocator);
	for (size_t i = 0; i < n; i++)
	{
		const SluiceReplicaTable *table = sluice_replica_find(replica, specs[i].oid);
		bool		itself = changed != NULL && specs[i].oid == changed->oid;

		if (itself && name != NULL)
			*name = names[i];
		if (table == NULL || (!itself && strcmp(table->name, names[i]) == 0))
			continue;
		moved[nmoved++] = (Moved) {specs[i].oid, itself ? changed : &specs[i], names[i]};
	}
	for (size_t i = 0; i < nmoved && outcome == SLUICE_OK; i++)
		outcome = set_aside(replica, sluice_replica_find(replica, moved[i].oid));
	for (size_t i = 0; i < nmoved && outcome == SLUICE_OK; i++)
		outcome = put_back(replica, &moved[i], allocator);
	return outcome;
}

/* ---- columns ---- */

typedef struct MovedColumn
{
	const char *from;
	const char *to;
	char		aside[40];
} MovedColumn;

/* Those that are in both and have another name; in the arena. */
static int
moved_columns(const SluiceReplicaTable *table, const SluiceTable *spec, SluiceArena *arena,
			  MovedColumn **moved)
{
	SluiceName *names = sluice_arena_alloc(arena, (spec->ncolumns + 1u) * sizeof(*names));
	int			n = 0;

	*moved = sluice_arena_alloc(arena, (spec->ncolumns + 1u) * sizeof(**moved));
	for (int i = 0; i < spec->ncolumns; i++)
	{
		names[i].id = (uint32_t) spec->columns[i].attnum;
		names[i].plain = spec->columns[i].name;
	}
	sluice_names_assign(names, spec->ncolumns, true, &arena->allocator);
	for (int i = 0; i < spec->ncolumns; i++)
	{
		int			at = sluice_table_column_by_attnum(&table->spec, spec->columns[i].attnum);
		MovedColumn *column = &(*moved)[n];

		if (at < 0 || strcmp(table->columns[at], names[i].name) == 0)
			continue;
		column->from = sluice_arena_strdup(arena, table->columns[at]);
		column->to = names[i].name;
		snprintf(column->aside, sizeof(column->aside), "_sluice.moved.%d", spec->columns[i].attnum);
		n++;
	}
	return n;
}

SluiceOutcome
sluice_rename_columns(SluiceReplica *replica, SluiceReplicaTable *table, const SluiceTable *spec)
{
	SluiceOutcome outcome = SLUICE_OK;
	MovedColumn *moved;
	SluiceArena arena;
	const char *name;
	int			n;

	sluice_arena_init(&arena);
	name = sluice_arena_strdup(&arena, table->name);
	n = moved_columns(table, spec, &arena, &moved);
	sluice_row_release_plans(replica, table);
	for (int i = 0; i < n && outcome == SLUICE_OK; i++)
		outcome = rename_column(replica, name, moved[i].from, moved[i].aside);
	for (int i = 0; i < n && outcome == SLUICE_OK; i++)
		outcome = rename_column(replica, name, moved[i].aside, moved[i].to);
	if (outcome == SLUICE_OK)
		outcome = note(replica, table, spec, name);
	sluice_arena_release(&arena);
	return outcome;
}

/* ---- indexes ---- */

SluiceOutcome
sluice_rename_drop_index(SluiceReplica *replica, uint32_t oid)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "SELECT sqliteName FROM \"_sluice.names\" WHERE kind = 'index' AND oid = ?1");
	SluiceBuffer sql;
	int			rc;

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	sqlite3_bind_int64(statement, 1, oid);
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
	{
		sluice_sql_put(&sql, "DROP INDEX IF EXISTS ");
		sluice_names_quote(&sql, (const char *) sqlite3_column_text(statement, 0));
	}
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	if (rc == SQLITE_DONE)
		return SLUICE_OK;
	if (rc != SQLITE_ROW)
	{
		sluice_buffer_release(&sql);
		return sluice_replica_failure(replica, rc, "read the name of an index");
	}
	rc = sluice_sql_run(replica, &sql, "drop an index");
	if (rc != SLUICE_OK)
		return (SluiceOutcome) rc;
	statement = sluice_replica_statement(
		replica, "DELETE FROM \"_sluice.names\" WHERE kind = 'index' AND oid = ?1");
	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_int64(statement, 1, oid);
	return sluice_replica_step(replica, statement, "forget the name of an index");
}
