/*
 * replica.c: the SQLite file: opening, transactions, errors.
 *
 * In: a path.  Out: a connection with our pragmas, and transactions that
 * carry the position.
 * Runs in: the thread that owns the replica.
 * Locks: SQLite's; waits for other writers without a limit, saying so.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"
#include "filelock.h"
#include "log.h"
#include "replica_setup.h"
#include "statement.h"

#define IDLE_OPS 20000			/* of SQLite's machine, between two idle calls */
#define STOP_GRACE 500000		/* us that a stop waits for running work */
#define CLOSE_PAGES 8000		/* of 4 kB: more is not checkpointed at the end */

static void
idle(SluiceReplica *replica)
{
	if (replica->idle != NULL)
		replica->idle(replica->idle_argument);
}

/* Stop has been wished for a while: give up what runs. */
static bool
stop_overdue(SluiceReplica *replica)
{
	if (!replica->agent->stop)
		return false;
	if (replica->stop_seen == 0)
		replica->stop_seen = sluice_agent_clock();
	return sluice_agent_clock() - replica->stop_seen > STOP_GRACE;
}

static int
on_progress(void *argument)
{
	SluiceReplica *replica = argument;

	idle(replica);
	return stop_overdue(replica);
}

/* Another process writes to the file: wait, however long it takes. */
static int
on_busy(void *argument, int count)
{
	SluiceReplica *replica = argument;
	struct pollfd wake = {.fd = replica->agent->wake_fd, .events = POLLIN};
	int			pause = count < 5 ? 1 << count : 50;

	if (count == 100)
		sluice_log(SLUICE_WARNING, "waiting for another process that has replica \"%s\" locked",
				   replica->path);
	idle(replica);
	if (replica->agent->stop)
		return 0;
	poll(&wake, 1, pause);
	return 1;
}

static int
on_wal(void *argument, sqlite3 *db, const char *schema, int pages)
{
	SluiceReplica *replica = argument;

	replica->wal_pages = pages;
	return SQLITE_OK;
}

SluiceOutcome
sluice_replica_failure(SluiceReplica *replica, int code, const char *what)
{
	const char *text = replica->db != NULL ? sqlite3_errmsg(replica->db) : sqlite3_errstr(code);
	int			system = replica->db != NULL ? sqlite3_system_errno(replica->db) : 0;

	switch (code & 0xff)
	{
		case SQLITE_INTERRUPT:
			return SLUICE_STOPPED;
		case SQLITE_BUSY:
		case SQLITE_LOCKED:
			if (replica->agent->stop)
				return SLUICE_STOPPED;
			sluice_log(SLUICE_ERROR, "cannot %s: replica \"%s\" is locked: %s", what,
					   replica->path, text);
			return SLUICE_UNUSABLE;
		case SQLITE_CORRUPT:
		case SQLITE_NOTADB:
			sluice_log(SLUICE_ERROR, "cannot %s: replica \"%s\" is damaged: %s", what,
					   replica->path, text);
			return SLUICE_DAMAGED;
		case SQLITE_FULL:
			sluice_log(SLUICE_ERROR, "cannot %s: no space left for replica \"%s\"; "
					   "hint: Make room and start the agent again; nothing is lost.", what,
					   replica->path);
			return SLUICE_UNUSABLE;
		case SQLITE_READONLY:
		case SQLITE_PERM:
		case SQLITE_AUTH:
		case SQLITE_CANTOPEN:
		case SQLITE_IOERR:
		case SQLITE_NOMEM:
			sluice_log(SLUICE_ERROR, "cannot %s: replica \"%s\": %s%s%s", what, replica->path,
					   text, system != 0 ? ": " : "", system != 0 ? strerror(system) : "");
			return SLUICE_UNUSABLE;
		default:
			sluice_log(SLUICE_ERROR, "cannot %s: %s (replica \"%s\")", what, text,
					   replica->path);
			return SLUICE_INAPPLICABLE;
	}
}

SluiceOutcome
sluice_replica_exec(SluiceReplica *replica, const char *sql, const char *what)
{
	int			rc = sqlite3_exec(replica->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? SLUICE_OK : sluice_replica_failure(replica, rc, what);
}

sqlite3_stmt *
sluice_replica_statement(SluiceReplica *replica, const char *sql)
{
	sqlite3_stmt *statement = sluice_statements_fixed(replica->statements, sql);

	if (statement == NULL)
		sluice_log(SLUICE_ERROR, "cannot prepare \"%s\": %s", sql, sqlite3_errmsg(replica->db));
	return statement;
}

SluiceOutcome
sluice_replica_step(SluiceReplica *replica, sqlite3_stmt *statement, const char *what)
{
	SluiceOutcome outcome = SLUICE_OK;
	int			rc;

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	rc = sqlite3_step(statement);
	if (rc != SQLITE_DONE && rc != SQLITE_ROW)
		outcome = sluice_replica_failure(replica, rc, what);
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return outcome;
}

/* ---- transactions ---- */

SluiceOutcome
sluice_replica_begin(SluiceReplica *replica)
{
	SluiceOutcome outcome;

	if (replica->checkpoint != NULL)
		sluice_checkpoint_enter(replica->checkpoint);
	outcome = sluice_replica_step(replica, sluice_replica_statement(replica, "BEGIN IMMEDIATE"),
								  "begin a transaction");
	replica->in_transaction = outcome == SLUICE_OK;
	if (outcome != SLUICE_OK && replica->checkpoint != NULL)
		sluice_checkpoint_leave(replica->checkpoint);
	return outcome;
}

SluiceOutcome
sluice_replica_commit(SluiceReplica *replica, const SluicePosition *position)
{
	SluiceOutcome outcome = SLUICE_OK;

	if (position != NULL)
		outcome = sluice_replica_write_position(replica, position);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_step(replica, sluice_replica_statement(replica, "COMMIT"),
									  "commit");
	if (outcome != SLUICE_OK)
		return outcome;
	replica->in_transaction = false;
	replica->tables_changed = false;
	if (position != NULL)
		replica->position = *position;
	if (replica->checkpoint != NULL)
	{
		sluice_checkpoint_leave(replica->checkpoint);
		sluice_checkpoint_noted(replica->checkpoint, &replica->position, replica->wal_pages);
	}
	return SLUICE_OK;
}

void
sluice_replica_rollback(SluiceReplica *replica)
{
	if (!replica->in_transaction)
		return;
	/* SQLite may have done it already, on a full disk for one */
	if (!sqlite3_get_autocommit(replica->db) &&
		sqlite3_exec(replica->db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
		sluice_log(SLUICE_WARNING, "cannot roll back: %s", sqlite3_errmsg(replica->db));
	replica->in_transaction = false;
	if (replica->checkpoint != NULL)
		sluice_checkpoint_leave(replica->checkpoint);
	/* what it had done to the tables is undone in memory, too */
	if (replica->tables_changed && sluice_replica_reread_tables(replica) != SLUICE_OK)
		sluice_log(SLUICE_ERROR, "the tables of replica \"%s\" cannot be read again",
				   replica->path);
	replica->tables_changed = false;
}

SluiceWatermark
sluice_replica_resume(const SluicePosition *position)
{
	SluiceWatermark seen = sluice_watermark_before(position->seen);

	return sluice_watermark_compare(seen, position->watermark) > 0 ? seen : position->watermark;
}

/* ---- opening and closing ---- */

static SluiceReplica *
allocate(SluiceAgent *agent, const char *path)
{
	const SluiceAllocator *a = &sluice_malloc_allocator;
	SluiceReplica *replica = a->grow(a->context, NULL, sizeof(*replica));

	memset(replica, 0, sizeof(*replica));
	replica->agent = agent;
	replica->path = a->grow(a->context, NULL, strlen(path) + 1);
	strcpy(replica->path, path);
	sluice_arena_init(&replica->arena);
	return replica;
}

static SluiceOutcome
connect_file(SluiceReplica *replica, int flags)
{
	int			rc = sqlite3_open_v2(replica->path, &replica->db, flags | SQLITE_OPEN_NOMUTEX,
									 NULL);

	if (rc != SQLITE_OK)
		return sluice_replica_failure(replica, rc, "open the file");
	sqlite3_extended_result_codes(replica->db, 1);
	sqlite3_busy_handler(replica->db, on_busy, replica);
	sqlite3_progress_handler(replica->db, IDLE_OPS, on_progress, replica);
	sqlite3_db_config(replica->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(replica->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	sqlite3_db_config(replica->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	replica->statements = sluice_statements_create(replica->db);
	return SLUICE_OK;
}

static SluiceOutcome
read_all(SluiceReplica *replica)
{
	SluiceOutcome outcome = sluice_replica_read_state(replica);

	if (outcome == SLUICE_OK)
		outcome = sluice_replica_read_tables(replica);
	return outcome;
}

static SluiceOutcome
open_writer(SluiceReplica *replica, SluiceOpenMode mode)
{
	SluiceOutcome outcome;

	if (sluice_filelock_wal_lost(replica->agent, replica->path))
	{
		sluice_log(SLUICE_ERROR, "replica \"%s\" was not closed and its -wal file is gone: "
				   "what was committed last is lost", replica->path);
		return SLUICE_DAMAGED;
	}
	outcome = connect_file(replica, SQLITE_OPEN_READWRITE |
						   (mode == SLUICE_OPEN_EXISTING ? 0 : SQLITE_OPEN_CREATE));
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_check(replica);
	if (outcome == SLUICE_OK || (outcome == SLUICE_COPY_AFRESH && mode != SLUICE_OPEN_EXISTING))
	{
		bool		empty = outcome != SLUICE_OK;

		outcome = sluice_replica_pragmas(replica, mode == SLUICE_OPEN_LOAD);
		sqlite3_wal_hook(replica->db, on_wal, replica);
		if (outcome == SLUICE_OK && empty)
			outcome = sluice_replica_setup(replica);
	}
	if (outcome == SLUICE_OK)
		outcome = read_all(replica);
	if (outcome != SLUICE_OK || mode == SLUICE_OPEN_LOAD)
		return outcome;
	replica->checkpoint = sluice_checkpoint_start(replica);
	if (replica->checkpoint == NULL)
		return SLUICE_UNUSABLE;
	sluice_filelock_note(replica->agent, replica->path, true);
	return SLUICE_OK;
}

SluiceOutcome
sluice_replica_open(SluiceAgent *agent, const char *path, SluiceOpenMode mode,
					SluiceReplica **replica)
{
	SluiceReplica *opened;
	SluiceOutcome outcome;

	if (mode == SLUICE_OPEN_EXISTING && !sluice_replica_exists(path))
		return SLUICE_COPY_AFRESH;
	opened = allocate(agent, path);
	outcome = open_writer(opened, mode);
	if (outcome != SLUICE_OK)
	{
		sluice_replica_close(opened);
		return outcome;
	}
	*replica = opened;
	return SLUICE_OK;
}

SluiceOutcome
sluice_replica_open_reader(SluiceAgent *agent, const char *path, SluiceReplica **replica)
{
	SluiceReplica *opened;
	SluiceOutcome outcome;

	if (!sluice_replica_exists(path))
	{
		sluice_log(SLUICE_ERROR, "there is no replica \"%s\": %s", path, strerror(errno));
		return SLUICE_UNUSABLE;
	}
	opened = allocate(agent, path);
	opened->reader = true;
	outcome = connect_file(opened, SQLITE_OPEN_READONLY);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_check(opened);
	if (outcome == SLUICE_OK)
		outcome = read_all(opened);
	if (outcome == SLUICE_COPY_AFRESH)
	{
		sluice_log(SLUICE_ERROR, "file \"%s\" is empty", path);
		outcome = SLUICE_UNUSABLE;
	}
	if (outcome != SLUICE_OK)
	{
		sluice_replica_close(opened);
		return outcome;
	}
	*replica = opened;
	return SLUICE_OK;
}

/*
 * The last connection moves the -wal into the database, unless that would
 * take longer than a stop may.
 */
static void
disconnect(SluiceReplica *replica)
{
	bool		whole = replica->wal_pages <= CLOSE_PAGES || !replica->agent->stop;

	if (replica->reader || !whole)
		sqlite3_db_config(replica->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_progress_handler(replica->db, 0, NULL, NULL);
	sqlite3_busy_handler(replica->db, NULL, NULL);
	if (sqlite3_close(replica->db) != SQLITE_OK)
		sluice_log(SLUICE_WARNING, "cannot close \"%s\": %s", replica->path,
				   sqlite3_errmsg(replica->db));
	replica->db = NULL;
	if (!replica->reader && replica->checkpoint != NULL && !sluice_replica_has_wal(replica->path))
		sluice_filelock_note(replica->agent, replica->path, false);
}

void
sluice_replica_close(SluiceReplica *replica)
{
	if (replica == NULL)
		return;
	sluice_replica_rollback(replica);
	sluice_replica_release_tables(replica);
	sluice_statements_destroy(replica->statements);
	sluice_checkpoint_stop(replica->checkpoint);
	if (replica->db != NULL)
		disconnect(replica);
	sluice_arena_release(&replica->arena);
	free(replica->path);
	free(replica);
}
