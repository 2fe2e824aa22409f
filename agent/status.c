/*
 * status.c: `sluice-agent status`: how far a file is, without a server.
 *
 * In: files.  Out: standard output.
 * Runs in: a process of its own, beside the agent that keeps the file.
 * Locks: short read transactions of SQLite.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "replica.h"
#include "status.h"

/* In the file; everything in one read, so that it fits together. */
static const char json_sql[] =
	"SELECT json_object('replica', ?1, 'shard', s.shard, 'stage', s.stage,"
	" 'replicaVersion', c.replicaVersion, 'publications', json(c.publications),"
	" 'systemId', printf('%llu', s.systemId), 'timeline', s.timeline,"
	" 'stateVersion', r.stateVersion, 'lsn', ?2, 'seen', ?3, 'xid', printf('%llu', p.xid),"
	" 'writeTimeMs', r.writeTimeMs,"
	" 'tables', (SELECT count(*) FROM \"_sluice.tables\"),"
	" 'problems', (SELECT json_group_array(json_object('table', name, 'problem', problem))"
	"  FROM \"_sluice.tables\" WHERE problem IS NOT NULL),"
	" 'tablesToCopy', ?4)"
	" FROM \"_sluice.state\" s JOIN \"_sluice.position\" p"
	" LEFT JOIN \"_zero.replicationConfig\" c LEFT JOIN \"_zero.replicationState\" r";

static const char cookies_sql[] =
	"SELECT json_object('watermark', (SELECT stateVersion FROM \"_zero.replicationState\"),"
	" 'tableMetadata', (SELECT json_group_array(json_object('schema', \"schema\","
	"  'table', \"table\", 'metadata', json(upstreamMetadata))) FROM \"_zero.tableMetadata\"),"
	" 'backfilling', (SELECT json_group_array(json_object('schema', \"schema\","
	"  'table', \"table\", 'column', \"column\", 'backfill', json(backfill)))"
	"  FROM \"_zero.backfilling\"))";

static const char to_copy_sql[] = "SELECT count(*), total(rows), total(bytes) FROM \"_sluice.copy\"";

typedef struct Left
{
	int64_t		tables;			/* still to be copied; -1: not a copy */
	double		rows;
	double		bytes;
} Left;

static Left
read_left(SluiceReplica *replica)
{
	Left		left = {-1, 0, 0};
	sqlite3_stmt *statement;

	/* the table is there only while the copy is being made */
	if (sqlite3_prepare_v2(replica->db, to_copy_sql, -1, &statement, NULL) != SQLITE_OK)
		return left;
	if (sqlite3_step(statement) == SQLITE_ROW)
	{
		left.tables = sqlite3_column_int64(statement, 0);
		left.rows = sqlite3_column_double(statement, 1);
		left.bytes = sqlite3_column_double(statement, 2);
	}
	sqlite3_finalize(statement);
	return left;
}

static void
format_lsn(uint64_t position, char text[32])
{
	snprintf(text, 32, "%" PRIX32 "/%" PRIX32, (uint32_t) (position >> 32), (uint32_t) position);
}

/* ---- JSON ---- */

static SluiceOutcome
print_json(SluiceReplica *replica, const char *sql)
{
	Left		left = read_left(replica);
	sqlite3_stmt *statement;
	char		lsn[32];
	char		seen[32];
	int			rc;

	rc = sqlite3_prepare_v2(replica->db, sql, -1, &statement, NULL);
	if (rc != SQLITE_OK)
		return sluice_replica_failure(replica, rc, "read the state of the file");
	if (sqlite3_bind_parameter_count(statement) > 0)
	{
		format_lsn(replica->position.watermark.major, lsn);
		format_lsn(replica->position.seen, seen);
		sqlite3_bind_text(statement, 1, replica->path, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 2, lsn, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 3, seen, -1, SQLITE_STATIC);
		if (left.tables >= 0)
			sqlite3_bind_int64(statement, 4, left.tables);
	}
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
		printf("%s\n", (const char *) sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	return rc == SQLITE_ROW ? SLUICE_OK :
		sluice_replica_failure(replica, rc, "read the state of the file");
}

/* ---- text ---- */

static void
print_state(const SluiceReplica *replica, Left left)
{
	switch (replica->stage)
	{
		case SLUICE_STAGE_EMPTY:
			printf("state:     not begun\n");
			break;
		case SLUICE_STAGE_COPYING:
			printf("state:     first copy: %zu tables are complete or begun, %" PRId64
				   " to go (about %.0f rows, %.1f MB)\n", sluice_replica_count(replica),
				   left.tables < 0 ? 0 : left.tables, left.rows, left.bytes / 1e6);
			break;
		case SLUICE_STAGE_CATCHING_UP:
			printf("state:     copied, catching up with the stream\n");
			break;
		case SLUICE_STAGE_READY:
			printf("state:     ready\n");
			break;
	}
}

static double
age_of_last_write(SluiceReplica *replica)
{
	static const char sql[] = "SELECT writeTimeMs FROM \"_zero.replicationState\"";
	sqlite3_stmt *statement;
	double		age = -1;

	if (sqlite3_prepare_v2(replica->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return age;
	if (sqlite3_step(statement) == SQLITE_ROW)
		age = ((double) sluice_agent_time() / 1000 - sqlite3_column_double(statement, 0)) / 1000;
	sqlite3_finalize(statement);
	return age;
}

static void
print_position(SluiceReplica *replica)
{
	const SluicePosition *position = &replica->position;
	char		version[SLUICE_WATERMARK_TEXT_MAX];
	char		lsn[32];
	double		age = age_of_last_write(replica);

	if (position->watermark.major == 0)
		return;
	sluice_watermark_format(position->watermark, version);
	format_lsn(position->watermark.major, lsn);
	printf("version:   %s (commit at %s", version, lsn);
	if (age >= 0)
		printf(", written %.1f s ago", age);
	printf(")\n");
	if (position->seen > position->watermark.major)
	{
		format_lsn(position->seen, lsn);
		printf("seen:      %s, nothing for this shard in between\n", lsn);
	}
}

static void
print_problems(const SluiceReplica *replica)
{
	size_t		problems = 0;

	for (size_t i = 0; i < sluice_replica_count(replica); i++)
		problems += sluice_replica_at(replica, i)->problem != NULL;
	printf("tables:    %zu", sluice_replica_count(replica));
	if (problems > 0)
		printf(", %zu not followed:", problems);
	printf("\n");
	for (size_t i = 0; i < sluice_replica_count(replica) && problems > 0; i++)
	{
		const SluiceReplicaTable *table = sluice_replica_at(replica, i);

		if (table->problem != NULL)
			printf("           %s: %s\n", table->name, table->problem);
	}
}

static void
print_text(SluiceReplica *replica)
{
	const SluiceOrigin *origin = &replica->origin;

	printf("replica:   %s\n", replica->path);
	if (origin->shard != NULL)
		printf("shard:     %s (lineage %s)\n", origin->shard,
			   origin->replica_version == NULL ? "unknown" : origin->replica_version);
	if (origin->system_id != 0)
		printf("server:    system %" PRIu64 ", timeline %" PRIu32 "\n", origin->system_id,
			   origin->timeline);
	print_state(replica, read_left(replica));
	print_position(replica);
	print_problems(replica);
}

/* ---- entry ---- */

static SluiceOutcome
print_file(SluiceAgent *agent, const char *path)
{
	SluiceReplica *replica;
	SluiceOutcome outcome = sluice_replica_open_reader(agent, path, &replica);

	if (outcome == SLUICE_COPY_AFRESH)
	{
		sluice_log(SLUICE_ERROR, "file \"%s\" is empty", path);
		return SLUICE_UNUSABLE;
	}
	if (outcome != SLUICE_OK)
		return outcome;
	if (agent->config.cookies)
		outcome = print_json(replica, cookies_sql);
	else if (agent->config.json)
		outcome = print_json(replica, json_sql);
	else
		print_text(replica);
	sluice_replica_close(replica);
	return outcome;
}

SluiceOutcome
sluice_status_run(SluiceAgent *agent)
{
	const SluiceConfig *config = &agent->config;
	SluiceArena arena;
	SluiceOutcome outcome = SLUICE_OK;
	const char *copy;
	bool		file_is_there = access(config->replica, F_OK) == 0;
	bool		copy_is_there;

	sluice_arena_init(&arena);
	copy = sluice_replica_copy_path(config->replica, &arena.allocator);
	copy_is_there = access(copy, F_OK) == 0;

	/* with neither of them, opening says what is wrong */
	if (file_is_there || !copy_is_there)
		outcome = print_file(agent, config->replica);
	if (outcome == SLUICE_OK && copy_is_there && !config->cookies)
	{
		if (file_is_there && !config->json)
			printf("\na new copy is being made beside it\n");
		outcome = print_file(agent, copy);
	}
	sluice_arena_release(&arena);
	return outcome;
}
