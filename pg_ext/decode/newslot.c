/*
 * newslot.c: making a shard's slot, and the schema as of its first position.
 *
 * The slot stays ephemeral until the transaction that names it in the shard's
 * state is about to commit: whatever fails before leaves none behind, and one
 * that a crash leaves right there belongs to nobody and is dropped (attach.c).
 * For a shard that has a slot already (a reset) the same transaction empties
 * its change log, so there is the old lineage or the new one, never half of
 * either; then the old slot is dropped.  Transactions that began before the slot have to
 * end first; while they are waited for this process holds no lock that they
 * may want, and says in waits_for whom it waits for.
 *
 * The published schema is read under the slot's own snapshot, so that it is
 * exactly that of the consistent point.
 *
 * In: the state row as create_shard has left it.  Out: slot, state, schema.
 * Runs in: decoder, once in the life of a slot.
 * Locks: those of running transactions (waited for), then `state`.
 *
 * States: ephemeral slot, searching -> consistent -> schema read -> slot
 * persistent -> state committed -> old slot dropped.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlogutils.h"
#include "miscadmin.h"
#include "postmaster/postmaster.h"
#include "replication/decode.h"
#include "replication/slot.h"
#include "replication/snapbuild.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/standbydefs.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "changelog.h"
#include "compat.h"
#include "newslot.h"
#include "guc.h"
#include "plugin.h"
#include "reset.h"
#include "walwait.h"
#include "worker.h"

/* ---- waiting for older transactions ---- */

static void
set_waits_for(SluiceStream *stream, const char *what)
{
	SpinLockAcquire(&stream->mutex);
	strlcpy(stream->waits_for, what, sizeof(stream->waits_for));
	SpinLockRelease(&stream->mutex);
	ConditionVariableBroadcast(&stream->progress);
}

static void
wait_for_xid(SluiceStream *stream, TransactionId xid)
{
	int			pid = BackendXidGetPid(xid);
	SluiceBackendInfo info;
	char	   *what;

	if (pid == 0)
		what = psprintf("transaction %u, which is prepared: COMMIT PREPARED or ROLLBACK PREPARED it",
						xid);
	else if (sluice_backend_info(pid, &info))
		what = psprintf("transaction %u of process %d (%s): %s", xid, pid, info.application,
						info.activity);
	else
		what = psprintf("transaction %u of process %d", xid, pid);

	set_waits_for(stream, what);
	XactLockTableWait(xid, NULL, NULL, XLTW_None);
	set_waits_for(stream, "");
	pfree(what);
}

/*
 * Before the server's own code waits for them without a word.
 */
static void
wait_for_running(SluiceStream *stream, XLogReaderState *reader)
{
	xl_running_xacts *running;

	if (XLogRecGetRmid(reader) != RM_STANDBY_ID ||
		(XLogRecGetInfo(reader) & ~XLR_INFO_MASK) != XLOG_RUNNING_XACTS)
		return;
	running = (xl_running_xacts *) XLogRecGetData(reader);
	for (int i = 0; i < running->xcnt; i++)
	{
		if (TransactionIdIsInProgress(running->xids[i]))
			wait_for_xid(stream, running->xids[i]);
	}
}

/* Reads WAL until decoding can begin. */
static void
find_start(SluiceDecoder *decoder, LogicalDecodingContext *logical)
{
	ReadLocalXLogPageNoWaitPrivate end = {0};
	XLogReaderState *reader = logical->reader;

	reader->private_data = &end;
	XLogBeginRead(reader, logical->slot->data.restart_lsn);
	while (!DecodingContextReady(logical))
	{
		XLogRecPtr	flushed = sluice_walwait_flushed();
		char	   *message = NULL;

		ResetLatch(MyLatch);
		sluice_worker_interrupts();
		if (XLogReadRecord(reader, &message) != NULL)
		{
			wait_for_running(decoder->stream, reader);
			LogicalDecodingProcessRecord(logical, reader);
		}
		else if (end.end_of_wal)
		{
			end.end_of_wal = false;
			/* what we wait for may be a record of our own */
			if (!XLogRecPtrIsInvalid(XactLastRecEnd) && XactLastRecEnd > flushed)
				XLogFlush(XactLastRecEnd);
			else
				sluice_walwait(decoder->stream, flushed);
		}
		else
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("could not read WAL at %X/%X: %s",
							LSN_FORMAT_ARGS(reader->EndRecPtr),
							message ? message : "no record")));
	}

	SpinLockAcquire(&logical->slot->mutex);
	logical->slot->data.confirmed_flush = reader->EndRecPtr;
	SpinLockRelease(&logical->slot->mutex);
}

/* ---- steps ---- */

/* What create_shard was told. */
static void
read_request(SluiceDecoder *decoder)
{
	SluiceState *state;
	MemoryContext old;
	ListCell   *cell;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	state = sluice_state_read(decoder->stream->shard, NoLock, false);
	old = MemoryContextSwitchTo(decoder->context);
	decoder->options.timestamps_text = state->options.timestamps_text;
	decoder->options.numerics_double = state->options.numerics_double;
	decoder->publications = NIL;
	foreach(cell, state->publications)
		decoder->publications = lappend(decoder->publications, pstrdup(lfirst(cell)));
	MemoryContextSwitchTo(old);
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/* A shard that has a slot is reset. */
static bool
is_reset(const SluiceStream *stream)
{
	return NameStr(stream->next_slot)[0] != '\0';
}

static const char *
new_slot(const SluiceStream *stream)
{
	return is_reset(stream) ? NameStr(stream->next_slot) : NameStr(stream->slot);
}

static LogicalDecodingContext *
make_slot(SluiceDecoder *decoder)
{
	LogicalDecodingContext *logical;
	MemoryContext old;

	StartTransactionCommand();
	sluice_check_decoding();
	sluice_slot_create(new_slot(decoder->stream));
	old = MemoryContextSwitchTo(decoder->context);
	logical = sluice_create_init_context(SLUICE_PLUGIN_NAME,
										 XL_ROUTINE(.page_read = read_local_xlog_page_no_wait,
													.segment_open = wal_segment_open,
													.segment_close = wal_segment_close));
	MemoryContextSwitchTo(old);
	find_start(decoder, logical);
	CommitTransactionCommand();
	return logical;
}

/* The published schema as of the consistent point, encoded in `out`. */
static void
read_schema(SluiceDecoder *decoder, LogicalDecodingContext *logical, SluiceBuffer *out)
{
	SluiceSchema *schema;

	StartTransactionCommand();
	XactIsoLevel = XACT_REPEATABLE_READ;
	XactReadOnly = true;
	RestoreTransactionSnapshot(SnapBuildInitialSnapshot(logical->snapshot_builder), MyProc);
	PushActiveSnapshot(GetTransactionSnapshot());
	schema = sluice_schema_read(decoder->publications, GetActiveSnapshot(), &decoder->options);
	MemoryContextSwitchTo(decoder->context);
	sluice_schema_encode(out, schema);
	MemoryContextSwitchTo(TopTransactionContext);
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/* The old lineage goes in this transaction. */
static void
clear_old(SluiceStream *stream, SluiceState *state)
{
	if (state->slot == NULL || strcmp(state->slot, NameStr(stream->slot)) != 0 || state->paused)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("shard \"%s\" has changed while it was reset", stream->shard)));
	set_waits_for(stream, "sessions that read its change log");
	sluice_changelog_clear(stream->shard);
	set_waits_for(stream, "");
	state->reset_required = false;
	state->reset_reason = NULL;
	state->owner = NULL;
}

/* Makes the slot persistent, too. */
static void
write_state(SluiceDecoder *decoder, XLogRecPtr consistent, const SluiceBuffer *schema)
{
	SluiceStream *stream = decoder->stream;
	SluiceState *state;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	state = sluice_state_read(stream->shard, ShareRowExclusiveLock, false);
	if (is_reset(stream))
		clear_old(stream, state);
	state->slot = pstrdup(new_slot(stream));
	state->n = is_reset(stream) ? stream->next_n : stream->n;
	if (state->owner == NULL || state->owner[0] == '\0')
		state->owner = psprintf("%s/%s", cluster_name, state->slot);
	if (state->owner_address == NULL)
		state->owner_address = pstrdup(sluice_advertise_address ? sluice_advertise_address : "");
	state->replica_version = sluice_watermark_before(consistent);
	state->first = state->replica_version;
	state->system_id = GetSystemIdentifier();
	state->timeline = GetWALInsertionTimeLine();
	sluice_state_write(stream->shard, state);
	sluice_schema_store(stream->shard, state->first, schema->data, schema->length);
	PopActiveSnapshot();

	/* from here to what follows from the commit nothing breaks us off */
	HOLD_INTERRUPTS();
	ReplicationSlotPersist();
	CommitTransactionCommand();
	if (is_reset(stream))
		sluice_reset_done(stream);
	RESUME_INTERRUPTS();
}

/* What is there under the name may have been made by hand, for something else. */
static void
drop_old_slot(const SluiceStream *stream, const char *name)
{
	ReplicationSlot *slot;
	bool		ours;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	slot = SearchNamedReplicationSlot(name, false);
	ours = slot != NULL && slot->data.database == stream->dboid &&
		strcmp(NameStr(slot->data.plugin), SLUICE_PLUGIN_NAME) == 0;
	LWLockRelease(ReplicationSlotControlLock);
	if (ours)
		ReplicationSlotDrop(name, true);
}

/* After the slot was made, or was to be made. */
static void
finish_create(SluiceStream *stream)
{
	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	stream->create = false;
	LWLockRelease(sluice_shmem->lock);
	sluice_stream_set_state(stream, SLUICE_STREAM_STARTING, 0, "");
	sluice_shmem_wake_launcher();
}

static void
finish_reset(SluiceStream *stream, const char *old_slot)
{
	ereport(LOG,
			(errmsg("sluice shard \"%s\" was reset: %s", stream->shard, stream->reset_last),
			 errdetail("Slot \"%s\" takes the place of \"%s\".", NameStr(stream->slot), old_slot),
			 errhint("Replicas keep the file that they have until they have copied afresh, which sluice-agent does by itself.")));
	sluice_stream_set_state(stream, SLUICE_STREAM_STARTING, 0, "");
	drop_old_slot(stream, old_slot);
}

void
sluice_create_slot(SluiceDecoder *decoder)
{
	SluiceStream *stream = decoder->stream;
	bool		reset = is_reset(stream);
	char	   *old_slot = pstrdup(NameStr(stream->slot));
	LogicalDecodingContext *logical;
	SluiceBuffer schema;

	if (!reset)
		sluice_stream_set_state(stream, SLUICE_STREAM_CREATING, 0, "");
	read_request(decoder);
	logical = make_slot(decoder);

	sluice_buffer_init(&schema, &sluice_palloc_allocator);
	read_schema(decoder, logical, &schema);
	write_state(decoder, logical->reader->EndRecPtr, &schema);
	sluice_buffer_release(&schema);

	FreeDecodingContext(logical);
	/* lets go of effective_xmin, too, which held back all tables */
	ReplicationSlotRelease();
	MemoryContextSwitchTo(decoder->context);

	if (reset)
		finish_reset(stream, old_slot);
	else
		finish_create(stream);
}
