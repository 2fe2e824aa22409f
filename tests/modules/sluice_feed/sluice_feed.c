/*
 * sluice_feed.c: test only: a session in the decoder's place.
 *
 * In: SQL calls.  Out: frames on a ring; what the store makes of them.
 * Runs in: client backends of a test's server, loaded after sluice.
 * Locks: as the functions that it calls.
 *
 * The stream's entry is claimed as being created and marked as stopped: the
 * launcher then leaves it alone.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "allocator.h"
#include "changelog.h"
#include "create.h"
#include "ring.h"
#include "state.h"
#include "wire.h"
#include "worker.h"

PG_MODULE_MAGIC;

#define TABLE_OID 77777
#define FIRST_MAJOR 1000
#define COMMIT_STEP 10

static const SluiceColumn columns[] = {
	{1, SLUICE_COLUMN_NOT_NULL, SLUICE_STORAGE_INTEGER, 20, -1, -1, "id", "int8", NULL},
	{2, 0, SLUICE_STORAGE_TEXT, 25, -1, -1, "v", "text", NULL}
};
static const uint16_t key[] = {0};
static SluiceTable table = {
	.oid = TABLE_OID, .schema_oid = 2200, .identity = 'd', .ncolumns = 2, .nkey = 1,
	.schema = "public", .name = "fed", .columns = columns, .key = key
};

static SluiceStream *
find_stream(const char *shard)
{
	SluiceStream *stream = sluice_stream_find(MyDatabaseId, shard);

	if (stream == NULL)
		elog(ERROR, "no stream \"%s\"", shard);
	return stream;
}

static SluiceStream *
claim(const char *shard)
{
	char		slot[NAMEDATALEN];
	SluiceStream *stream = sluice_stream_find(MyDatabaseId, shard);

	sluice_slot_name(slot, shard, 1);
	if (stream == NULL)
		stream = sluice_stream_claim(MyDatabaseId, shard, 1, slot, true);
	if (stream == NULL)
		elog(ERROR, "no free stream");
	sluice_stream_set_state(stream, SLUICE_STREAM_STOPPED, 0, "fed by a test");
	return stream;
}

PG_FUNCTION_INFO_V1(feed_create);
Datum
feed_create(PG_FUNCTION_ARGS)
{
	char	   *shard = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SluiceState state;
	SluiceSchema schema = {1, &table};
	SluiceBuffer bytes;
	char		slot[NAMEDATALEN];

	sluice_slot_name(slot, shard, 1);
	table.fingerprint = sluice_table_fingerprint(&table);
	memset(&state, 0, sizeof(state));
	sluice_options_init(&state.options);
	state.slot = slot;
	state.n = 1;
	state.owner = "fed";
	state.first = state.replica_version = sluice_watermark_before(FIRST_MAJOR);
	state.publications = list_make1("none");
	sluice_store_create(shard);
	CommandCounterIncrement();
	sluice_state_write(shard, &state);
	sluice_buffer_init(&bytes, &sluice_palloc_allocator);
	sluice_schema_encode(&bytes, &schema);
	sluice_schema_store(shard, state.first, bytes.data, bytes.length);
	claim(shard);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(feed_drop);
Datum
feed_drop(PG_FUNCTION_ARGS)
{
	char	   *shard = text_to_cstring(PG_GETARG_TEXT_PP(0));

	sluice_store_drop(shard);
	sluice_stream_release(find_stream(shard));
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(feed_storer);
Datum
feed_storer(PG_FUNCTION_ARGS)
{
	SluiceStream *stream = claim(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	BackgroundWorkerHandle *handle;
	pid_t		pid;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	pid = stream->storer_pid;
	LWLockRelease(sluice_shmem->lock);
	if (pid == 0)
	{
		if (!sluice_worker_launch(SLUICE_WORKER_STORER, stream, MyProcPid, &handle) ||
			WaitForBackgroundWorkerStartup(handle, &pid) != BGWH_STARTED)
			elog(ERROR, "the storer does not start");
	}
	PG_RETURN_INT32(pid);
}

PG_FUNCTION_INFO_V1(feed_start);
Datum
feed_start(PG_FUNCTION_ARGS)
{
	char	   *shard = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SluiceStream *stream = find_stream(shard);
	SluiceLogBounds bounds;

	sluice_changelog_bounds(shard, &bounds);
	sluice_ring_start(stream->ring, stream, bounds.head);
	PG_RETURN_INT64((int64) bounds.head.major);
}

static void
put_transaction(SluiceBuffer *out, int64 major, int rows, int bytes, bool skip_ack, bool ends, bool rolls_back)
{
	SluiceBegin begin = {.xid = major};
	SluiceCommit commit = {.end_lsn = skip_ack ? 0 : major + 5};
	char	   *filler = palloc(bytes + 1);
	int			n = rows < 0 ? random() % (1 - rows) : rows;

	memset(filler, 'x', bytes);
	begin.watermark.major = commit.watermark.major = major;
	begin.watermark.minor = commit.watermark.minor = skip_ack ? 1 : 0;
	begin.flags = skip_ack ? SLUICE_BEGIN_SKIP_ACK : 0;
	begin.commit_time = GetCurrentTimestamp() + INT64CONST(946684800000000);
	sluice_wire_begin(out, &begin);
	for (int i = 0; i < n; i++)
	{
		SluiceRowHead head = {TABLE_OID, table.fingerprint, SLUICE_OLD_NONE, 0, 2};
		size_t		frame = sluice_wire_open_row(out, SLUICE_TAG_INSERT, &head);

		sluice_wire_put_integer(out, major * 1000000 + i);
		sluice_wire_put_text(out, filler, rows < 0 ? random() % (bytes + 1) : bytes);
		sluice_wire_close(out, frame);
	}
	if (rolls_back)
		sluice_wire_rollback(out);
	else if (ends)
		sluice_wire_commit(out, &commit);
	pfree(filler);
}

static void
append(SluiceStream *stream, const SluiceBuffer *bytes, int64 major, bool ends)
{
	SluiceWatermark after = {major, 0};

	sluice_ring_append(stream->ring, bytes->data, bytes->length);
	if (ends)
		sluice_ring_mark(stream->ring, after);
}

PG_FUNCTION_INFO_V1(feed);
Datum
feed(PG_FUNCTION_ARGS)
{
	SluiceStream *stream = find_stream(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	int64		major = PG_GETARG_INT64(1);
	int			transactions = PG_GETARG_INT32(2);
	int			rollback_each = PG_GETARG_INT32(5);
	int64		last = 0;
	SluiceBuffer bytes;

	table.fingerprint = sluice_table_fingerprint(&table);
	sluice_buffer_init(&bytes, &sluice_palloc_allocator);
	for (int i = 0; i < transactions; i++, major += COMMIT_STEP)
	{
		bool		rolls_back = rollback_each > 0 && i % rollback_each == rollback_each - 1;

		sluice_buffer_reset(&bytes);
		put_transaction(&bytes, major, PG_GETARG_INT32(3), PG_GETARG_INT32(4), PG_GETARG_BOOL(6), true, rolls_back);
		append(stream, &bytes, major, !rolls_back);
		if (!rolls_back)
			last = major;
	}
	sluice_ring_publish(stream->ring);
	PG_RETURN_INT64(last);
}

PG_FUNCTION_INFO_V1(feed_open);
Datum
feed_open(PG_FUNCTION_ARGS)
{
	SluiceStream *stream = find_stream(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	SluiceBuffer bytes;

	table.fingerprint = sluice_table_fingerprint(&table);
	sluice_buffer_init(&bytes, &sluice_palloc_allocator);
	put_transaction(&bytes, PG_GETARG_INT64(1), PG_GETARG_INT32(2), PG_GETARG_INT32(3), false, false, false);
	append(stream, &bytes, PG_GETARG_INT64(1), false);
	sluice_ring_publish(stream->ring);
	PG_RETURN_VOID();
}

static int64
stored_major(SluiceStream *stream)
{
	int64		major;

	SpinLockAcquire(&stream->mutex);
	major = (int64) stream->stored.major;
	SpinLockRelease(&stream->mutex);
	return major;
}

PG_FUNCTION_INFO_V1(feed_stored);
Datum
feed_stored(PG_FUNCTION_ARGS)
{
	SluiceStream *stream = find_stream(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), 60000);
	bool		stored;

	ConditionVariablePrepareToSleep(&stream->progress);
	while (!(stored = stored_major(stream) >= PG_GETARG_INT64(1)) && GetCurrentTimestamp() < deadline)
		(void) ConditionVariableTimedSleep(&stream->progress, 1000, PG_WAIT_EXTENSION);
	ConditionVariableCancelSleep();
	PG_RETURN_BOOL(stored);
}

PG_FUNCTION_INFO_V1(feed_set_low);
Datum
feed_set_low(PG_FUNCTION_ARGS)
{
	SluiceStream *stream = find_stream(text_to_cstring(PG_GETARG_TEXT_PP(0)));

	SpinLockAcquire(&stream->mutex);
	stream->low.major = PG_GETARG_INT64(1);
	stream->low.minor = 0;
	stream->low_valid = true;
	SpinLockRelease(&stream->mutex);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(feed_save_replica);
Datum
feed_save_replica(PG_FUNCTION_ARGS)
{
	char	   *shard = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SluiceWatermark durable = {PG_GETARG_INT64(2), 0};

	sluice_replicas_save(shard, text_to_cstring(PG_GETARG_TEXT_PP(1)), durable,
						 sluice_state_read(shard, NoLock, false)->replica_version);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(feed_set_retention);
Datum
feed_set_retention(PG_FUNCTION_ARGS)
{
	char	   *shard = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SluiceState *state = sluice_state_read(shard, ShareRowExclusiveLock, false);

	state->options.retention_ms = PG_GETARG_INT64(1);
	state->options.retention_bytes = PG_GETARG_INT64(2);
	sluice_state_write(shard, state);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(feed_read);
Datum
feed_read(PG_FUNCTION_ARGS)
{
	char	   *shard = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SluiceWatermark after = {PG_GETARG_INT64(1), 0};
	SluiceLogPlace place;
	SluiceScanner scanner;
	SluiceSlice *slices;
	int64		transactions = 0;
	int64		bytes = 0;
	int64		total = 0;
	int64		last = 0;
	int			n;
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {0};

	sluice_scanner_init(&scanner);
	sluice_changelog_place(shard, after, &place);
	while ((n = sluice_changelog_read(shard, &place, PG_GETARG_INT32(2), &slices)) > 0)
		for (int i = 0; i < n; i++, total++)
		{
			const char *at = slices[i].data;
			Size		left = slices[i].size;

			bytes += left;
			while (left > 0)
			{
				SluiceScanEvent event;
				size_t		used = sluice_scanner_feed(&scanner, at, left, &event);

				if (event == SLUICE_SCAN_DAMAGED || event == SLUICE_SCAN_ROLLBACK)
					elog(ERROR, "slice " INT64_FORMAT " is damaged", slices[i].number);
				if (event == SLUICE_SCAN_COMMIT)
				{
					transactions++;
					if ((int64) scanner.begin.watermark.major < last)
						elog(ERROR, "transactions are not in order");
					last = (int64) scanner.begin.watermark.major;
				}
				at += used;
				left -= used;
			}
		}
	if (scanner.in_transaction || scanner.in_frame)
		elog(ERROR, "the log ends within a transaction");
	values[0] = Int64GetDatum(transactions);
	values[1] = Int64GetDatum(bytes);
	values[2] = Int64GetDatum(total);
	values[3] = Int64GetDatum(last);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

PG_FUNCTION_INFO_V1(feed_set_slot);
Datum
feed_set_slot(PG_FUNCTION_ARGS)
{
	char	   *shard = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SluiceState *state = sluice_state_read(shard, ShareRowExclusiveLock, false);

	state->slot = text_to_cstring(PG_GETARG_TEXT_PP(1));
	sluice_state_write(shard, state);
	PG_RETURN_VOID();
}

static Datum
watermark_datum(SluiceWatermark watermark)
{
	char		string[SLUICE_WATERMARK_TEXT_MAX];

	sluice_watermark_format(watermark, string);
	return CStringGetTextDatum(string);
}

PG_FUNCTION_INFO_V1(feed_entry);
Datum
feed_entry(PG_FUNCTION_ARGS)
{
	SluiceStream *stream = find_stream(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	SluiceStream copy;
	TupleDesc	desc;
	Datum		values[5];
	bool		nulls[5] = {0};

	SpinLockAcquire(&stream->mutex);
	copy = *stream;
	SpinLockRelease(&stream->mutex);
	values[0] = watermark_datum(copy.stored);
	values[1] = watermark_datum(copy.first);
	values[2] = Int64GetDatum((int64) copy.stored_end_lsn);
	values[3] = CStringGetTextDatum(sluice_stream_state_name(copy.state));
	values[4] = CStringGetTextDatum(copy.message);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

PG_FUNCTION_INFO_V1(feed_hold);
Datum
feed_hold(PG_FUNCTION_ARGS)
{
	char	   *shard = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SluiceState *state = sluice_state_read(shard, NoLock, false);

	sluice_replicas_save(shard, "held", state->first, state->replica_version);
	PG_RETURN_VOID();
}
