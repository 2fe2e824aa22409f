/*
 * run.c: the life of a replica.
 *
 * In: the file as it is found, what the stream says.  Out: a file that is
 * followed.
 *
 *   no file ──► copy beside it ──► past every high ──► other indexes ──►
 *   caught up ──► swapped in ──► followed ──► (lineage gone, too old,
 *   diverged) ──► copy beside it …, the old file served until the swap
 *   damaged ──► set aside ──► as no file
 *   removed or replaced under the agent ──► as it is found
 *
 * Runs in: the main thread, with the file's lock.  Locks: none.
 */
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "copy.h"
#include "log.h"
#include "notify.h"
#include "replica.h"
#include "run.h"
#include "schema.h"
#include "stream.h"

/* Each index in a transaction of its own: a kill loses one at most. */
static SluiceOutcome
create_indexes(SluiceReplica *replica)
{
	SluiceIndexNames names;
	SluiceOutcome outcome = SLUICE_OK;

	sluice_schema_name_indexes(replica, &names);
	for (size_t i = 0; outcome == SLUICE_OK && i < sluice_replica_count(replica); i++)
	{
		SluiceReplicaTable *table = sluice_replica_at(replica, i);

		if (table->problem != NULL || table->spec.nindexes == 0)
			continue;
		outcome = sluice_replica_begin(replica);
		if (outcome == SLUICE_OK)
			outcome = sluice_schema_create_named_indexes(replica, table, SLUICE_INDEXES_ALL,
														 &names);
		if (outcome == SLUICE_OK)
			outcome = sluice_replica_commit(replica, NULL);
		if (outcome != SLUICE_OK)
			sluice_replica_rollback(replica);
	}
	sluice_arena_release(&names.arena);
	return outcome;
}

static SluiceOutcome
set_ready(SluiceReplica *replica)
{
	SluiceOutcome outcome = sluice_replica_begin(replica);

	if (outcome == SLUICE_OK)
		outcome = sluice_replica_set_stage(replica, SLUICE_STAGE_READY);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_commit(replica, NULL);
	if (outcome != SLUICE_OK)
		sluice_replica_rollback(replica);
	return outcome;
}

/* From "all tables are there" to "ready to be served". */
static SluiceOutcome
bring_up(SluiceAgent *agent, SluiceReplica *replica)
{
	SluiceOutcome outcome;

	if (replica->stage == SLUICE_STAGE_READY)
		return SLUICE_OK;
	outcome = sluice_stream_run(agent, replica, SLUICE_GOAL_PASSED);
	if (outcome == SLUICE_OK)
	{
		sluice_log(SLUICE_INFO, "building indexes");
		outcome = create_indexes(replica);
	}
	if (outcome == SLUICE_OK)
		outcome = sluice_stream_run(agent, replica, SLUICE_GOAL_CAUGHT_UP);
	return outcome == SLUICE_OK ? set_ready(replica) : outcome;
}

/* One attempt at a copy that is ready beside the replica. */
static SluiceOutcome
copy_once(SluiceAgent *agent, const char *path)
{
	SluiceReplica *replica;
	SluiceOutcome outcome = sluice_copy_run(agent, path);

	if (outcome == SLUICE_OK)
		outcome = sluice_replica_open(agent, path, SLUICE_OPEN_EXISTING, &replica);
	if (outcome != SLUICE_OK)
		return outcome;
	outcome = bring_up(agent, replica);
	sluice_replica_close(replica);
	return outcome;
}

static SluiceOutcome
copy_afresh(SluiceAgent *agent)
{
	const SluiceAllocator *a = &sluice_malloc_allocator;
	char	   *path = sluice_replica_copy_path(agent->config.replica, a);
	SluiceBackoff backoff = {0};
	SluiceOutcome outcome;

	sluice_notify("STATUS=copying");
	while ((outcome = copy_once(agent, path)) == SLUICE_COPY_AFRESH ||
		   outcome == SLUICE_DAMAGED || outcome == SLUICE_MOVED)
	{
		/* what was copied is of no use any more */
		outcome = sluice_replica_remove(path);
		if (outcome == SLUICE_OK)
			outcome = sluice_conn_backoff(agent, &backoff);
		if (outcome != SLUICE_OK)
			break;
	}
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_swap(path, agent->config.replica);
	if (outcome == SLUICE_OK)
		sluice_log(SLUICE_INFO, "replica \"%s\" is ready", agent->config.replica);
	a->release(a->context, path);
	return outcome;
}

/* Follows the file as it is. */
static SluiceOutcome
follow_file(SluiceAgent *agent, bool follow)
{
	SluiceReplica *replica;
	SluiceOutcome outcome;

	outcome = sluice_replica_open(agent, agent->config.replica, SLUICE_OPEN_EXISTING, &replica);
	if (outcome != SLUICE_OK)
		return outcome;
	if (replica->origin.shard != NULL && strcmp(replica->origin.shard, agent->config.shard) != 0)
	{
		sluice_log(SLUICE_ERROR, "file \"%s\" is a replica of shard \"%s\", not of \"%s\"; "
				   "hint: Give --replica another path, or remove the file.", replica->path,
				   replica->origin.shard, agent->config.shard);
		sluice_replica_close(replica);
		return SLUICE_UNUSABLE;
	}
	/* only a copy that was moved here by hand can be less than ready */
	outcome = replica->stage >= SLUICE_STAGE_CATCHING_UP ? bring_up(agent, replica) :
		SLUICE_COPY_AFRESH;
	if (outcome == SLUICE_OK)
	{
		sluice_notify("READY=1\nSTATUS=following");
		outcome = sluice_stream_run(agent, replica,
									follow ? SLUICE_GOAL_FOLLOW : SLUICE_GOAL_CAUGHT_UP);
	}
	sluice_replica_close(replica);
	return outcome;
}

SluiceOutcome
sluice_run(SluiceAgent *agent, bool follow)
{
	SluiceOutcome outcome;

	for (;;)
	{
		outcome = follow_file(agent, follow);
		if (outcome == SLUICE_MOVED)
			continue;
		if (outcome != SLUICE_COPY_AFRESH && outcome != SLUICE_DAMAGED)
			return outcome;
		if (agent->config.no_copy)
		{
			sluice_log(SLUICE_ERROR, "replica \"%s\" needs a fresh copy, which --no-copy forbids",
					   agent->config.replica);
			return SLUICE_COPY_AFRESH;
		}
		if (outcome == SLUICE_DAMAGED &&
			sluice_replica_set_aside(agent->config.replica) != SLUICE_OK)
			return SLUICE_UNUSABLE;
		sluice_log(SLUICE_INFO, "copying shard \"%s\" to replica \"%s\"", agent->config.shard,
				   agent->config.replica);
		outcome = copy_afresh(agent);
		if (outcome != SLUICE_OK)
			return outcome;
	}
}
