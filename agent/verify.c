/*
 * verify.c: `sluice-agent verify`: is the file equal to what is published?
 *
 * In: server, file.  Out: findings on standard output.
 * Runs in: a process of its own, beside the agent that keeps the file.
 * Locks: short read transactions of SQLite.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "verify.h"
#include "verify_table.h"

#define PASSES 3				/* a difference must be found in each of them */
#define PATIENCE 60000000		/* us that the file may stand still behind the position */
#define LOOK_EVERY 20			/* ms; nothing tells when another process commits */
#define SHOWN 10				/* differences of a table */

/* Where the file is. */
static SluiceOutcome
file_position(SluiceReplica *replica, SluiceWatermark *at)
{
	static const char sql[] =
		"SELECT s.stateVersion, p.seen FROM \"_zero.replicationState\" s, \"_sluice.position\" p";
	sqlite3_stmt *statement = sluice_replica_statement(replica, sql);
	SluicePosition position = {{0, 0}, 0, 0, 0};
	int			rc;

	if (statement == NULL)
		return SLUICE_UNUSABLE;
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
	{
		const char *text = (const char *) sqlite3_column_text(statement, 0);

		if (text != NULL)
			sluice_watermark_parse(text, &position.watermark);
		position.seen = (uint64_t) sqlite3_column_int64(statement, 1);
	}
	sqlite3_reset(statement);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return sluice_replica_failure(replica, rc, "read the position of the file");
	*at = sluice_replica_resume(&position);
	return SLUICE_OK;
}

/* Until the file has everything that the server had when this was called. */
static SluiceOutcome
wait_until_passed(SluiceVerifyServer *server, SluiceReplica *replica)
{
	struct pollfd wake = {.fd = server->agent->wake_fd, .events = POLLIN};
	SluiceWatermark goal;
	SluiceWatermark at = {0, 0};
	SluiceWatermark last = {0, 0};
	int64_t		moved = sluice_agent_clock();
	uint64_t	position = 0;
	SluiceOutcome outcome = sluice_verify_server_position(server, &position);

	goal = sluice_watermark_before(position);
	while (outcome == SLUICE_OK)
	{
		outcome = file_position(replica, &at);
		if (outcome != SLUICE_OK || sluice_watermark_compare(at, goal) >= 0)
			break;
		if (sluice_watermark_compare(at, last) != 0)
		{
			last = at;
			moved = sluice_agent_clock();
		}
		else if (sluice_agent_clock() - moved > PATIENCE)
		{
			sluice_log(SLUICE_ERROR, "replica \"%s\" does not move: it is at %X/%X, the server "
					   "at %X/%X; hint: Is its agent running?", replica->path,
					   (unsigned) (at.major >> 32), (unsigned) at.major,
					   (unsigned) (goal.major >> 32), (unsigned) goal.major);
			return SLUICE_UNUSABLE;
		}
		poll(&wake, 1, LOOK_EVERY);
		if (server->agent->stop)
			outcome = SLUICE_STOPPED;
	}
	return outcome;
}

/* ---- findings ---- */

typedef struct Verify
{
	SluiceVerifyServer server;
	SluiceReplica *replica;
	size_t		different;		/* tables */
	uint64_t	rows;
} Verify;

static void
tell(Verify *verify, const char *schema, const char *name, const SluiceVerifyPass *pass)
{
	verify->different++;
	printf("%s.%s: %" PRIu64 " difference%s\n", schema, name, pass->differences,
		   pass->differences == 1 ? "" : "s");
	for (size_t i = 0; i < pass->nsuspects && i < SHOWN; i++)
		printf("    %s\n", pass->suspects[i].text);
	if (pass->differences > SHOWN)
		printf("    …\n");
}

static void
tell_whole(Verify *verify, const char *schema, const char *name, const char *what)
{
	verify->different++;
	printf("%s.%s: %s\n", schema, name, what);
}

static SluiceOutcome
verify_table(Verify *verify, const SluiceVerifyTable *table, const SluiceReplicaTable *held)
{
	SluiceVerifyPass passes[PASSES];
	SluiceOutcome outcome = SLUICE_OK;
	int			n = 0;

	while (n < PASSES && outcome == SLUICE_OK)
	{
		SluiceVerifyPass *pass = &passes[n];

		sluice_verify_pass_init(pass);
		if (n > 0)
			outcome = wait_until_passed(&verify->server, verify->replica);
		if (outcome == SLUICE_OK && sluice_verify_table_columns(table, held, pass))
			outcome = sluice_verify_table_pass(&verify->server, table, verify->replica, held,
											   pass);
		if (n > 0)
			sluice_verify_pass_intersect(pass, &passes[n - 1]);
		n++;
		if (pass->differences == 0)
			break;
	}
	if (outcome == SLUICE_OK && passes[n - 1].differences > 0)
		tell(verify, table->schema, table->name, &passes[n - 1]);
	verify->rows += passes[n - 1].rows;
	for (int i = 0; i < n; i++)
		sluice_verify_pass_release(&passes[i]);
	return outcome;
}

/* What the file has of tables that are not published. */
static void
find_extra_tables(Verify *verify)
{
	for (size_t i = 0; i < sluice_replica_count(verify->replica); i++)
	{
		const SluiceTable *spec = &sluice_replica_at(verify->replica, i)->spec;
		bool		found = false;

		for (size_t k = 0; k < verify->server.ntables && !found; k++)
			found = verify->server.tables[k].oid == spec->oid;
		if (!found)
			tell_whole(verify, spec->schema, spec->name, "in the file, but not published");
	}
}

static SluiceOutcome
verify_tables(Verify *verify)
{
	SluiceOutcome outcome = SLUICE_OK;

	for (size_t i = 0; i < verify->server.ntables && outcome == SLUICE_OK; i++)
	{
		const SluiceVerifyTable *table = &verify->server.tables[i];
		const SluiceReplicaTable *held = sluice_replica_find(verify->replica, table->oid);

		if (held == NULL)
			tell_whole(verify, table->schema, table->name, "published, but not in the file");
		else if (held->problem != NULL)
			tell_whole(verify, table->schema, table->name, held->problem);
		else
			outcome = verify_table(verify, table, held);
	}
	if (outcome != SLUICE_OK)
		return outcome;
	find_extra_tables(verify);
	printf("%zu table%s, %" PRIu64 " rows: ", verify->server.ntables,
		   verify->server.ntables == 1 ? "" : "s", verify->rows);
	if (verify->different == 0)
		printf("equal\n");
	else
		printf("%zu table%s differ%s\n", verify->different, verify->different == 1 ? "" : "s",
			   verify->different == 1 ? "s" : "");
	return verify->different == 0 ? SLUICE_OK : SLUICE_DIFFERENT;
}

static SluiceOutcome
check_file(const SluiceReplica *replica)
{
	const char *shard = replica->agent->config.shard;

	if (replica->stage != SLUICE_STAGE_READY)
	{
		sluice_log(SLUICE_ERROR, "replica \"%s\" is not complete yet", replica->path);
		return SLUICE_UNUSABLE;
	}
	if (replica->origin.shard == NULL || strcmp(replica->origin.shard, shard) != 0)
	{
		sluice_log(SLUICE_ERROR, "replica \"%s\" is of shard \"%s\", not \"%s\"", replica->path,
				   replica->origin.shard == NULL ? "" : replica->origin.shard, shard);
		return SLUICE_USAGE;
	}
	return SLUICE_OK;
}

SluiceOutcome
sluice_verify_run(SluiceAgent *agent)
{
	Verify		verify = {.replica = NULL};
	SluiceReplica *first;
	SluiceOutcome outcome;

	outcome = sluice_replica_open_reader(agent, agent->config.replica, &first);
	if (outcome != SLUICE_OK)
		return outcome;
	outcome = check_file(first);
	if (outcome == SLUICE_OK)
		outcome = sluice_verify_server_open(agent, &verify.server);
	if (outcome == SLUICE_OK)
		outcome = wait_until_passed(&verify.server, first);
	sluice_replica_close(first);

	/* opened again: its tables are those of the position it has now */
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_open_reader(agent, agent->config.replica, &verify.replica);
	if (outcome == SLUICE_OK)
	{
		outcome = verify_tables(&verify);
		sluice_replica_close(verify.replica);
	}
	sluice_verify_server_close(&verify.server);
	return outcome;
}
