/*
 * schema_change.c: see schema_change.h.
 *
 * In: frames.  Out: tables, columns and indexes of the file; the row log; the
 * notes of tables.
 * Runs in: the thread that owns the replica.  Locks: none.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "rename.h"
#include "rebuild.h"
#include "replica_meta.h"
#include "schema.h"
#include "schema_change.h"
#include "sql_text.h"

typedef struct Change
{
	SluiceRowContext *context;
	SluiceReplica *replica;
	const SluiceAllocator *allocator;
	const SluiceTable *spec;	/* after it */
	uint32_t	oid;
} Change;

bool
sluice_schema_change_is(SluiceTag tag)
{
	switch (tag)
	{
		case SLUICE_TAG_CREATE_TABLE:
		case SLUICE_TAG_RENAME_TABLE:
		case SLUICE_TAG_TABLE_METADATA:
		case SLUICE_TAG_ADD_COLUMN:
		case SLUICE_TAG_UPDATE_COLUMN:
		case SLUICE_TAG_DROP_COLUMN:
		case SLUICE_TAG_DROP_TABLE:
		case SLUICE_TAG_CREATE_INDEX:
		case SLUICE_TAG_DROP_INDEX:
			return true;
		default:
			return false;
	}
}

uint32_t
sluice_schema_change_table(const SluiceFrame *frame, const SluiceAllocator *allocator)
{
	SluiceCreateTable create;
	SluiceTableChange table;
	SluiceColumnChange column;
	SluiceIndexChange index;
	uint32_t	oid = 0;

	switch (frame->tag)
	{
		case SLUICE_TAG_CREATE_TABLE:
			return sluice_wire_get_create_table(frame, allocator, &create) ? create.table.oid : 0;
		case SLUICE_TAG_RENAME_TABLE:
		case SLUICE_TAG_TABLE_METADATA:
			return sluice_wire_get_table_change(frame, allocator, &table) ? table.table_oid : 0;
		case SLUICE_TAG_ADD_COLUMN:
		case SLUICE_TAG_UPDATE_COLUMN:
		case SLUICE_TAG_DROP_COLUMN:
			return sluice_wire_get_column_change(frame, allocator, &column) ?
				column.table.oid : 0;
		case SLUICE_TAG_CREATE_INDEX:
		case SLUICE_TAG_DROP_INDEX:
			return sluice_wire_get_index_change(frame, allocator, &index) ? index.table.oid : 0;
		case SLUICE_TAG_DROP_TABLE:
			return sluice_wire_get_drop_table(frame, &oid) ? oid : 0;
		default:
			return 0;
	}
}

static SluiceOutcome
unreadable(void)
{
	sluice_log(SLUICE_ERROR, "a schema change cannot be read: the stream is damaged");
	return SLUICE_RETRY;
}

/* Readers have to look at the whole table again. */
static SluiceOutcome
announce(Change *change, SluiceReplicaTable *table)
{
	SluiceOutcome outcome = sluice_replica_bump(change->replica, table,
												change->context->version);

	if (outcome == SLUICE_OK && change->context->log != NULL)
		outcome = sluice_rowlog_table(change->context->log, table, 'r');
	return outcome;
}

static SluiceOutcome
announce_oid(Change *change)
{
	return announce(change, sluice_replica_find(change->replica, change->oid));
}

/* ---- tables ---- */

static SluiceOutcome
create_table(Change *change, const SluiceFrame *frame)
{
	SluiceCreateTable create;
	SluiceWatermark none = {0, 0};
	SluiceReplicaTable *table;
	const char *name;
	SluiceOutcome outcome;

	if (!sluice_wire_get_create_table(frame, change->allocator, &create))
		return unreadable();
	if (create.backfill != NULL)
	{
		sluice_log(SLUICE_ERROR, "the stream has a backfill, which this version does not follow; "
				   "hint: Upgrade sluice-agent.");
		return SLUICE_INAPPLICABLE;
	}
	outcome = sluice_rename_tables(change->replica, &create.table, 0, change->allocator, &name);
	if (outcome == SLUICE_OK)
		outcome = sluice_schema_create_table(change->replica, &create.table, name, NULL, none,
											 &table);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_set_copied(change->replica, table);
	if (outcome == SLUICE_OK)
		outcome = sluice_schema_create_indexes(change->replica, table, SLUICE_INDEXES_ALL);
	if (outcome != SLUICE_OK)
		return outcome;
	sluice_log(SLUICE_INFO, "table \"%s\" was created", name);
	return announce(change, table);
}

static SluiceOutcome
drop_table(Change *change, SluiceReplicaTable *table)
{
	SluiceOutcome outcome = SLUICE_OK;

	sluice_log(SLUICE_INFO, "table \"%s\" was dropped", table->name);
	if (change->context->log != NULL)
		outcome = sluice_rowlog_table(change->context->log, table, 'r');
	if (outcome == SLUICE_OK)
		outcome = sluice_schema_drop_table(change->replica, table);
	if (outcome == SLUICE_OK)
		outcome = sluice_rename_tables(change->replica, NULL, change->oid, change->allocator, NULL);
	return outcome;
}

/* The old name and the new one. */
static SluiceOutcome
rename_table(Change *change, SluiceReplicaTable *table)
{
	SluiceOutcome outcome = SLUICE_OK;

	if (change->context->log != NULL)
		outcome = sluice_rowlog_table(change->context->log, table, 'r');
	if (outcome == SLUICE_OK)
		outcome = sluice_rename_tables(change->replica, change->spec, 0, change->allocator, NULL);
	return outcome == SLUICE_OK ? announce_oid(change) : outcome;
}

/*
 * A key that is INTEGER PRIMARY KEY in the file takes no null and no value
 * twice: when it is the key no more, the table cannot stay as it is.
 */
static SluiceOutcome
change_key(Change *change, SluiceReplicaTable *table)
{
	SluiceOutcome outcome;

	if (table->integer_key &&
		(!sluice_replica_wants_integer_key(change->spec) ||
		 change->spec->columns[change->spec->key[0]].attnum !=
		 table->spec.columns[table->spec.key[0]].attnum))
		outcome = sluice_rebuild_table(change->replica, table, change->spec);
	else
		outcome = sluice_rename_columns(change->replica, table, change->spec);
	return outcome == SLUICE_OK ? announce_oid(change) : outcome;
}

/* ---- columns ---- */

/*
 * SQLite makes an integer of a column's DEFAULT where that loses nothing but
 * the class and the sign of zero.
 */
static bool
default_changes(const SluiceValue *value)
{
	return value->class == SLUICE_REAL && value->u.real == floor(value->u.real) &&
		fabs(value->u.real) < 1e19;
}

/* Old rows show the DEFAULT: nothing is copied, however many there are. */
static SluiceOutcome
alter_add(Change *change, const SluiceReplicaTable *table, int position,
		  const SluiceValue *initial)
{
	SluiceBuffer sql;

	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	sluice_sql_put(&sql, "ALTER TABLE ");
	sluice_names_quote(&sql, table->name);
	sluice_sql_put(&sql, " ADD COLUMN ");
	sluice_names_quote(&sql, table->columns[position]);
	sluice_sql_put(&sql, " ");
	sluice_sql_put(&sql, sluice_schema_declared(change->spec->columns[position].storage));
	if (initial->class != SLUICE_NULL && !default_changes(initial))
	{
		sluice_sql_put(&sql, " DEFAULT ");
		sluice_sql_literal(&sql, initial);
	}
	return sluice_sql_alter(change->replica, &sql, "add a column");
}

static SluiceOutcome
set_all(Change *change, const SluiceReplicaTable *table, int position, double value)
{
	SluiceBuffer sql;
	sqlite3_stmt *statement;
	SluiceOutcome outcome;
	int			rc;

	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	sluice_sql_put(&sql, "UPDATE ");
	sluice_names_quote(&sql, table->name);
	sluice_sql_put(&sql, " SET ");
	sluice_names_quote(&sql, table->columns[position]);
	sluice_sql_put(&sql, " = ?1");
	rc = sqlite3_prepare_v2(change->replica->db, sql.data, (int) sql.length, &statement, NULL);
	sluice_buffer_release(&sql);
	if (rc != SQLITE_OK)
		return sluice_replica_failure(change->replica, rc, "fill a new column");
	sqlite3_bind_double(statement, 1, value);
	outcome = sluice_replica_step(change->replica, statement, "fill a new column");
	sqlite3_finalize(statement);
	return outcome;
}

static SluiceOutcome
add_column(Change *change, SluiceReplicaTable *table, const SluiceColumnChange *column)
{
	int			position = sluice_table_column_by_attnum(change->spec, column->attnum);
	SluiceOutcome outcome;

	if (position < 0)
		return unreadable();
	outcome = sluice_rename_columns(change->replica, table, change->spec);
	if (outcome != SLUICE_OK)
		return outcome;
	table = sluice_replica_find(change->replica, change->oid);
	outcome = alter_add(change, table, position, &column->initial);
	if (outcome == SLUICE_OK && default_changes(&column->initial))
		outcome = set_all(change, table, position, column->initial.u.real);
	return outcome == SLUICE_OK ? announce(change, table) : outcome;
}

static SluiceOutcome
drop_column(Change *change, SluiceReplicaTable *table, int attnum)
{
	int			position = sluice_table_column_by_attnum(&table->spec, attnum);
	SluiceBuffer sql;
	SluiceOutcome outcome;

	if (position < 0)
		return unreadable();
	if (table->integer_key && table->spec.key[0] == position)
		outcome = sluice_rebuild_table(change->replica, table, change->spec);
	else
	{
		sluice_row_release_plans(change->replica, table);
		sluice_buffer_init(&sql, &sluice_malloc_allocator);
		sluice_sql_put(&sql, "ALTER TABLE ");
		sluice_names_quote(&sql, table->name);
		sluice_sql_put(&sql, " DROP COLUMN ");
		sluice_names_quote(&sql, table->columns[position]);
		outcome = sluice_sql_alter(change->replica, &sql, "drop a column");
		if (outcome == SLUICE_OK)
			outcome = sluice_rename_columns(change->replica, table, change->spec);
	}
	return outcome == SLUICE_OK ? announce_oid(change) : outcome;
}

static SluiceOutcome
update_column(Change *change, SluiceReplicaTable *table, int attnum)
{
	int			before = sluice_table_column_by_attnum(&table->spec, attnum);
	int			after = sluice_table_column_by_attnum(change->spec, attnum);
	SluiceOutcome outcome;

	if (before < 0 || after < 0)
		return unreadable();
	if (table->spec.columns[before].storage != change->spec->columns[after].storage)
	{
		sluice_log(SLUICE_ERROR, "column \"%s\" of table \"%s\" has got another form, and its "
				   "rows do not come with it; hint: Upgrade sluice-agent.",
				   table->columns[before], table->name);
		return SLUICE_INAPPLICABLE;
	}
	/* an INTEGER PRIMARY KEY takes no null */
	if (table->integer_key && table->spec.key[0] == before &&
		!sluice_replica_wants_integer_key(change->spec))
		outcome = sluice_rebuild_table(change->replica, table, change->spec);
	else
		outcome = sluice_rename_columns(change->replica, table, change->spec);
	return outcome == SLUICE_OK ? announce_oid(change) : outcome;
}

static SluiceOutcome
change_column(Change *change, SluiceReplicaTable *table, const SluiceFrame *frame)
{
	SluiceColumnChange column;

	if (!sluice_wire_get_column_change(frame, change->allocator, &column))
		return unreadable();
	change->spec = &column.table;
	if (column.backfill)
	{
		sluice_log(SLUICE_ERROR, "the stream has a backfill, which this version does not follow; "
				   "hint: Upgrade sluice-agent.");
		return SLUICE_INAPPLICABLE;
	}
	if (frame->tag == SLUICE_TAG_ADD_COLUMN)
		return add_column(change, table, &column);
	if (frame->tag == SLUICE_TAG_DROP_COLUMN)
		return drop_column(change, table, column.attnum);
	return update_column(change, table, column.attnum);
}

/* ---- indexes ---- */

static SluiceOutcome
change_index(Change *change, SluiceReplicaTable *table, const SluiceFrame *frame)
{
	SluiceIndexChange index;
	SluiceOutcome outcome = SLUICE_OK;

	if (!sluice_wire_get_index_change(frame, change->allocator, &index))
		return unreadable();
	change->spec = &index.table;
	if (frame->tag == SLUICE_TAG_DROP_INDEX)
		outcome = sluice_rename_drop_index(change->replica, index.index_oid);
	if (outcome == SLUICE_OK)
		outcome = sluice_rename_columns(change->replica, table, change->spec);
	if (outcome != SLUICE_OK || frame->tag == SLUICE_TAG_DROP_INDEX)
		return outcome;
	table = sluice_replica_find(change->replica, change->oid);
	outcome = sluice_schema_create_indexes(change->replica, table, SLUICE_INDEXES_ALL);
	return outcome == SLUICE_OK ? announce(change, table) : outcome;
}

/* ---- entry ---- */

SluiceOutcome
sluice_schema_change_apply(SluiceRowContext *context, SluiceReplicaTable *table,
						   const SluiceFrame *frame, const SluiceAllocator *allocator)
{
	Change		change = {.context = context,.replica = context->replica,.allocator = allocator};
	SluiceTableChange whole;

	change.oid = sluice_schema_change_table(frame, allocator);
	switch (frame->tag)
	{
		case SLUICE_TAG_CREATE_TABLE:
			/* a table that the copy's list had, and whose definition came with it */
			return table != NULL ? SLUICE_OK : create_table(&change, frame);
		case SLUICE_TAG_DROP_TABLE:
			return drop_table(&change, table);
		case SLUICE_TAG_RENAME_TABLE:
		case SLUICE_TAG_TABLE_METADATA:
			if (!sluice_wire_get_table_change(frame, allocator, &whole))
				return unreadable();
			change.spec = &whole.table;
			return frame->tag == SLUICE_TAG_RENAME_TABLE ? rename_table(&change, table) :
				change_key(&change, table);
		case SLUICE_TAG_CREATE_INDEX:
		case SLUICE_TAG_DROP_INDEX:
			return change_index(&change, table, frame);
		default:
			return change_column(&change, table, frame);
	}
}
