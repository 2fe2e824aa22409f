/*
 * apply_rate.c: how fast the agent applies a backlog, against what SQLite
 * itself does with the same statements, pragmas and commits.
 *
 * In: frames made in memory (no network, no server).  Out: a table of rates
 * and ratios: one-row transactions, transactions of 1,000 rows, one large one;
 * inserts and updates; row log on and off.
 * Baseline: the same values bound to prepared statements, committed after as
 * many transactions as the agent had on average, with the position's UPDATE
 * in each commit; -wal checkpointed by the same thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apply.h"
#include "checkpoint.h"
#include "log.h"
#include "schema.h"

#define PIECE 65536

static const SluiceColumn columns[] = {
	{1, SLUICE_COLUMN_NOT_NULL, SLUICE_STORAGE_INTEGER, 20, -1, -1, "id", "int8", NULL},
	{2, 0, SLUICE_STORAGE_TEXT, 25, -1, -1, "name", "text", NULL},
	{3, 0, SLUICE_STORAGE_ANY, 1700, -1, -1, "price", "numeric", NULL},
	{4, 0, SLUICE_STORAGE_ANY, 1184, -1, -1, "at", "timestamptz", NULL},
	{5, 0, SLUICE_STORAGE_INTEGER, 16, -1, -1, "flag", "bool", NULL},
};
static const uint16_t key[] = {0};
static SluiceTable spec = {
	.oid = 16384, .schema_oid = 2200, .identity = 'd', .ncolumns = 5, .nkey = 1,
	.schema = "public", .name = "items", .columns = columns, .key = key
};

/*
 * Time that the writing thread computes: waits for a busy machine or a disk do
 * not count, and the thread that checkpoints does not either.
 */
static int64_t
cpu_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static SluiceAgent agent = {.wake_fd = -1, .lock_fd = -1};
static char path[200];

typedef struct Work
{
	const char *name;
	bool		update;
	int			transactions;
	int			rows;			/* of each */
} Work;

static void
must(SluiceOutcome outcome)
{
	if (outcome != SLUICE_OK)
	{
		fprintf(stderr, "apply_rate: failed\n");
		exit(1);
	}
}

static SluiceReplica *
fresh_replica(void)
{
	SluiceOrigin origin = {.shard = "s", .replica_version = "00", .system_id = 1, .timeline = 1};
	SluicePosition position = {{1, 0}, 0, 0, 0};
	SluiceReplica *replica;
	SluiceReplicaTable *table;

	must(sluice_replica_remove(path));
	must(sluice_replica_open(&agent, path, SLUICE_OPEN_CREATE, &replica));
	must(sluice_replica_begin(replica));
	must(sluice_replica_set_origin(replica, &origin, NULL));
	must(sluice_replica_set_position(replica, &position));
	must(sluice_schema_create_table(replica, &spec, "items", NULL, position.watermark, &table));
	must(sluice_replica_set_copied(replica, table));
	must(sluice_replica_commit(replica, NULL));
	return replica;
}

/* The row's values, the same in both contestants. */
static void
values_of(int64_t id, bool update, char *name, SluiceValue *values)
{
	int			size = sprintf(name, "%s item number %lld", update ? "changed" : "new",
							   (long long) id);

	values[0] = (SluiceValue) {.class = SLUICE_INTEGER, .u.integer = id};
	values[1] = (SluiceValue) {.class = SLUICE_TEXT, .u.bytes = {name, (uint32_t) size}};
	values[2] = (SluiceValue) {.class = SLUICE_REAL, .u.real = (double) id + 0.25};
	values[3] = (SluiceValue) {.class = SLUICE_INTEGER, .u.integer = 1700000000000 + id};
	values[4] = (SluiceValue) {.class = SLUICE_INTEGER, .u.integer = id & 1};
}

/* Ids spread over the table, so that updates are not in key order. */
static int64_t
id_of(const Work *work, int64_t n)
{
	int64_t		all = (int64_t) work->transactions * work->rows;

	return work->update ? (n * 7919) % all + 1 : n + 1;
}

static uint64_t lsn;

static void
make_frames(const Work *work, SluiceBuffer *frames)
{
	SluiceRowHead head = {.table_oid = spec.oid, .fingerprint = spec.fingerprint, .nnew = 5};
	int64_t		n = 0;

	sluice_buffer_reset(frames);
	for (int t = 0; t < work->transactions; t++)
	{
		SluiceBegin begin = {{lsn += 100, 0}, lsn, 1700000000000000, 0};
		SluiceCommit commit = {{lsn, 0}, lsn + 40};

		sluice_wire_begin(frames, &begin);
		for (int r = 0; r < work->rows; r++)
		{
			SluiceValue values[5];
			char		name[60];
			size_t		frame = sluice_wire_open_row(frames, work->update ? SLUICE_TAG_UPDATE :
													 SLUICE_TAG_INSERT, &head);

			values_of(id_of(work, n++), work->update, name, values);
			for (int i = 0; i < 5; i++)
				sluice_wire_put_value(frames, &values[i]);
			sluice_wire_close(frames, frame);
		}
		sluice_wire_commit(frames, &commit);
	}
}

/* Rows a second; *commits is how many SQLite commits it took. */
static double
run_agent(const Work *work, SluiceReplica *replica, bool row_log, const SluiceBuffer *frames,
		  uint64_t *commits)
{
	SluiceOutcome outcome;
	SluiceApply *apply = sluice_apply_create(replica, row_log, &outcome);
	int64_t		start = cpu_clock();
	double		seconds;

	must(outcome);
	for (size_t at = 0; at < frames->length; at += PIECE)
		must(sluice_apply_bytes(apply, frames->data + at, frames->length - at < PIECE ?
								frames->length - at : PIECE));
	must(sluice_apply_flush(apply));
	seconds = (double) (cpu_clock() - start) / 1e6;
	*commits = sluice_apply_counts(apply).commits;
	sluice_apply_destroy(apply);
	return (double) work->transactions * work->rows / seconds;
}

static void
bind(sqlite3_stmt *statement, const SluiceValue *values, const char *version)
{
	sqlite3_bind_int64(statement, 1, values[0].u.integer);
	sqlite3_bind_text(statement, 2, values[1].u.bytes.data, (int) values[1].u.bytes.size, SQLITE_STATIC);
	sqlite3_bind_double(statement, 3, values[2].u.real);
	sqlite3_bind_int64(statement, 4, values[3].u.integer);
	sqlite3_bind_int64(statement, 5, values[4].u.integer);
	sqlite3_bind_text(statement, 6, version, -1, SQLITE_STATIC);
}

static double
run_sqlite(const Work *work, SluiceReplica *replica, uint64_t commits)
{
	int			per_commit = (int) (((uint64_t) work->transactions + commits - 1) / commits);
	sqlite3_stmt *statement;
	SluicePosition position = replica->position;
	int64_t		start = cpu_clock();
	int64_t		n = 0;
	char		version[SLUICE_WATERMARK_TEXT_MAX];

	sqlite3_prepare_v2(replica->db, work->update ?
					   "UPDATE items SET name = ?2, price = ?3, at = ?4, flag = ?5, _0_version = ?6"
					   " WHERE id = ?1" : "INSERT INTO items VALUES(?1, ?2, ?3, ?4, ?5, ?6)", -1,
					   &statement, NULL);
	for (int t = 0; t < work->transactions; t++)
	{
		if (t % per_commit == 0)
			must(sluice_replica_begin(replica));
		position.watermark.major += 100;
		sluice_watermark_format(position.watermark, version);
		for (int r = 0; r < work->rows; r++)
		{
			SluiceValue values[5];
			char		name[60];

			values_of(id_of(work, n++), work->update, name, values);
			bind(statement, values, version);
			if (sqlite3_step(statement) != SQLITE_DONE)
				must(SLUICE_INAPPLICABLE);
			sqlite3_reset(statement);
		}
		if (t % per_commit == per_commit - 1 || t == work->transactions - 1)
			must(sluice_replica_commit(replica, &position));
	}
	sqlite3_finalize(statement);
	return (double) work->transactions * work->rows /
		((double) (cpu_clock() - start) / 1e6);
}

static void
compare(const Work *inserts, const Work *updates)
{
	const Work *works[2] = {inserts, updates};
	SluiceBuffer frames[2];
	SluiceReplica *replica;
	double		on[2], off[2], limit[2];
	uint64_t	commits[2];

	for (int i = 0; i < 2; i++)
	{
		sluice_buffer_init(&frames[i], &sluice_malloc_allocator);
		make_frames(works[i], &frames[i]);
	}
	replica = fresh_replica();
	for (int i = 0; i < 2; i++)
		off[i] = run_agent(works[i], replica, false, &frames[i], &commits[i]);
	sluice_replica_close(replica);
	replica = fresh_replica();
	for (int i = 0; i < 2; i++)
		on[i] = run_agent(works[i], replica, true, &frames[i], &commits[i]);
	sluice_replica_close(replica);
	replica = fresh_replica();
	for (int i = 0; i < 2; i++)
		limit[i] = run_sqlite(works[i], replica, commits[i]);
	sluice_replica_close(replica);
	for (int i = 0; i < 2; i++)
	{
		printf("%-32s %9.0f %9.0f %9.0f   %5.2f  %5.2f  %7.1f\n", works[i]->name, limit[i], off[i],
			   on[i], off[i] / limit[i], on[i] / off[i],
			   (double) works[i]->transactions / (double) commits[i]);
		sluice_buffer_release(&frames[i]);
	}
}

int
main(int argc, char **argv)
{
	int			scale = argc > 2 ? atoi(argv[2]) : 1;
	Work		works[][2] = {
		{{"one-row transactions, insert", false, 200000 * scale, 1},
		{"one-row transactions, update", true, 200000 * scale, 1}},
		{{"1,000-row transactions, insert", false, 400 * scale, 1000},
		{"1,000-row transactions, update", true, 400 * scale, 1000}},
		{{"one large transaction, insert", false, 1, 400000 * scale},
		{"one large transaction, update", true, 1, 400000 * scale}},
	};

	snprintf(path, sizeof(path), "%s/apply_rate.db", argc > 1 ? argv[1] : "/tmp");
	sluice_log_set_level("error");
	spec.fingerprint = sluice_table_fingerprint(&spec);
	printf("%-32s %9s %9s %9s   %5s  %5s  %7s\n", "rows/s", "SQLite", "log off", "log on", "off/S",
		   "on/off", "tx/commit");
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		compare(&works[i][0], &works[i][1]);
	sluice_replica_remove(path);
	return 0;
}
