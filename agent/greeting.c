/*
 * greeting.c: the first message of a stream.
 *
 * In: the body of a G message.  Out: its fields, checked against the replica;
 * a new timeline is noted in the file.
 * Runs in: the thread that owns the replica.  Locks: none.
 */
#include <string.h>

#include "greeting.h"
#include "log.h"

static bool
read_greeting(SluiceCursor *cursor, SluiceGreeting *greeting, uint16_t *protocol)
{
	const SluiceAllocator *allocator = &greeting->arena.allocator;
	uint16_t	switches;

	*protocol = sluice_cursor_u16(cursor);
	greeting->system_id = sluice_cursor_u64(cursor);
	greeting->timeline = sluice_cursor_u32(cursor);
	switches = sluice_cursor_u16(cursor);
	for (int i = 0; i < switches; i++)
	{
		sluice_cursor_u32(cursor);
		sluice_cursor_u64(cursor);
	}
	greeting->replica_version = sluice_cursor_string(cursor, allocator);
	sluice_cursor_string(cursor, allocator);	/* shard */
	greeting->first = sluice_cursor_watermark(cursor);
	greeting->head = sluice_cursor_watermark(cursor);
	greeting->server_time = (int64_t) sluice_cursor_u64(cursor);
	greeting->sender_timeout = sluice_cursor_u32(cursor);
	greeting->timestamps = sluice_cursor_u8(cursor);
	greeting->numerics = sluice_cursor_u8(cursor);
	greeting->server_version = sluice_cursor_string(cursor, allocator);
	return sluice_cursor_done(cursor) && greeting->replica_version != NULL &&
		greeting->server_version != NULL;
}

static SluiceOutcome
note_timeline(SluiceReplica *replica, uint32_t timeline)
{
	SluiceOutcome outcome = sluice_replica_begin(replica);

	if (outcome == SLUICE_OK)
		outcome = sluice_replica_set_timeline(replica, timeline);
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_commit(replica, NULL);
	if (outcome != SLUICE_OK)
		sluice_replica_rollback(replica);
	return outcome;
}

SluiceOutcome
sluice_greeting_take(SluiceReplica *replica, const char *data, size_t size,
					 SluiceGreeting *greeting)
{
	const SluiceOrigin *origin = &replica->origin;
	SluiceCursor cursor;
	uint16_t	protocol;

	if (greeting->arena.allocator.grow == NULL)
		sluice_arena_init(&greeting->arena);
	sluice_arena_reset(&greeting->arena);
	sluice_cursor_init(&cursor, data, size);
	if (!read_greeting(&cursor, greeting, &protocol))
	{
		sluice_log(SLUICE_ERROR, "the server's greeting cannot be read");
		return SLUICE_RETRY;
	}
	if (protocol != SLUICE_PROTOCOL_VERSION)
	{
		sluice_log(SLUICE_ERROR, "the server speaks protocol version %u, this agent version %d; "
				   "hint: Upgrade the one that has the lower version.", protocol,
				   SLUICE_PROTOCOL_VERSION);
		return SLUICE_REFUSED;
	}
	if (greeting->system_id != origin->system_id ||
		strcmp(greeting->replica_version, origin->replica_version) != 0)
	{
		sluice_log(SLUICE_WARNING, "the server is another one than replica \"%s\" was copied from",
				   replica->path);
		return SLUICE_COPY_AFRESH;
	}
	if (greeting->timestamps != origin->timestamps || greeting->numerics != origin->numerics)
	{
		sluice_log(SLUICE_WARNING, "the shard's options \"timestamps\" or \"numerics\" were "
				   "changed: its values have another form now");
		return SLUICE_COPY_AFRESH;
	}
	return greeting->timeline == origin->timeline ? SLUICE_OK :
		note_timeline(replica, greeting->timeline);
}
