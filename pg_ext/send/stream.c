/*
 * stream.c: CALL sluice.stream: is this replica's position one to start from?
 *
 * In: the arguments of the call.  Out: a greeting, then sender.c; or an error
 * whose SQLSTATE tells the agent what to do (docs/protocol.md).
 * Runs in: a client backend.  Locks: none kept.
 */
#include "postgres.h"

#include "access/timeline.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "allocator.h"
#include "call.h"
#include "changelog.h"
#include "clock.h"
#include "copyboth.h"
#include "error.h"
#include "guc.h"
#include "sender.h"
#include "wire.h"

#define PROTOCOL_VERSION 1
#define AHEAD_TIMEOUT 20000		/* ms to wait for a position ahead of the decoder */

typedef struct Request
{
	char	   *shard;
	char	   *replica;
	char	   *mode;
	SluiceWatermark watermark;
	SluiceWatermark lineage;
	bool		has_system;
	uint64		system;
	bool		has_timeline;
	uint64		timeline;
} Request;

PG_FUNCTION_INFO_V1(sluice_stream);

/* ---- arguments ---- */

static SluiceWatermark
parse_watermark(const text *value, const char *argument)
{
	SluiceWatermark watermark;
	char	   *string = text_to_cstring(value);

	if (!sluice_watermark_parse(string, &watermark))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument %s: \"%s\" is no watermark", argument, string)));
	return watermark;
}

static void
parse(FunctionCallInfo fcinfo, Request *request)
{
	static const char *const names[] = {
		"shard", "replica", "watermark", "replica_version", "protocol", "mode", "initial", "options"
	};
	const Jsonb *options;

	for (int i = 0; i < lengthof(names); i++)
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("argument %s of sluice.stream must not be null", names[i])));

	if (PG_GETARG_INT32(4) != PROTOCOL_VERSION)
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_PROTOCOL_VERSION),
				 errmsg("the agent speaks protocol version %d, this server version %d",
						PG_GETARG_INT32(4), PROTOCOL_VERSION),
				 errhint("Upgrade the one that has the lower version.")));

	request->shard = sluice_call_shard(PG_GETARG_TEXT_PP(0));
	request->replica = sluice_call_replica(PG_GETARG_TEXT_PP(1));
	request->watermark = parse_watermark(PG_GETARG_TEXT_PP(2), names[2]);
	request->lineage = parse_watermark(PG_GETARG_TEXT_PP(3), names[3]);
	request->mode = text_to_cstring(PG_GETARG_TEXT_PP(5));
	if (strcmp(request->mode, "serving") != 0 && strcmp(request->mode, "backup") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("mode \"%s\" is neither \"serving\" nor \"backup\"", request->mode)));

	options = PG_GETARG_JSONB_P(7);
	request->has_system = sluice_call_option(options, "system_id", &request->system);
	request->has_timeline = sluice_call_option(options, "timeline", &request->timeline);
}

/* ---- checks ---- */

static void
diverged(const Request *request, const char *detail)
{
	ereport(ERROR,
			(errcode(SLUICE_ERRCODE_DIVERGED),
			 errmsg("replica \"%s\" holds what is not part of this server's history", request->replica),
			 errdetail_internal("%s", detail),
			 errhint("It has to be copied afresh; sluice-agent does so by itself.")));
}

/* The replica's timeline must be ours or one we come from, and end behind it. */
static void
check_timeline(const Request *request, List *history)
{
	ListCell   *cell;

	foreach(cell, history)
	{
		TimeLineHistoryEntry *entry = lfirst(cell);

		if (entry->tli != request->timeline)
			continue;
		if (!XLogRecPtrIsInvalid(entry->end) && request->watermark.major >= entry->end)
			diverged(request, psprintf("Its position is behind %X/%X, where timeline %u was left.",
									   LSN_FORMAT_ARGS(entry->end), entry->tli));
		return;
	}
	diverged(request, psprintf("It followed timeline " UINT64_FORMAT ", which this server does not come from.",
							   request->timeline));
}

static void
check_position(const Request *request, const SluiceState *state, List *history)
{
	char		ours[SLUICE_WATERMARK_TEXT_MAX];
	SluiceLogPlace place;

	if (sluice_watermark_compare(request->lineage, state->replica_version) != 0)
	{
		sluice_watermark_format(state->replica_version, ours);
		sluice_call_other_lineage(request->replica, request->shard,
								  psprintf("The shard's replica version is %s.", ours));
	}
	if (request->has_system && request->system != GetSystemIdentifier())
		diverged(request, "It followed another database system.");
	if (request->has_timeline)
		check_timeline(request, history);
	if (request->watermark.major >= GetFlushRecPtr(NULL))
		diverged(request, psprintf("Its position is ahead of all WAL of this server, which ends at %X/%X.",
								   LSN_FORMAT_ARGS(GetFlushRecPtr(NULL))));

	/* raises SL002 itself */
	sluice_copyboth_begin_transaction(true);
	sluice_changelog_place(request->shard, request->watermark, &place);
	sluice_copyboth_commit_transaction();
}

static void
set_state(SluiceSender *entry, SluiceSenderState state, const char *waits_for)
{
	SpinLockAcquire(&entry->mutex);
	entry->state = state;
	strlcpy(entry->waits_for, waits_for, sizeof(entry->waits_for));
	SpinLockRelease(&entry->mutex);
}

/*
 * What was forwarded and not stored before a crash is decoded again, from WAL
 * that was flushed: the replica waits for it.
 */
static bool
wait_for_decoder(const SluiceSenderTask *task)
{
	SluiceStream *stream = task->stream;
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), AHEAD_TIMEOUT);
	StringInfoData ignored;

	initStringInfo(&ignored);
	set_state(task->entry, SLUICE_SENDER_WAITING, "the decoder to reach the replica's position");
	for (;;)
	{
		long		left;

		sluice_sender_check(task);
		if (sluice_sender_stopping() || sluice_copyboth_receive(&ignored) == SLUICE_RECEIVE_DONE)
		{
			ConditionVariableCancelSleep();
			return false;
		}
		ConditionVariablePrepareToSleep(&stream->progress);
		if (pg_atomic_read_u64(&stream->decoded) > task->after.major)
			break;
		sluice_sender_check_stopped(task);
		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
		if (left <= 0)
			ereport(ERROR,
					(errcode(SLUICE_ERRCODE_POSITION_AHEAD),
					 errmsg("replica \"%s\" is ahead of what shard \"%s\" has decoded",
							task->replica, task->shard),
					 errdetail("Decoding has reached %X/%X.",
							   LSN_FORMAT_ARGS(pg_atomic_read_u64(&stream->decoded))),
					 errhint("The view sluice.shard_status shows what decoding waits for.")));
		sluice_copyboth_wait(Min(left, 1000));
	}
	ConditionVariableCancelSleep();
	set_state(task->entry, SLUICE_SENDER_CATCHUP, "");
	return true;
}

/* ---- the greeting ---- */

static void
greet(const Request *request, const SluiceState *state, SluiceStream *stream, List *history)
{
	SluiceBuffer out;
	SluiceWatermark head;
	char		version[SLUICE_WATERMARK_TEXT_MAX];
	uint16		switches = 0;
	ListCell   *cell;

	foreach(cell, history)
		switches += !XLogRecPtrIsInvalid(((TimeLineHistoryEntry *) lfirst(cell))->end);
	SpinLockAcquire(&stream->mutex);
	head = stream->head;
	SpinLockRelease(&stream->mutex);
	sluice_watermark_format(state->replica_version, version);

	sluice_buffer_init(&out, &sluice_palloc_allocator);
	sluice_wire_put_u16(&out, PROTOCOL_VERSION);
	sluice_wire_put_u64(&out, GetSystemIdentifier());
	sluice_wire_put_u32(&out, GetWALInsertionTimeLine());
	sluice_wire_put_u16(&out, switches);
	foreach(cell, history)
	{
		TimeLineHistoryEntry *entry = lfirst(cell);

		if (XLogRecPtrIsInvalid(entry->end))
			continue;
		sluice_wire_put_u32(&out, entry->tli);
		sluice_wire_put_u64(&out, entry->end);
	}
	sluice_wire_put_string(&out, version);
	sluice_wire_put_string(&out, request->shard);
	sluice_wire_put_watermark(&out, state->first);
	sluice_wire_put_watermark(&out, head);
	sluice_wire_put_u64(&out, (uint64) sluice_unix_time(GetCurrentTimestamp()));
	sluice_wire_put_u32(&out, (uint32) sluice_effective_sender_timeout());
	sluice_wire_put_u8(&out, state->options.timestamps_text);
	sluice_wire_put_u8(&out, state->options.numerics_double);
	sluice_wire_put_string(&out, GetConfigOption("server_version", false, false));
	sluice_copyboth_send('G', out.data, out.length);
}

/* ---- entry ---- */

Datum
sluice_stream(PG_FUNCTION_ARGS)
{
	Request		request = {0};
	SluiceSenderTask task = {0};
	SluiceState *state;
	List	   *history;

	sluice_shmem_require();
	sluice_copyboth_check(fcinfo, "stream");
	sluice_call_check_rights("stream");
	parse(fcinfo, &request);

	sluice_copyboth_begin();
	task.stream = sluice_call_find(request.shard, &state, &task.generation);
	history = readTimeLineHistory(GetWALInsertionTimeLine());
	check_position(&request, state, history);

	task.shard = request.shard;
	task.replica = request.replica;
	task.after = request.watermark;
	task.lineage = state->replica_version;
	task.n = state->n;
	task.entry = sluice_sender_claim(MyDatabaseId, request.shard, request.replica, request.mode);
	if (wait_for_decoder(&task))
	{
		greet(&request, state, task.stream, history);
		sluice_sender_run(&task);
	}
	sluice_copyboth_end(sluice_effective_sender_timeout());
	sluice_sender_release(task.entry);
	PG_RETURN_VOID();
}
