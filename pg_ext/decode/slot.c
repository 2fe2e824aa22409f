/*
 * slot.c: the logical slot of a stream: taken, confirmed, dropped.
 *
 * Only what is durable in the change log is confirmed, so that whatever is
 * lost between WAL and log is decoded again.  While nothing published changes
 * the slot follows the decoder, which writes nothing for it: our own commits
 * in the WAL do not make it chase itself.
 *
 * In: positions of decoder and storer.  Out: the slot.
 * Runs in: decoder.  Locks: the slot's own, in slot.c of the server.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "plugin.h"
#include "slot.h"

#define SAVE_EVERY 1000			/* ms; a checkpoint writes it */

typedef enum SlotFault
{
	SLOT_GOOD,
	SLOT_MISSING,
	SLOT_INVALIDATED,
	SLOT_OTHER_DATABASE,
	SLOT_OTHER_PLUGIN
} SlotFault;

static SlotFault
look_at_slot(const SluiceStream *stream)
{
	ReplicationSlot *slot;
	SlotFault	fault = SLOT_GOOD;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	slot = SearchNamedReplicationSlot(NameStr(stream->slot), false);
	if (slot == NULL)
		fault = SLOT_MISSING;
	else if (slot->data.database != stream->dboid)
		fault = SLOT_OTHER_DATABASE;
	else if (strcmp(NameStr(slot->data.plugin), SLUICE_PLUGIN_NAME) != 0)
		fault = SLOT_OTHER_PLUGIN;
	else if (sluice_slot_invalidated(slot) || XLogRecPtrIsInvalid(slot->data.restart_lsn))
		fault = SLOT_INVALIDATED;
	LWLockRelease(ReplicationSlotControlLock);
	return fault;
}

void
sluice_slot_take(SluiceDecoder *decoder)
{
	const char *name = NameStr(decoder->stream->slot);
	XLogRecPtr	confirmed;	/* by our predecessor; 0: not known */

	switch (look_at_slot(decoder->stream))
	{
		case SLOT_GOOD:
			break;
		case SLOT_MISSING:
			sluice_decoder_stop(decoder, "replication slot \"%s\" does not exist any more", name);
		case SLOT_INVALIDATED:
			sluice_decoder_stop(decoder,
								"replication slot \"%s\" was invalidated: WAL that it needs has been removed (max_slot_wal_keep_size)",
								name);
		case SLOT_OTHER_DATABASE:
			sluice_decoder_stop(decoder, "replication slot \"%s\" is of another database", name);
		case SLOT_OTHER_PLUGIN:
			sluice_decoder_stop(decoder,
								"replication slot \"%s\" was made anew by hand, with another plugin",
								name);
	}
	sluice_slot_acquire(name);
	confirmed = pg_atomic_read_u64(&decoder->stream->confirmed);
	if (confirmed != 0 && MyReplicationSlot->data.confirmed_flush > confirmed)
		sluice_decoder_stop(decoder,
							"replication slot \"%s\" was moved or made anew by hand: it begins at %X/%X, and changes behind %X/%X are missing",
							name, LSN_FORMAT_ARGS(MyReplicationSlot->data.confirmed_flush),
							LSN_FORMAT_ARGS(confirmed));
	pg_atomic_write_u64(&decoder->stream->confirmed, MyReplicationSlot->data.confirmed_flush);
}

/* What may be confirmed; 0: nothing new is known. */
static XLogRecPtr
stored_position(SluiceDecoder *decoder, XLogRecPtr decoded)
{
	SluiceStream *stream = decoder->stream;
	SluiceWatermark stored;
	XLogRecPtr	end_lsn;

	if (decoder->on_ring == 0)
		return decoded;
	SpinLockAcquire(&stream->mutex);
	stored = stream->stored;
	end_lsn = stream->stored_end_lsn;
	SpinLockRelease(&stream->mutex);
	return sluice_watermark_compare(stored, decoder->head) >= 0 ? decoded : end_lsn;
}

void
sluice_slot_confirm(SluiceDecoder *decoder, XLogRecPtr decoded)
{
	static TimestampTz saved = 0;	/* one decoder a process */
	XLogRecPtr	position = stored_position(decoder, decoded);
	TimestampTz now;

	if (position <= MyReplicationSlot->data.confirmed_flush)
		return;
	LogicalConfirmReceivedLocation(position);
	pg_atomic_write_u64(&decoder->stream->confirmed, position);

	now = GetCurrentTimestamp();
	if (TimestampDifferenceExceeds(saved, now, SAVE_EVERY))
	{
		ReplicationSlotMarkDirty();
		saved = now;
	}
}

void
sluice_slot_drop_orphan(SluiceDecoder *decoder, const char *why)
{
	char	   *name = pstrdup(NameStr(decoder->stream->slot));

	if (SearchNamedReplicationSlot(name, true) != NULL)
	{
		ReplicationSlotDrop(name, true);
		ereport(LOG,
				(errmsg("sluice: dropped replication slot \"%s\": %s", name, why)));
	}
	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	decoder->stream->nobody = true;
	LWLockRelease(sluice_shmem->lock);
	proc_exit(0);
}
