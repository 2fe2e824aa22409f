/*
 * apply.c: the frame stream to SQLite transactions.
 *
 * In: bytes, cut anywhere.  Out: the replica.
 * Runs in: the thread that owns the replica.  Locks: SQLite's.
 *
 * States of the byte stream:
 *   between transactions   BEGIN or STATUS comes
 *   held back              a BEGIN was seen but not the end; fewer than HOLD
 *                          bytes: they wait in `held`, SQLite knows nothing
 *   alone                  more than that: the group was committed, and this
 *                          one is applied as it comes, in an SQLite transaction
 *                          of its own
 * A transaction that is whole joins the group, which is committed when nothing
 * more waits (sluice_apply_flush) or when it is large or old enough.
 */
#include <stdlib.h>
#include <string.h>

#include "apply_internal.h"
#include "log.h"

#define HOLD (512 * 1024)		/* bytes of a transaction that wait for its end */
#define GROUP_TRANSACTIONS 1000
#define GROUP_BYTES (4 * 1024 * 1024)
#define GROUP_TIME 20000		/* us */
#define KEEP_HELD (4 * 1024 * 1024)	/* a larger buffer is given back */
#define SEEN_EVERY 1000000		/* us between writes of a keepalive's position */

/* ---- life ---- */

SluiceApply *
sluice_apply_create(SluiceReplica *replica, bool row_log, SluiceOutcome *outcome)
{
	const SluiceAllocator *a = &sluice_malloc_allocator;
	SluiceRowLog *log;
	SluiceApply *apply;

	*outcome = sluice_rowlog_open(replica, row_log, &log);
	if (*outcome != SLUICE_OK)
		return NULL;
	apply = a->grow(a->context, NULL, sizeof(*apply));
	memset(apply, 0, sizeof(*apply));
	apply->replica = replica;
	apply->row.replica = replica;
	apply->row.log = log;
	apply->next = replica->position;
	sluice_buffer_init(&apply->held, a);
	sluice_arena_init(&apply->arena);
	sluice_change_count_placed(apply);
	/* tables may remember judgements of another SluiceApply */
	for (size_t i = 0; i < sluice_replica_count(replica); i++)
		sluice_replica_at(replica, i)->judged = 0;
	return apply;
}

static void
roll_back(SluiceApply *apply)
{
	/* tables may be read again */
	apply->last = NULL;
	sluice_replica_rollback(apply->replica);
	sluice_change_count_placed(apply);
	if (apply->row.log != NULL)
		sluice_rowlog_abort(apply->row.log);
	apply->open = apply->alone = false;
	apply->grouped = 0;
	apply->grouped_bytes = 0;
	apply->next = apply->replica->position;
}

void
sluice_apply_destroy(SluiceApply *apply)
{
	if (apply == NULL)
		return;
	roll_back(apply);
	sluice_rowlog_close(apply->row.log);
	sluice_buffer_release(&apply->held);
	sluice_arena_release(&apply->arena);
	free(apply->row.values);
	free(apply);
}

/* ---- the group ---- */

static SluiceOutcome
begin_group(SluiceApply *apply)
{
	if (apply->replica->in_transaction)
		return SLUICE_OK;
	apply->grouped = 0;
	apply->grouped_bytes = 0;
	apply->grouped_since = sluice_agent_clock();
	return sluice_replica_begin(apply->replica);
}

static SluiceOutcome
commit_group(SluiceApply *apply)
{
	SluiceOutcome outcome = SLUICE_OK;
	uint32_t	whole = apply->grouped;

	if (!apply->replica->in_transaction)
		return SLUICE_OK;
	if (sluice_change_passes(apply, apply->reached))
		outcome = sluice_change_passed(apply, apply->reached);
	if (outcome == SLUICE_OK && apply->row.log != NULL)
		outcome = sluice_rowlog_flush(apply->row.log);
	if (outcome == SLUICE_OK && apply->row.log != NULL)
		outcome = sluice_rowlog_trim(apply->row.log);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_commit(apply->replica, &apply->next);
	if (outcome != SLUICE_OK)
		return outcome;
	if (apply->row.log != NULL)
		sluice_rowlog_committed(apply->row.log);
	apply->counts.commits++;
	apply->grouped = 0;
	apply->grouped_bytes = 0;
	apply->seen_written = sluice_agent_clock();
	if (apply->single > 0)
		apply->single--;
	if (whole > 0)
		apply->counts.lag = sluice_agent_time() - apply->next.commit_time;
	return SLUICE_OK;
}

static bool
group_full(const SluiceApply *apply)
{
	return apply->grouped >= GROUP_TRANSACTIONS || apply->grouped_bytes >= GROUP_BYTES ||
		apply->single > 0 || sluice_agent_clock() - apply->grouped_since >= GROUP_TIME;
}

/* ---- frames ---- */

static SluiceOutcome
damaged(const char *what)
{
	sluice_log(SLUICE_ERROR, "%s: the stream is damaged", what);
	return SLUICE_RETRY;
}

static SluiceOutcome
take_begin(SluiceApply *apply, const SluiceFrame *frame)
{
	SluiceOutcome outcome;

	if (apply->open || !sluice_wire_get_begin(frame, &apply->begin))
		return damaged("a transaction begins wrongly");
	if (sluice_watermark_compare(apply->begin.watermark, apply->next.watermark) <= 0)
		return damaged("a transaction comes twice or out of order");
	outcome = begin_group(apply);
	if (outcome != SLUICE_OK)
		return outcome;
	apply->open = true;
	apply->number++;
	apply->row.version = apply->version;
	apply->row.version_size = (int) sluice_watermark_format(apply->begin.watermark,
															apply->version);
	return apply->row.log != NULL ?
		sluice_rowlog_begin(apply->row.log, apply->version) : SLUICE_OK;
}

static SluiceOutcome
take_commit(SluiceApply *apply, const SluiceFrame *frame)
{
	SluiceCommit commit;
	SluiceOutcome outcome = SLUICE_OK;

	if (!apply->open || !sluice_wire_get_commit(frame, &commit) ||
		sluice_watermark_compare(commit.watermark, apply->begin.watermark) != 0)
		return damaged("a transaction ends wrongly");
	apply->open = false;
	apply->next.watermark = commit.watermark;
	if (apply->begin.xid != 0)
	{
		apply->next.xid = apply->begin.xid;
		apply->next.commit_time = apply->begin.commit_time;
	}
	if (commit.end_lsn > apply->reached)
		apply->reached = commit.end_lsn;
	apply->grouped++;
	apply->counts.transactions++;
	if (apply->alone || group_full(apply))
	{
		apply->alone = false;
		outcome = commit_group(apply);
	}
	return outcome;
}

/* Only a transaction that is alone can be undone; others never got to SQLite. */
static SluiceOutcome
take_rollback(SluiceApply *apply)
{
	if (!apply->open)
		return damaged("a transaction ends wrongly");
	roll_back(apply);
	return SLUICE_OK;
}

static void
note_seen(SluiceApply *apply, uint64_t position)
{
	if (position > apply->next.seen)
		apply->next.seen = position;
	if (position > apply->reached)
		apply->reached = position;
}

static SluiceOutcome
take_status(SluiceApply *apply, const SluiceFrame *frame)
{
	SluiceStatus status;

	if (apply->open || !sluice_wire_get_status(frame, &status))
		return damaged("a status comes wrongly");
	note_seen(apply, status.position);
	return SLUICE_OK;
}

static SluiceOutcome
take_frame(SluiceApply *apply, const SluiceFrame *frame)
{
	switch (frame->tag)
	{
		case SLUICE_TAG_BEGIN:
			return take_begin(apply, frame);
		case SLUICE_TAG_COMMIT:
			return take_commit(apply, frame);
		case SLUICE_TAG_ROLLBACK:
			return take_rollback(apply);
		case SLUICE_TAG_STATUS:
			return take_status(apply, frame);
		default:
			if (!apply->open)
				return damaged("a change comes outside a transaction");
			return sluice_change_apply(apply, frame);
	}
}

/* ---- bytes ---- */

/*
 * Looks for the end of the transaction that begins at data.  Returns where it
 * ends, or 0 while that is not there.  *rolled_back: there is nothing in it.
 */
static size_t
find_end(SluiceApply *apply, const char *data, size_t size, SluiceWireResult *result,
		 bool *rolled_back)
{
	SluiceFrame frame;

	while ((*result = sluice_wire_frame(data + apply->walked, size - apply->walked,
										&frame)) == SLUICE_WIRE_OK)
	{
		apply->walked += frame.total;
		if (frame.tag == SLUICE_TAG_COMMIT || frame.tag == SLUICE_TAG_ROLLBACK)
		{
			size_t		end = apply->walked;

			apply->walked = 0;
			*rolled_back = frame.tag == SLUICE_TAG_ROLLBACK;
			return end;
		}
	}
	return 0;
}

/* All frames of data[0..size), which end a transaction. */
static SluiceOutcome
take_whole(SluiceApply *apply, const char *data, size_t size)
{
	SluiceOutcome outcome = SLUICE_OK;
	SluiceFrame frame;

	apply->grouped_bytes += size;
	for (size_t at = 0; at < size && outcome == SLUICE_OK; at += frame.total)
	{
		sluice_wire_frame(data + at, size - at, &frame);
		outcome = take_frame(apply, &frame);
	}
	return outcome;
}

/*
 * The group is committed first: this transaction must be undone alone should
 * its end never come.
 */
static SluiceOutcome
go_alone(SluiceApply *apply)
{
	SluiceOutcome outcome = commit_group(apply);

	apply->alone = outcome == SLUICE_OK;
	apply->walked = 0;
	return outcome;
}

/* Takes what can be taken of data; *used is how much that was. */
static SluiceOutcome
take_bytes(SluiceApply *apply, const char *data, size_t size, size_t *used)
{
	SluiceOutcome outcome = SLUICE_OK;
	SluiceWireResult result = SLUICE_WIRE_OK;
	SluiceFrame frame;
	size_t		at = 0;

	while (outcome == SLUICE_OK)
	{
		bool		rolled_back = false;
		size_t		end;

		result = sluice_wire_frame(data + at, size - at, &frame);
		if (apply->alone || (result == SLUICE_WIRE_OK && frame.tag != SLUICE_TAG_BEGIN))
		{
			if (result != SLUICE_WIRE_OK)
				break;
			outcome = take_frame(apply, &frame);
			at += frame.total;
			continue;
		}
		if (result != SLUICE_WIRE_OK)
			break;
		end = find_end(apply, data + at, size - at, &result, &rolled_back);
		if (end == 0 && (result != SLUICE_WIRE_MORE || size - at <= HOLD))
			break;
		if (end == 0)
			outcome = go_alone(apply);
		else
		{
			if (!rolled_back)
				outcome = take_whole(apply, data + at, end);
			at += end;
		}
	}
	*used = at;
	/* room for a large frame at once, not by doubling */
	apply->wanted = result == SLUICE_WIRE_MORE ? frame.total : 0;
	if (outcome == SLUICE_OK && result == SLUICE_WIRE_DAMAGED)
		outcome = damaged("a message cannot be read");
	return outcome;
}

/*
 * A failure in a group is tried again without one, so that what comes before
 * it is kept, and the message names the right transaction.
 */
static SluiceOutcome
give_up(SluiceApply *apply, SluiceOutcome outcome)
{
	bool		others = !apply->alone && apply->grouped > 0;

	roll_back(apply);
	if (outcome == SLUICE_INAPPLICABLE && others && apply->single == 0)
	{
		sluice_log(SLUICE_INFO, "transactions before that one are applied by themselves first");
		apply->single = GROUP_TRANSACTIONS;
		outcome = SLUICE_RETRY;
	}
	return outcome;
}

static void
hold_back(SluiceApply *apply, const char *data, size_t size)
{
	if (apply->wanted > apply->held.length + size)
		sluice_buffer_reserve(&apply->held, apply->wanted - apply->held.length);
	sluice_buffer_append(&apply->held, data, size);
}

SluiceOutcome
sluice_apply_bytes(SluiceApply *apply, const char *data, size_t size)
{
	SluiceOutcome outcome;
	size_t		used;

	apply->counts.bytes += size;
	if (apply->held.length == 0)
	{
		outcome = take_bytes(apply, data, size, &used);
		if (outcome != SLUICE_OK)
			return give_up(apply, outcome);
		if (used < size)
			hold_back(apply, data + used, size - used);
		return SLUICE_OK;
	}
	hold_back(apply, data, size);
	outcome = take_bytes(apply, apply->held.data, apply->held.length, &used);
	if (outcome != SLUICE_OK)
		return give_up(apply, outcome);
	if (used == 0)
		return SLUICE_OK;
	apply->held.length -= used;
	memmove(apply->held.data, apply->held.data + used, apply->held.length);
	if (apply->held.length == 0 && apply->held.capacity > KEEP_HELD)
		sluice_buffer_release(&apply->held);
	return SLUICE_OK;
}

void
sluice_apply_reset(SluiceApply *apply)
{
	sluice_buffer_reset(&apply->held);
	apply->walked = apply->wanted = 0;
	/* what is open is alone, or it would be whole and closed */
	if (apply->open || apply->alone)
		roll_back(apply);
}

void
sluice_apply_seen(SluiceApply *apply, uint64_t position)
{
	if (!sluice_apply_in_transaction(apply))
		note_seen(apply, position);
}

SluiceOutcome
sluice_apply_flush(SluiceApply *apply)
{
	SluiceOutcome outcome = SLUICE_OK;

	if (apply->open || apply->alone)
		return SLUICE_OK;
	if (!apply->replica->in_transaction)
	{
		bool		passes = sluice_change_passes(apply, apply->reached);
		bool		due = apply->next.seen != apply->replica->position.seen &&
			sluice_agent_clock() - apply->seen_written >= SEEN_EVERY;

		if (!passes && !due)
			return SLUICE_OK;
		outcome = begin_group(apply);
	}
	if (outcome == SLUICE_OK)
		outcome = commit_group(apply);
	return outcome == SLUICE_OK ? outcome : give_up(apply, outcome);
}

/* ---- looking in ---- */

bool
sluice_apply_in_transaction(const SluiceApply *apply)
{
	return apply->open || apply->alone || apply->held.length > 0;
}

size_t
sluice_apply_placed(const SluiceApply *apply)
{
	return apply->placed;
}

SluicePosition
sluice_apply_position(const SluiceApply *apply)
{
	SluicePosition position = apply->replica->position;

	if (!apply->replica->in_transaction && apply->held.length == 0)
		position.seen = apply->next.seen;
	return position;
}

SluiceApplyCounts
sluice_apply_counts(const SluiceApply *apply)
{
	return apply->counts;
}
