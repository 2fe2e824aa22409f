/*
 * copy_worker.c: one of the connections of a first copy.
 *
 * In: batches of tables.  Out: CALLs, and what they bring.
 * Runs in: the copying thread, several in turns.  Locks: none.
 * States: see copy_worker.h.
 */
#include <stdio.h>
#include <string.h>

#include "copy_worker.h"
#include "log.h"

#define STEP_BYTES (256 * 1024) /* of one worker before the next has its turn */
#define FIRST_DELAY 25			/* ms before a new attempt; doubles */
#define LAST_DELAY 10000
#define LIST_WAIT 1000			/* ms, between looks at the stop wish */

void
sluice_copy_worker_init(SluiceCopyWorker *worker, SluiceReplica *replica, SluiceCopyList *list,
						SluiceProgress *progress)
{
	memset(worker, 0, sizeof(*worker));
	worker->delay = FIRST_DELAY;
	sluice_copy_table_init(&worker->table, replica, list, progress);
}

void
sluice_copy_worker_release(SluiceCopyWorker *worker)
{
	sluice_conn_close(&worker->conn);
	sluice_copy_table_release(&worker->table);
}

SluiceOutcome
sluice_copy_worker_lost(SluiceCopyWorker *worker)
{
	sluice_conn_close(&worker->conn);
	worker->open = false;
	worker->calling = false;
	worker->retry_at = sluice_agent_clock() + (int64_t) worker->delay * 1000;
	worker->delay = worker->delay * 2 > LAST_DELAY ? LAST_DELAY : worker->delay * 2;
	sluice_copy_list_give_back(worker->table.list, worker->oids, worker->noids);
	worker->noids = 0;
	return sluice_copy_table_abandon(&worker->table);
}

static SluiceOutcome
open_connection(SluiceCopyWorker *worker)
{
	SluiceOutcome outcome;

	if (worker->open)
		return SLUICE_OK;
	outcome = sluice_conn_open(worker->table.replica->agent, &worker->conn);
	worker->open = outcome == SLUICE_OK;
	return outcome;
}

/* CALL sluice.copy('shard', 'replica', …); false: a name is not valid text. */
static bool
put_call(SluiceCopyWorker *worker, SluiceBuffer *sql)
{
	const SluiceReplica *replica = worker->table.replica;
	const SluiceConfig *config = &replica->agent->config;
	char		text[100];

	sluice_buffer_append(sql, "CALL sluice.copy(", 17);
	if (!sluice_conn_literal(&worker->conn, sql, config->shard))
		return false;
	sluice_buffer_append(sql, ", ", 2);
	if (!sluice_conn_literal(&worker->conn, sql, config->name))
		return false;
	if (worker->noids > 0)
	{
		sluice_buffer_append(sql, ", '{", 4);
		for (size_t i = 0; i < worker->noids; i++)
			sluice_buffer_append(sql, text, (size_t) snprintf(text, sizeof(text), "%s%u",
															  i > 0 ? "," : "", worker->oids[i]));
		sluice_buffer_append(sql, text, (size_t) snprintf(
			text, sizeof(text), "}', '{\"system_id\": \"%llu\", \"timeline\": %u, ",
			(unsigned long long) replica->origin.system_id, replica->origin.timeline));
		/* a replica version is a watermark: letters, digits and a dot */
		sluice_buffer_append(sql, text, (size_t) snprintf(
			text, sizeof(text), "\"replica_version\": \"%.40s\"}'",
			replica->origin.replica_version));
	}
	sluice_buffer_append(sql, ")", 2);
	return true;
}

static SluiceOutcome
call(SluiceCopyWorker *worker)
{
	SluiceOutcome outcome = SLUICE_USAGE;
	SluiceBuffer sql;

	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	if (put_call(worker, &sql))
		outcome = sluice_conn_call(&worker->conn, sql.data);
	else
		sluice_log(SLUICE_ERROR, "the name of the shard or of the replica is not valid text");
	sluice_buffer_release(&sql);
	worker->calling = outcome == SLUICE_OK;
	return outcome;
}

SluiceOutcome
sluice_copy_worker_start(SluiceCopyWorker *worker, int jobs)
{
	SluiceOutcome outcome;

	if (worker->calling || (!worker->open && sluice_agent_clock() < worker->retry_at) ||
		worker->table.list->waiting == 0)
		return SLUICE_OK;
	outcome = open_connection(worker);
	if (outcome == SLUICE_OK)
	{
		worker->noids = sluice_copy_list_take(worker->table.list, jobs, worker->oids,
											  SLUICE_COPY_BATCH);
		outcome = call(worker);
	}
	return outcome == SLUICE_RETRY ? sluice_copy_worker_lost(worker) : outcome;
}

/* The call is over: everything that was asked for must have come. */
static SluiceOutcome
call_done(SluiceCopyWorker *worker)
{
	for (size_t i = 0; i < worker->noids; i++)
	{
		SluiceCopyItem *item = sluice_copy_list_find(worker->table.list, worker->oids[i]);

		if (item == NULL || item->state != SLUICE_COPY_DONE)
		{
			sluice_log(SLUICE_ERROR, "the server ended the copy before table \"%s\".\"%s\" "
					   "was complete", item == NULL ? "" : item->schema,
					   item == NULL ? "" : item->name);
			return SLUICE_RETRY;
		}
	}
	worker->calling = false;
	worker->noids = 0;
	worker->delay = FIRST_DELAY;
	return SLUICE_OK;
}

SluiceOutcome
sluice_copy_worker_step(SluiceCopyWorker *worker, bool *some)
{
	SluiceOutcome outcome = SLUICE_OK;
	size_t		taken = 0;

	while (worker->calling && taken < STEP_BYTES && outcome == SLUICE_OK)
	{
		char	   *data;
		size_t		size;

		switch (sluice_conn_receive(&worker->conn, &data, &size, &outcome))
		{
			case SLUICE_RECEIVED_NONE:
				return SLUICE_OK;
			case SLUICE_RECEIVED_MESSAGE:
				*some = true;
				taken += size;
				outcome = sluice_copy_table_message(&worker->table, data, size);
				sluice_conn_release(data);
				break;
			case SLUICE_RECEIVED_DONE:
				*some = true;
				outcome = call_done(worker);
				break;
			case SLUICE_RECEIVED_FAILED:
				break;
		}
	}
	return outcome == SLUICE_RETRY ? sluice_copy_worker_lost(worker) : outcome;
}

/* ---- the list ---- */

static SluiceOutcome
receive_list(SluiceCopyWorker *worker, SluiceCopyList *list)
{
	SluiceOutcome outcome = SLUICE_OK;
	bool		got = false;

	while (outcome == SLUICE_OK)
	{
		char	   *data;
		size_t		size;

		switch (sluice_conn_receive(&worker->conn, &data, &size, &outcome))
		{
			case SLUICE_RECEIVED_NONE:
				outcome = sluice_conn_wait(&worker->conn, LIST_WAIT);
				break;
			case SLUICE_RECEIVED_MESSAGE:
				if (size > 0 && data[0] == 'L')
					got = !got && sluice_copy_list_decode(list, data + 1, size - 1);
				sluice_conn_release(data);
				break;
			case SLUICE_RECEIVED_DONE:
				worker->calling = false;
				if (got)
					return SLUICE_OK;
				sluice_log(SLUICE_ERROR, "the server sent no usable list of tables");
				return SLUICE_RETRY;
			case SLUICE_RECEIVED_FAILED:
				break;
		}
	}
	return outcome;
}

SluiceOutcome
sluice_copy_worker_list(SluiceCopyWorker *worker, SluiceCopyList *list)
{
	SluiceOutcome outcome = open_connection(worker);

	if (outcome == SLUICE_OK)
		outcome = call(worker);
	if (outcome == SLUICE_OK)
		outcome = receive_list(worker, list);
	if (outcome != SLUICE_OK)
	{
		sluice_conn_close(&worker->conn);
		worker->open = false;
		worker->calling = false;
	}
	return outcome;
}
