/*
 * copy.c: the first copy of a replica.
 *
 * In: what the workers' connections bring.  Out: the file, group by group.
 * Runs in: the thread of sluice_copy_run(); libpq sockets and SQLite in turns.
 * Locks: none.
 *
 * States, by the stage in the file: EMPTY (asks for the list), COPYING (until
 * _sluice.copy is empty), CATCHING_UP (nothing is left to do here).
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "copy.h"
#include "copy_file.h"
#include "copy_worker.h"
#include "log.h"
#include "names.h"
#include "schema.h"

#define MAX_JOBS 64
#define GROUP_TIME 1000000		/* us: a commit at least that often … */
#define GROUP_BYTES (64 * 1024 * 1024)	/* … or after that many bytes */
#define LONGEST_WAIT 1000		/* ms */
#define SILENCE 300000000		/* us without a byte: the connection is dead */

typedef struct Copy
{
	SluiceAgent *agent;
	SluiceReplica *replica;
	SluiceCopyList list;
	SluiceProgress progress;
	SluiceCopyWorker *workers;
	int			nworkers;
	int64_t		group_began;	/* clock; of the open transaction */
	uint64_t	group_bytes;	/* progress.bytes at its begin */
} Copy;

static void
on_idle(void *argument)
{
	sluice_progress_tick(argument, sluice_agent_clock());
}

/* ---- the list ---- */

static SluiceOutcome
store_list(Copy *copy)
{
	SluiceReplica *replica = copy->replica;
	SluiceOrigin origin = copy->list.origin;
	SluiceOutcome outcome;

	origin.shard = copy->agent->config.shard;
	outcome = sluice_copy_file_begin(replica);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_begin(replica);
	if (outcome != SLUICE_OK)
		return outcome;
	outcome = sluice_replica_set_origin(replica, &origin, copy->list.publications);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_set_list(replica, &copy->list.placed);
	if (outcome == SLUICE_OK)
		outcome = sluice_copy_list_store(replica, &copy->list);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_set_stage(replica, SLUICE_STAGE_COPYING);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_event(replica, "sync");
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_commit(replica, NULL);
	if (outcome != SLUICE_OK)
		sluice_replica_rollback(replica);
	return outcome;
}

static SluiceOutcome
fetch_list(Copy *copy)
{
	SluiceBackoff backoff = {0};
	SluiceOutcome outcome;

	for (;;)
	{
		outcome = sluice_copy_worker_list(&copy->workers[0], &copy->list);
		if (outcome != SLUICE_RETRY)
			break;
		sluice_copy_list_release(&copy->list);
		sluice_copy_list_init(&copy->list);
		outcome = sluice_conn_backoff(copy->agent, &backoff);
		if (outcome != SLUICE_OK)
			break;
	}
	return outcome == SLUICE_OK ? store_list(copy) : outcome;
}

/* A table that was being filled when the agent ended begins anew. */
static SluiceOutcome
drop_unfinished(Copy *copy)
{
	SluiceReplica *replica = copy->replica;
	SluiceOutcome outcome = sluice_replica_begin(replica);

	for (size_t i = sluice_replica_count(replica); i > 0 && outcome == SLUICE_OK; i--)
	{
		SluiceReplicaTable *table = sluice_replica_at(replica, i - 1);

		if (!table->copied)
			outcome = sluice_schema_drop_table(replica, table);
	}
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_commit(replica, NULL);
	if (outcome != SLUICE_OK)
		sluice_replica_rollback(replica);
	return outcome;
}

static SluiceOutcome
resume_list(Copy *copy)
{
	SluiceOutcome outcome = sluice_copy_file_begin(copy->replica);

	if (outcome == SLUICE_OK)
		outcome = drop_unfinished(copy);
	if (outcome == SLUICE_OK)
		outcome = sluice_copy_list_load(copy->replica, &copy->list);
	if (outcome == SLUICE_OK)
		sluice_log(SLUICE_INFO, "going on with the copy: %zu tables are complete, %zu are left",
				   sluice_replica_count(copy->replica), copy->list.waiting);
	return outcome;
}

static void
start_progress(Copy *copy)
{
	SluiceProgress *progress = &copy->progress;

	sluice_progress_start(progress, copy->agent->config.progress, sluice_agent_clock());
	progress->tables_done = sluice_replica_count(copy->replica);
	progress->tables = progress->tables_done + copy->list.waiting;
	for (size_t i = 0; i < copy->list.count; i++)
		if (copy->list.items[i].state == SLUICE_COPY_WAITING)
			progress->rows_expected += (double) copy->list.items[i].rows;
	copy->replica->idle = on_idle;
	copy->replica->idle_argument = progress;
}

/* ---- the loop ---- */

static SluiceOutcome
begin_group(Copy *copy)
{
	if (copy->replica->in_transaction)
		return SLUICE_OK;
	copy->group_began = sluice_agent_clock();
	copy->group_bytes = copy->progress.bytes;
	return sluice_replica_begin(copy->replica);
}

/* A kill costs what is not committed. */
static SluiceOutcome
end_group(Copy *copy, bool at_once)
{
	if (!copy->replica->in_transaction)
		return SLUICE_OK;
	if (!at_once && copy->progress.bytes - copy->group_bytes < GROUP_BYTES &&
		sluice_agent_clock() - copy->group_began < GROUP_TIME)
		return SLUICE_OK;
	return sluice_replica_commit(copy->replica, NULL);
}

/* After the last of a series of groups, however that ended. */
static SluiceOutcome
close_group(Copy *copy, SluiceOutcome outcome)
{
	SluiceOutcome ended = SLUICE_OK;

	/* a stop that broke off a statement leaves its transaction undone */
	if ((outcome == SLUICE_OK || outcome == SLUICE_STOPPED) &&
		!sqlite3_get_autocommit(copy->replica->db))
		ended = end_group(copy, true);
	if (ended != SLUICE_OK)
		outcome = ended;
	sluice_replica_rollback(copy->replica);
	return outcome;
}

/* Sleeps until a connection has something, or one may be tried again. */
static SluiceOutcome
wait_workers(Copy *copy)
{
	struct pollfd polls[MAX_JOBS + 1];
	int64_t		now = sluice_agent_clock();
	int64_t		until = now + LONGEST_WAIT * 1000;
	nfds_t		n = 0;

	polls[n++] = (struct pollfd) {.fd = copy->agent->wake_fd, .events = POLLIN};
	for (int i = 0; i < copy->nworkers; i++)
	{
		SluiceCopyWorker *worker = &copy->workers[i];

		if (worker->calling)
			polls[n++] = (struct pollfd) {.fd = PQsocket(worker->conn.pg), .events = POLLIN};
		else if (!worker->open && copy->list.waiting > 0 && worker->retry_at < until)
			until = worker->retry_at;
	}
	poll(polls, n, until <= now ? 0 : (int) ((until - now) / 1000) + 1);
	return copy->agent->stop ? SLUICE_STOPPED : SLUICE_OK;
}

static SluiceOutcome
one_round(Copy *copy, bool *some)
{
	SluiceOutcome outcome = begin_group(copy);

	for (int i = 0; i < copy->nworkers && outcome == SLUICE_OK; i++)
	{
		SluiceCopyWorker *worker = &copy->workers[i];
		bool		brought = false;

		outcome = sluice_copy_worker_start(worker, copy->nworkers);
		if (outcome == SLUICE_OK)
			outcome = sluice_copy_worker_step(worker, &brought);
		if (!brought && worker->calling && sluice_agent_clock() - worker->conn.heard > SILENCE)
		{
			sluice_log(SLUICE_WARNING, "nothing came from the server for 5 minutes");
			outcome = sluice_copy_worker_lost(worker);
		}
		*some |= brought;
	}
	return outcome;
}

static SluiceOutcome
copy_tables(Copy *copy)
{
	SluiceOutcome outcome = SLUICE_OK;

	while (outcome == SLUICE_OK && copy->list.done < copy->list.count)
	{
		bool		some = false;

		outcome = one_round(copy, &some);
		if (outcome == SLUICE_OK)
			outcome = end_group(copy, !some);
		sluice_progress_tick(&copy->progress, sluice_agent_clock());
		if (outcome == SLUICE_OK && copy->agent->stop)
			outcome = SLUICE_STOPPED;
		if (outcome == SLUICE_OK && !some && copy->list.done < copy->list.count)
			outcome = wait_workers(copy);
	}
	return close_group(copy, outcome);
}

/* ---- the end ---- */

/*
 * Rows are found by their keys from here on.  Names of indexes depend on all
 * tables, so this is done when all are there; what an earlier run has made
 * stays.
 */
static SluiceOutcome
index_keys(Copy *copy)
{
	SluiceReplica *replica = copy->replica;
	SluiceIndexNames names;
	SluiceOutcome outcome = SLUICE_OK;

	sluice_schema_name_indexes(replica, &names);
	for (size_t i = 0; i < sluice_replica_count(replica) && outcome == SLUICE_OK; i++)
	{
		SluiceReplicaTable *table = sluice_replica_at(replica, i);

		outcome = begin_group(copy);
		if (outcome == SLUICE_OK)
			outcome = sluice_schema_create_named_indexes(replica, table, SLUICE_INDEXES_KEY,
														 &names);
		if (outcome == SLUICE_OK)
			outcome = end_group(copy, false);
		if (outcome == SLUICE_OK && copy->agent->stop)
			outcome = SLUICE_STOPPED;
	}
	sluice_arena_release(&names.arena);
	return close_group(copy, outcome);
}

/* The stream is followed from the lowest low, that of the list included. */
static SluiceOutcome
complete(Copy *copy)
{
	SluiceReplica *replica = copy->replica;
	SluicePosition position = {{0, 0}, 0, 0, 0};
	SluiceOutcome outcome;

	if (replica->list_placed != NULL)
		position.watermark = replica->list_placed->low;
	for (size_t i = 0; i < sluice_replica_count(replica); i++)
	{
		const SluicePlaced *placed = sluice_replica_at(replica, i)->placed;

		if (placed != NULL && sluice_watermark_compare(placed->low, position.watermark) < 0)
			position.watermark = placed->low;
	}
	outcome = sluice_copy_file_complete(replica, &position);
	if (outcome == SLUICE_OK)
		sluice_log(SLUICE_INFO, "copied %zu tables, %llu rows, %.1f MB in %.1f s",
				   sluice_replica_count(replica), (unsigned long long) copy->progress.rows,
				   (double) copy->progress.bytes / 1e6,
				   (double) (sluice_agent_clock() - copy->progress.started) / 1e6);
	return outcome;
}

static SluiceOutcome
run(Copy *copy)
{
	SluiceOutcome outcome;

	if (copy->replica->stage == SLUICE_STAGE_EMPTY)
		outcome = fetch_list(copy);
	else
		outcome = resume_list(copy);
	if (outcome != SLUICE_OK)
		return outcome;
	sluice_copy_list_assign_names(copy->replica, &copy->list);
	start_progress(copy);
	outcome = copy_tables(copy);
	sluice_progress_finish(&copy->progress, sluice_agent_clock());
	if (outcome == SLUICE_OK)
		outcome = index_keys(copy);
	if (outcome == SLUICE_OK)
		return complete(copy);
	if (outcome == SLUICE_STOPPED)
		sluice_copy_file_sync(copy->replica);
	return outcome;
}

static SluiceOutcome
run_with_workers(SluiceAgent *agent, SluiceReplica *replica)
{
	Copy		copy = {.agent = agent, .replica = replica};
	SluiceOutcome outcome;

	copy.nworkers = agent->config.jobs < 1 ? 1 : agent->config.jobs;
	if (copy.nworkers > MAX_JOBS)
		copy.nworkers = MAX_JOBS;
	copy.workers = calloc((size_t) copy.nworkers, sizeof(SluiceCopyWorker));
	if (copy.workers == NULL)
		abort();
	sluice_copy_list_init(&copy.list);
	for (int i = 0; i < copy.nworkers; i++)
		sluice_copy_worker_init(&copy.workers[i], replica, &copy.list, &copy.progress);
	outcome = run(&copy);
	for (int i = 0; i < copy.nworkers; i++)
		sluice_copy_worker_release(&copy.workers[i]);
	free(copy.workers);
	replica->idle = NULL;
	sluice_copy_list_release(&copy.list);
	return outcome;
}

SluiceOutcome
sluice_copy_run(SluiceAgent *agent, const char *path)
{
	SluiceBackoff backoff = {0};
	SluiceReplica *replica;
	SluiceOutcome outcome;

	for (;;)
	{
		outcome = sluice_copy_file_open(agent, path, &replica);
		if (outcome != SLUICE_OK)
			return outcome;
		if (replica->stage < SLUICE_STAGE_CATCHING_UP)
			outcome = run_with_workers(agent, replica);
		sluice_replica_close(replica);
		if (outcome != SLUICE_COPY_AFRESH)
			return outcome;

		/* the server is another one now, or the shard was reset */
		sluice_log(SLUICE_INFO, "a new copy is begun");
		outcome = sluice_replica_remove(path);
		if (outcome == SLUICE_OK)
			outcome = sluice_conn_backoff(agent, &backoff);
		if (outcome != SLUICE_OK)
			return outcome;
	}
}
