/*
 * stream.c: follows a shard over one connection after the other.
 *
 * In: messages of CALL sluice.stream.  Out: apply.c; acknowledgements.
 * Runs in: the thread that owns the replica.  Locks: none.
 *
 * Loop: take a message, apply it, acknowledge if it is time; when none waits:
 * commit, acknowledge, wait.  Time that SQLite takes is used for
 * acknowledgements too (replica->idle), so that the server never takes a busy
 * agent for a dead one.
 */
#include <stdio.h>
#include <string.h>

#include "apply.h"
#include "checkpoint.h"
#include "conn.h"
#include "greeting.h"
#include "log.h"
#include "notify.h"
#include "stream.h"

#define ACK_EVERY 20000			/* us between acknowledgements while things are applied */
#define SHOW_EVERY 10000000		/* us between lines of progress */
#define ASK_EVERY 500000		/* us between questions for the position, with a goal */
#define MAX_WAIT 1000			/* ms: durable positions come without a message */
#define LOOK_EVERY 1000000		/* us between looks whether the file is still there */

typedef struct Stream
{
	SluiceAgent *agent;
	SluiceReplica *replica;
	SluiceApply *apply;
	SluiceConn	conn;
	SluiceGoal	goal;
	SluiceGreeting greeting;
	bool		greeted;
	bool		initial;		/* no connection of this process has worked yet */
	SluiceBackoff backoff;
	bool		halted;			/* the last connection ended by SL006: told once, tried slowly */
	int64_t		last_ack;		/* clock */
	SluiceWatermark applied;	/* as acknowledged on this connection */
	SluiceWatermark durable;
	bool		reply_wanted;
	uint64_t	target;			/* flush position when the first connection was greeted */
	int64_t		last_asked;
	int64_t		last_look;
	int64_t		last_show;
	SluiceApplyCounts shown;
	SluiceOutcome send_outcome;	/* of an acknowledgement out of idle() */
} Stream;

/* ---- acknowledgements ---- */

static SluiceOutcome
acknowledge(Stream *stream, bool ask)
{
	SluicePosition applied = sluice_apply_position(stream->apply);
	SluicePosition durable = sluice_checkpoint_durable(stream->replica->checkpoint);
	SluiceWatermark a = sluice_replica_resume(&applied);
	SluiceWatermark d = sluice_replica_resume(&durable);
	SluiceBuffer message;
	SluiceOutcome outcome;

	if (sluice_watermark_compare(a, stream->applied) > 0)
		stream->applied = a;
	if (sluice_watermark_compare(d, stream->durable) > 0)
		stream->durable = d;
	sluice_buffer_init(&message, &sluice_malloc_allocator);
	sluice_wire_put_u8(&message, 'A');
	sluice_wire_put_watermark(&message, stream->applied);
	sluice_wire_put_watermark(&message, stream->durable);
	sluice_wire_put_u64(&message, (uint64_t) sluice_agent_time());
	sluice_wire_put_u8(&message, ask);
	outcome = sluice_conn_send(&stream->conn, message.data, message.length);
	sluice_buffer_release(&message);
	stream->last_ack = sluice_agent_clock();
	stream->reply_wanted = false;
	return outcome;
}

/* Something is new for the server. */
static bool
news(const Stream *stream)
{
	SluicePosition applied = sluice_apply_position(stream->apply);
	SluicePosition durable = sluice_checkpoint_durable(stream->replica->checkpoint);

	return sluice_watermark_compare(sluice_replica_resume(&applied), stream->applied) > 0 ||
		sluice_watermark_compare(sluice_replica_resume(&durable), stream->durable) > 0;
}

/* us between two signs of life: well within 0.75 T */
static int64_t
alive_every(const Stream *stream)
{
	int64_t		timeout = (int64_t) stream->greeting.sender_timeout * 1000;

	return timeout == 0 ? INT64_MAX : timeout / 2;
}

static SluiceOutcome
acknowledge_if_due(Stream *stream)
{
	int64_t		since = sluice_agent_clock() - stream->last_ack;

	if (!stream->greeted)
		return SLUICE_OK;
	if (stream->reply_wanted || since >= alive_every(stream) ||
		(since >= ACK_EVERY && news(stream)))
		return acknowledge(stream, false);
	return SLUICE_OK;
}

/* Called out of SQLite's long work. */
static void
on_idle(void *argument)
{
	Stream	   *stream = argument;

	if (stream->conn.pg != NULL && stream->send_outcome == SLUICE_OK &&
		sluice_agent_clock() - stream->last_ack >= alive_every(stream))
		stream->send_outcome = acknowledge(stream, false);
}

/* ---- one connection ---- */

static void
put_text(SluiceBuffer *out, const char *text)
{
	sluice_buffer_append(out, text, strlen(text));
}

static void
put_options(Stream *stream, char *text, size_t size)
{
	const SluiceReplica *replica = stream->replica;
	char		transaction[SLUICE_WATERMARK_TEXT_MAX];

	sluice_watermark_format(replica->position.watermark, transaction);
	snprintf(text, size, "{\"system_id\": \"%llu\", \"timeline\": %u, \"xid\": \"%llu\", "
			 "\"commit_time\": \"%lld\", \"transaction\": \"%s\", \"agent_version\": \"%s\"}",
			 (unsigned long long) replica->origin.system_id, replica->origin.timeline,
			 (unsigned long long) replica->position.xid,
			 (long long) replica->position.commit_time, transaction, SLUICE_AGENT_VERSION);
}

static SluiceOutcome
call(Stream *stream)
{
	const SluiceConfig *config = &stream->agent->config;
	char		watermark[SLUICE_WATERMARK_TEXT_MAX];
	char		options[512];
	const char *arguments[4] = {config->shard, config->name, watermark,
	stream->replica->origin.replica_version};
	SluiceOutcome outcome = SLUICE_OK;
	SluiceBuffer sql;

	sluice_watermark_format(sluice_replica_resume(&stream->replica->position), watermark);
	put_options(stream, options, sizeof(options));
	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	put_text(&sql, "CALL sluice.stream(");
	for (int i = 0; i < 4 && outcome == SLUICE_OK; i++)
		if (!sluice_conn_literal(&stream->conn, &sql, arguments[i]))
			outcome = SLUICE_USAGE;
		else
			put_text(&sql, ", ");
	put_text(&sql, "1, 'serving', ");
	put_text(&sql, stream->initial ? "true, " : "false, ");
	if (outcome == SLUICE_OK && !sluice_conn_literal(&stream->conn, &sql, options))
		outcome = SLUICE_USAGE;
	sluice_buffer_append(&sql, ")", 2);
	if (outcome == SLUICE_OK)
		outcome = sluice_conn_call(&stream->conn, sql.data);
	else
		sluice_log(SLUICE_ERROR, "the name of the shard or of the replica is not valid text");
	sluice_buffer_release(&sql);
	return outcome;
}

static void
say_following(const Stream *stream, SluiceLogLevel level)
{
	sluice_log(level, "following shard \"%s\" (server %s)", stream->agent->config.shard,
			   stream->greeting.server_version);
}

static SluiceOutcome
greet(Stream *stream, const char *data, size_t size)
{
	SluiceOutcome outcome = sluice_greeting_take(stream->replica, data, size, &stream->greeting);

	if (outcome != SLUICE_OK)
		return outcome;
	stream->greeted = true;
	stream->initial = false;
	if (!stream->halted)
		stream->backoff.delay = 0;
	stream->applied = stream->durable = (SluiceWatermark) {0, 0};
	say_following(stream, stream->halted ? SLUICE_DEBUG : SLUICE_INFO);
	return acknowledge(stream, false);
}

static SluiceOutcome
keepalive(Stream *stream, const char *data, size_t size)
{
	SluiceCursor cursor;
	uint64_t	flushed;
	uint64_t	decoded;

	sluice_cursor_init(&cursor, data, size);
	sluice_cursor_u64(&cursor);	/* server time */
	flushed = sluice_cursor_u64(&cursor);
	decoded = sluice_cursor_u64(&cursor);
	sluice_cursor_watermark(&cursor);
	stream->reply_wanted |= sluice_cursor_u8(&cursor) != 0;
	if (!sluice_cursor_done(&cursor))
	{
		sluice_log(SLUICE_ERROR, "a keepalive cannot be read: the stream is damaged");
		return SLUICE_RETRY;
	}
	if (stream->target == 0)
		stream->target = flushed;
	sluice_apply_seen(stream->apply, decoded);
	return SLUICE_OK;
}

static SluiceOutcome
take_message(Stream *stream, const char *data, size_t size)
{
	if (size > 0 && !stream->greeted && data[0] == 'G')
		return greet(stream, data + 1, size - 1);
	if (size > 0 && data[0] == 'K')
		return keepalive(stream, data + 1, size - 1);
	if (size > 0 && data[0] == 'W' && stream->greeted)
	{
		/* it has been set right */
		if (stream->halted)
			say_following(stream, SLUICE_INFO);
		stream->halted = false;
		return sluice_apply_bytes(stream->apply, data + 1, size - 1);
	}
	if (size == 1 && data[0] == 'X')
	{
		sluice_apply_reset(stream->apply);
		return SLUICE_OK;
	}
	sluice_log(SLUICE_ERROR, "the server sent a message that is none of the protocol's");
	return SLUICE_RETRY;
}

static bool
goal_reached(const Stream *stream)
{
	SluicePosition position = sluice_apply_position(stream->apply);

	if (!stream->greeted || stream->goal == SLUICE_GOAL_FOLLOW ||
		sluice_apply_placed(stream->apply) > 0)
		return false;
	return stream->goal == SLUICE_GOAL_PASSED ||
		(stream->target != 0 && (position.seen >= stream->target ||
								 position.watermark.major >= stream->target));
}

/* An idle server tells its position now and then; at once when it is asked. */
static SluiceOutcome
ask_position(Stream *stream)
{
	int64_t		now = sluice_agent_clock();

	if (!stream->greeted || stream->goal == SLUICE_GOAL_FOLLOW ||
		now - stream->last_asked < ASK_EVERY)
		return SLUICE_OK;
	stream->last_asked = now;
	return acknowledge(stream, true);
}

/* Somebody may remove the file or put another in its place. */
static SluiceOutcome
look_after_file(Stream *stream)
{
	SluiceReplica *replica = stream->replica;
	int64_t		now = sluice_agent_clock();

	if (now - stream->last_look < LOOK_EVERY)
		return SLUICE_OK;
	stream->last_look = now;
	if (!sluice_checkpoint_moved(replica->db))
		return SLUICE_OK;
	sluice_log(SLUICE_WARNING, "replica \"%s\" was removed or replaced while it was followed; "
			   "hint: Stop the agent before touching its file.", replica->path);
	return SLUICE_MOVED;
}

/* Nothing more has arrived: commit, tell, wait. */
static SluiceOutcome
rest(Stream *stream)
{
	SluiceOutcome outcome = sluice_apply_flush(stream->apply);
	int64_t		timeout = (int64_t) stream->greeting.sender_timeout * 1000;
	int64_t		wait = MAX_WAIT;

	if (outcome == SLUICE_OK)
		outcome = acknowledge_if_due(stream);
	if (outcome == SLUICE_OK)
		outcome = ask_position(stream);
	if (outcome != SLUICE_OK)
		return outcome;
	if (stream->greeted && timeout > 0 &&
		sluice_agent_clock() - stream->conn.heard > 2 * timeout)
	{
		sluice_log(SLUICE_WARNING, "connection lost: no sign of life from the server for %lld ms",
				   (long long) (2 * timeout / 1000));
		return SLUICE_RETRY;
	}
	if (timeout > 0 && wait > timeout / 4000)
		wait = timeout / 4000;
	if (stream->greeted && news(stream))
		wait = ACK_EVERY / 1000;
	return sluice_conn_wait(&stream->conn, (int) wait + 1);
}

static void
show(Stream *stream)
{
	SluiceApplyCounts now = sluice_apply_counts(stream->apply);
	int64_t		clock = sluice_agent_clock();
	double		seconds = (double) (clock - stream->last_show) / 1e6;

	if (clock - stream->last_show < SHOW_EVERY)
		return;
	if (stream->last_show != 0 && now.transactions != stream->shown.transactions &&
		stream->agent->config.progress)
		sluice_log(SLUICE_INFO, "%.0f transactions/s, %.0f rows/s, %.1f MB/s, last one %.1f ms "
				   "after its commit",
				   (double) (now.transactions - stream->shown.transactions) / seconds,
				   (double) (now.rows - stream->shown.rows) / seconds,
				   (double) (now.bytes - stream->shown.bytes) / seconds / 1e6,
				   (double) now.lag / 1e3);
	stream->last_show = clock;
	stream->shown = now;
}

/* What one connection brings, until it ends or the goal is reached. */
static SluiceOutcome
converse(Stream *stream)
{
	SluiceOutcome outcome = SLUICE_OK;

	while (outcome == SLUICE_OK)
	{
		char	   *data;
		size_t		size;

		if (stream->agent->stop)
			return SLUICE_STOPPED;
		outcome = look_after_file(stream);
		if (outcome != SLUICE_OK)
			break;
		switch (sluice_conn_receive(&stream->conn, &data, &size, &outcome))
		{
			case SLUICE_RECEIVED_MESSAGE:
				outcome = take_message(stream, data, size);
				sluice_conn_release(data);
				if (outcome == SLUICE_OK)
					outcome = acknowledge_if_due(stream);
				break;
			case SLUICE_RECEIVED_NONE:
				outcome = rest(stream);
				if (outcome == SLUICE_OK && goal_reached(stream))
					return SLUICE_OK;
				show(stream);
				break;
			case SLUICE_RECEIVED_DONE:
				sluice_log(SLUICE_INFO, "the server ended the stream");
				outcome = SLUICE_RETRY;
				break;
			case SLUICE_RECEIVED_FAILED:
				break;
		}
		if (outcome == SLUICE_OK)
			outcome = stream->send_outcome;
	}
	return outcome;
}

static SluiceOutcome
connect_once(Stream *stream)
{
	SluiceOutcome outcome;

	stream->greeted = false;
	stream->send_outcome = SLUICE_OK;
	stream->greeting.sender_timeout = 0;
	outcome = sluice_conn_open(stream->agent, &stream->conn);
	if (outcome == SLUICE_OK)
		outcome = call(stream);
	if (outcome == SLUICE_OK)
		outcome = converse(stream);
	return outcome;
}

/* Keeps what is whole; the rest comes again. */
static SluiceOutcome
end_connection(Stream *stream, SluiceOutcome outcome)
{
	SluiceOutcome flushed = SLUICE_OK;

	sluice_apply_reset(stream->apply);
	if (outcome == SLUICE_OK || outcome == SLUICE_STOPPED || outcome == SLUICE_RETRY)
		flushed = sluice_apply_flush(stream->apply);
	if (stream->conn.pg != NULL && stream->greeted && outcome != SLUICE_RETRY &&
		outcome != SLUICE_MOVED)
	{
		/* the server learns at once what need not be sent again */
		if (flushed == SLUICE_OK && acknowledge(stream, false) == SLUICE_OK)
			sluice_conn_send_done(&stream->conn);
	}
	sluice_conn_close(&stream->conn);
	return flushed != SLUICE_OK ? flushed : outcome;
}

SluiceOutcome
sluice_stream_run(SluiceAgent *agent, SluiceReplica *replica, SluiceGoal goal)
{
	Stream		stream = {.agent = agent, .replica = replica, .goal = goal, .initial = true};
	SluiceOutcome outcome = SLUICE_OK;

	stream.apply = sluice_apply_create(replica, agent->config.row_log, &outcome);
	if (stream.apply == NULL)
		return outcome;
	replica->idle_argument = &stream;
	replica->idle = on_idle;
	do
	{
		outcome = end_connection(&stream, connect_once(&stream));
		stream.halted = strcmp(stream.conn.sqlstate, "SL006") == 0;
		if (outcome == SLUICE_RETRY)
			outcome = sluice_conn_backoff(agent, &stream.backoff) == SLUICE_OK ? SLUICE_RETRY :
				SLUICE_STOPPED;
	} while (outcome == SLUICE_RETRY);
	replica->idle = NULL;
	sluice_apply_destroy(stream.apply);
	sluice_arena_release(&stream.greeting.arena);
	return outcome;
}
