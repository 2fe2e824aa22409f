/*
 * verify_server.c: the server's side of verify.
 *
 * In: catalogs, tables.  Out: specs and rows as PostgreSQL itself prints them.
 * Runs in: sluice-agent verify.  Locks: what SELECT takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "verify_server.h"

/* Whatever the role, the database or the environment say. */
static const char settings_sql[] =
	"SELECT set_config(s.name, s.value, false) FROM (VALUES"
	" ('datestyle', 'ISO, MDY'), ('intervalstyle', 'postgres'), ('timezone', 'UTC'),"
	" ('bytea_output', 'hex'), ('extra_float_digits', '1'), ('lc_monetary', 'C'),"
	" ('lc_numeric', 'C'), ('xmloption', 'content'), ('search_path', 'pg_catalog'),"
	" ('row_security', 'off'), ('jit', 'off'), ('statement_timeout', '0'), ('client_encoding', 'UTF8'),"
	" ('idle_in_transaction_session_timeout', '0'), ('synchronize_seqscans', 'off'))"
	" AS s(name, value)";

static const char shard_sql[] =
	"SELECT to_json(publications), timestamps, numerics FROM sluice.shards WHERE name = $1";

/*
 * One row a column, tables by OID.  Filters of several publications are joined
 * by OR, and a publication without one lifts them, and so with column lists
 * (pg_publication_tables leaves generated columns out, a shard does not).
 */
static const char columns_sql[] =
	"WITH entry AS MATERIALIZED ("
	" SELECT c.oid, t.schemaname, t.tablename, c.relkind, t.rowfilter, t.attnames,"
	"  r.prattrs IS NULL AS every_column"
	" FROM pg_publication u"
	" JOIN pg_publication_tables t ON t.pubname = u.pubname"
	" JOIN pg_namespace n ON n.nspname = t.schemaname"
	" JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename"
	" LEFT JOIN pg_publication_rel r ON r.prpubid = u.oid AND r.prrelid = c.oid"
	" WHERE u.pubname IN (SELECT json_array_elements_text($1::json))"
	"  AND n.nspname <> 'sluice' AND n.nspname NOT LIKE 'cdc\\_%'"
	"  AND c.relpersistence = 'p'"
	"), listed AS MATERIALIZED ("
	" SELECT DISTINCT e.oid, l.attname FROM entry e, unnest(e.attnames) AS l(attname)"
	"), published AS MATERIALIZED ("
	" SELECT oid, schemaname, tablename, relkind, bool_or(every_column) AS every_column,"
	"  CASE WHEN bool_and(rowfilter IS NOT NULL)"
	"   THEN string_agg('(' || rowfilter || ')', ' OR ') END AS filter"
	" FROM entry GROUP BY oid, schemaname, tablename, relkind"
	"), attribute AS MATERIALIZED ("
	" SELECT a.attrelid, a.attnum, a.attname, a.atttypid"
	" FROM published p JOIN pg_attribute a ON a.attrelid = p.oid"
	" LEFT JOIN listed l ON l.oid = p.oid AND l.attname = a.attname"
	" WHERE a.attnum > 0 AND NOT a.attisdropped AND (p.every_column OR l.oid IS NOT NULL)"
	"), base AS MATERIALIZED ("
	" WITH RECURSIVE step(type, oid) AS ("
	"  SELECT DISTINCT atttypid, atttypid FROM attribute"
	"  UNION ALL SELECT s.type, y.typbasetype FROM step s"
	"  JOIN pg_type y ON y.oid = s.oid WHERE y.typtype = 'd')"
	" SELECT s.type, y.* FROM step s JOIN pg_type y ON y.oid = s.oid WHERE y.typtype <> 'd')"
	" SELECT p.oid, p.schemaname, p.tablename, p.relkind = 'p', p.filter, a.attnum, a.attname,"
	"  CASE WHEN b.typnamespace = 'pg_catalog'::regnamespace THEN b.typname ELSE '' END,"
	"  b.typsubscript = 'array_subscript_handler'::regproc AND b.typelem <> 0"
	"   AND b.oid NOT IN ('int2vector'::regtype, 'oidvector'::regtype),"
	"  EXISTS (SELECT FROM pg_cast k WHERE k.castsource = b.typelem"
	"   AND k.casttarget = 'json'::regtype AND k.oid >= 16384)"
	" FROM published p"
	" LEFT JOIN attribute a ON a.attrelid = p.oid"
	" LEFT JOIN base b ON b.type = a.atttypid"
	" ORDER BY p.oid, a.attnum";

/*
 * The end of a record behind all that is committed.  It is transactional for
 * the flush at its commit: without one it might lie unwritten for a while.
 */
static const char position_sql[] =
	"SELECT pg_logical_emit_message(true, 'sluice-verify', '') - '0/0'::pg_lsn";

static SluiceOutcome
failed(SluiceVerifyServer *server, const char *what, PGresult *result)
{
	const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	sluice_log(SLUICE_ERROR, "cannot %s: %s%s", what, PQerrorMessage(server->conn.pg),
			   code != NULL && strcmp(code, "42501") == 0 ?
			   "; hint: verify reads as an ordinary client: its role has to be a member of "
			   "sluice_monitor and to have SELECT on the published tables." : "");
	PQclear(result);
	return PQstatus(server->conn.pg) == CONNECTION_OK ? SLUICE_REFUSED : SLUICE_RETRY;
}

static SluiceOutcome
query(SluiceVerifyServer *server, const char *what, const char *sql, const char *parameter,
	  PGresult **result)
{
	*result = PQexecParams(server->conn.pg, sql, parameter != NULL ? 1 : 0, NULL, &parameter,
						   NULL, NULL, 0);
	if (PQresultStatus(*result) != PGRES_TUPLES_OK)
		return failed(server, what, *result);
	return SLUICE_OK;
}

/* ---- what is published ---- */

static const char *
quoted(SluiceArena *arena, const char *name)
{
	char	   *text = sluice_arena_alloc(arena, strlen(name) * 2 + 3);
	char	   *at = text;

	*at++ = '"';
	for (; *name != '\0'; name++)
	{
		if (*name == '"')
			*at++ = '"';
		*at++ = *name;
	}
	*at = '"';
	return text;
}

/* Arrays as to_json gives them, but for those with bounds of their own. */
static const char *
expression(SluiceArena *arena, const char *name, bool array, bool element_has_cast)
{
	const char *column = quoted(arena, name);

	if (!array)
		return column;
	return sluice_arena_printf(arena, "CASE WHEN %s::text LIKE '[%%' THEN %s::text"
							   " ELSE to_json(%s%s)::text END", column, column, column,
							   element_has_cast ? "::text[]" : "");
}

static bool
is_true(PGresult *result, int row, int column)
{
	return PQgetvalue(result, row, column)[0] == 't';
}

static void
take_column(SluiceVerifyServer *server, SluiceVerifyTable *table, PGresult *result, int row,
			bool timestamps_text, bool numerics_double)
{
	SluiceVerifyColumn *column = &table->columns[table->ncolumns++];
	const char *name = PQgetvalue(result, row, 6);
	bool		array = is_true(result, row, 8);

	column->attnum = atoi(PQgetvalue(result, row, 5));
	column->name = sluice_arena_strdup(&server->arena, name);
	column->expression = expression(&server->arena, name, array, is_true(result, row, 9));
	column->kind = array ? SLUICE_VERIFY_TEXT :
		sluice_verify_kind(PQgetvalue(result, row, 7), timestamps_text, numerics_double);
}

static void
take_tables(SluiceVerifyServer *server, PGresult *result, bool timestamps_text,
			bool numerics_double)
{
	SluiceArena *arena = &server->arena;
	int			nrows = PQntuples(result);
	SluiceVerifyColumn *columns;

	server->tables = sluice_arena_alloc(arena, (size_t) (nrows + 1) * sizeof(SluiceVerifyTable));
	columns = sluice_arena_alloc(arena, (size_t) (nrows + 1) * sizeof(SluiceVerifyColumn));
	for (int row = 0; row < nrows; row++)
	{
		uint32_t	oid = (uint32_t) strtoul(PQgetvalue(result, row, 0), NULL, 10);
		SluiceVerifyTable *table = &server->tables[server->ntables];

		if (server->ntables > 0 && table[-1].oid == oid)
			table--;
		else
		{
			server->ntables++;
			table->oid = oid;
			table->schema = sluice_arena_strdup(arena, PQgetvalue(result, row, 1));
			table->name = sluice_arena_strdup(arena, PQgetvalue(result, row, 2));
			table->partitioned = is_true(result, row, 3);
			if (!PQgetisnull(result, row, 4))
				table->filter = sluice_arena_strdup(arena, PQgetvalue(result, row, 4));
			table->columns = columns + row;
		}
		if (!PQgetisnull(result, row, 5))
			take_column(server, table, result, row, timestamps_text, numerics_double);
	}
}

static SluiceOutcome
read_tables(SluiceVerifyServer *server)
{
	PGresult   *shard;
	PGresult   *columns;
	SluiceOutcome outcome;

	outcome = query(server, "read the shard", shard_sql, server->agent->config.shard, &shard);
	if (outcome != SLUICE_OK)
		return outcome;
	if (PQntuples(shard) != 1)
	{
		sluice_log(SLUICE_ERROR, "there is no shard \"%s\" in this database",
				   server->agent->config.shard);
		PQclear(shard);
		return SLUICE_REFUSED;
	}
	outcome = query(server, "read what is published", columns_sql, PQgetvalue(shard, 0, 0),
					&columns);
	if (outcome == SLUICE_OK)
	{
		take_tables(server, columns, strcmp(PQgetvalue(shard, 0, 1), "text") == 0,
					strcmp(PQgetvalue(shard, 0, 2), "double") == 0);
		PQclear(columns);
	}
	PQclear(shard);
	return outcome;
}

SluiceOutcome
sluice_verify_server_open(SluiceAgent *agent, SluiceVerifyServer *server)
{
	PGresult   *result;
	SluiceOutcome outcome;

	memset(server, 0, sizeof(*server));
	server->agent = agent;
	sluice_arena_init(&server->arena);
	outcome = sluice_conn_open(agent, &server->conn);
	if (outcome == SLUICE_OK)
		outcome = query(server, "set up the connection", settings_sql, NULL, &result);
	if (outcome != SLUICE_OK)
		return outcome;
	PQclear(result);
	return read_tables(server);
}

void
sluice_verify_server_close(SluiceVerifyServer *server)
{
	sluice_conn_close(&server->conn);
	sluice_arena_release(&server->arena);
}

SluiceOutcome
sluice_verify_server_position(SluiceVerifyServer *server, uint64_t *position)
{
	PGresult   *result;
	SluiceOutcome outcome = query(server, "ask for the position", position_sql, NULL, &result);

	if (outcome != SLUICE_OK)
		return outcome;
	*position = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	return SLUICE_OK;
}

/* ---- rows ---- */

static void
put(SluiceBuffer *sql, const char *text)
{
	sluice_buffer_append(sql, text, strlen(text));
}

SluiceOutcome
sluice_verify_server_select(SluiceVerifyServer *server, const SluiceVerifyTable *table)
{
	SluiceArena arena;
	SluiceBuffer sql;
	PGresult   *result;
	SluiceOutcome outcome = SLUICE_OK;

	sluice_arena_init(&arena);
	sluice_buffer_init(&sql, &arena.allocator);
	put(&sql, "COPY (SELECT ");
	for (size_t i = 0; i < table->ncolumns; i++)
	{
		put(&sql, i > 0 ? ", " : "");
		put(&sql, table->columns[i].expression);
	}
	put(&sql, table->partitioned ? " FROM " : " FROM ONLY ");
	put(&sql, quoted(&arena, table->schema));
	put(&sql, ".");
	put(&sql, quoted(&arena, table->name));
	if (table->filter != NULL)
	{
		put(&sql, " WHERE ");
		put(&sql, table->filter);
	}
	sluice_buffer_append(&sql, ") TO STDOUT", 12);
	result = PQexec(server->conn.pg, sql.data);
	if (PQresultStatus(result) != PGRES_COPY_OUT)
		outcome = failed(server, "read a table", result);
	else
		PQclear(result);
	sluice_arena_release(&arena);
	return outcome;
}

static SluiceOutcome
end_of_rows(SluiceVerifyServer *server, int code)
{
	PGresult   *result = PQgetResult(server->conn.pg);
	bool		ok = code == -1 && PQresultStatus(result) == PGRES_COMMAND_OK;

	if (!ok)
		return failed(server, "read a table", result);
	PQclear(result);
	while ((result = PQgetResult(server->conn.pg)) != NULL)
		PQclear(result);
	return SLUICE_OK;
}

SluiceOutcome
sluice_verify_server_row(SluiceVerifyServer *server, const SluiceVerifyTable *table, char **line,
						 char **fields, size_t *sizes, bool *end)
{
	int			size;
	char	   *at;
	char	   *stop;

	if (*line != NULL)
		PQfreemem(*line);
	size = PQgetCopyData(server->conn.pg, line, 0);
	*end = size < 0;
	if (*end)
	{
		*line = NULL;
		return end_of_rows(server, size);
	}
	at = *line;
	stop = at + size - 1;		/* the end of the line */
	for (size_t i = 0; i < table->ncolumns; i++)
	{
		char	   *tab = i + 1 < table->ncolumns ? memchr(at, '\t', (size_t) (stop - at)) : stop;

		if (tab == NULL)
		{
			sluice_log(SLUICE_ERROR, "a row of table \"%s\".\"%s\" is short", table->schema,
					   table->name);
			return SLUICE_REFUSED;
		}
		fields[i] = at;
		sizes[i] = (size_t) (tab - at);
		at = tab + 1;
	}
	return SLUICE_OK;
}
