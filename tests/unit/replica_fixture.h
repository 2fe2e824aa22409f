/*
 * replica_fixture.h: a replica in a directory of its own, four tables, and
 * frames of the stream for them.
 *
 *   t (id int key, v text, n any, u int unique)
 *   w (a text, b int, key (b, a); c blob)
 *   late (id int deferrable key, v text), identity full
 *   bag (x any, y text), no key, identity full
 */
#ifndef SLUICE_REPLICA_FIXTURE_H
#define SLUICE_REPLICA_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apply.h"
#include "log.h"
#include "schema.h"
#include "unit.h"

#define T 16384
#define W 16390
#define LATE 16400
#define BAG 16410

#define NN SLUICE_COLUMN_NOT_NULL
#define I4(n, flags_, name_) {n, flags_, SLUICE_STORAGE_INTEGER, 23, -1, -1, name_, "int4", NULL}
#define TX(n, flags_, name_) {n, flags_, SLUICE_STORAGE_TEXT, 25, -1, -1, name_, "text", NULL}

static const SluiceColumn t_columns[] = {
	I4(1, NN, "id"), TX(2, 0, "v"),
	{3, 0, SLUICE_STORAGE_ANY, 1700, -1, -1, "n", "numeric", NULL}, I4(5, 0, "u")
};
static const SluiceColumn w_columns[] = {
	TX(1, NN, "a"), I4(2, NN, "b"), {3, 0, SLUICE_STORAGE_BLOB, 17, -1, -1, "c", "bytea", NULL}
};
static const SluiceColumn late_columns[] = {I4(1, NN, "id"), TX(2, 0, "v")};
static const SluiceColumn bag_columns[] = {
	{1, 0, SLUICE_STORAGE_ANY, 1700, -1, -1, "x", "numeric", NULL}, TX(2, 0, "y")
};
static const uint16_t first_key[] = {0};
static const uint16_t w_key[] = {1, 0};
static const SluiceIndexColumn on_1[] = {{1, false}};
static const SluiceIndexColumn on_5[] = {{5, false}};
static const SluiceIndexColumn on_2_1[] = {{2, false}, {1, true}};
static const SluiceIndex t_indexes[] = {
	{16385, SLUICE_INDEX_UNIQUE | SLUICE_INDEX_PRIMARY, 1, on_1, "t_pkey"},
	{16386, SLUICE_INDEX_UNIQUE, 1, on_5, "t_u"},
};
static const SluiceIndex w_indexes[] = {
	{16391, SLUICE_INDEX_UNIQUE | SLUICE_INDEX_PRIMARY, 2, on_2_1, "w_pkey"},
};
static const SluiceIndex late_indexes[] = {
	{16401, SLUICE_INDEX_UNIQUE | SLUICE_INDEX_PRIMARY | SLUICE_INDEX_DEFERRABLE, 1, on_1, "late_pkey"},
};
static SluiceTable tables[] = {
	{.oid = T, .schema_oid = 2200, .identity = 'd', .ncolumns = 4, .nkey = 1, .nindexes = 2,
		.schema = "public", .name = "t", .columns = t_columns, .key = first_key,
	.indexes = t_indexes},
	{.oid = W, .schema_oid = 2200, .identity = 'd', .ncolumns = 3, .nkey = 2, .nindexes = 1,
		.schema = "public", .name = "w", .columns = w_columns, .key = w_key, .indexes = w_indexes},
	{.oid = LATE, .schema_oid = 2200, .identity = 'f', .ncolumns = 2, .nkey = 1, .nindexes = 1,
		.schema = "public", .name = "late", .columns = late_columns, .key = first_key,
	.indexes = late_indexes},
	{.oid = BAG, .schema_oid = 2200, .identity = 'f', .ncolumns = 2, .schema = "public",
	.name = "bag", .columns = bag_columns},
};

static char directory[64];
static char path[100];
static SluiceAgent agent = {.wake_fd = -1, .lock_fd = -1};
static SluiceReplica *replica;
static SluiceApply *apply;
static SluiceBuffer frames;
static uint64_t next_lsn;

/* ---- the replica ---- */

static inline SluiceOutcome
reopen(void)
{
	sluice_apply_destroy(apply);
	apply = NULL;
	sluice_replica_close(replica);
	replica = NULL;
	return sluice_replica_open(&agent, path, SLUICE_OPEN_CREATE, &replica);
}

static inline void
start_apply(bool row_log)
{
	SluiceOutcome outcome;

	sluice_apply_destroy(apply);
	apply = sluice_apply_create(replica, row_log, &outcome);
	CU_ASSERT_PTR_NOT_NULL_FATAL(apply);
}

/* placed, if not NULL, is the place of t's snapshot */
static inline void
set_up_placed(const SluicePlaced *placed)
{
	SluiceOrigin origin = {.shard = "s", .replica_version = "4abcde", .system_id = 7, .timeline = 1};
	SluicePosition position = {{100, 0}, 0, 0, 0};

	strcpy(directory, "/tmp/sluice-unit-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/r.db", directory);
	agent.config.replica = path;
	sluice_buffer_init(&frames, &sluice_malloc_allocator);
	CU_ASSERT_EQUAL_FATAL(reopen(), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_replica_begin(replica), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_replica_set_origin(replica, &origin, "[\"p\"]"), SLUICE_OK);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
	{
		SluiceReplicaTable *table;

		tables[i].fingerprint = sluice_table_fingerprint(&tables[i]);
		CU_ASSERT_EQUAL(sluice_schema_create_table(replica, &tables[i], tables[i].name,
												   tables[i].oid == T ? placed : NULL,
												   position.watermark, &table), SLUICE_OK);
		CU_ASSERT_EQUAL(sluice_schema_create_indexes(replica, table, SLUICE_INDEXES_ALL),
						SLUICE_OK);
		CU_ASSERT_EQUAL(sluice_replica_set_copied(replica, table), SLUICE_OK);
	}
	CU_ASSERT_EQUAL(sluice_replica_set_position(replica, &position), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_replica_set_stage(replica, SLUICE_STAGE_READY), SLUICE_OK);
	CU_ASSERT_EQUAL(sluice_replica_commit(replica, NULL), SLUICE_OK);
	next_lsn = 1000;
	start_apply(true);
}

static inline void
set_up(void)
{
	set_up_placed(NULL);
}

static inline void
tear_down(void)
{
	char		command[120];

	sluice_apply_destroy(apply);
	sluice_replica_close(replica);
	apply = NULL;
	replica = NULL;
	sluice_buffer_release(&frames);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	CU_ASSERT_EQUAL(system(command), 0);
}

/* All values of a query's rows, by | and space, as another reader sees them. */
static inline const char *
query(const char *sql)
{
	static char text[100000];
	size_t		length = 0;
	sqlite3    *db;
	sqlite3_stmt *statement;

	text[0] = '\0';
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
		sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		snprintf(text, sizeof(text), "error: %s", sqlite3_errmsg(db));
	else
	{
		while (sqlite3_step(statement) == SQLITE_ROW && length < sizeof(text) - 2000)
		{
			length += (size_t) snprintf(text + length, 1000, "%s", length > 0 ? " " : "");
			for (int i = 0; i < sqlite3_column_count(statement); i++)
				length += (size_t) snprintf(text + length, 1000, "%s%s", i > 0 ? "|" : "",
											sqlite3_column_type(statement, i) == SQLITE_NULL ?
											"null" : (const char *) sqlite3_column_text(statement, i));
		}
		sqlite3_finalize(statement);
	}
	sqlite3_close(db);
	return text;
}

#define CHECK_QUERY(sql, expected) \
do { \
	const char *got_ = query(sql); \
	if (strcmp(got_, expected) != 0) \
		printf("\n%s: got \"%s\"\n", sql, got_); \
	CU_ASSERT_STRING_EQUAL(got_, expected); \
} while (0)

/* ---- frames ---- */

#define V_INT(x) {.class = SLUICE_INTEGER, .u.integer = (x)}
#define V_REAL(x) {.class = SLUICE_REAL, .u.real = (x)}
#define V_TEXT(x) {.class = SLUICE_TEXT, .u.bytes = {x, sizeof(x) - 1}}
#define V_BLOB(x) {.class = SLUICE_BLOB, .u.bytes = {x, sizeof(x) - 1}}
#define V_NULL {.class = SLUICE_NULL}
#define V_SAME {.class = SLUICE_UNCHANGED}
#define ROW(...) (const SluiceValue[]) {__VA_ARGS__}

static inline void
f_begin_xid(uint64_t xid)
{
	SluiceBegin begin = {{next_lsn, 0}, xid, 1700000000000000, 0};

	sluice_wire_begin(&frames, &begin);
}

static inline void
f_begin(void)
{
	f_begin_xid(next_lsn);
}

static inline void
f_commit(void)
{
	SluiceCommit commit = {{next_lsn, 0}, next_lsn + 8};

	sluice_wire_commit(&frames, &commit);
	next_lsn += 10;
}

static inline const SluiceTable *
spec_of(uint32_t oid)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (tables[i].oid == oid)
			return &tables[i];
	return NULL;
}

static inline void
f_row(SluiceTag tag, uint32_t oid, SluiceOldRow old, const SluiceValue *old_values,
	  const SluiceValue *new_values)
{
	const SluiceTable *spec = spec_of(oid);
	SluiceRowHead head = {
		.table_oid = oid, .fingerprint = spec->fingerprint, .old = old,
		.nold = old == SLUICE_OLD_KEY ? spec->nkey : old == SLUICE_OLD_FULL ? spec->ncolumns : 0,
		.nnew = tag == SLUICE_TAG_DELETE ? 0 : spec->ncolumns
	};
	size_t		frame = sluice_wire_open_row(&frames, tag, &head);

	for (int i = 0; i < head.nold; i++)
		sluice_wire_put_value(&frames, &old_values[i]);
	for (int i = 0; i < head.nnew; i++)
		sluice_wire_put_value(&frames, &new_values[i]);
	sluice_wire_close(&frames, frame);
}

static inline void
f_insert(uint32_t oid, const SluiceValue *values)
{
	f_row(SLUICE_TAG_INSERT, oid, SLUICE_OLD_NONE, NULL, values);
}

/* Hands over all frames, `step` bytes at a time (0: at once). */
static inline SluiceOutcome
feed(size_t step)
{
	SluiceOutcome outcome = SLUICE_OK;

	for (size_t at = 0; outcome == SLUICE_OK && at < frames.length;)
	{
		size_t		n = step == 0 || step > frames.length - at ? frames.length - at : step;
		char	   *copy = malloc(n);	/* so that a sanitizer sees what is kept */

		memcpy(copy, frames.data + at, n);
		outcome = sluice_apply_bytes(apply, copy, n);
		free(copy);
		at += n;
	}
	sluice_buffer_reset(&frames);
	return outcome;
}

static inline SluiceOutcome
feed_and_flush(void)
{
	SluiceOutcome outcome = feed(0);

	return outcome == SLUICE_OK ? sluice_apply_flush(apply) : outcome;
}

#endif
