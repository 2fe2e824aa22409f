/*
 * replica_table.c: the tables of a replica, in the file and in memory.
 *
 * In: specs as the server gives them.  Out: _sluice.tables, _sluice.names,
 * _zero.tableMetadata, _zero.column_metadata; SluiceReplicaTables by OID.
 * Runs in: the thread that owns the replica, inside its transaction.
 * Locks: none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "names.h"
#include "replica_meta.h"
#include "replica_setup.h"
#include "row.h"

struct SluiceTableSet
{
	SluiceReplicaTable **sorted;	/* by OID */
	size_t		count;
	size_t		capacity;
};

static void *
allocate(void *old, size_t size)
{
	return sluice_malloc_allocator.grow(sluice_malloc_allocator.context, old, size);
}

/* ---- the set ---- */

/* Where oid is, or would be put. */
static size_t
position_of(const struct SluiceTableSet *set, uint32_t oid)
{
	size_t		low = 0;
	size_t		high = set->count;

	while (low < high)
	{
		size_t		middle = (low + high) / 2;

		if (set->sorted[middle]->spec.oid < oid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

SluiceReplicaTable *
sluice_replica_find(const SluiceReplica *replica, uint32_t oid)
{
	const struct SluiceTableSet *set = replica->tables;
	size_t		at;

	if (set == NULL)
		return NULL;
	at = position_of(set, oid);
	return at < set->count && set->sorted[at]->spec.oid == oid ? set->sorted[at] : NULL;
}

size_t
sluice_replica_count(const SluiceReplica *replica)
{
	return replica->tables == NULL ? 0 : replica->tables->count;
}

SluiceReplicaTable *
sluice_replica_at(const SluiceReplica *replica, size_t index)
{
	return replica->tables->sorted[index];
}

static void
set_add(SluiceReplica *replica, SluiceReplicaTable *table)
{
	struct SluiceTableSet *set = replica->tables;
	size_t		at;

	if (set == NULL)
	{
		set = allocate(NULL, sizeof(*set));
		memset(set, 0, sizeof(*set));
		replica->tables = set;
	}
	if (set->count == set->capacity)
	{
		set->capacity = set->capacity == 0 ? 64 : set->capacity * 2;
		set->sorted = allocate(set->sorted, set->capacity * sizeof(*set->sorted));
	}
	at = position_of(set, table->spec.oid);
	memmove(set->sorted + at + 1, set->sorted + at, (set->count - at) * sizeof(*set->sorted));
	set->sorted[at] = table;
	set->count++;
}

static void
release_table(SluiceReplica *replica, SluiceReplicaTable *table)
{
	sluice_row_release_plans(replica, table);
	sluice_arena_release(&table->arena);
	free(table);
}

static void
set_remove(SluiceReplica *replica, SluiceReplicaTable *table)
{
	struct SluiceTableSet *set = replica->tables;
	size_t		at = position_of(set, table->spec.oid);

	set->count--;
	memmove(set->sorted + at, set->sorted + at + 1, (set->count - at) * sizeof(*set->sorted));
	release_table(replica, table);
}

void
sluice_replica_release_tables(SluiceReplica *replica)
{
	if (replica->tables == NULL)
		return;
	for (size_t i = 0; i < replica->tables->count; i++)
		release_table(replica, replica->tables->sorted[i]);
	free(replica->tables->sorted);
	free(replica->tables);
	replica->tables = NULL;
}

static SluiceReplicaTable *
new_table(void)
{
	SluiceReplicaTable *table = allocate(NULL, sizeof(*table));

	memset(table, 0, sizeof(*table));
	sluice_arena_init(&table->arena);
	return table;
}

/* What follows from the spec: names of columns, and the form of the key. */
static void
derive(SluiceReplicaTable *table)
{
	const SluiceTable *spec = &table->spec;
	SluiceName *names = sluice_arena_alloc(&table->arena,
										   (spec->ncolumns + 1u) * sizeof(*names));

	table->columns = sluice_arena_alloc(&table->arena, (spec->ncolumns + 1u) * sizeof(char *));
	for (int i = 0; i < spec->ncolumns; i++)
	{
		names[i].id = (uint32_t) spec->columns[i].attnum;
		names[i].plain = spec->columns[i].name;
	}
	/* columns come by attnum, and so do the names after it */
	sluice_names_assign(names, spec->ncolumns, true, &table->arena.allocator);
	for (int i = 0; i < spec->ncolumns; i++)
		table->columns[i] = names[i].name;
}

/* ---- reading ---- */

/* low, high, snapshot in columns 3, 4, 5 */
static bool
read_placed(SluiceReplicaTable *table, sqlite3_stmt *statement)
{
	const char *low = (const char *) sqlite3_column_text(statement, 3);
	SluicePlaced *placed;
	SluiceCursor cursor;

	if (sqlite3_column_type(statement, 5) == SQLITE_NULL)
		return true;
	placed = sluice_arena_alloc(&table->arena, sizeof(*placed));
	if (low == NULL || !sluice_watermark_parse(low, &placed->low))
		return false;
	placed->high = (uint64_t) sqlite3_column_int64(statement, 4);
	sluice_cursor_init(&cursor, sqlite3_column_blob(statement, 5),
					   (size_t) sqlite3_column_bytes(statement, 5));
	if (!sluice_placed_decode(&cursor, &table->arena.allocator, placed))
		return false;
	table->placed = placed;
	return true;
}

static bool
read_table(SluiceReplica *replica, sqlite3_stmt *statement)
{
	SluiceReplicaTable *table = new_table();
	const char *name = (const char *) sqlite3_column_text(statement, 0);
	const char *problem = (const char *) sqlite3_column_text(statement, 6);
	size_t		used;

	if (!sluice_table_decode(sqlite3_column_blob(statement, 1),
							 (size_t) sqlite3_column_bytes(statement, 1), &used,
							 &table->arena.allocator, &table->spec) ||
		!read_placed(table, statement))
	{
		release_table(replica, table);
		return false;
	}
	table->name = sluice_arena_strdup(&table->arena, name);
	table->copied = sqlite3_column_int(statement, 2) != 0;
	table->integer_key = sqlite3_column_int(statement, 7) != 0;
	if (problem != NULL)
		table->problem = sluice_arena_strdup(&table->arena, problem);
	derive(table);
	set_add(replica, table);
	return true;
}

SluiceOutcome
sluice_replica_read_tables(SluiceReplica *replica)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "SELECT name, spec, copied, low, high, snapshot, problem, integerKey"
		" FROM \"_sluice.tables\" ORDER BY oid");
	SluiceOutcome outcome = SLUICE_OK;
	int			rc;

	if (statement == NULL)
		return sluice_replica_failure(replica, sqlite3_errcode(replica->db), "read the tables");
	while (outcome == SLUICE_OK && (rc = sqlite3_step(statement)) != SQLITE_DONE)
		if (rc != SQLITE_ROW)
			outcome = sluice_replica_failure(replica, rc, "read the tables");
		else if (!read_table(replica, statement))
		{
			sluice_log(SLUICE_ERROR, "replica \"%s\" is damaged: what it notes of table \"%s\" "
					   "cannot be read", replica->path, sqlite3_column_text(statement, 0));
			outcome = SLUICE_DAMAGED;
		}
	sqlite3_reset(statement);
	return outcome;
}

SluiceOutcome
sluice_replica_reread_tables(SluiceReplica *replica)
{
	sluice_replica_release_tables(replica);
	return sluice_replica_read_tables(replica);
}

/* ---- writing ---- */

static SluiceOutcome
write_table(SluiceReplica *replica, const SluiceReplicaTable *table)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "INSERT OR REPLACE INTO \"_sluice.tables\"(oid, name, spec, fingerprint, copied,"
		" low, high, snapshot, problem, integerKey) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"
		" ?10)");
	char		low[SLUICE_WATERMARK_TEXT_MAX];
	SluiceBuffer spec;
	SluiceBuffer snapshot;
	SluiceOutcome outcome;

	replica->tables_changed = true;
	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sluice_buffer_init(&spec, &sluice_malloc_allocator);
	sluice_buffer_init(&snapshot, &sluice_malloc_allocator);
	sluice_table_encode(&spec, &table->spec);
	sqlite3_bind_int64(statement, 1, table->spec.oid);
	sqlite3_bind_text(statement, 2, table->name, -1, SQLITE_STATIC);
	sqlite3_bind_blob(statement, 3, spec.data, (int) spec.length, SQLITE_STATIC);
	sqlite3_bind_int64(statement, 4, table->spec.fingerprint);
	sqlite3_bind_int(statement, 5, table->copied);
	if (table->placed != NULL)
	{
		sluice_placed_encode(&snapshot, table->placed);
		sluice_watermark_format(table->placed->low, low);
		sqlite3_bind_text(statement, 6, low, -1, SQLITE_STATIC);
		sqlite3_bind_int64(statement, 7, (int64_t) table->placed->high);
		sqlite3_bind_blob(statement, 8, snapshot.data, (int) snapshot.length, SQLITE_STATIC);
	}
	sqlite3_bind_text(statement, 9, table->problem, -1, SQLITE_STATIC);
	sqlite3_bind_int(statement, 10, table->integer_key);
	outcome = sluice_replica_step(replica, statement, "note a table");
	sluice_buffer_release(&spec);
	sluice_buffer_release(&snapshot);
	return outcome;
}

static void
copy_placed(SluiceReplicaTable *table, const SluicePlaced *placed)
{
	SluicePlaced *kept = sluice_arena_alloc(&table->arena, sizeof(*kept));
	uint64_t   *xids = sluice_arena_alloc(&table->arena, placed->nxids * sizeof(uint64_t) + 1);

	*kept = *placed;
	for (uint32_t i = 0; i < placed->nxids; i++)
		xids[i] = placed->xids[i];
	kept->xids = xids;
	table->placed = kept;
}

SluiceOutcome
sluice_replica_note(SluiceReplica *replica, const SluiceTable *spec, const char *name,
					const SluicePlaced *placed, SluiceReplicaTable **noted)
{
	SluiceReplicaTable *old = sluice_replica_find(replica, spec->oid);
	SluiceReplicaTable *table = new_table();
	SluiceOutcome outcome = SLUICE_OK;

	sluice_table_copy(&table->spec, spec, &table->arena.allocator);
	if (table->spec.fingerprint == 0 && table->spec.ncolumns > 0)
		table->spec.fingerprint = sluice_table_fingerprint(&table->spec);
	table->name = sluice_arena_strdup(&table->arena, name);
	if (spec->problem != NULL)
		table->problem = sluice_arena_strdup(&table->arena, spec->problem);
	if (placed != NULL)
		copy_placed(table, placed);
	derive(table);
	if (old != NULL)
	{
		table->integer_key = old->integer_key;
		outcome = sluice_replica_forget(replica, old);
	}
	else
		table->integer_key = sluice_replica_wants_integer_key(&table->spec);
	if (outcome == SLUICE_OK)
		outcome = write_table(replica, table);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_write_meta(replica, table);
	if (outcome != SLUICE_OK)
	{
		release_table(replica, table);
		return outcome;
	}
	set_add(replica, table);
	if (noted != NULL)
		*noted = table;
	return SLUICE_OK;
}

SluiceOutcome
sluice_replica_set_copied(SluiceReplica *replica, SluiceReplicaTable *table)
{
	table->copied = true;
	return write_table(replica, table);
}

SluiceOutcome
sluice_replica_set_passed(SluiceReplica *replica, SluiceReplicaTable *table)
{
	table->placed = NULL;
	return write_table(replica, table);
}

SluiceOutcome
sluice_replica_set_problem(SluiceReplica *replica, SluiceReplicaTable *table, const char *problem)
{
	table->problem = problem == NULL || problem[0] == '\0' ? NULL :
		sluice_arena_strdup(&table->arena, problem);
	return write_table(replica, table);
}

SluiceOutcome
sluice_replica_forget(SluiceReplica *replica, SluiceReplicaTable *table)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "DELETE FROM \"_sluice.tables\" WHERE oid = ?1");
	SluiceOutcome outcome;

	replica->tables_changed = true;
	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_int64(statement, 1, table->spec.oid);
	outcome = sluice_replica_step(replica, statement, "forget a table");
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_erase_meta(replica, table);
	if (outcome == SLUICE_OK)
		set_remove(replica, table);
	return outcome;
}
