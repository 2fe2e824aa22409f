/*
 * copy_table.c: what one connection of a first copy brings, into the file.
 *
 * In: messages of docs/protocol.md, "copy".  Out: tables of the replica.
 * Runs in: the copying thread.  Locks: none.
 * States: see copy_table.h.
 */
#include <string.h>

#include "copy_table.h"
#include "log.h"
#include "names.h"
#include "row.h"
#include "schema.h"

void
sluice_copy_table_init(SluiceCopyTable *copy, SluiceReplica *replica, SluiceCopyList *list,
					   SluiceProgress *progress)
{
	memset(copy, 0, sizeof(*copy));
	copy->replica = replica;
	copy->list = list;
	copy->progress = progress;
	sluice_arena_init(&copy->arena);
}

void
sluice_copy_table_release(SluiceCopyTable *copy)
{
	sluice_arena_release(&copy->arena);
}

static SluiceOutcome
broken(const char *what)
{
	sluice_log(SLUICE_ERROR, "the server broke the protocol of the copy: %s", what);
	return SLUICE_RETRY;
}

static bool
name_is_taken(const SluiceReplica *replica, const char *name)
{
	for (size_t i = 0; i < sluice_replica_count(replica); i++)
	{
		if (sqlite3_stricmp(sluice_replica_at(replica, i)->name, name) == 0)
			return true;
	}
	return false;
}

/*
 * The SQLite name of a table whose header has come.  It may have been renamed
 * since the list was made; then its name can still be that of another table,
 * until the stream tells of that one's change.
 */
static const char *
choose_name(SluiceCopyTable *copy, const SluiceTable *spec)
{
	SluiceCopyItem *item = copy->item;
	SluiceArena *arena = &copy->list->arena;
	const char *plain;

	if (strcmp(item->schema, spec->schema) == 0 && strcmp(item->name, spec->name) == 0)
		return item->sqlite_name;
	item->schema = sluice_arena_strdup(arena, spec->schema);
	item->name = sluice_arena_strdup(arena, spec->name);
	sluice_copy_list_assign_names(copy->replica, copy->list);
	if (!name_is_taken(copy->replica, item->sqlite_name))
		return item->sqlite_name;
	plain = sluice_names_plain(spec->schema, spec->name, &arena->allocator);
	return sluice_arena_printf(arena, "%s~%x", plain, spec->oid);
}

/* H: the table is made. */
static SluiceOutcome
header(SluiceCopyTable *copy, const char *data, size_t size)
{
	const SluiceAllocator *a = &copy->arena.allocator;
	SluiceCursor cursor;
	SluiceTable spec;
	SluicePlaced placed;
	uint32_t	oid;
	size_t		used;
	int64_t		estimate;

	if (copy->table != NULL)
		return broken("a table begins inside another");
	sluice_cursor_init(&cursor, data, size);
	oid = sluice_cursor_u32(&cursor);
	if (cursor.damaged ||
		!sluice_table_decode(cursor.at, (size_t) (cursor.end - cursor.at), &used, a, &spec))
		return broken("a table's header is damaged");
	cursor.at += used;
	if (!sluice_placed_decode(&cursor, a, &placed))
		return broken("a table's snapshot is damaged");
	placed.low = sluice_cursor_watermark(&cursor);
	placed.high = sluice_cursor_u64(&cursor);
	estimate = (int64_t) sluice_cursor_u64(&cursor);
	sluice_cursor_u64(&cursor);
	if (!sluice_cursor_done(&cursor) || spec.oid != oid)
		return broken("a table's header is damaged");

	copy->item = sluice_copy_list_find(copy->list, oid);
	if (copy->item == NULL || copy->item->state != SLUICE_COPY_ASSIGNED ||
		sluice_replica_find(copy->replica, oid) != NULL)
		return broken("a table that was not asked for");
	if (estimate >= 0)
	{
		copy->progress->rows_expected += (double) (estimate - copy->item->rows);
		copy->item->rows = estimate;
	}
	copy->rows = 0;
	return sluice_schema_create_table(copy->replica, &spec, choose_name(copy, &spec), &placed,
									  placed.low, &copy->table);
}

/* The server gives the table up in the middle of it. */
static SluiceOutcome
problem(SluiceCopyTable *copy, const SluiceFrame *frame)
{
	SluiceTableProblem message;

	if (!sluice_wire_get_table_problem(frame, &copy->arena.allocator, &message) ||
		message.table_oid != copy->table->spec.oid)
		return broken("a table's problem is damaged");
	sluice_log(SLUICE_WARNING, "table \"%s\" is not followed: %s", copy->table->name,
			   message.problem);
	return sluice_replica_set_problem(copy->replica, copy->table, message.problem);
}

/* W: rows. */
static SluiceOutcome
rows(SluiceCopyTable *copy, const char *data, size_t size)
{
	SluiceOutcome outcome = SLUICE_OK;
	SluiceFrame frame;

	if (copy->table == NULL)
		return broken("rows outside of a table");
	copy->progress->bytes += size;
	while (size > 0 && outcome == SLUICE_OK)
	{
		if (sluice_wire_frame(data, size, &frame) != SLUICE_WIRE_OK)
			return broken("rows are damaged");
		data += frame.total;
		size -= frame.total;
		if (frame.tag == SLUICE_TAG_TABLE_PROBLEM)
		{
			outcome = problem(copy, &frame);
			continue;
		}
		if (frame.tag != SLUICE_TAG_INSERT)
			return broken("something else between rows");
		outcome = sluice_row_copy(copy->replica, copy->table, &frame);
		copy->rows++;
		copy->progress->rows++;
	}
	return outcome;
}

/* F: the table is complete.  Indexes come when all tables are there. */
static SluiceOutcome
finish(SluiceCopyTable *copy, const char *data, size_t size)
{
	SluiceReplicaTable *table = copy->table;
	SluiceOutcome outcome = SLUICE_OK;
	SluiceCursor cursor;
	uint32_t	oid;
	uint64_t	count;

	sluice_cursor_init(&cursor, data, size);
	oid = sluice_cursor_u32(&cursor);
	count = sluice_cursor_u64(&cursor);
	if (!sluice_cursor_done(&cursor) || table == NULL || table->spec.oid != oid)
		return broken("a table ends that did not begin");
	if (count != copy->rows)
		return broken("a table ends with another number of rows than came");

	/* better none of its rows than some */
	if (table->problem != NULL)
		outcome = sluice_row_truncate(&(SluiceRowContext) {.replica = copy->replica}, table);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_set_copied(copy->replica, table);
	if (outcome == SLUICE_OK)
		outcome = sluice_copy_list_done(copy->replica, copy->list, copy->item);
	if (outcome != SLUICE_OK)
		return outcome;

	sluice_log(SLUICE_DEBUG, "copied \"%s\", %llu rows", table->name,
			   (unsigned long long) copy->rows);
	sluice_row_release_plans(copy->replica, table);
	copy->progress->rows_expected += (double) copy->rows - (double) copy->item->rows;
	copy->progress->tables_done++;
	copy->table = NULL;
	copy->item = NULL;
	return SLUICE_OK;
}

/* N: the table is gone; the stream has its end. */
static SluiceOutcome
gone(SluiceCopyTable *copy, const char *data, size_t size)
{
	SluiceTable none = {.identity = 'n', .problem = SLUICE_PROBLEM_GONE};
	SluiceCopyItem *item;
	SluiceCursor cursor;
	SluiceReplicaTable *noted;
	SluiceOutcome outcome;
	uint32_t	oid;

	sluice_cursor_init(&cursor, data, size);
	oid = sluice_cursor_u32(&cursor);
	item = sluice_copy_list_find(copy->list, oid);
	if (!sluice_cursor_done(&cursor) || copy->table != NULL || item == NULL ||
		item->state != SLUICE_COPY_ASSIGNED)
		return broken("a table is gone that was not asked for");
	sluice_log(SLUICE_INFO, "table \"%s\".\"%s\" is gone, it is not copied", item->schema,
			   item->name);
	copy->progress->rows_expected -= (double) item->rows;
	copy->progress->tables_done++;

	/* the stream may still bring changes of it, and then its end */
	none.oid = oid;
	none.schema = item->schema;
	none.name = item->name;
	outcome = sluice_replica_note(copy->replica, &none, item->sqlite_name, NULL, &noted);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_set_copied(copy->replica, noted);
	return outcome == SLUICE_OK ?
		sluice_copy_list_done(copy->replica, copy->list, item) : outcome;
}

SluiceOutcome
sluice_copy_table_message(SluiceCopyTable *copy, const char *data, size_t size)
{
	SluiceOutcome outcome;

	if (size < 1)
		return broken("an empty message");
	switch (data[0])
	{
		case 'W':
			return rows(copy, data + 1, size - 1);
		case 'H':
			outcome = header(copy, data + 1, size - 1);
			break;
		case 'F':
			outcome = finish(copy, data + 1, size - 1);
			break;
		case 'N':
			outcome = gone(copy, data + 1, size - 1);
			break;
		case 'K':
			return SLUICE_OK;
		default:
			return broken("an unknown message");
	}
	sluice_arena_reset(&copy->arena);
	return outcome;
}

SluiceOutcome
sluice_copy_table_abandon(SluiceCopyTable *copy)
{
	SluiceReplicaTable *table = copy->table;

	if (table == NULL)
		return SLUICE_OK;
	copy->progress->rows -= copy->rows;
	copy->table = NULL;
	copy->item = NULL;
	return sluice_schema_drop_table(copy->replica, table);
}
