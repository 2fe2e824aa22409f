/*
 * copy_list.c: the tables that are to be copied, and who copies them.
 *
 * In: the L message, _sluice.copy.  Out: batches, names.
 * Runs in: the copying thread.  Locks: none.
 */
#include <stdlib.h>
#include <string.h>

#include "copy_list.h"
#include "log.h"
#include "names.h"
#include "schema.h"

#define ITEM_MIN 32				/* of an item in the L message, in bytes */
#define BATCH_BYTES (16 * 1024 * 1024)	/* of small tables in one call */
#define USUAL_ROW 100			/* bytes, for a guess */
#define BATCH_ROW 4096			/* what a table costs beside its rows, as bytes */

void
sluice_copy_list_init(SluiceCopyList *list)
{
	memset(list, 0, sizeof(*list));
	sluice_arena_init(&list->arena);
}

void
sluice_copy_list_release(SluiceCopyList *list)
{
	sluice_arena_release(&list->arena);
	list->items = NULL;
	list->count = 0;
}

static int
by_size(const void *a, const void *b)
{
	const SluiceCopyItem *left = a;
	const SluiceCopyItem *right = b;

	if (left->bytes != right->bytes)
		return left->bytes > right->bytes ? -1 : 1;
	return left->oid < right->oid ? -1 : left->oid > right->oid;
}

static int
by_oid(const void *a, const void *b)
{
	uint32_t	left = (*(SluiceCopyItem *const *) a)->oid;
	uint32_t	right = (*(SluiceCopyItem *const *) b)->oid;

	return (left > right) - (left < right);
}

static void
arrange(SluiceCopyList *list)
{
	list->by_oid = sluice_arena_alloc(&list->arena, (list->count + 1) * sizeof(SluiceCopyItem *));
	if (list->count > 0)
		qsort(list->items, list->count, sizeof(SluiceCopyItem), by_size);
	for (size_t i = 0; i < list->count; i++)
		list->by_oid[i] = &list->items[i];
	if (list->count > 0)
		qsort(list->by_oid, list->count, sizeof(SluiceCopyItem *), by_oid);
	list->waiting = 0;
	list->done = 0;
	for (size_t i = 0; i < list->count; i++)
	{
		list->waiting += list->items[i].state == SLUICE_COPY_WAITING;
		list->done += list->items[i].state == SLUICE_COPY_DONE;
	}
}

/* A table that was never analysed says nothing of its rows. */
static int64_t
guess_rows(int64_t rows, int64_t bytes)
{
	return rows >= 0 ? rows : bytes / USUAL_ROW;
}

static bool
decode_items(SluiceCopyList *list, SluiceCursor *cursor)
{
	const SluiceAllocator *a = &list->arena.allocator;
	uint32_t	count = sluice_cursor_u32(cursor);

	if (cursor->damaged || count > (size_t) (cursor->end - cursor->at) / ITEM_MIN)
		return false;
	list->items = sluice_arena_alloc(&list->arena, (count + 1) * sizeof(SluiceCopyItem));
	list->count = count;
	for (uint32_t i = 0; i < count; i++)
	{
		SluiceCopyItem *item = &list->items[i];

		item->oid = sluice_cursor_u32(cursor);
		item->schema = sluice_cursor_string(cursor, a);
		item->name = sluice_cursor_string(cursor, a);
		item->rows = (int64_t) sluice_cursor_u64(cursor);
		item->bytes = (int64_t) sluice_cursor_u64(cursor);
		if (item->bytes < 0)
			item->bytes = 0;
		item->rows = guess_rows(item->rows, item->bytes);
		item->problem = sluice_cursor_string(cursor, a);
		if (item->problem != NULL && item->problem[0] == '\0')
			item->problem = NULL;
		if (item->problem != NULL)
			item->state = SLUICE_COPY_DONE;
		if (item->schema == NULL || item->name == NULL)
			return false;
	}
	return true;
}

bool
sluice_copy_list_decode(SluiceCopyList *list, const char *data, size_t size)
{
	const SluiceAllocator *a = &list->arena.allocator;
	SluiceCursor cursor;
	SluiceWatermark version;

	sluice_cursor_init(&cursor, data, size);
	list->origin.system_id = sluice_cursor_u64(&cursor);
	list->origin.timeline = sluice_cursor_u32(&cursor);
	list->origin.replica_version = sluice_cursor_string(&cursor, a);
	if (!sluice_placed_decode(&cursor, a, &list->placed))
		return false;
	list->placed.low = sluice_cursor_watermark(&cursor);
	list->placed.high = sluice_cursor_u64(&cursor);
	if (list->origin.replica_version == NULL ||
		!sluice_watermark_parse(list->origin.replica_version, &version) ||
		!decode_items(list, &cursor))
		return false;
	list->origin.timestamps = sluice_cursor_u8(&cursor);
	list->origin.numerics = sluice_cursor_u8(&cursor);
	list->publications = sluice_cursor_string(&cursor, a);
	if (list->publications == NULL || !sluice_cursor_done(&cursor))
		return false;
	arrange(list);
	return true;
}

/* ---- in the file ---- */

static const char create_sql[] =
	"CREATE TABLE \"_sluice.copy\"(oid INTEGER PRIMARY KEY, \"schema\" TEXT NOT NULL,"
	" name TEXT NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT";
static const char insert_sql[] =
	"INSERT INTO \"_sluice.copy\"(oid, \"schema\", name, rows, bytes) VALUES(?, ?, ?, ?, ?)";
static const char select_sql[] =
	"SELECT oid, \"schema\", name, rows, bytes FROM \"_sluice.copy\"";
static const char delete_sql[] =
	"DELETE FROM \"_sluice.copy\" WHERE oid = ?";

SluiceOutcome
sluice_copy_list_store(SluiceReplica *replica, const SluiceCopyList *list)
{
	SluiceOutcome outcome = sluice_replica_exec(replica, create_sql, "create \"_sluice.copy\"");

	for (size_t i = 0; i < list->count && outcome == SLUICE_OK; i++)
	{
		const SluiceCopyItem *item = &list->items[i];
		sqlite3_stmt *statement;

		if (item->problem != NULL)
		{
			sluice_log(SLUICE_WARNING, "table \"%s\".\"%s\" is not copied: %s", item->schema,
					   item->name, item->problem);
			continue;
		}
		statement = sluice_replica_statement(replica, insert_sql);
		if (statement == NULL)
			return SLUICE_UNUSABLE;
		sqlite3_bind_int64(statement, 1, item->oid);
		sqlite3_bind_text(statement, 2, item->schema, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 3, item->name, -1, SQLITE_STATIC);
		sqlite3_bind_int64(statement, 4, item->rows);
		sqlite3_bind_int64(statement, 5, item->bytes);
		outcome = sluice_replica_step(replica, statement, "note the tables to copy");
	}
	return outcome;
}

static void
load_item(SluiceCopyList *list, sqlite3_stmt *statement)
{
	SluiceCopyItem *item = &list->items[list->count++];

	item->oid = (uint32_t) sqlite3_column_int64(statement, 0);
	item->schema = sluice_arena_strdup(&list->arena,
									   (const char *) sqlite3_column_text(statement, 1));
	item->name = sluice_arena_strdup(&list->arena,
									 (const char *) sqlite3_column_text(statement, 2));
	item->rows = sqlite3_column_int64(statement, 3);
	item->bytes = sqlite3_column_int64(statement, 4);
}

SluiceOutcome
sluice_copy_list_load(SluiceReplica *replica, SluiceCopyList *list)
{
	sqlite3_stmt *statement;
	size_t		capacity = 0;
	int			rc;

	rc = sqlite3_prepare_v2(replica->db, select_sql, -1, &statement, NULL);
	if (rc != SQLITE_OK)
		return sluice_replica_failure(replica, rc, "read the tables to copy");
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
	{
		if (list->count == capacity)
		{
			capacity = capacity * 2 + 100;
			list->items = list->arena.allocator.grow(&list->arena, list->items,
													 capacity * sizeof(SluiceCopyItem));
			memset(list->items + list->count, 0,
				   (capacity - list->count) * sizeof(SluiceCopyItem));
		}
		load_item(list, statement);
	}
	sqlite3_finalize(statement);
	if (rc != SQLITE_DONE)
		return sluice_replica_failure(replica, rc, "read the tables to copy");
	arrange(list);
	return SLUICE_OK;
}

SluiceOutcome
sluice_copy_list_done(SluiceReplica *replica, SluiceCopyList *list, SluiceCopyItem *item)
{
	sqlite3_stmt *statement = sluice_replica_statement(replica, delete_sql);
	SluiceOutcome outcome;

	if (statement == NULL)
		return SLUICE_UNUSABLE;
	sqlite3_bind_int64(statement, 1, item->oid);
	outcome = sluice_replica_step(replica, statement, "note that a table is copied");
	if (outcome == SLUICE_OK)
	{
		if (item->state == SLUICE_COPY_WAITING)
			list->waiting--;
		item->state = SLUICE_COPY_DONE;
		list->done++;
	}
	return outcome;
}

/* ---- names ---- */

void
sluice_copy_list_assign_names(SluiceReplica *replica, SluiceCopyList *list)
{
	size_t		nold = sluice_replica_count(replica);
	size_t		n = 0;
	SluiceTable *tables = calloc(nold + list->count + 1, sizeof(SluiceTable));
	const char **names = calloc(nold + list->count + 1, sizeof(char *));

	if (tables == NULL || names == NULL)
		abort();
	for (size_t i = 0; i < list->count; i++)
	{
		if (list->items[i].problem != NULL)
			continue;
		tables[n].oid = list->items[i].oid;
		tables[n].schema = list->items[i].schema;
		tables[n++].name = list->items[i].name;
	}
	for (size_t i = 0; i < nold; i++)
	{
		const SluiceReplicaTable *old = sluice_replica_at(replica, i);

		if (sluice_copy_list_find(list, old->spec.oid) == NULL)
			tables[n++] = old->spec;
	}
	sluice_schema_table_names(tables, n, names, &list->arena.allocator);
	n = 0;
	for (size_t i = 0; i < list->count; i++)
	{
		if (list->items[i].problem == NULL)
			list->items[i].sqlite_name = names[n++];
	}
	free(tables);
	free(names);
}

/* ---- batches ---- */

SluiceCopyItem *
sluice_copy_list_find(SluiceCopyList *list, uint32_t oid)
{
	size_t		low = 0;
	size_t		high = list->count;

	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (list->by_oid[middle]->oid == oid)
			return list->by_oid[middle];
		if (list->by_oid[middle]->oid < oid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

size_t
sluice_copy_list_take(SluiceCopyList *list, int jobs, uint32_t *oids, size_t max)
{
	size_t		most = list->waiting / ((size_t) jobs * 2) + 1;
	size_t		n = 0;
	int64_t		bytes = 0;

	if (most > max)
		most = max;
	for (size_t i = 0; i < list->count && n < most; i++)
	{
		SluiceCopyItem *item = &list->items[i];

		if (item->state != SLUICE_COPY_WAITING)
			continue;
		bytes += item->bytes + BATCH_ROW;
		if (n > 0 && bytes > BATCH_BYTES)
			break;
		item->state = SLUICE_COPY_ASSIGNED;
		list->waiting--;
		oids[n++] = item->oid;
	}
	return n;
}

void
sluice_copy_list_give_back(SluiceCopyList *list, const uint32_t *oids, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		SluiceCopyItem *item = sluice_copy_list_find(list, oids[i]);

		if (item != NULL && item->state == SLUICE_COPY_ASSIGNED)
		{
			item->state = SLUICE_COPY_WAITING;
			list->waiting++;
		}
	}
}
