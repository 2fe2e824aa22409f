/*
 * test_replica.c: the file: opening, damage, locks, durability, checkpoints,
 * swapping.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "checkpoint.h"
#include "filelock.h"
#include "replica_fixture.h"

static void
one_row(int64_t id)
{
	f_begin();
	f_insert(T, ROW(V_INT(id), V_TEXT("text"), V_NULL, V_NULL));
	f_commit();
	CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
}

/* True as soon as the condition holds, within ten seconds. */
#define WAIT_FOR(condition) \
do { \
	int waits_ = 0; \
	while (!(condition) && waits_++ < 1000) \
		usleep(10000); \
	CU_ASSERT_TRUE(condition); \
} while (0)

static void
stop_apply(void)
{
	sluice_apply_destroy(apply);
	apply = NULL;
	sluice_replica_close(replica);
	replica = NULL;
}

static void
test_state_is_kept(void)
{
	SluicePosition position;
	SluicePosition before = {{0, 0}, 0, 0, 0};

	set_up();
	CHECK_QUERY("SELECT replicaVersion, publications FROM \"_zero.replicationConfig\"",
				"4abcde|[\"p\"]");
	CHECK_QUERY("SELECT dataVersion, schemaVersion FROM \"_zero.versionHistory\"", "17|17");
	CHECK_QUERY("SELECT \"schema\", \"table\", minRowVersion, upstreamMetadata FROM"
				" \"_zero.tableMetadata\" WHERE \"table\" = 'w'",
				"public|w|00|{\"schemaOID\":2200,\"relationOID\":16390,\"rowKey\":{\"b\":{\"attNum\":2},\"a\":{\"attNum\":1}}}");
	CHECK_QUERY("SELECT column_name, upstream_type, is_not_null FROM \"_zero.column_metadata\""
				" WHERE table_name = 't' ORDER BY rowid", "id|int4|1 v|text|0 n|numeric|0 u|int4|0");
	CHECK_QUERY("SELECT sql FROM sqlite_schema WHERE name = 't'",
				"CREATE TABLE \"t\"(\"id\" INTEGER PRIMARY KEY, \"v\" TEXT, \"n\" ANY, \"u\" INTEGER,"
				" \"_0_version\" TEXT NOT NULL) STRICT");
	CHECK_QUERY("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name IN ('t', 'w', 'late')"
				" AND sql IS NOT NULL ORDER BY 1",
				"late_pkey|CREATE INDEX \"late_pkey\" ON \"late\"(\"id\")"
				" t_u|CREATE UNIQUE INDEX \"t_u\" ON \"t\"(\"u\")"
				" w_pkey|CREATE UNIQUE INDEX \"w_pkey\" ON \"w\"(\"b\", \"a\" DESC)");
	one_row(1);
	position = replica->position;
	stop_apply();
	CU_ASSERT_EQUAL(reopen(), SLUICE_OK);
	CU_ASSERT_EQUAL(replica->position.watermark.major, position.watermark.major);
	CU_ASSERT_EQUAL(replica->position.xid, position.xid);
	CU_ASSERT_EQUAL(replica->position.commit_time, position.commit_time);
	CU_ASSERT_EQUAL(replica->stage, SLUICE_STAGE_READY);
	CU_ASSERT_STRING_EQUAL(replica->origin.replica_version, "4abcde");
	CU_ASSERT_EQUAL(sluice_replica_count(replica), 4);
	CU_ASSERT_STRING_EQUAL(sluice_replica_find(replica, W)->columns[2], "c");
	CU_ASSERT_TRUE(sluice_replica_find(replica, T)->integer_key);
	CU_ASSERT_FALSE(sluice_replica_find(replica, LATE)->integer_key);
	/* a bare position stands for what starts before it */
	before.watermark.major = 100;
	before.seen = 101;
	CU_ASSERT_EQUAL(sluice_replica_resume(&before).major, 100);
	before.seen = 102;
	CU_ASSERT_EQUAL(sluice_replica_resume(&before).major, 101);
	tear_down();
}

/* POS-11: durable follows applied, and only after a sync. */
static void
test_durable(void)
{
	set_up();
	for (int i = 1; i <= 3; i++)
	{
		uint64_t	applied;

		one_row(i);
		applied = replica->position.watermark.major;
		CU_ASSERT(sluice_checkpoint_durable(replica->checkpoint).watermark.major < applied);
		WAIT_FOR(sluice_checkpoint_durable(replica->checkpoint).watermark.major == applied);
	}
	tear_down();
}

/* A second agent is refused, by name of the first. */
static void
test_locked(void)
{
	SluiceAgent other = agent;
	char		expected[60];
	pid_t		child;
	int			status;

	set_up();
	CU_ASSERT_EQUAL(sluice_filelock_take(&agent, path), SLUICE_OK);
	child = fork();
	if (child == 0)
	{
		SluiceOutcome outcome = sluice_filelock_take(&other, path);

		snprintf(expected, sizeof(expected), "(pid %ld)", (long) getppid());
		_exit(outcome == SLUICE_UNUSABLE && strstr(sluice_log_last_error(), expected) != NULL ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	sluice_filelock_release(&agent);
	CU_ASSERT_EQUAL(sluice_filelock_take(&agent, path), SLUICE_OK);
	sluice_filelock_release(&agent);
	tear_down();
}

static sqlite3 *
other_connection(const char *sql)
{
	sqlite3    *db;

	CU_ASSERT_EQUAL(sqlite3_open(path, &db), SQLITE_OK);
	CU_ASSERT_EQUAL(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	return db;
}

static void *
release_later(void *argument)
{
	usleep(300000);
	sqlite3_exec(argument, "ROLLBACK", NULL, NULL, NULL);
	return NULL;
}

static int	idles;

static void
count_idle(void *argument)
{
	idles++;
}

/* LITE-01: another program holds the write lock; the agent waits, and is alive. */
static void
test_busy(void)
{
	sqlite3    *db;
	pthread_t	thread;

	set_up();
	one_row(1);
	db = other_connection("BEGIN IMMEDIATE");
	replica->idle = count_idle;
	idles = 0;
	CU_ASSERT_EQUAL(pthread_create(&thread, NULL, release_later, db), 0);
	one_row(2);
	pthread_join(thread, NULL);
	sqlite3_close(db);
	replica->idle = NULL;
	CU_ASSERT(idles > 3);
	CHECK_QUERY("SELECT count(*) FROM t", "2");
	tear_down();
}

static void
overwrite(const char *file, off_t at, size_t size)
{
	int			fd = open(file, O_WRONLY);
	char		garbage[8192];

	memset(garbage, 0x5a, sizeof(garbage));
	CU_ASSERT_EQUAL(pwrite(fd, garbage, size, at), (ssize_t) size);
	close(fd);
}

/* The outcome of opening the file and adding rows to it. */
static SluiceOutcome
use_again(void)
{
	SluiceOutcome outcome = reopen();

	if (outcome == SLUICE_OK)
		apply = sluice_apply_create(replica, true, &outcome);
	for (int i = 0; outcome == SLUICE_OK && i < 500; i++)
	{
		f_begin();
		f_row(SLUICE_TAG_UPDATE, T, SLUICE_OLD_NONE, NULL, ROW(V_INT(i + 1), V_NULL, V_NULL, V_NULL));
		f_commit();
		outcome = feed_and_flush();
	}
	return outcome;
}

/* LITE-02: each kind of damage is noticed, and the file can be set aside. */
static void
test_damaged(void)
{
	for (int kind = 0; kind < 4; kind++)
	{
		char		name[200];
		struct stat st;

		set_up();
		CU_ASSERT_EQUAL(sluice_filelock_take(&agent, path), SLUICE_OK);
		CU_ASSERT_EQUAL(reopen(), SLUICE_OK);
		start_apply(true);
		for (int i = 1; i <= 500; i++)
			one_row(i);
		if (kind == 3)
		{
			/* as when it is killed: the -wal stays, and then somebody removes it */
			sqlite3_db_config(replica->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		}
		stop_apply();
		snprintf(name, sizeof(name), "%s-wal", path);
		if (kind == 0)
			overwrite(path, 0, 100);
		else if (kind == 1)
		{
			CU_ASSERT_EQUAL(stat(path, &st), 0);
			overwrite(path, st.st_size - 20 * 4096, 8192);
			overwrite(path, st.st_size - 12 * 4096, 8192);
			overwrite(path, st.st_size - 8192, 8192);
		}
		else if (kind == 2)
		{
			CU_ASSERT_EQUAL(truncate(path, 5 * 4096), 0);
		}
		else
		{
			sluice_filelock_note(&agent, path, true);
			unlink(name);
		}
		CU_ASSERT_EQUAL(use_again(), SLUICE_DAMAGED);
		stop_apply();
		CU_ASSERT_EQUAL(sluice_replica_set_aside(path), SLUICE_OK);
		CU_ASSERT_FALSE(sluice_replica_exists(path));
		sluice_filelock_release(&agent);
		tear_down();
	}
}

/* Somebody else's file is not touched. */
static void
test_foreign(void)
{
	sqlite3    *db;

	set_up();
	stop_apply();
	unlink(path);
	db = other_connection("CREATE TABLE mine(a); INSERT INTO mine VALUES(1)");
	sqlite3_close(db);
	CU_ASSERT_EQUAL(reopen(), SLUICE_UNUSABLE);
	CHECK_QUERY("SELECT a FROM mine", "1");
	tear_down();
}

static off_t
wal_size(void)
{
	char		name[200];
	struct stat st;

	snprintf(name, sizeof(name), "%s-wal", path);
	return stat(name, &st) == 0 ? st.st_size : 0;
}

static void
write_much(int64_t *id, int megabytes)
{
	static char text[100000];
	SluiceValue value = {.class = SLUICE_TEXT};

	memset(text, 'x', sizeof(text));
	value.u.bytes.data = text;
	value.u.bytes.size = sizeof(text);
	for (int i = 0; i < megabytes * 10; i++)
	{
		f_begin();
		f_insert(T, ROW(V_INT((*id)++), value, V_NULL, V_NULL));
		f_commit();
		CU_ASSERT_EQUAL(feed_and_flush(), SLUICE_OK);
	}
}

/* LITE-03: a reader keeps the -wal; the writer goes on; it shrinks afterwards. */
static void
test_long_reader(void)
{
	sqlite3    *db;
	int64_t		id = 1;

	set_up();
	write_much(&id, 2);
	db = other_connection("BEGIN; SELECT count(*) FROM t");
	write_much(&id, 120);
	CU_ASSERT(wal_size() > 100 * 1000 * 1000);
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(db);
	for (int i = 0; i < 100 && wal_size() > 70 * 1000 * 1000; i++)
	{
		usleep(100000);
		write_much(&id, 1);
	}
	CU_ASSERT(wal_size() <= 70 * 1000 * 1000);
	/* without a reader it stays far from that, however much is written */
	write_much(&id, 400);
	CU_ASSERT(wal_size() <= 250 * 1000 * 1000);
	tear_down();
}

/* A reader keeps what it has; who opens afterwards gets the new file. */
static void
test_swap(void)
{
	sqlite3    *db;
	sqlite3_stmt *statement;
	char		copy[120];
	char	   *name = sluice_replica_copy_path("/x/r.db", &sluice_malloc_allocator);

	CU_ASSERT_STRING_EQUAL(name, "/x/r.db-copy");
	free(name);
	set_up();
	one_row(1);
	db = other_connection("BEGIN; SELECT count(*) FROM t");
	snprintf(copy, sizeof(copy), "VACUUM INTO '%s-copy'", path);
	CU_ASSERT_EQUAL(sluice_replica_exec(replica, copy, "make a copy"), SLUICE_OK);
	one_row(2);
	sqlite3_db_config(replica->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	stop_apply();
	CU_ASSERT(wal_size() > 0);
	snprintf(copy, sizeof(copy), "%s-copy", path);
	CU_ASSERT_EQUAL(sluice_replica_swap(copy, path), SLUICE_OK);
	CU_ASSERT_EQUAL(wal_size(), 0);
	CHECK_QUERY("SELECT count(*) FROM t", "1");
	CU_ASSERT_EQUAL(sqlite3_prepare_v2(db, "SELECT count(*) FROM w", -1, &statement, NULL), SQLITE_OK);
	CU_ASSERT_EQUAL(sqlite3_step(statement), SQLITE_ROW);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	CU_ASSERT_EQUAL(reopen(), SLUICE_OK);
	tear_down();
}

static const UnitTest tests[] = {
	{"state is kept", test_state_is_kept},
	{"durable", test_durable},
	{"locked", test_locked},
	{"busy", test_busy},
	{"damaged", test_damaged},
	{"foreign", test_foreign},
	{"long reader", test_long_reader},
	{"swap", test_swap},
};

UNIT_MAIN("replica", tests)
