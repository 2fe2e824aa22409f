/*
 * verify_table.c: one published table against the file.
 *
 * In: rows as PostgreSQL prints them, rows of the file.  Out: suspects.
 * Runs in: sluice-agent verify.  Locks: a read transaction of SQLite for one
 * pass.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "names.h"
#include "verify_table.h"

#define STOP_EVERY 1000			/* rows, between looks at the stop wish */

typedef struct Scan
{
	SluiceVerifyServer *server;
	const SluiceVerifyTable *table;
	SluiceReplica *replica;
	const SluiceReplicaTable *held;
	SluiceVerifyPass *pass;
	sqlite3_stmt *lookup;		/* columns by key */
	sqlite3_stmt *mark;			/* notes a rowid as seen; NULL: not wanted */
	const char *rowid;			/* a name for it; NULL: all are columns */
	char	  **fields;
	size_t	   *sizes;
	SluiceValue *values;
	uint64_t	found;			/* rows of the server that the file has */
	uint64_t	bag;			/* sum of hashes, of tables without a key */
	SluiceArena arena;
} Scan;

void
sluice_verify_pass_init(SluiceVerifyPass *pass)
{
	memset(pass, 0, sizeof(*pass));
	sluice_arena_init(&pass->arena);
	pass->suspects = sluice_arena_alloc(&pass->arena,
										SLUICE_VERIFY_SUSPECTS * sizeof(SluiceVerifySuspect));
}

void
sluice_verify_pass_release(SluiceVerifyPass *pass)
{
	sluice_arena_release(&pass->arena);
}

static void
suspect(SluiceVerifyPass *pass, uint64_t hash, const char *text)
{
	pass->differences++;
	if (pass->nsuspects == SLUICE_VERIFY_SUSPECTS)
		return;
	pass->suspects[pass->nsuspects].hash = hash;
	pass->suspects[pass->nsuspects].text = sluice_arena_strdup(&pass->arena, text);
	pass->nsuspects++;
}

void
sluice_verify_pass_intersect(SluiceVerifyPass *pass, const SluiceVerifyPass *before)
{
	size_t		kept = 0;

	/* too many to be kept: not what a running change looks like */
	if (pass->differences > pass->nsuspects && before->differences > before->nsuspects)
		return;
	for (size_t i = 0; i < pass->nsuspects; i++)
	{
		for (size_t k = 0; k < before->nsuspects; k++)
		{
			if (before->suspects[k].hash == pass->suspects[i].hash)
			{
				pass->suspects[kept++] = pass->suspects[i];
				break;
			}
		}
	}
	pass->nsuspects = kept;
	pass->differences = kept;
}

bool
sluice_verify_table_columns(const SluiceVerifyTable *table, const SluiceReplicaTable *held,
							SluiceVerifyPass *pass)
{
	bool		same = table->ncolumns == held->spec.ncolumns;

	for (size_t i = 0; i < table->ncolumns && same; i++)
		same = table->columns[i].attnum == held->spec.columns[i].attnum &&
			strcmp(table->columns[i].name, held->spec.columns[i].name) == 0;
	if (!same)
		suspect(pass, 1, "its columns are not those that are published");
	return same;
}

/* ---- SQL of the file's side ---- */

static void
put(SluiceBuffer *sql, const char *text)
{
	sluice_buffer_append(sql, text, strlen(text));
}

/* A name of the rowid that no column hides; with one of our keys any will do. */
static const char *
name_rowid(const SluiceReplicaTable *held)
{
	static const char *const names[] = {"rowid", "_rowid_", "oid"};

	for (int i = 0; i < 3; i++)
	{
		bool		hidden = false;

		for (int k = 0; k < held->spec.ncolumns; k++)
			hidden |= sqlite3_stricmp(held->columns[k], names[i]) == 0;
		if (!hidden)
			return names[i];
	}
	return NULL;
}

static void
put_columns(SluiceBuffer *sql, const SluiceReplicaTable *held)
{
	for (int i = 0; i < held->spec.ncolumns; i++)
	{
		put(sql, i > 0 ? ", " : "");
		sluice_names_quote(sql, held->columns[i]);
	}
}

static SluiceOutcome
prepare(Scan *scan, SluiceBuffer *sql, sqlite3_stmt **statement)
{
	int			rc = sqlite3_prepare_v2(scan->replica->db, sql->data, (int) sql->length, statement,
										NULL);

	return rc == SQLITE_OK ? SLUICE_OK :
		sluice_replica_failure(scan->replica, rc, "read a table of the file");
}

static SluiceOutcome
prepare_lookup(Scan *scan)
{
	const SluiceReplicaTable *held = scan->held;
	SluiceBuffer sql;

	sluice_buffer_init(&sql, &scan->arena.allocator);
	put(&sql, "SELECT ");
	put_columns(&sql, held);
	if (scan->rowid != NULL)
	{
		put(&sql, ", ");
		put(&sql, scan->rowid);
	}
	put(&sql, " FROM ");
	sluice_names_quote(&sql, held->name);
	for (int i = 0; i < held->spec.nkey; i++)
	{
		put(&sql, i > 0 ? " AND " : " WHERE ");
		sluice_names_quote(&sql, held->columns[held->spec.key[i]]);
		put(&sql, " = ?");
	}
	return prepare(scan, &sql, &scan->lookup);
}

/* ---- rows of the server ---- */

/* Key and kind of difference, for people. */
static const char *
describe(Scan *scan, const SluiceValue *values, const char *what)
{
	const SluiceTable *spec = &scan->held->spec;
	SluiceBuffer text;
	char		number[40];

	sluice_buffer_init(&text, &scan->pass->arena.allocator);
	for (int i = 0; i < spec->nkey; i++)
	{
		const SluiceValue *value = &values[spec->key[i]];

		put(&text, i > 0 ? ", " : "");
		put(&text, spec->columns[spec->key[i]].name);
		put(&text, "=");
		if (value->class == SLUICE_INTEGER)
			snprintf(number, sizeof(number), "%lld", (long long) value->u.integer);
		else if (value->class == SLUICE_REAL)
			snprintf(number, sizeof(number), "%.17g", value->u.real);
		else if (value->class == SLUICE_TEXT)
			snprintf(number, sizeof(number), "%.*s", value->u.bytes.size > 36 ? 36 :
					 (int) value->u.bytes.size, value->u.bytes.data);
		else
			snprintf(number, sizeof(number), "(%s)", value->class == SLUICE_BLOB ? "bytes" : "null");
		put(&text, number);
	}
	put(&text, ": ");
	sluice_buffer_append(&text, what, strlen(what) + 1);
	return text.data;
}

static uint64_t
hash_row(const Scan *scan, const SluiceValue *values, uint64_t hash)
{
	for (size_t i = 0; i < scan->table->ncolumns; i++)
		hash = sluice_verify_hash(hash, &values[i]);
	return hash;
}

static void
differs(Scan *scan, size_t column)
{
	uint64_t	hash = hash_row(scan, scan->values, 2);
	const char *name = scan->table->columns[column].name;
	char		what[300];

	for (size_t i = 0; i < scan->table->ncolumns; i++)
	{
		SluiceValue held = sluice_verify_column(scan->lookup, (int) i);

		hash = sluice_verify_hash(hash, &held);
	}
	snprintf(what, sizeof(what), "column \"%.200s\" differs", name);
	suspect(scan->pass, hash, describe(scan, scan->values, what));
}

static SluiceOutcome
look_up(Scan *scan)
{
	const SluiceTable *spec = &scan->held->spec;
	SluiceOutcome outcome = SLUICE_OK;
	int			rc;

	for (int i = 0; i < spec->nkey; i++)
		sluice_verify_bind(scan->lookup, i + 1, &scan->values[spec->key[i]]);
	rc = sqlite3_step(scan->lookup);
	if (rc == SQLITE_ROW)
	{
		scan->found++;
		for (size_t i = 0; i < scan->table->ncolumns; i++)
		{
			if (!sluice_verify_same(&scan->values[i], scan->lookup, (int) i))
			{
				differs(scan, i);
				break;
			}
		}
		if (scan->mark != NULL)
		{
			sqlite3_bind_value(scan->mark, 1, sqlite3_column_value(scan->lookup, spec->ncolumns));
			sqlite3_step(scan->mark);
			sqlite3_reset(scan->mark);
		}
	}
	else if (rc == SQLITE_DONE)
		suspect(scan->pass, hash_row(scan, scan->values, 3),
				describe(scan, scan->values, "the file lacks the row"));
	else
		outcome = sluice_replica_failure(scan->replica, rc, "read a table of the file");
	sqlite3_reset(scan->lookup);
	return outcome;
}

static SluiceOutcome
take_row(Scan *scan)
{
	const SluiceVerifyTable *table = scan->table;

	for (size_t i = 0; i < table->ncolumns; i++)
	{
		if (!sluice_verify_expect(table->columns[i].kind, scan->fields[i], scan->sizes[i],
								  &scan->values[i]))
		{
			sluice_log(SLUICE_ERROR, "cannot understand what the server prints for column "
					   "\"%s\" of table \"%s\"", table->columns[i].name, table->name);
			return SLUICE_REFUSED;
		}
	}
	scan->pass->rows++;
	if (scan->held->spec.nkey > 0)
		return look_up(scan);
	scan->bag += hash_row(scan, scan->values, 4);
	return SLUICE_OK;
}

static SluiceOutcome
scan_server(Scan *scan)
{
	SluiceOutcome outcome = sluice_verify_server_select(scan->server, scan->table);
	char	   *line = NULL;
	bool		end = false;

	for (uint64_t n = 1; outcome == SLUICE_OK; n++)
	{
		outcome = sluice_verify_server_row(scan->server, scan->table, &line, scan->fields,
										   scan->sizes, &end);
		if (outcome != SLUICE_OK || end)
			break;
		outcome = take_row(scan);
		if (n % STOP_EVERY == 0 && scan->server->agent->stop)
			outcome = SLUICE_STOPPED;
	}
	if (line != NULL)
		PQfreemem(line);
	return outcome;
}

/* ---- rows of the file ---- */

static SluiceOutcome
count_held(Scan *scan, uint64_t *count)
{
	SluiceBuffer sql;
	sqlite3_stmt *statement;
	SluiceOutcome outcome;

	sluice_buffer_init(&sql, &scan->arena.allocator);
	put(&sql, "SELECT count(*) FROM ");
	sluice_names_quote(&sql, scan->held->name);
	outcome = prepare(scan, &sql, &statement);
	if (outcome != SLUICE_OK)
		return outcome;
	if (sqlite3_step(statement) == SQLITE_ROW)
		*count = (uint64_t) sqlite3_column_int64(statement, 0);
	else
		outcome = sluice_replica_failure(scan->replica, sqlite3_errcode(scan->replica->db),
										 "count the rows of a table");
	sqlite3_finalize(statement);
	return outcome;
}

/* Rows of the file: into the bag, or as suspects if the server lacks them. */
static SluiceOutcome
scan_held(Scan *scan, const char *condition, bool extra)
{
	SluiceBuffer sql;
	sqlite3_stmt *statement;
	SluiceOutcome outcome;
	int			rc;

	sluice_buffer_init(&sql, &scan->arena.allocator);
	put(&sql, "SELECT ");
	put_columns(&sql, scan->held);
	put(&sql, " FROM ");
	sluice_names_quote(&sql, scan->held->name);
	put(&sql, condition);
	outcome = prepare(scan, &sql, &statement);
	if (outcome != SLUICE_OK)
		return outcome;
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
	{
		for (size_t i = 0; i < scan->table->ncolumns; i++)
			scan->values[i] = sluice_verify_column(statement, (int) i);
		if (extra)
			suspect(scan->pass, hash_row(scan, scan->values, 5),
					describe(scan, scan->values, "the server lacks the row"));
		else
			scan->bag -= hash_row(scan, scan->values, 4);
	}
	sqlite3_finalize(statement);
	return rc == SQLITE_DONE ? SLUICE_OK :
		sluice_replica_failure(scan->replica, rc, "read a table of the file");
}

/* The file has more rows than were found: a second look tells which. */
static SluiceOutcome
name_extra_rows(Scan *scan)
{
	static const char table_sql[] =
		"CREATE TEMP TABLE IF NOT EXISTS seen(id INTEGER PRIMARY KEY); DELETE FROM seen";
	static const char mark_sql[] = "INSERT OR IGNORE INTO temp.seen(id) VALUES(?)";
	SluiceVerifyPass *pass = scan->pass;
	SluiceVerifyPass first = *pass;
	SluiceBuffer condition;
	SluiceOutcome outcome;

	if (scan->rowid == NULL)
	{
		suspect(pass, 6, "the file has rows that the server lacks");
		return SLUICE_OK;
	}
	outcome = sluice_replica_exec(scan->replica, table_sql, "note the rows that were seen");
	if (outcome != SLUICE_OK)
		return outcome;
	if (sqlite3_prepare_v2(scan->replica->db, mark_sql, -1, &scan->mark, NULL) != SQLITE_OK)
		return sluice_replica_failure(scan->replica, sqlite3_errcode(scan->replica->db),
									  "note the rows that were seen");
	outcome = scan_server(scan);
	pass->rows = first.rows;	/* counted twice */
	pass->differences = first.differences;
	pass->nsuspects = first.nsuspects;
	if (outcome == SLUICE_OK)
	{
		sluice_buffer_init(&condition, &scan->arena.allocator);
		put(&condition, " WHERE ");
		put(&condition, scan->rowid);
		sluice_buffer_append(&condition, " NOT IN (SELECT id FROM temp.seen)", 35);
		outcome = scan_held(scan, condition.data, true);
	}
	sqlite3_finalize(scan->mark);
	scan->mark = NULL;
	return outcome;
}

static SluiceOutcome
compare(Scan *scan)
{
	uint64_t	count = 0;
	SluiceOutcome outcome;

	if (scan->held->spec.nkey > 0)
		outcome = prepare_lookup(scan);
	else
		outcome = scan_held(scan, "", false);	/* fixes the place of the file's side */
	if (outcome == SLUICE_OK)
		outcome = count_held(scan, &count);
	if (outcome == SLUICE_OK)
		outcome = scan_server(scan);
	if (outcome != SLUICE_OK)
		return outcome;
	if (scan->held->spec.nkey > 0)
		return count > scan->found ? name_extra_rows(scan) : SLUICE_OK;
	if (scan->bag != 0 || count != scan->pass->rows)
	{
		char		what[120];

		snprintf(what, sizeof(what), "%llu rows in the file, %llu on the server, not the same",
				 (unsigned long long) count, (unsigned long long) scan->pass->rows);
		suspect(scan->pass, scan->bag, what);
	}
	return SLUICE_OK;
}

SluiceOutcome
sluice_verify_table_pass(SluiceVerifyServer *server, const SluiceVerifyTable *table,
						 SluiceReplica *replica, const SluiceReplicaTable *held,
						 SluiceVerifyPass *pass)
{
	Scan		scan = {.server = server, .table = table, .replica = replica, .held = held,
		.pass = pass};
	size_t		n = table->ncolumns + 1;
	SluiceOutcome outcome;

	sluice_arena_init(&scan.arena);
	scan.fields = sluice_arena_alloc(&scan.arena, n * sizeof(char *));
	scan.sizes = sluice_arena_alloc(&scan.arena, n * sizeof(size_t));
	scan.values = sluice_arena_alloc(&scan.arena, n * sizeof(SluiceValue));
	scan.rowid = name_rowid(held);
	outcome = sluice_replica_exec(replica, "BEGIN", "read the file");
	if (outcome == SLUICE_OK)
	{
		outcome = compare(&scan);
		sqlite3_finalize(scan.lookup);
		sqlite3_exec(replica->db, "ROLLBACK", NULL, NULL, NULL);
	}
	sluice_arena_release(&scan.arena);
	return outcome;
}
