/*
 * row.c: one row frame to one prepared statement.
 *
 * In: INSERT, UPDATE, DELETE frames.  Out: rows in the file, exactly one each;
 * anything else is an error that names table and key.
 * Runs in: the thread that owns the replica, inside its transaction.
 * Locks: none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "log.h"
#include "row.h"
#include "row_plan.h"

/* ---- errors ---- */

/* {"id":5}, short enough for a message */
static const char *
key_text(SluiceBuffer *out, const SluiceReplicaTable *table, const SluiceValue *const *key)
{
	const SluiceTable *spec = &table->spec;

	sluice_buffer_init(out, &sluice_malloc_allocator);
	for (int k = 0; k < spec->nkey; k++)
	{
		SluiceValue value = *key[k];
		const char *name = spec->columns[spec->key[k]].name;

		if ((value.class == SLUICE_TEXT || value.class == SLUICE_BLOB) && value.u.bytes.size > 100)
			value.u.bytes.size = 100;
		sluice_buffer_append(out, k == 0 ? "(" : ", ", k == 0 ? 1 : 2);
		sluice_buffer_append(out, name, strlen(name));
		sluice_buffer_append(out, " ", 1);
		sluice_json_value(out, &value);
	}
	sluice_buffer_append(out, spec->nkey > 0 ? ")" : "(no key)", spec->nkey > 0 ? 2 : 9);
	return out->data;
}

static SluiceOutcome
damaged_frame(const SluiceReplicaTable *table)
{
	sluice_log(SLUICE_ERROR, "a change of table \"%s\" cannot be read: the stream is damaged",
			   table->name);
	return SLUICE_RETRY;
}

static SluiceOutcome
missing(const SluiceReplicaTable *table, const char *what, const SluiceValue *const *key)
{
	SluiceBuffer text;

	sluice_log(SLUICE_ERROR, "cannot %s a row of table \"%s\": there is none with key %s; "
			   "hint: The file was changed by another program or is damaged. Stop the agent, move "
			   "the file away and start it again: it copies afresh.", what, table->name,
			   key_text(&text, table, key));
	sluice_buffer_release(&text);
	return SLUICE_INAPPLICABLE;
}

/* SQLite's limit: the table is left behind, the others go on. */
static SluiceOutcome
too_big(SluiceRowContext *context, SluiceReplicaTable *table, const char *what,
		const SluiceValue *const *key)
{
	SluiceBuffer text;
	SluiceOutcome outcome;
	char		problem[512];

	snprintf(problem, sizeof(problem), "cannot %s row %s: it is larger than SQLite's limit of "
			 "1000000000 bytes", what, key_text(&text, table, key));
	sluice_buffer_release(&text);
	sluice_log(SLUICE_ERROR, "table \"%s\" is not followed any more: %s", table->name, problem);
	outcome = sluice_replica_set_problem(context->replica, table, problem);
	return outcome;
}

static SluiceOutcome
failed(SluiceRowContext *context, SluiceReplicaTable *table, int rc, const char *what,
	   const SluiceValue *const *key)
{
	SluiceBuffer text;

	if (rc == SQLITE_TOOBIG)
		return too_big(context, table, what, key);
	if ((rc & 0xff) != SQLITE_CONSTRAINT && (rc & 0xff) != SQLITE_MISMATCH)
		return sluice_replica_failure(context->replica, rc, what);
	sluice_log(SLUICE_ERROR, "cannot %s row %s of table \"%s\": %s; hint: The file was changed by "
			   "another program or is damaged. Stop the agent, move the file away and start it "
			   "again: it copies afresh.", what, key_text(&text, table, key), table->name,
			   sqlite3_errmsg(context->replica->db));
	sluice_buffer_release(&text);
	return SLUICE_INAPPLICABLE;
}

/* ---- values ---- */

static int
bind(sqlite3_stmt *statement, int parameter, const SluiceValue *value)
{
	switch (value->class)
	{
		case SLUICE_INTEGER:
			return sqlite3_bind_int64(statement, parameter, value->u.integer);
		case SLUICE_REAL:
			return sqlite3_bind_double(statement, parameter, value->u.real);
		case SLUICE_TEXT:
			return sqlite3_bind_text64(statement, parameter, value->u.bytes.data,
									   value->u.bytes.size, SQLITE_STATIC, SQLITE_UTF8);
		case SLUICE_BLOB:
			return value->u.bytes.size == 0 ? sqlite3_bind_zeroblob(statement, parameter, 0) :
				sqlite3_bind_blob64(statement, parameter, value->u.bytes.data,
									value->u.bytes.size, SQLITE_STATIC);
		case SLUICE_NULL:
			return sqlite3_bind_null(statement, parameter);
		case SLUICE_UNCHANGED:
			break;				/* not a parameter of this statement */
	}
	return SQLITE_OK;
}

/*
 * Parameters that the text does not name are at the end only (SQLite counts
 * up to the highest), so a range error there is none.
 */
static int
bind_all(sqlite3_stmt *statement, int first, const SluiceValue *values, int count)
{
	int			limit = sqlite3_bind_parameter_count(statement);

	for (int i = 0; i < count && first + i <= limit; i++)
	{
		int			rc = bind(statement, first + i, &values[i]);

		if (rc != SQLITE_OK)
			return rc;
	}
	return SQLITE_OK;
}

static bool
same_value(const SluiceValue *a, const SluiceValue *b)
{
	if (a->class != b->class)
		return false;
	switch (a->class)
	{
		case SLUICE_INTEGER:
			return a->u.integer == b->u.integer;
		case SLUICE_REAL:
			return memcmp(&a->u.real, &b->u.real, sizeof(double)) == 0;
		case SLUICE_TEXT:
		case SLUICE_BLOB:
			return a->u.bytes.size == b->u.bytes.size &&
				memcmp(a->u.bytes.data, b->u.bytes.data, a->u.bytes.size) == 0;
		case SLUICE_NULL:
		case SLUICE_UNCHANGED:
			break;
	}
	return true;
}

/* A frame taken apart; the values are in the context's scratch. */
typedef struct Row
{
	SluiceRowHead head;
	const SluiceValue *old;		/* head.nold of them */
	const SluiceValue *new;		/* head.nnew of them */
	const SluiceValue **old_key;	/* nkey; NULL when nothing of the old row came */
	const SluiceValue **new_key;	/* nkey */
} Row;

static void
reserve(SluiceRowContext *context, size_t count)
{
	const SluiceAllocator *a = &sluice_malloc_allocator;

	if (count <= context->capacity)
		return;
	context->values = a->grow(a->context, context->values, count * sizeof(SluiceValue));
	context->capacity = count;
}

static bool
counts_fit(const SluiceTable *spec, const SluiceRowHead *head, SluiceTag tag)
{
	int			nold = head->old == SLUICE_OLD_NONE ? 0 :
		head->old == SLUICE_OLD_KEY ? spec->nkey : spec->ncolumns;

	return head->nold == nold && head->nnew == (tag == SLUICE_TAG_DELETE ? 0 : spec->ncolumns);
}

static SluiceOutcome
wrong_fingerprint(const SluiceReplicaTable *table, const SluiceRowHead *head)
{
	sluice_log(SLUICE_ERROR, "a change of table \"%s\" has another form than the replica's table "
			   "(%08x, not %08x); hint: Move the file away and start the agent again: it copies "
			   "afresh.", table->name, head->fingerprint, table->spec.fingerprint);
	return SLUICE_INAPPLICABLE;
}

/* Checks the frame and reads its values. */
static SluiceOutcome
take_apart(SluiceRowContext *context, const SluiceReplicaTable *table, const SluiceFrame *frame,
		   Row *row)
{
	const SluiceTable *spec = &table->spec;
	SluiceCursor cursor;
	size_t		count;

	if (!sluice_wire_get_row(frame, &row->head, &cursor))
		return damaged_frame(table);
	if (row->head.fingerprint != spec->fingerprint)
		return wrong_fingerprint(table, &row->head);
	if (!counts_fit(spec, &row->head, frame->tag))
		return damaged_frame(table);
	count = (size_t) row->head.nold + row->head.nnew;
	reserve(context, count + 1);
	for (size_t i = 0; i < count; i++)
		if (!sluice_cursor_value(&cursor, &context->values[i]))
			return damaged_frame(table);
	if (!sluice_cursor_done(&cursor))
		return damaged_frame(table);
	row->old = context->values;
	row->new = context->values + row->head.nold;
	return SLUICE_OK;
}

/* Where the key's values are; UNCHANGED in the new row means the old one's. */
static bool
find_keys(const SluiceTable *spec, Row *row)
{
	for (int k = 0; k < spec->nkey; k++)
	{
		int			at = spec->key[k];

		row->old_key[k] = row->head.old == SLUICE_OLD_KEY ? &row->old[k] :
			row->head.old == SLUICE_OLD_FULL ? &row->old[at] : &row->new[at];
		row->new_key[k] = row->head.nnew > 0 && row->new[at].class != SLUICE_UNCHANGED ?
			&row->new[at] : row->old_key[k];
		if (row->old_key[k]->class == SLUICE_UNCHANGED)
			return false;
	}
	return true;
}

static bool
key_changes(const SluiceTable *spec, const Row *row)
{
	for (int k = 0; k < spec->nkey; k++)
		if (!same_value(row->old_key[k], row->new_key[k]))
			return true;
	return false;
}

/* ---- the three changes ---- */

/* Steps, resets; one row must have been changed. */
static SluiceOutcome
step_one(SluiceRowContext *context, SluiceReplicaTable *table, sqlite3_stmt *statement, int rc,
		 const char *what, const SluiceValue *const *key)
{
	SluiceOutcome outcome = SLUICE_OK;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	if (rc != SQLITE_DONE)
		outcome = failed(context, table, rc, what, key);
	else if (sqlite3_changes(context->replica->db) != 1)
		outcome = missing(table, what, key);
	/* bindings stay: each execution binds all that its text names */
	sqlite3_reset(statement);
	return outcome;
}

static SluiceOutcome
log_row(SluiceRowContext *context, SluiceReplicaTable *table, char op,
		const SluiceValue *const *key)
{
	if (context->log == NULL || table->problem != NULL)
		return SLUICE_OK;
	return sluice_rowlog_row(context->log, table, op, key);
}

static int
bind_version(SluiceRowContext *context, sqlite3_stmt *statement, int parameter)
{
	return sqlite3_bind_text(statement, parameter, context->version, context->version_size,
							 SQLITE_STATIC);
}

static SluiceOutcome
insert_row(SluiceRowContext *context, SluiceReplicaTable *table, Row *row)
{
	sqlite3_stmt *statement = sluice_row_plan_insert(context->replica, table);
	int			n = table->spec.ncolumns;
	SluiceOutcome outcome;
	int			rc;

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	for (int i = 0; i < n; i++)
		if (row->new[i].class == SLUICE_UNCHANGED)
			return damaged_frame(table);
	rc = bind_all(statement, 1, row->new, n);
	if (rc == SQLITE_OK)
		rc = bind_version(context, statement, n + 1);
	outcome = step_one(context, table, statement, rc, "insert", row->new_key);
	return outcome == SLUICE_OK ? log_row(context, table, 's', row->new_key) : outcome;
}

static int
bind_old(sqlite3_stmt *statement, const SluiceTable *spec, const SluiceRowPlans *plans,
		 const Row *row)
{
	int			first = spec->ncolumns + 2;

	if (plans->by_row)
		return bind_all(statement, first, row->old, row->head.nold);
	for (int k = 0; k < spec->nkey; k++)
	{
		int			rc = bind(statement, first + k, row->old_key[k]);

		if (rc != SQLITE_OK)
			return rc;
	}
	return SQLITE_OK;
}

/* Without a usable key only a full old row tells which row it is. */
static bool
can_find(const SluiceReplicaTable *table, const SluiceRowPlans *plans, const Row *row,
		 const char *what)
{
	if (!plans->by_row || row->head.old == SLUICE_OLD_FULL)
		return true;
	sluice_log(SLUICE_ERROR, "cannot %s a row of table \"%s\": it has no key, and the change does "
			   "not carry the old row; hint: Give the table a primary key or REPLICA IDENTITY "
			   "FULL.", what, table->name);
	return false;
}

static SluiceOutcome
update_row(SluiceRowContext *context, SluiceReplicaTable *table, Row *row)
{
	const SluiceTable *spec = &table->spec;
	SluiceRowPlans *plans = sluice_row_plans(table);
	bool		moves = key_changes(spec, row);
	bool		by_old = plans->by_row || moves;
	sqlite3_stmt *statement;
	SluiceOutcome outcome = SLUICE_OK;
	int			rc;

	if (!can_find(table, plans, row, "update"))
		return SLUICE_INAPPLICABLE;
	/* a key column too large to be sent again: the old key has it */
	for (int k = 0; k < spec->nkey; k++)
		by_old |= row->new[spec->key[k]].class == SLUICE_UNCHANGED;
	statement = sluice_row_plan_update(context->replica, table, row->new, by_old);
	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	rc = bind_all(statement, 1, row->new, spec->ncolumns);
	if (rc == SQLITE_OK)
		rc = bind_version(context, statement, spec->ncolumns + 1);
	if (rc == SQLITE_OK && by_old)
		rc = bind_old(statement, spec, plans, row);
	outcome = step_one(context, table, statement, rc, "update", row->old_key);
	if (outcome == SLUICE_OK && moves)
		outcome = log_row(context, table, 'd', row->old_key);
	return outcome == SLUICE_OK ? log_row(context, table, 's', row->new_key) : outcome;
}

static SluiceOutcome
delete_row(SluiceRowContext *context, SluiceReplicaTable *table, Row *row)
{
	SluiceRowPlans *plans = sluice_row_plans(table);
	sqlite3_stmt *statement;
	SluiceOutcome outcome;

	if (row->head.old == SLUICE_OLD_NONE)
		return damaged_frame(table);
	if (!can_find(table, plans, row, "delete"))
		return SLUICE_INAPPLICABLE;
	statement = sluice_row_plan_delete(context->replica, table);
	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	outcome = step_one(context, table, statement, bind_old(statement, &table->spec, plans, row),
					   "delete", row->old_key);
	return outcome == SLUICE_OK ? log_row(context, table, 'd', row->old_key) : outcome;
}

SluiceOutcome
sluice_row_apply(SluiceRowContext *context, SluiceReplicaTable *table, const SluiceFrame *frame)
{
	const SluiceValue *keys[2 * 32];	/* INDEX_MAX_KEYS of PostgreSQL, old and new */
	Row			row = {.old_key = keys, .new_key = keys + 32};
	SluiceOutcome outcome = take_apart(context, table, frame, &row);

	if (outcome != SLUICE_OK)
		return outcome;
	/* a DELETE has its old row, of no values if the table has no columns */
	if (table->spec.nkey > 32 || !find_keys(&table->spec, &row))
		return damaged_frame(table);
	if (frame->tag == SLUICE_TAG_INSERT)
		return insert_row(context, table, &row);
	if (frame->tag == SLUICE_TAG_UPDATE)
		return update_row(context, table, &row);
	return delete_row(context, table, &row);
}

SluiceOutcome
sluice_row_truncate(SluiceRowContext *context, SluiceReplicaTable *table)
{
	sqlite3_stmt *statement = sluice_row_plan_truncate(context->replica, table);
	SluiceOutcome outcome = sluice_replica_step(context->replica, statement, "truncate a table");

	return outcome == SLUICE_OK && context->log != NULL ?
		sluice_rowlog_table(context->log, table, 't') : outcome;
}

SluiceOutcome
sluice_row_copy(SluiceReplica *replica, SluiceReplicaTable *table, const SluiceFrame *frame)
{
	SluiceRowContext context = {.replica = replica};
	const SluiceTable *spec = &table->spec;
	sqlite3_stmt *statement = sluice_row_plan_copy(replica, table);
	SluiceRowHead head;
	SluiceCursor cursor;
	SluiceValue value;
	const SluiceValue *key[32];
	SluiceValue null = {.class = SLUICE_NULL};
	SluiceOutcome outcome = SLUICE_OK;
	int			rc = SQLITE_OK;

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	if (frame->tag != SLUICE_TAG_INSERT || !sluice_wire_get_row(frame, &head, &cursor))
		return damaged_frame(table);
	if (head.fingerprint != spec->fingerprint)
		return wrong_fingerprint(table, &head);
	if (!counts_fit(spec, &head, frame->tag) || head.nold != 0)
		return damaged_frame(table);
	for (int i = 0; i < spec->ncolumns && rc == SQLITE_OK; i++)
	{
		if (!sluice_cursor_value(&cursor, &value) || value.class == SLUICE_UNCHANGED)
			return damaged_frame(table);
		rc = bind(statement, i + 1, &value);
	}
	if (!sluice_cursor_done(&cursor))
		return damaged_frame(table);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	if (rc != SQLITE_DONE)
	{
		for (int k = 0; k < 32; k++)
			key[k] = &null;
		outcome = failed(&context, table, rc, "insert", key);
	}
	sqlite3_reset(statement);
	return outcome;
}
