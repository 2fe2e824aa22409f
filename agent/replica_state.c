/*
 * replica_state.c: what a replica file is of, and how far it has come.
 *
 * In: origin, stage, position.  Out: _zero.replicationConfig,
 * _zero.replicationState, _sluice.state, _sluice.position, and their copies
 * in memory.
 * Runs in: the thread that owns the replica, inside its transaction.
 */
#include <string.h>

#include "log.h"
#include "replica_setup.h"

static const char *const stages[] = {"empty", "copying", "catching up", "ready"};

static SluiceOutcome
damaged(SluiceReplica *replica, const char *what)
{
	sluice_log(SLUICE_ERROR, "replica \"%s\" is damaged: %s", replica->path, what);
	return SLUICE_DAMAGED;
}

static char *
column_text(SluiceReplica *replica, sqlite3_stmt *statement, int column)
{
	const char *text = (const char *) sqlite3_column_text(statement, column);

	return text == NULL ? NULL : sluice_arena_strdup(&replica->arena, text);
}

static void
bind_watermark(sqlite3_stmt *statement, int parameter, SluiceWatermark watermark)
{
	char		text[SLUICE_WATERMARK_TEXT_MAX];
	size_t		size = sluice_watermark_format(watermark, text);

	sqlite3_bind_text(statement, parameter, text, (int) size, SQLITE_TRANSIENT);
}

/* ---- reading ---- */

/* listLow, listHigh, listSnapshot in columns 6, 7, 8 */
static bool
read_list(SluiceReplica *replica, sqlite3_stmt *statement)
{
	SluicePlaced *placed;
	SluiceCursor cursor;
	const char *low = (const char *) sqlite3_column_text(statement, 6);

	if (low == NULL)
		return true;
	placed = sluice_arena_alloc(&replica->arena, sizeof(*placed));
	if (!sluice_watermark_parse(low, &placed->low))
		return false;
	placed->high = (uint64_t) sqlite3_column_int64(statement, 7);
	sluice_cursor_init(&cursor, sqlite3_column_blob(statement, 8),
					   (size_t) sqlite3_column_bytes(statement, 8));
	if (!sluice_placed_decode(&cursor, &replica->arena.allocator, placed))
		return false;
	replica->list_placed = placed;
	return true;
}

static SluiceOutcome
read_row(SluiceReplica *replica, sqlite3_stmt *statement)
{
	SluiceOrigin *origin = &replica->origin;
	const char *stage = (const char *) sqlite3_column_text(statement, 5);
	const char *watermark = (const char *) sqlite3_column_text(statement, 10);
	bool		known = false;

	origin->shard = column_text(replica, statement, 0);
	origin->system_id = (uint64_t) sqlite3_column_int64(statement, 1);
	origin->timeline = (uint32_t) sqlite3_column_int64(statement, 2);
	origin->timestamps = (uint8_t) sqlite3_column_int(statement, 3);
	origin->numerics = (uint8_t) sqlite3_column_int(statement, 4);
	origin->replica_version = column_text(replica, statement, 9);
	for (int i = 0; stage != NULL && i <= SLUICE_STAGE_READY; i++)
		if (strcmp(stage, stages[i]) == 0)
		{
			replica->stage = (SluiceStage) i;
			known = true;
		}
	if (!known || !read_list(replica, statement))
		return damaged(replica, "its state cannot be read");
	if (watermark != NULL && !sluice_watermark_parse(watermark, &replica->position.watermark))
		return damaged(replica, "its position cannot be read");
	replica->position.xid = (uint64_t) sqlite3_column_int64(statement, 11);
	replica->position.commit_time = sqlite3_column_int64(statement, 12);
	replica->position.seen = (uint64_t) sqlite3_column_int64(statement, 13);
	return SLUICE_OK;
}

SluiceOutcome
sluice_replica_read_state(SluiceReplica *replica)
{
	sqlite3_stmt *statement;
	SluiceOutcome outcome;
	int			rc;

	statement = sluice_replica_statement(
		replica,
		"SELECT shard, systemId, timeline, timestamps, numerics, stage, listLow, listHigh,"
		" listSnapshot, replicaVersion, stateVersion, xid, commitTime, seen"
		" FROM \"_sluice.state\" JOIN \"_sluice.position\""
		" LEFT JOIN \"_zero.replicationConfig\" LEFT JOIN \"_zero.replicationState\"");
	if (statement == NULL)
		return sluice_replica_failure(replica, sqlite3_errcode(replica->db), "read the state");
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
		outcome = read_row(replica, statement);
	else if (rc == SQLITE_DONE)
		outcome = damaged(replica, "its state is missing");
	else
		outcome = sluice_replica_failure(replica, rc, "read the state");
	sqlite3_reset(statement);
	return outcome;
}

/* ---- writing ---- */

SluiceOutcome
sluice_replica_write_position(SluiceReplica *replica, const SluicePosition *position)
{
	sqlite3_stmt *statement;
	SluiceOutcome outcome = SLUICE_OK;

	if (sluice_watermark_compare(position->watermark, replica->position.watermark) != 0)
	{
		statement = sluice_replica_statement(
			replica, "UPDATE \"_zero.replicationState\" SET stateVersion = ?1, writeTimeMs = ?2");
		if (statement == NULL)
			return SLUICE_INAPPLICABLE;
		bind_watermark(statement, 1, position->watermark);
		sqlite3_bind_int64(statement, 2, sluice_agent_time() / 1000);
		outcome = sluice_replica_step(replica, statement, "write the position");
	}
	if (outcome != SLUICE_OK)
		return outcome;
	statement = sluice_replica_statement(
		replica, "UPDATE \"_sluice.position\" SET xid = ?1, commitTime = ?2, seen = ?3");
	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_int64(statement, 1, (int64_t) position->xid);
	sqlite3_bind_int64(statement, 2, position->commit_time);
	sqlite3_bind_int64(statement, 3, (int64_t) position->seen);
	return sluice_replica_step(replica, statement, "write the position");
}

SluiceOutcome
sluice_replica_set_position(SluiceReplica *replica, const SluicePosition *position)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "INSERT OR REPLACE INTO \"_zero.replicationState\"(stateVersion, writeTimeMs,"
		" lock) VALUES(?1, ?2, 1)");
	SluiceOutcome outcome;

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	bind_watermark(statement, 1, position->watermark);
	sqlite3_bind_int64(statement, 2, sluice_agent_time() / 1000);
	outcome = sluice_replica_step(replica, statement, "write the position");
	if (outcome == SLUICE_OK)
	{
		replica->position.watermark = position->watermark;
		outcome = sluice_replica_write_position(replica, position);
	}
	if (outcome == SLUICE_OK)
		replica->position = *position;
	return outcome;
}

static SluiceOutcome
set_config(SluiceReplica *replica, const SluiceOrigin *origin, const char *publications)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "INSERT OR REPLACE INTO \"_zero.replicationConfig\"(replicaVersion,"
		" publications, lock) VALUES(?1, ?2, 1)");

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_text(statement, 1, origin->replica_version, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(statement, 2, publications != NULL ? publications : "[]", -1,
					  SQLITE_TRANSIENT);
	return sluice_replica_step(replica, statement, "write the configuration");
}

SluiceOutcome
sluice_replica_set_origin(SluiceReplica *replica, const SluiceOrigin *origin,
						  const char *publications)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "UPDATE \"_sluice.state\" SET shard = ?1, systemId = ?2, timeline = ?3,"
		" timestamps = ?4, numerics = ?5");
	SluiceOutcome outcome;

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_text(statement, 1, origin->shard, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(statement, 2, (int64_t) origin->system_id);
	sqlite3_bind_int64(statement, 3, origin->timeline);
	sqlite3_bind_int(statement, 4, origin->timestamps);
	sqlite3_bind_int(statement, 5, origin->numerics);
	outcome = sluice_replica_step(replica, statement, "write the origin");
	if (outcome == SLUICE_OK)
		outcome = set_config(replica, origin, publications);
	if (outcome != SLUICE_OK)
		return outcome;
	replica->origin = *origin;
	replica->origin.shard = sluice_arena_strdup(&replica->arena, origin->shard);
	replica->origin.replica_version = sluice_arena_strdup(&replica->arena,
														  origin->replica_version);
	return SLUICE_OK;
}

/* After a promotion that the server accepted us across. */
SluiceOutcome
sluice_replica_set_timeline(SluiceReplica *replica, uint32_t timeline)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "UPDATE \"_sluice.state\" SET timeline = ?1");
	SluiceOutcome outcome;

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_int64(statement, 1, timeline);
	outcome = sluice_replica_step(replica, statement, "write the timeline");
	if (outcome == SLUICE_OK)
		replica->origin.timeline = timeline;
	return outcome;
}

SluiceOutcome
sluice_replica_set_stage(SluiceReplica *replica, SluiceStage stage)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "UPDATE \"_sluice.state\" SET stage = ?1");
	SluiceOutcome outcome;

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_text(statement, 1, stages[stage], -1, SQLITE_STATIC);
	outcome = sluice_replica_step(replica, statement, "write the stage");
	if (outcome == SLUICE_OK)
		replica->stage = stage;
	return outcome;
}

SluiceOutcome
sluice_replica_set_list(SluiceReplica *replica, const SluicePlaced *placed)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "UPDATE \"_sluice.state\" SET listLow = ?1, listHigh = ?2, listSnapshot = ?3");
	SluiceBuffer bytes;
	SluiceOutcome outcome;
	SluicePlaced *kept;
	uint64_t   *xids;

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sluice_buffer_init(&bytes, &sluice_malloc_allocator);
	if (placed != NULL)
	{
		sluice_placed_encode(&bytes, placed);
		bind_watermark(statement, 1, placed->low);
		sqlite3_bind_int64(statement, 2, (int64_t) placed->high);
		sqlite3_bind_blob(statement, 3, bytes.data, (int) bytes.length, SQLITE_STATIC);
	}
	outcome = sluice_replica_step(replica, statement, "write the list's snapshot");
	sluice_buffer_release(&bytes);
	if (outcome != SLUICE_OK || placed == NULL)
	{
		if (outcome == SLUICE_OK)
			replica->list_placed = NULL;
		return outcome;
	}
	kept = sluice_arena_alloc(&replica->arena, sizeof(*kept));
	*kept = *placed;
	xids = sluice_arena_alloc(&replica->arena, placed->nxids * sizeof(uint64_t) + 1);
	for (uint32_t i = 0; i < placed->nxids; i++)
		xids[i] = placed->xids[i];
	kept->xids = xids;
	replica->list_placed = kept;
	return SLUICE_OK;
}

SluiceOutcome
sluice_replica_event(SluiceReplica *replica, const char *event)
{
	sqlite3_stmt *statement = sluice_replica_statement(
		replica, "INSERT INTO \"_zero.runtimeEvents\"(event) VALUES(?1)");

	if (statement == NULL)
		return SLUICE_INAPPLICABLE;
	sqlite3_bind_text(statement, 1, event, -1, SQLITE_TRANSIENT);
	return sluice_replica_step(replica, statement, "note an event");
}
