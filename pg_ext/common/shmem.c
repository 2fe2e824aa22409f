/*
 * shmem.c: the shared memory root, the streams' entries, latches.
 *
 * In: settings at start-up.  Out: sluice_shmem and its entries.
 * Runs in: every process of ours, the launcher first of all.
 * Locks: SluiceShmem.lock and the entries' spinlocks, see shmem.h.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "replication/slot.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "guc.h"
#include "ring.h"
#include "shmem.h"

#define SHMEM_MAGIC 0x534c5543
#define TRANCHE "sluice"

StaticAssertDecl(sizeof("sluice__4294967295") + SLUICE_SHARD_NAME_MAX <= NAMEDATALEN,
				 "every slot name fits a NameData");

SluiceShmem *sluice_shmem = NULL;

static Size
ring_capacity(void)
{
	return (Size) 1024 * pg_nextpower2_32((uint32) sluice_ring_size);
}

static Size
root_size(void)
{
	Size		size = MAXALIGN(sizeof(SluiceShmem));

	size = add_size(size, MAXALIGN(mul_size(sluice_max_shards, sizeof(SluiceStream))));
	return add_size(size, mul_size(sluice_max_replicas, sizeof(SluiceSender)));
}

void
sluice_shmem_request(void)
{
	Size		ring = add_size(sluice_ring_shmem_size(ring_capacity()), PG_CACHE_LINE_SIZE);

	RequestAddinShmemSpace(add_size(root_size(), mul_size(sluice_max_shards, ring)));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

static void
init_stream(SluiceStream *stream, int index)
{
	char		name[64];
	bool		found;

	SpinLockInit(&stream->mutex);
	pg_atomic_init_u64(&stream->decoded, 0);
	pg_atomic_init_u64(&stream->confirmed, 0);
	pg_atomic_init_u64(&stream->transactions, 0);
	pg_atomic_init_u64(&stream->changes, 0);
	pg_atomic_init_u64(&stream->bytes, 0);
	pg_atomic_init_u64(&stream->stored_transactions, 0);
	pg_atomic_init_u64(&stream->stored_bytes, 0);
	pg_atomic_init_u64(&stream->current_at, 0);
	pg_atomic_init_u32(&stream->wake_wanted, 0);
	ConditionVariableInit(&stream->progress);

	snprintf(name, sizeof(name), "sluice ring %d", index);
	stream->ring = ShmemInitStruct(name, sluice_ring_shmem_size(ring_capacity()), &found);
	sluice_ring_init(stream->ring, ring_capacity());
}

void
sluice_shmem_startup(void)
{
	bool		found;
	char	   *base;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	base = ShmemInitStruct("sluice", root_size(), &found);
	sluice_shmem = (SluiceShmem *) base;
	if (!found)
	{
		memset(base, 0, root_size());
		sluice_shmem->lock = &GetNamedLWLockTranche(TRANCHE)->lock;
		sluice_shmem->nstreams = sluice_max_shards;
		sluice_shmem->nsenders = sluice_max_replicas;
		pg_atomic_init_u32(&sluice_shmem->stopping, 0);

		base += MAXALIGN(sizeof(SluiceShmem));
		sluice_shmem->streams = (SluiceStream *) base;
		base += MAXALIGN(sluice_max_shards * sizeof(SluiceStream));
		sluice_shmem->senders = (SluiceSender *) base;

		for (int i = 0; i < sluice_shmem->nstreams; i++)
			init_stream(&sluice_shmem->streams[i], i);
		for (int i = 0; i < sluice_shmem->nsenders; i++)
			SpinLockInit(&sluice_shmem->senders[i].mutex);
		sluice_shmem->magic = SHMEM_MAGIC;
	}
	Assert(sluice_shmem->magic == SHMEM_MAGIC);
	LWLockRelease(AddinShmemInitLock);
}

void
sluice_shmem_require(void)
{
	if (sluice_shmem != NULL)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("sluice is not loaded when the server starts"),
			 errhint("Add the line \"shared_preload_libraries = 'sluice'\" to postgresql.conf "
					 "(after a comma if others are named there) and restart the server.")));
}

/* ---- streams ---- */

SluiceStream *
sluice_stream_find(Oid dboid, const char *shard)
{
	SluiceStream *best = NULL;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	for (int i = 0; i < sluice_shmem->nstreams; i++)
	{
		SluiceStream *stream = &sluice_shmem->streams[i];

		if (!stream->in_use || stream->dboid != dboid || strcmp(stream->shard, shard) != 0)
			continue;
		if (best == NULL || stream->n > best->n)
			best = stream;
	}
	LWLockRelease(sluice_shmem->lock);
	return best;
}

/* Caller holds the lock. */
static SluiceStream *
find_slot(const char *slot)
{
	for (int i = 0; i < sluice_shmem->nstreams; i++)
	{
		SluiceStream *stream = &sluice_shmem->streams[i];

		if (stream->in_use && (strcmp(NameStr(stream->slot), slot) == 0 ||
							   strcmp(NameStr(stream->next_slot), slot) == 0))
			return stream;
	}
	return NULL;
}

SluiceStream *
sluice_stream_find_slot(const char *slot)
{
	SluiceStream *stream;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	stream = find_slot(slot);
	LWLockRelease(sluice_shmem->lock);
	return stream;
}

static void
reset_stream(SluiceStream *stream)
{
	SpinLockAcquire(&stream->mutex);
	stream->state = SLUICE_STREAM_STARTING;
	stream->state_since = 0;
	stream->message[0] = '\0';
	stream->sqlerrcode = 0;
	memset(&stream->low, 0, sizeof(stream->low));
	stream->low_valid = false;
	memset(&stream->head, 0, sizeof(stream->head));
	memset(&stream->stored, 0, sizeof(stream->stored));
	stream->stored_end_lsn = 0;
	memset(&stream->first, 0, sizeof(stream->first));
	stream->last_commit_time = 0;
	stream->stored_time = 0;
	stream->waits_for[0] = '\0';
	stream->reset = SLUICE_RESET_NONE;
	stream->reset_reason[0] = '\0';
	stream->reset_tries = 0;
	stream->reset_tried_at = 0;
	stream->resets = 0;
	stream->reset_at = 0;
	stream->reset_last[0] = '\0';
	SpinLockRelease(&stream->mutex);

	pg_atomic_write_u64(&stream->decoded, 0);
	pg_atomic_write_u64(&stream->confirmed, 0);
	pg_atomic_write_u64(&stream->transactions, 0);
	pg_atomic_write_u64(&stream->changes, 0);
	pg_atomic_write_u64(&stream->bytes, 0);
	pg_atomic_write_u64(&stream->stored_transactions, 0);
	pg_atomic_write_u64(&stream->stored_bytes, 0);
	pg_atomic_write_u64(&stream->current_at, 0);
	pg_atomic_write_u32(&stream->wake_wanted, 0);
}

/* Caller holds the lock exclusively. */
static SluiceStream *
claim(Oid dboid, const char *shard, uint32 n, const char *slot, bool create)
{
	for (int i = 0; i < sluice_shmem->nstreams; i++)
	{
		SluiceStream *stream = &sluice_shmem->streams[i];

		if (stream->in_use)
			continue;
		reset_stream(stream);
		stream->create = create;
		stream->dboid = dboid;
		stream->n = n;
		strlcpy(stream->shard, shard, sizeof(stream->shard));
		namestrcpy(&stream->slot, slot);
		stream->decoder_pid = 0;
		stream->storer_pid = 0;
		stream->decoder_latch = NULL;
		stream->storer_latch = NULL;
		stream->dropping = false;
		stream->nobody = false;
		memset(&stream->next_slot, 0, sizeof(stream->next_slot));
		stream->generation++;
		stream->in_use = true;
		return stream;
	}
	return NULL;
}

SluiceStream *
sluice_stream_claim(Oid dboid, const char *shard, uint32 n, const char *slot, bool create)
{
	SluiceStream *stream;

	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	stream = find_slot(slot);
	if (stream == NULL)
		stream = claim(dboid, shard, n, slot, create);
	LWLockRelease(sluice_shmem->lock);
	if (stream)
		sluice_stream_set_state(stream, SLUICE_STREAM_STARTING, 0, "");
	return stream;
}

/* The highest number that a slot of the shard's name has in any database. */
static uint32
highest_slot_number(const char *shard)
{
	uint32		highest = 0;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		char		name[SLUICE_SHARD_NAME_MAX + 1];
		uint32		n;

		if (slot->in_use && sluice_slot_name_parse(NameStr(slot->data.name), name, &n) &&
			strcmp(name, shard) == 0)
			highest = Max(highest, n);
	}
	LWLockRelease(ReplicationSlotControlLock);
	return highest;
}

/* The same of the entries.  Caller holds the lock. */
static uint32
highest_entry_number(const char *shard)
{
	uint32		highest = 0;

	for (int i = 0; i < sluice_shmem->nstreams; i++)
	{
		SluiceStream *other = &sluice_shmem->streams[i];

		if (!other->in_use || strcmp(other->shard, shard) != 0)
			continue;
		highest = Max(highest, other->n);
		if (NameStr(other->next_slot)[0] != '\0')
			highest = Max(highest, other->next_n);
	}
	return highest;
}

void
sluice_stream_name_next(SluiceStream *stream, uint32 above)
{
	uint32		n = Max(above, highest_slot_number(stream->shard));

	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	stream->next_n = Max(n, highest_entry_number(stream->shard)) + 1;
	sluice_slot_name(NameStr(stream->next_slot), stream->shard, stream->next_n);
	LWLockRelease(sluice_shmem->lock);
}

SluiceStream *
sluice_stream_claim_next(Oid dboid, const char *shard)
{
	uint32		n = highest_slot_number(shard);
	char		slot[NAMEDATALEN];
	SluiceStream *stream;

	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	n = Max(n, highest_entry_number(shard));
	sluice_slot_name(slot, shard, n + 1);
	stream = claim(dboid, shard, n + 1, slot, true);
	LWLockRelease(sluice_shmem->lock);
	if (stream)
		sluice_stream_set_state(stream, SLUICE_STREAM_STARTING, 0, "");
	return stream;
}

void
sluice_stream_release(SluiceStream *stream)
{
	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	Assert(stream->decoder_pid == 0 && stream->storer_pid == 0);
	stream->in_use = false;
	stream->create = false;
	stream->dropping = false;
	stream->generation++;
	LWLockRelease(sluice_shmem->lock);
	ConditionVariableBroadcast(&stream->progress);
}

void
sluice_stream_set_state(SluiceStream *stream, SluiceStreamState state, int sqlerrcode,
						const char *message)
{
	TimestampTz now = GetCurrentTimestamp();
	int			length = pg_mbcliplen(message, strlen(message), SLUICE_MESSAGE_MAX - 1);

	SpinLockAcquire(&stream->mutex);
	if (stream->state != state || stream->state_since == 0)
		stream->state_since = now;
	stream->state = state;
	stream->sqlerrcode = sqlerrcode;
	memcpy(stream->message, message, length);
	stream->message[length] = '\0';
	SpinLockRelease(&stream->mutex);
	ConditionVariableBroadcast(&stream->progress);
}

const char *
sluice_stream_state_name(SluiceStreamState state)
{
	static const char *const names[] = {
		[SLUICE_STREAM_STARTING] = "starting",
		[SLUICE_STREAM_CREATING] = "creating",
		[SLUICE_STREAM_CATCHING_UP] = "catching up",
		[SLUICE_STREAM_STREAMING] = "streaming",
		[SLUICE_STREAM_PAUSED] = "paused",
		[SLUICE_STREAM_STOPPED] = "stopped",
		[SLUICE_STREAM_RETRYING] = "retrying",
		[SLUICE_STREAM_RESETTING] = "resetting"
	};

	return names[state];
}

/* ---- latches ---- */

void
sluice_shmem_wake_decoders(void)
{
	/* the flush of the commit record comes before the look at the flags */
	pg_memory_barrier();
	for (int i = 0; i < sluice_shmem->nstreams; i++)
	{
		SluiceStream *stream = &sluice_shmem->streams[i];
		Latch	   *latch;

		if (pg_atomic_read_u32(&stream->wake_wanted) == 0 || stream->dboid != MyDatabaseId)
			continue;
		if (pg_atomic_exchange_u32(&stream->wake_wanted, 0) == 0)
			continue;
		latch = *(Latch *volatile *) &stream->decoder_latch;
		if (latch)
			SetLatch(latch);
	}
}

void
sluice_shmem_wake_launcher(void)
{
	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	if (sluice_shmem->launcher_latch)
		SetLatch(sluice_shmem->launcher_latch);
	LWLockRelease(sluice_shmem->lock);
}

/* ---- names ---- */

void
sluice_slot_name(char *slot, const char *shard, uint32 n)
{
	snprintf(slot, NAMEDATALEN, "sluice_%s_%u", shard, n);
}

bool
sluice_slot_name_parse(const char *slot, char *shard, uint32 *n)
{
	static const char prefix[] = "sluice_";
	const char *digits = strrchr(slot, '_');
	const char *start = slot + strlen(prefix);
	unsigned long number;
	char	   *end;

	if (strncmp(slot, prefix, strlen(prefix)) != 0 || digits <= start ||
		digits - start > SLUICE_SHARD_NAME_MAX)
		return false;
	/* one text for each number: no sign, no leading zero, no overflow */
	if (digits[1] < '1' || digits[1] > '9' || strlen(digits + 1) > 10)
		return false;
	number = strtoul(digits + 1, &end, 10);
	if (*end != '\0' || number > PG_UINT32_MAX)
		return false;
	memcpy(shard, start, digits - start);
	shard[digits - start] = '\0';
	*n = (uint32) number;
	return true;
}
