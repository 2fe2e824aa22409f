/*
 * rowlog.c: which rows changed in which transaction.
 *
 * In: tables, ops, keys.  Out: rows of _sluice.rowLog, each a JSON array of
 * runs.  A run of one transaction is [version, pos of the first, table, op,
 * keys], one of many [null, null, table, op, keys] with [version, pos, key] for
 * a key.  Keys of one column are {"column":[value, …]}, others
 * [{"a":…,"b":…}, …]; table-wide ops have [null].
 * A row holds what a group of transactions changed, up to some kB, because an
 * append a transaction would cost as much as the change itself.
 * Runs in: the thread that owns the replica, inside its transaction.
 * Locks: none.
 */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "log.h"
#include "rowlog.h"

#define CHUNK 8000				/* bytes of JSON in a row */
#define KEEP_MS (60 * 60 * 1000)	/* an hour */
#define KEEP_ROWS 100000
#define TRIM_ROWS 2000			/* at a time */
#define TRIM_EVERY 10000000		/* us */

struct SluiceRowLog
{
	SluiceReplica *replica;
	SluiceBuffer ops;			/* the row being made; empty: none */
	const char *run_end;		/* what closes the open run; NULL: none is open */
	const SluiceReplicaTable *run_table;
	char		run_op;
	bool		run_mixed;		/* of many transactions */
	bool		run_new;		/* nothing of this transaction is in the open run yet */
	char		version[SLUICE_WATERMARK_TEXT_MAX]; /* of the open or last transaction */
	int64_t		next;			/* pos of the next op */
	int64_t		chunk;			/* tells rows of one version apart */
	int64_t		rows;			/* in the table, about */
	int64_t		trimmed_at;
	bool		fresh;			/* switched on, and no transaction has said so yet */
	bool		said;			/* the open SQLite transaction says so */
};

/* A key's JSON without its values: what stands before each, in order of names. */
typedef struct KeyPart
{
	const char *text;			/* {"a":  or  ,"b": */
	size_t		size;
	int			key;			/* index into the key */
} KeyPart;

typedef struct SluiceKeyForm
{
	const char *name;			/* "table", in JSON */
	size_t		name_size;
	KeyPart    *parts;
} SluiceKeyForm;

static void
put(SluiceBuffer *out, const char *text)
{
	sluice_buffer_append(out, text, strlen(text));
}

static const char *
keep(SluiceReplicaTable *table, SluiceBuffer *text, size_t *size)
{
	char	   *kept = sluice_arena_alloc(&table->arena, text->length + 1);

	memcpy(kept, text->data, text->length);
	*size = text->length;
	sluice_buffer_reset(text);
	return kept;
}

static SluiceKeyForm *
make_form(SluiceReplicaTable *table)
{
	const SluiceTable *spec = &table->spec;
	SluiceKeyForm *form = sluice_arena_alloc(&table->arena, sizeof(*form));
	SluiceBuffer text;

	sluice_buffer_init(&text, &sluice_malloc_allocator);
	sluice_json_string(&text, table->name, strlen(table->name));
	form->name = keep(table, &text, &form->name_size);
	form->parts = sluice_arena_alloc(&table->arena, (spec->nkey + 1u) * sizeof(KeyPart));
	for (int k = 0; k < spec->nkey; k++)
	{
		int			at = k;

		/* sorted by the column's name in SQLite */
		for (; at > 0 && strcmp(table->columns[spec->key[form->parts[at - 1].key]],
								table->columns[spec->key[k]]) > 0; at--)
			form->parts[at] = form->parts[at - 1];
		form->parts[at].key = k;
	}
	for (int k = 0; k < spec->nkey; k++)
	{
		const char *name = table->columns[spec->key[form->parts[k].key]];

		put(&text, k == 0 ? "{" : ",");
		sluice_json_string(&text, name, strlen(name));
		put(&text, ":");
		form->parts[k].text = keep(table, &text, &form->parts[k].size);
	}
	sluice_buffer_release(&text);
	table->key_form = form;
	return form;
}

/* ---- life ---- */

static SluiceOutcome
switch_state(SluiceReplica *replica, bool on)
{
	SluiceOutcome outcome = sluice_replica_begin(replica);

	if (outcome == SLUICE_OK)
		outcome = sluice_replica_exec(replica, on ?
									  "UPDATE \"_sluice.state\" SET rowLog = 2" :
									  "UPDATE \"_sluice.state\" SET rowLog = 0;"
									  "DELETE FROM \"_sluice.rowLog\"", "switch the row log");
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_commit(replica, NULL);
	if (outcome != SLUICE_OK)
		sluice_replica_rollback(replica);
	return outcome;
}

static SluiceOutcome
read_state(SluiceReplica *replica, int *state, int64_t *rows)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "SELECT rowLog, (SELECT count(*) FROM \"_sluice.rowLog\") FROM \"_sluice.state\"");
	int			rc = statement == NULL ? SQLITE_ERROR : sqlite3_step(statement);

	if (rc != SQLITE_ROW)
		return sluice_replica_failure(replica, rc, "read the row log");
	*state = sqlite3_column_int(statement, 0);
	*rows = sqlite3_column_int64(statement, 1);
	sqlite3_reset(statement);
	return SLUICE_OK;
}

SluiceOutcome
sluice_rowlog_open(SluiceReplica *replica, bool on, SluiceRowLog **log)
{
	const SluiceAllocator *a = &sluice_malloc_allocator;
	int			state = 0;		/* 0 off, 1 on, 2 on and not said yet */
	int64_t		rows = 0;
	SluiceOutcome outcome = read_state(replica, &state, &rows);

	*log = NULL;
	if (outcome == SLUICE_OK && on != (state != 0))
		outcome = switch_state(replica, on);
	if (outcome != SLUICE_OK || !on)
		return outcome;
	*log = a->grow(a->context, NULL, sizeof(**log));
	memset(*log, 0, sizeof(**log));
	(*log)->replica = replica;
	(*log)->rows = rows;
	(*log)->fresh = state != 1;
	(*log)->trimmed_at = sluice_agent_clock();
	sluice_buffer_init(&(*log)->ops, a);
	return SLUICE_OK;
}

void
sluice_rowlog_close(SluiceRowLog *log)
{
	if (log == NULL)
		return;
	sluice_buffer_release(&log->ops);
	free(log);
}

/* ---- a transaction ---- */

static void
close_run(SluiceRowLog *log)
{
	if (log->run_end != NULL)
		put(&log->ops, log->run_end);
	log->run_end = NULL;
	log->run_table = NULL;
	log->run_mixed = false;
}

void
sluice_rowlog_schema(SluiceRowLog *log)
{
	close_run(log);
}

SluiceOutcome
sluice_rowlog_flush(SluiceRowLog *log)
{
	sqlite3_stmt *statement;
	SluiceOutcome outcome;

	if (log->ops.length == 0)
		return SLUICE_OK;
	statement = sluice_replica_statement(
		log->replica, "INSERT INTO \"_sluice.rowLog\"(lastVersion, chunk, writeTimeMs, ops)"
		" VALUES(?1, ?2, ?3, ?4)");
	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	close_run(log);
	put(&log->ops, "]");
	sqlite3_bind_text(statement, 1, log->version, -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, 2, log->chunk++);
	sqlite3_bind_int64(statement, 3, sluice_agent_time() / 1000);
	sqlite3_bind_text(statement, 4, log->ops.data, (int) log->ops.length, SQLITE_STATIC);
	outcome = sluice_replica_step(log->replica, statement, "write the row log");
	/* a key may have been large */
	if (log->ops.capacity > 8 * CHUNK)
		sluice_buffer_release(&log->ops);
	else
		sluice_buffer_reset(&log->ops);
	log->rows++;
	return outcome;
}

SluiceOutcome
sluice_rowlog_begin(SluiceRowLog *log, const char *version)
{
	SluiceOutcome outcome;

	if (!log->run_mixed)
		close_run(log);
	log->run_new = true;
	strcpy(log->version, version);
	log->next = log->chunk = 0;
	if (!log->fresh || log->said)
		return SLUICE_OK;
	log->said = true;
	outcome = sluice_replica_exec(log->replica, "UPDATE \"_sluice.state\" SET rowLog = 1",
								  "switch the row log");
	for (size_t i = 0; outcome == SLUICE_OK && i < sluice_replica_count(log->replica); i++)
		outcome = sluice_rowlog_table(log, sluice_replica_at(log->replica, i), 'r');
	return outcome;
}

static void
put_place(SluiceRowLog *log, const char *before)
{
	char		text[SLUICE_WATERMARK_TEXT_MAX + 8] = "\"";
	SluiceValue pos = {.class = SLUICE_INTEGER, .u.integer = log->next};
	size_t		size = strlen(log->version);

	put(&log->ops, before);
	memcpy(text + 1, log->version, size);
	memcpy(text + 1 + size, "\",", 2);
	sluice_buffer_append(&log->ops, text, size + 3);
	sluice_json_value(&log->ops, &pos);
	sluice_buffer_append(&log->ops, ",", 1);
}

/* [version, pos, table, op, */
static void
open_run(SluiceRowLog *log, SluiceReplicaTable *table, char op, bool mixed, const char *end)
{
	const SluiceKeyForm *form = table->key_form != NULL ? table->key_form : make_form(table);
	char		word[5] = {',', '"', op, '"', ','};

	close_run(log);
	if (mixed)
		put(&log->ops, log->ops.length == 0 ? "[[null,null," : ",[null,null,");
	else
		put_place(log, log->ops.length == 0 ? "[[" : ",[");
	sluice_buffer_append(&log->ops, form->name, form->name_size);
	sluice_buffer_append(&log->ops, word, sizeof(word));
	log->run_table = table;
	log->run_op = op;
	log->run_mixed = mixed;
	log->run_end = end;
}

/*
 * Does the open run take this op too?  The first of a transaction goes to one
 * of many, further ones to one of this transaction alone, which is shorter.
 */
static bool
goes_on(const SluiceRowLog *log, const SluiceReplicaTable *table, char op)
{
	return log->run_table == table && log->run_op == op && log->run_mixed == log->run_new;
}

static void
put_key(SluiceRowLog *log, const SluiceKeyForm *form, int nkey, const SluiceValue *const *key)
{
	if (nkey == 1)
	{
		sluice_json_value(&log->ops, key[0]);
		return;
	}
	for (int k = 0; k < nkey; k++)
	{
		sluice_buffer_append(&log->ops, form->parts[k].text, form->parts[k].size);
		sluice_json_value(&log->ops, key[form->parts[k].key]);
	}
	sluice_buffer_append(&log->ops, "}", 1);
}

SluiceOutcome
sluice_rowlog_row(SluiceRowLog *log, SluiceReplicaTable *table, char op,
				  const SluiceValue *const *key)
{
	SluiceBuffer *ops = &log->ops;
	int			nkey = table->spec.nkey;
	bool		more = goes_on(log, table, op);

	if (nkey == 0)
		return SLUICE_OK;
	if (!more)
		open_run(log, table, op, log->run_new, nkey == 1 ? "]}]" : "]]");
	if (!more && nkey == 1)
		sluice_buffer_append(ops, table->key_form->parts[0].text,
							 table->key_form->parts[0].size);
	sluice_buffer_append(ops, more ? "," : "[", 1);
	if (log->run_mixed)
		put_place(log, "[");
	put_key(log, table->key_form, nkey, key);
	if (log->run_mixed)
		sluice_buffer_append(ops, "]", 1);
	log->run_new = false;
	log->next++;
	return ops->length >= CHUNK ? sluice_rowlog_flush(log) : SLUICE_OK;
}

SluiceOutcome
sluice_rowlog_table(SluiceRowLog *log, SluiceReplicaTable *table, char op)
{
	open_run(log, table, op, false, "]");
	put(&log->ops, "[null]");
	log->run_op = '\0';			/* the next one is a run of its own */
	log->next++;
	return log->ops.length >= CHUNK ? sluice_rowlog_flush(log) : SLUICE_OK;
}

void
sluice_rowlog_abort(SluiceRowLog *log)
{
	sluice_buffer_reset(&log->ops);
	log->run_end = NULL;
	log->run_table = NULL;
	log->run_mixed = false;
	log->said = false;
}

void
sluice_rowlog_committed(SluiceRowLog *log)
{
	if (log->said)
		log->fresh = log->said = false;
}

/* ---- trimming ---- */

SluiceOutcome
sluice_rowlog_trim(SluiceRowLog *log)
{
	int64_t		clock = sluice_agent_clock();
	sqlite3_stmt *statement;
	SluiceOutcome outcome;

	if (log->rows < KEEP_ROWS + TRIM_ROWS && clock - log->trimmed_at < TRIM_EVERY)
		return SLUICE_OK;
	statement = sluice_replica_statement(
		log->replica, "DELETE FROM \"_sluice.rowLog\" WHERE (lastVersion, chunk) IN (SELECT"
		" lastVersion, chunk FROM (SELECT lastVersion, chunk, writeTimeMs FROM \"_sluice.rowLog\""
		" ORDER BY lastVersion, chunk LIMIT ?1) WHERE writeTimeMs < ?2)");
	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_int(statement, 1, TRIM_ROWS);
	sqlite3_bind_int64(statement, 2, log->rows >= KEEP_ROWS + TRIM_ROWS ? INT64_MAX :
					   sluice_agent_time() / 1000 - KEEP_MS);
	outcome = sluice_replica_step(log->replica, statement, "trim the row log");
	log->rows -= sqlite3_changes(log->replica->db);
	/* when a step was full there is more: do not wait */
	if (sqlite3_changes(log->replica->db) < TRIM_ROWS)
		log->trimmed_at = clock;
	return outcome;
}
