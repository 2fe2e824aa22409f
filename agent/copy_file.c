/*
 * copy_file.c: the file of a first copy while it is being loaded.
 *
 * In: a path.  Out: an open file that may be written to, or one made anew.
 * Runs in: the copying thread.  Locks: SQLite's.
 */
#include <stdio.h>
#include <string.h>

#include "copy_file.h"
#include "log.h"

#define SYNCED "synced"			/* in place of a boot id */

/* What names this run of the operating system; "" if nothing does. */
static void
read_boot_id(char *text, size_t size)
{
	FILE	   *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	text[0] = '\0';
	if (file == NULL)
		return;
	if (fgets(text, (int) size, file) == NULL)
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(file);
}

/* What the file says of itself: can a power cut have taken something? */
static SluiceOutcome
can_go_on(SluiceReplica *replica, bool *yes)
{
	sqlite3_stmt *statement;
	char		boot[64];
	const char *noted;
	int			rc;

	*yes = false;
	read_boot_id(boot, sizeof(boot));
	rc = sqlite3_prepare_v2(replica->db, "SELECT boot FROM \"_sluice.copyRun\"", -1, &statement,
							NULL);
	if (rc == SQLITE_ERROR)
		return SLUICE_OK;		/* no such table */
	if (rc != SQLITE_OK)
		return sluice_replica_failure(replica, rc, "read the state of the copy");
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
	{
		noted = (const char *) sqlite3_column_text(statement, 0);
		*yes = noted != NULL && (strcmp(noted, SYNCED) == 0 ||
								 (boot[0] != '\0' && strcmp(noted, boot) == 0));
		rc = SQLITE_DONE;
	}
	sqlite3_finalize(statement);
	return rc == SQLITE_DONE ? SLUICE_OK :
		sluice_replica_failure(replica, rc, "read the state of the copy");
}

static SluiceOutcome
open_once(SluiceAgent *agent, const char *path, SluiceReplica **replica)
{
	SluiceOutcome outcome = sluice_replica_open(agent, path, SLUICE_OPEN_LOAD, replica);
	bool		yes = true;

	if (outcome != SLUICE_OK)
		return outcome;
	if ((*replica)->origin.shard != NULL &&
		strcmp((*replica)->origin.shard, agent->config.shard) != 0)
	{
		sluice_log(SLUICE_INFO, "\"%s\" is a copy of shard \"%s\", a new one is begun", path,
				   (*replica)->origin.shard);
		yes = false;
	}
	else if ((*replica)->stage == SLUICE_STAGE_COPYING)
	{
		outcome = can_go_on(*replica, &yes);
		if (outcome == SLUICE_OK && !yes)
			sluice_log(SLUICE_INFO, "the machine was restarted while \"%s\" was being copied, "
					   "a new copy is begun", path);
	}
	if (outcome == SLUICE_OK && !yes)
		outcome = SLUICE_COPY_AFRESH;
	if (outcome != SLUICE_OK)
	{
		sluice_replica_close(*replica);
		*replica = NULL;
	}
	return outcome;
}

SluiceOutcome
sluice_copy_file_open(SluiceAgent *agent, const char *path, SluiceReplica **replica)
{
	SluiceOutcome outcome = open_once(agent, path, replica);

	if (outcome != SLUICE_COPY_AFRESH && outcome != SLUICE_DAMAGED)
		return outcome;
	outcome = sluice_replica_remove(path);
	return outcome == SLUICE_OK ? open_once(agent, path, replica) : outcome;
}

/* Notes who may trust the file, and waits until the disk has that. */
static SluiceOutcome
mark(SluiceReplica *replica, const char *boot)
{
	static const char create[] =
		"CREATE TABLE IF NOT EXISTS \"_sluice.copyRun\"(boot TEXT NOT NULL,"
		" lock INTEGER PRIMARY KEY DEFAULT 1 CHECK (lock = 1)) STRICT";
	static const char insert[] =
		"INSERT OR REPLACE INTO \"_sluice.copyRun\"(boot, lock) VALUES(?, 1)";
	sqlite3_stmt *statement;
	SluiceOutcome outcome = sluice_replica_exec(replica, "PRAGMA synchronous = FULL",
												"make writing safe");

	if (outcome == SLUICE_OK)
		outcome = sluice_replica_begin(replica);
	if (outcome != SLUICE_OK)
		return outcome;
	outcome = sluice_replica_exec(replica, create, "create \"_sluice.copyRun\"");
	if (outcome == SLUICE_OK)
	{
		statement = sluice_replica_statement(replica, insert);
		if (statement != NULL)
			sqlite3_bind_text(statement, 1, boot, -1, SQLITE_TRANSIENT);
		outcome = sluice_replica_step(replica, statement, "mark the copy");
	}
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_commit(replica, NULL);
	if (outcome != SLUICE_OK)
		sluice_replica_rollback(replica);
	return outcome;
}

SluiceOutcome
sluice_copy_file_begin(SluiceReplica *replica)
{
	SluiceOutcome outcome;
	char		boot[64];

	read_boot_id(boot, sizeof(boot));
	outcome = mark(replica, boot);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_exec(replica, "PRAGMA synchronous = OFF",
									  "switch syncs off for loading");
	return outcome;
}

/* Everything that was written without a sync. */
static SluiceOutcome
sync_file(SluiceReplica *replica)
{
	sqlite3_file *file = NULL;
	int			rc = sqlite3_file_control(replica->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);

	if (rc == SQLITE_OK && file != NULL && file->pMethods != NULL)
		rc = file->pMethods->xSync(file, SQLITE_SYNC_FULL);
	return rc == SQLITE_OK ? SLUICE_OK : sluice_replica_failure(replica, rc, "sync the copy");
}

SluiceOutcome
sluice_copy_file_sync(SluiceReplica *replica)
{
	SluiceOutcome outcome = sync_file(replica);

	return outcome == SLUICE_OK ? mark(replica, SYNCED) : outcome;
}

SluiceOutcome
sluice_copy_file_complete(SluiceReplica *replica, const SluicePosition *position)
{
	SluiceOutcome outcome = sync_file(replica);

	if (outcome == SLUICE_OK)
		outcome = sluice_replica_exec(replica, "PRAGMA synchronous = FULL", "make writing safe");
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_begin(replica);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_set_position(replica, position);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_set_stage(replica, SLUICE_STAGE_CATCHING_UP);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_exec(replica, "DROP TABLE \"_sluice.copyRun\";"
									  "DROP TABLE \"_sluice.copy\"", "end the copy");
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_commit(replica, NULL);
	if (outcome != SLUICE_OK)
		sluice_replica_rollback(replica);
	return outcome;
}
