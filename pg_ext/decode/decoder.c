/*
 * decoder.c: the decoder worker: WAL to ring, for one slot.
 *
 * The process makes the slot if create_shard asks for it, then decodes from
 * where the slot and the change log have come to, for ever.  It starts a new
 * generation of the ring each time, so what an earlier decoder left there half
 * done is void.  Its decoding context is made inside a transaction: the
 * process must not have PROC_IN_LOGICAL_DECODING, because it also writes.
 *
 * In: flushed WAL; the storer's position.  Out: frames on the ring; decoded,
 * head and low in the stream's entry; the confirmed slot.
 * Runs in: decoder.  Locks: none across a wait.
 *
 * States (SluiceStreamState): starting -> creating (once) -> catching up <->
 * streaming; resetting when it cannot go on, stopped if that is not allowed.  An ERROR ends the process, and the
 * launcher starts it again.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlogutils.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "replication/decode.h"
#include "replication/slot.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "attach.h"
#include "changelog.h"
#include "compat.h"
#include "newslot.h"
#include "decoder.h"
#include "drift.h"
#include "error.h"
#include "lineage.h"
#include "plugin.h"
#include "relation.h"
#include "reset.h"
#include "slot.h"
#include "walwait.h"
#include "worker.h"

/* While it is behind, readers are told of so many transactions or bytes at once. */
#define PUBLISH_TRANSACTIONS 64
#define PUBLISH_BYTES (32 * 1024)
/* …and its position is published after so many records without any. */
#define PUBLISH_RECORDS 4096
#define FRAME_START 8192

extern PGDLLEXPORT void sluice_decoder_main(Datum main_arg);

/* The plugin's callbacks are given nothing by which they could find it. */
static SluiceDecoder *current = NULL;

SluiceDecoder *
sluice_decoder_current(void)
{
	return current;
}

void
sluice_decoder_open_frame(SluiceDecoder *decoder)
{
	MemoryContext old = MemoryContextSwitchTo(decoder->context);

	sluice_buffer_reserve(&decoder->frame, FRAME_START);
	MemoryContextSwitchTo(old);
}

void
sluice_decoder_emit(SluiceDecoder *decoder)
{
	sluice_ring_append(decoder->ring, decoder->frame.data, decoder->frame.length);
	decoder->bytes += decoder->frame.length;
}

static char *
format_message(const char *format, va_list args)
{
	char		message[SLUICE_MESSAGE_MAX];

	vsnprintf(message, sizeof(message), format, args);
	return pstrdup(message);
}

void
sluice_decoder_stop(SluiceDecoder *decoder, const char *format,...)
{
	char	   *what;
	va_list		args;

	va_start(args, format);
	what = format_message(format, args);
	va_end(args);
	sluice_reset_ask(decoder->stream, SLUICE_RESET_AUTO, what);
	proc_exit(0);
}

void
sluice_decoder_stop_plain(SluiceDecoder *decoder, const char *format,...)
{
	char	   *message;
	va_list		args;

	va_start(args, format);
	message = format_message(format, args);
	va_end(args);
	sluice_worker_stop(decoder->stream, SLUICE_ERRCODE_SHARD_STOPPED, message);
}

/* ---- start ---- */

/* What no ALTER ROLE or ALTER DATABASE may change here. */
static void
pin_settings(void)
{
	/* newer minor releases ask for the plugin's name in it; here only */
	if (GetConfigOption("output_plugin_libraries", true, false) != NULL)
		SetConfigOption("output_plugin_libraries", SLUICE_PLUGIN_NAME, PGC_SUSET,
						PGC_S_OVERRIDE);
	/* a dead standby must not keep a shard from being made */
	SetConfigOption("synchronous_commit", "local", PGC_USERSET, PGC_S_OVERRIDE);
}

static SluiceDecoder *
create_decoder(SluiceStream *stream)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "sluice decoder",
												  ALLOCSET_DEFAULT_SIZES);
	SluiceDecoder *decoder = MemoryContextAllocZero(context, sizeof(SluiceDecoder));

	decoder->stream = stream;
	decoder->ring = stream->ring;
	decoder->context = context;
	decoder->txn = AllocSetContextCreate(context, "sluice transaction", ALLOCSET_DEFAULT_SIZES);
	decoder->change = AllocSetContextCreate(context, "sluice change", ALLOCSET_DEFAULT_SIZES);
	sluice_buffer_init(&decoder->frame, &sluice_palloc_allocator);
	sluice_decoder_open_frame(decoder);
	MemoryContextSwitchTo(context);
	return decoder;
}

static void
start_decoding(SluiceDecoder *decoder)
{
	XLogRecPtr	start = Max(MyReplicationSlot->data.confirmed_flush,
							decoder->log_head.major + 1);
	MemoryContext old;

	/* inside a transaction: see above */
	StartTransactionCommand();
	old = MemoryContextSwitchTo(decoder->context);
	decoder->logical = CreateDecodingContext(start, NIL, false,
											 XL_ROUTINE(.page_read = read_local_xlog_page_no_wait,
														.segment_open = wal_segment_open,
														.segment_close = wal_segment_close),
											 NULL, NULL, NULL);
	decoder->low = sluice_low_create();
	MemoryContextSwitchTo(old);
	CommitTransactionCommand();
	MemoryContextSwitchTo(decoder->context);

	sluice_drift_seen(decoder->drift, GetXLogInsertRecPtr());
	XLogBeginRead(decoder->logical->reader, MyReplicationSlot->data.restart_lsn);
	InvalidateSystemCaches();

	decoder->head = sluice_watermark_before(start);
	/* set back before a generation begins: senders pair it with the ring */
	pg_atomic_write_u64(&decoder->stream->decoded, start);
	sluice_ring_start(decoder->ring, decoder->stream, decoder->head);
	SpinLockAcquire(&decoder->stream->mutex);
	decoder->stream->head = decoder->head;
	decoder->stream->low_valid = false;
	decoder->stream->waits_for[0] = '\0';
	SpinLockRelease(&decoder->stream->mutex);
}

/* ---- the loop ---- */

/*
 * The schema as of a transaction is stored before its COMMIT is on the ring,
 * as one version of several: whoever starts from a position finds the version
 * for it, whether the log has that transaction by then or not.
 */
static void
store_schema(SluiceDecoder *decoder)
{
	SluiceBuffer data;

	/* the caches have the historic view, and get it back */
	InvalidateSystemCaches();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	(void) sluice_state_read(decoder->stream->shard, ShareLock, false);
	sluice_buffer_init(&data, &sluice_palloc_allocator);
	sluice_schema_encode(&data, decoder->schema);
	sluice_schema_store(decoder->stream->shard, decoder->commit.watermark, data.data,
						data.length);
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(decoder->context);
	InvalidateSystemCaches();
}

static void
finish_commit(SluiceDecoder *decoder)
{
	store_schema(decoder);
	sluice_plugin_put_commit(decoder);
	decoder->commit_waits = false;
}

/* Readers and the stream's entry are told what has come. */
static void
publish(SluiceDecoder *decoder)
{
	SluiceStream *stream = decoder->stream;
	XLogRecPtr	decoded = decoder->logical->reader->EndRecPtr;
	SluiceWatermark low;
	bool		low_valid;

	sluice_ring_publish(decoder->ring);
	decoder->published = decoder->on_ring;
	decoder->published_bytes = decoder->bytes;
	low_valid = sluice_low_get(decoder->low, decoder->head, &low);

	SpinLockAcquire(&stream->mutex);
	stream->head = decoder->head;
	if (decoder->head_time != 0)
		stream->last_commit_time = decoder->head_time;
	stream->low = low;
	stream->low_valid = low_valid;
	SpinLockRelease(&stream->mutex);

	pg_atomic_write_u64(&stream->transactions, decoder->on_ring);
	pg_atomic_write_u64(&stream->changes, decoder->changes);
	pg_atomic_write_u64(&stream->bytes, decoder->bytes);
	if (decoded > pg_atomic_read_u64(&stream->decoded))
		pg_atomic_write_u64(&stream->decoded, decoded);
	ConditionVariableBroadcast(&stream->progress);
	sluice_slot_confirm(decoder, decoded);
}

static inline bool
publishing_is_due(const SluiceDecoder *decoder, int records)
{
	return decoder->on_ring - decoder->published >= PUBLISH_TRANSACTIONS ||
		decoder->bytes - decoder->published_bytes >= PUBLISH_BYTES ||
		records % PUBLISH_RECORDS == 0;
}

/* Decodes what is flushed. */
static void
decode_flushed(SluiceDecoder *decoder, XLogRecPtr flushed,
			   ReadLocalXLogPageNoWaitPrivate *end)
{
	LogicalDecodingContext *logical = decoder->logical;
	XLogReaderState *reader = logical->reader;

	for (int records = 1; reader->EndRecPtr < flushed; records++)
	{
		char	   *message = NULL;

		if (XLogReadRecord(reader, &message) == NULL)
		{
			if (!end->end_of_wal)
				ereport(ERROR,
						(errcode(ERRCODE_DATA_CORRUPTED),
						 errmsg("could not read WAL at %X/%X: %s",
								LSN_FORMAT_ARGS(reader->EndRecPtr),
								message ? message : "no record")));
			end->end_of_wal = false;
			break;
		}
		LogicalDecodingProcessRecord(logical, reader);
		MemoryContextSwitchTo(decoder->context);
		if (decoder->commit_waits)
			finish_commit(decoder);
		CHECK_FOR_INTERRUPTS();
		if (publishing_is_due(decoder, records))
			publish(decoder);
		if (sluice_ring_restart_wanted(decoder->ring))
			break;
	}
}

static bool
has_storer(SluiceStream *stream)
{
	bool		has;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	has = stream->storer_pid != 0;
	LWLockRelease(sluice_shmem->lock);
	return has;
}

/* What the storer or a person has said of the shard is left as it is. */
static void
set_state(SluiceDecoder *decoder, SluiceStreamState state)
{
	SluiceStream *stream = decoder->stream;
	SluiceStreamState now;

	SpinLockAcquire(&stream->mutex);
	now = stream->state;
	SpinLockRelease(&stream->mutex);
	if (now == state || now == SLUICE_STREAM_STOPPED || now == SLUICE_STREAM_PAUSED ||
		(now == SLUICE_STREAM_RETRYING && !has_storer(stream)))
		return;
	sluice_stream_set_state(stream, state, 0, "");
}

static void
decode(SluiceDecoder *decoder)
{
	ReadLocalXLogPageNoWaitPrivate end = {0};
	XLogReaderState *reader = decoder->logical->reader;

	/* the no-wait reader notes the end of WAL there; else in the context itself */
	reader->private_data = &end;

	for (;;)
	{
		XLogRecPtr	flushed;

		ResetLatch(MyLatch);
		sluice_worker_interrupts();
		if (sluice_ring_restart_wanted(decoder->ring))
			break;

		flushed = sluice_walwait_flushed();
		if (flushed > reader->EndRecPtr + wal_segment_size)
			set_state(decoder, SLUICE_STREAM_CATCHING_UP);
		decode_flushed(decoder, flushed, &end);

		pg_atomic_write_u64(&decoder->stream->current_at, GetCurrentTimestamp());
		publish(decoder);
		set_state(decoder, SLUICE_STREAM_STREAMING);
		sluice_walwait(decoder->stream, flushed);
	}
}

void
sluice_decoder_main(Datum main_arg)
{
	SluiceStream *stream = sluice_worker_start(SLUICE_WORKER_DECODER, main_arg);
	SluiceDecoder *decoder = create_decoder(stream);

	current = decoder;
	pin_settings();
	sluice_value_pin_session();
	if (stream->create)
		sluice_create_slot(decoder);
	else
		sluice_lineage_attend(decoder);
	decoder->relations = sluice_relations_create(decoder);

	sluice_attach(decoder);
	start_decoding(decoder);
	decode(decoder);

	/* the launcher starts us again, from what the log has */
	ereport(LOG,
			(errmsg("sluice: decoding for shard \"%s\" starts anew, because its storer was replaced",
					stream->shard)));
	proc_exit(0);
}
