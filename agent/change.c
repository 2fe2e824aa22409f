/*
 * change.c: the messages inside a transaction of the stream.
 *
 * In: frames.  Out: rows, truncations, notes of tables in the replica.
 * What a table's copy has already is passed over, by the rule of placed.h.
 * Runs in: the thread that owns the replica, inside its transaction.
 * Locks: none.
 */
#include <string.h>

#include "apply_internal.h"
#include "log.h"
#include "schema_change.h"

static SluiceOutcome
damaged(const char *what)
{
	sluice_log(SLUICE_ERROR, "%s cannot be read: the stream is damaged", what);
	return SLUICE_RETRY;
}

/* ---- which tables ---- */

static SluiceReplicaTable *
find(SluiceApply *apply, uint32_t oid)
{
	if (apply->last == NULL || apply->last->spec.oid != oid)
		apply->last = sluice_replica_find(apply->replica, oid);
	return apply->last;
}

/* The copied rows of that table have this transaction's changes. */
static bool
copied_already(const SluiceApply *apply, SluiceReplicaTable *table)
{
	if (table->placed == NULL)
		return false;
	if (table->judged != apply->number)
	{
		table->judged = apply->number;
		table->skipped = sluice_placed_has(table->placed, &apply->begin);
	}
	return table->skipped;
}

/* Of a table that the replica does not know. */
static SluiceOutcome
unknown(const SluiceApply *apply, uint32_t oid)
{
	/* gone before the list was read: the list has that */
	if (apply->replica->list_placed != NULL &&
		sluice_placed_has(apply->replica->list_placed, &apply->begin))
		return SLUICE_OK;
	sluice_log(SLUICE_ERROR, "the stream has changes of a table with OID %u, which replica \"%s\" "
			   "does not hold; hint: Move the file away and start the agent again: it copies "
			   "afresh.", oid, apply->replica->path);
	return SLUICE_INAPPLICABLE;
}

/* ---- messages ---- */

static SluiceOutcome
row(SluiceApply *apply, const SluiceFrame *frame)
{
	SluiceRowHead head;
	SluiceCursor cursor;
	SluiceReplicaTable *table;

	if (!sluice_wire_get_row(frame, &head, &cursor))
		return damaged("a row");
	table = find(apply, head.table_oid);
	if (table == NULL)
		return unknown(apply, head.table_oid);
	if (table->problem != NULL || copied_already(apply, table))
		return SLUICE_OK;
	apply->counts.rows++;
	return sluice_row_apply(&apply->row, table, frame);
}

static SluiceOutcome
truncate_tables(SluiceApply *apply, const SluiceFrame *frame)
{
	SluiceTruncate truncate;
	SluiceOutcome outcome = SLUICE_OK;

	if (!sluice_wire_get_truncate(frame, &apply->arena.allocator, &truncate))
		return damaged("a truncation");
	for (uint32_t i = 0; i < truncate.ntables && outcome == SLUICE_OK; i++)
	{
		SluiceReplicaTable *table = find(apply, truncate.table_oids[i]);

		if (table == NULL)
			outcome = unknown(apply, truncate.table_oids[i]);
		else if (table->problem == NULL && !copied_already(apply, table))
			outcome = sluice_row_truncate(&apply->row, table);
	}
	return outcome;
}

static SluiceOutcome
problem(SluiceApply *apply, const SluiceFrame *frame)
{
	SluiceTableProblem message;
	SluiceReplicaTable *table;

	if (!sluice_wire_get_table_problem(frame, &apply->arena.allocator, &message))
		return damaged("a table's problem");
	table = find(apply, message.table_oid);
	if (table == NULL)
		return SLUICE_OK;
	if (message.problem != NULL && message.problem[0] != '\0')
	{
		sluice_log(SLUICE_WARNING, "table \"%s\" is not followed any more: %s", table->name,
				   message.problem);
		return sluice_replica_set_problem(apply->replica, table, message.problem);
	}
	/* rows were missed meanwhile; they come by a copy only */
	sluice_log(SLUICE_WARNING, "table \"%s\" can be followed again, but its rows are not up to "
			   "date; hint: Move the file away and start the agent again: it copies afresh.",
			   table->name);
	return SLUICE_OK;
}

/*
 * What a copied table's definition has already is passed over, as its rows
 * are; so is what the list of tables has.
 */
static SluiceOutcome
schema(SluiceApply *apply, const SluiceFrame *frame)
{
	uint32_t	oid = sluice_schema_change_table(frame, &apply->arena.allocator);
	SluiceReplicaTable *table;

	if (oid == 0)
		return damaged("a schema change");
	table = find(apply, oid);
	if (table != NULL && table->problem != NULL &&
		strcmp(table->problem, SLUICE_PROBLEM_GONE) == 0)
	{
		if (frame->tag != SLUICE_TAG_DROP_TABLE)
			return SLUICE_OK;
		apply->last = NULL;
		return sluice_replica_forget(apply->replica, table);
	}
	if (table != NULL ? copied_already(apply, table) :
		apply->replica->list_placed != NULL &&
		sluice_placed_has(apply->replica->list_placed, &apply->begin))
		return SLUICE_OK;
	if (table == NULL && frame->tag != SLUICE_TAG_CREATE_TABLE)
		return unknown(apply, oid);
	/* notes of tables are made anew */
	apply->last = NULL;
	if (apply->row.log != NULL)
		sluice_rowlog_schema(apply->row.log);
	return sluice_schema_change_apply(&apply->row, table, frame, &apply->arena.allocator);
}

SluiceOutcome
sluice_change_apply(SluiceApply *apply, const SluiceFrame *frame)
{
	SluiceOutcome outcome;

	switch (frame->tag)
	{
		case SLUICE_TAG_INSERT:
		case SLUICE_TAG_UPDATE:
		case SLUICE_TAG_DELETE:
			return row(apply, frame);
		case SLUICE_TAG_TRUNCATE:
			outcome = truncate_tables(apply, frame);
			break;
		case SLUICE_TAG_TABLE_PROBLEM:
			outcome = problem(apply, frame);
			break;
		case SLUICE_TAG_BACKFILL_MARK:
		case SLUICE_TAG_BACKFILL:
		case SLUICE_TAG_BACKFILL_COMPLETED:
			sluice_log(SLUICE_ERROR, "the stream has a backfill, which this version does not "
					   "follow yet; hint: Upgrade sluice-agent.");
			outcome = SLUICE_INAPPLICABLE;
			break;
		default:
			outcome = sluice_schema_change_is(frame->tag) ? schema(apply, frame) :
				damaged("a message");
			break;
	}
	sluice_arena_reset(&apply->arena);
	return outcome;
}

/* ---- the end of a copy ---- */

void
sluice_change_count_placed(SluiceApply *apply)
{
	apply->placed = apply->replica->list_placed != NULL;
	for (size_t i = 0; i < sluice_replica_count(apply->replica); i++)
		if (sluice_replica_at(apply->replica, i)->placed != NULL)
			apply->placed++;
}

bool
sluice_change_passes(const SluiceApply *apply, uint64_t position)
{
	const SluiceReplica *replica = apply->replica;

	if (apply->placed == 0)
		return false;
	if (replica->list_placed != NULL && sluice_placed_passed(replica->list_placed, position))
		return true;
	for (size_t i = 0; i < sluice_replica_count(replica); i++)
	{
		const SluiceReplicaTable *table = sluice_replica_at(replica, i);

		if (table->placed != NULL && sluice_placed_passed(table->placed, position))
			return true;
	}
	return false;
}

SluiceOutcome
sluice_change_passed(SluiceApply *apply, uint64_t position)
{
	SluiceReplica *replica = apply->replica;
	SluiceOutcome outcome = SLUICE_OK;

	for (size_t i = 0; outcome == SLUICE_OK && i < sluice_replica_count(replica); i++)
	{
		SluiceReplicaTable *table = sluice_replica_at(replica, i);

		if (table->placed != NULL && sluice_placed_passed(table->placed, position))
			outcome = sluice_replica_set_passed(replica, table);
	}
	if (outcome == SLUICE_OK && replica->list_placed != NULL &&
		sluice_placed_passed(replica->list_placed, position))
		outcome = sluice_replica_set_list(replica, NULL);
	sluice_change_count_placed(apply);
	return outcome;
}
