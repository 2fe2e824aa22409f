/*
 * sender.c: change log and ring → one replica, and its acknowledgements back.
 *
 * In: a source, the client's A messages.  Out: W, X and K messages; the
 * replica's entry in shared memory; its row in the change log.
 * Runs in: the client backend in CALL sluice.stream.
 * Locks: the entry's spinlock; no lock and no snapshot across a wait.
 *
 * A replica that does not read is not waited for: nothing is taken from the
 * source while bytes are pending, the ring runs on, and the change log serves
 * the replica at its own pace.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "allocator.h"
#include "call.h"
#include "clock.h"
#include "copyboth.h"
#include "error.h"
#include "guc.h"
#include "sender.h"
#include "source.h"

#define SEND_SIZE (64 * 1024)
#define SENDS_A_TURN 16
#define SAVE_INTERVAL 10000		/* ms between writes of the replica's row */
#define TRANSACTION_INTERVAL 30000	/* ms: invalidations are taken at least so often */
#define TICK 1000				/* ms: the position of an idle stream flows */
#define EAGER_TICK 20			/* ms: the same after the replica has asked */
#define EAGER_TIME 2000

typedef struct Sender
{
	const SluiceSenderTask *task;
	SluiceSource source;
	SluiceSubscriber subscriber;
	StringInfoData message;
	SluiceBuffer out;			/* a keepalive being made */
	TimestampTz now;			/* of this turn */
	TimestampTz last_received;
	TimestampTz last_keepalive;
	TimestampTz last_save;
	TimestampTz last_transaction;
	TimestampTz eager_until;
	uint64		position_sent;
	bool		reply_asked;	/* since last_received */
	SluiceWatermark durable;
	SluiceWatermark saved;
} Sender;

/* ---- ends ---- */

bool
sluice_sender_stopping(void)
{
	return pg_atomic_read_u32(&sluice_shmem->stopping) != 0;
}

void
sluice_sender_check(const SluiceSenderTask *task)
{
	SluiceStream *stream = task->stream;

	if (task->entry->replaced)
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_REPLACED),
				 errmsg("replica \"%s\" has connected again; this connection ends", task->replica),
				 errhint("Two agents use one name. Give each a --name of its own.")));
	if (!stream->in_use || stream->dropping || stream->generation != task->generation)
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_UNKNOWN_SHARD),
				 errmsg("shard \"%s\" is being dropped or has got another slot", task->shard)));
	if (stream->n != task->n)
		sluice_call_other_lineage(task->replica, task->shard, NULL);
	if (stream->state == SLUICE_STREAM_PAUSED)
		sluice_call_paused(task->shard);
}

void
sluice_sender_check_stopped(const SluiceSenderTask *task)
{
	SluiceStream *stream = task->stream;
	char		reason[SLUICE_MESSAGE_MAX];
	bool		stopped;

	SpinLockAcquire(&stream->mutex);
	stopped = stream->state == SLUICE_STREAM_STOPPED;
	memcpy(reason, stream->message, sizeof(reason));
	SpinLockRelease(&stream->mutex);
	if (stopped)
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_SHARD_STOPPED),
				 errmsg("shard \"%s\" has stopped: %s", task->shard, reason)));
}

/* ---- what is known of the replica ---- */

void
sluice_sender_save(const SluiceSenderTask *task, SluiceWatermark durable)
{
	sluice_copyboth_begin_transaction(true);
	sluice_replicas_save(task->shard, task->replica, durable, task->lineage);
	sluice_copyboth_commit_transaction();
}

static void
save(Sender *sender)
{
	sluice_sender_save(sender->task, sender->durable);
	sender->saved = sender->durable;
	sender->last_save = sender->now;
	sender->last_transaction = sender->now;
}

static void
note_sent(Sender *sender)
{
	SluiceSender *entry = sender->task->entry;

	SpinLockAcquire(&entry->mutex);
	entry->sent = sender->subscriber.sent;
	entry->bytes_sent = sender->subscriber.bytes_sent;
	if (entry->applied_since == 0 &&
		sluice_watermark_compare(entry->applied, entry->sent) < 0)
		entry->applied_since = sender->now;
	entry->state = sender->source.on_ring ? SLUICE_SENDER_STREAMING : SLUICE_SENDER_CATCHUP;
	SpinLockRelease(&entry->mutex);
}

static void
note_applied(Sender *sender, SluiceWatermark applied, SluiceWatermark durable)
{
	SluiceSender *entry = sender->task->entry;

	if (sluice_watermark_compare(durable, sender->durable) > 0)
		sender->durable = durable;
	SpinLockAcquire(&entry->mutex);
	if (sluice_watermark_compare(applied, entry->applied) > 0)
	{
		entry->applied = applied;
		entry->applied_since = sender->now;
	}
	if (sluice_watermark_compare(entry->applied, entry->sent) >= 0)
		entry->applied_since = 0;
	entry->durable = sender->durable;
	entry->reply_time = sender->now;
	SpinLockRelease(&entry->mutex);
}

/* ---- messages ---- */

static void
keepalive(Sender *sender, bool reply_wanted)
{
	SluiceBuffer *out = &sender->out;
	uint64		position = sluice_source_position(&sender->source, &sender->subscriber);

	sluice_buffer_reset(out);
	sluice_wire_put_u64(out, (uint64) sluice_unix_time(sender->now));
	sluice_wire_put_u64(out, GetFlushRecPtr(NULL));
	sluice_wire_put_u64(out, position);
	sluice_wire_put_watermark(out, sender->subscriber.sent);
	sluice_wire_put_u8(out, reply_wanted);
	sluice_copyboth_send('K', out->data, out->length);
	sender->position_sent = position;
	sender->last_keepalive = sender->now;
}

static void
acknowledged(Sender *sender)
{
	SluiceCursor cursor;
	SluiceWatermark applied;
	SluiceWatermark durable;
	uint8		reply_wanted;

	if (pq_getmsgbyte(&sender->message) != 'A')
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("a replica has sent a message that is none of the protocol's")));
	sluice_cursor_init(&cursor, sender->message.data + 1, sender->message.len - 1);
	applied = sluice_cursor_watermark(&cursor);
	durable = sluice_cursor_watermark(&cursor);
	(void) sluice_cursor_u64(&cursor);	/* the client's clock decides nothing */
	reply_wanted = sluice_cursor_u8(&cursor);
	if (!sluice_cursor_done(&cursor))
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("a replica has sent a damaged acknowledgement")));
	note_applied(sender, applied, durable);
	if (reply_wanted)
	{
		sender->eager_until = TimestampTzPlusMilliseconds(sender->now, EAGER_TIME);
		keepalive(sender, false);
	}
}

/* False: the client has ended the conversation. */
static bool
receive(Sender *sender)
{
	for (;;)
	{
		switch (sluice_copyboth_receive(&sender->message))
		{
			case SLUICE_RECEIVE_NONE:
				return true;
			case SLUICE_RECEIVE_DONE:
				return false;
			case SLUICE_RECEIVE_MESSAGE:
				sender->last_received = sender->now;
				sender->reply_asked = false;
				acknowledged(sender);
				break;
		}
	}
}

typedef enum Pump
{
	PUMP_FULL,					/* the socket takes no more now */
	PUMP_IDLE,					/* nothing is left to send */
	PUMP_MORE					/* neither: it is time to listen */
} Pump;

static Pump
pump(Sender *sender)
{
	for (int sends = 0; sends < SENDS_A_TURN;)
	{
		bool		moved;

		sluice_copyboth_heed_interrupts();
		if (!sluice_copyboth_flush())
			return PUMP_FULL;
		moved = sluice_source_read(&sender->source, &sender->subscriber);
		if (moved && sluice_subscriber_ready(&sender->subscriber) < SEND_SIZE)
			continue;
		if (!sluice_subscriber_send(&sender->subscriber) && !moved)
			return PUMP_IDLE;
		sends++;
	}
	return PUMP_MORE;
}

/* ---- time ---- */

static bool
is_due(TimestampTz since, TimestampTz now, int64 ms)
{
	return now >= TimestampTzPlusMilliseconds(since, ms);
}

/* All that the replica has sent is read: it does not live, or cannot speak. */
static void
check_alive(const Sender *sender)
{
	int			timeout = sluice_effective_sender_timeout();

	if (timeout > 0 && is_due(sender->last_received, sender->now, timeout))
		sluice_copyboth_give_up(psprintf("replica \"%s\" has given no sign of life for %d ms (sluice.sender_timeout)",
										 sender->task->replica, timeout));
}

/* ms until the next thing that is due at the latest */
static long
housekeep(Sender *sender, bool idle)
{
	int			timeout = sluice_effective_sender_timeout();
	bool		eager = sender->now < sender->eager_until;
	bool		moved_on;

	moved_on = idle && (eager || is_due(sender->last_keepalive, sender->now, TICK)) &&
		sluice_source_position(&sender->source, &sender->subscriber) > sender->position_sent;
	if (timeout > 0 && !sender->reply_asked &&
		is_due(sender->last_received, sender->now, timeout / 2))
	{
		keepalive(sender, true);
		sender->reply_asked = true;
	}
	else if (moved_on)
		keepalive(sender, false);

	if (is_due(sender->last_save, sender->now, SAVE_INTERVAL) &&
		sluice_watermark_compare(sender->durable, sender->saved) > 0)
		save(sender);
	if (is_due(sender->last_transaction, sender->now, TRANSACTION_INTERVAL))
	{
		sluice_copyboth_begin_transaction(false);
		sluice_copyboth_commit_transaction();
		sender->last_transaction = sender->now;
	}

	if (eager)
		return EAGER_TICK;
	return timeout > 0 ? Max(Min(TICK, timeout / 4), 1) : TICK;
}

/* ---- life ---- */

static void
init(Sender *sender, const SluiceSenderTask *task)
{
	memset(sender, 0, sizeof(*sender));
	sender->task = task;
	sluice_source_init(&sender->source, task);
	sluice_subscriber_init(&sender->subscriber, task->after);
	initStringInfo(&sender->message);
	sluice_buffer_init(&sender->out, &sluice_palloc_allocator);
	sluice_buffer_reserve(&sender->out, 1024);	/* in this context, not that of the first message */
	sender->now = GetCurrentTimestamp();
	sender->last_received = sender->now;
	sender->durable = task->after;
	SpinLockAcquire(&task->entry->mutex);
	task->entry->sent = task->after;
	task->entry->applied = task->after;
	task->entry->durable = task->after;
	SpinLockRelease(&task->entry->mutex);
	save(sender);
}

void
sluice_sender_run(const SluiceSenderTask *task)
{
	Sender		sender;

	init(&sender, task);
	keepalive(&sender, false);
	for (;;)
	{
		Pump		result;
		long		wait;

		sluice_copyboth_heed_interrupts();
		sluice_sender_check(task);
		sender.now = GetCurrentTimestamp();
		if (sluice_sender_stopping() || !receive(&sender))
			break;
		check_alive(&sender);

		result = pump(&sender);
		sender.now = GetCurrentTimestamp();
		note_sent(&sender);
		wait = housekeep(&sender, result == PUMP_IDLE);
		if (result == PUMP_MORE)
			continue;
		if (sluice_copyboth_flush() && result == PUMP_IDLE)
		{
			sluice_sender_check_stopped(task);
			sluice_source_prepare_wait(&sender.source);
			if (sluice_source_read(&sender.source, &sender.subscriber))
				continue;
		}
		sluice_copyboth_wait(wait);
		sluice_source_cancel_wait();
	}
	if (sluice_watermark_compare(sender.durable, sender.saved) > 0)
		save(&sender);
}
