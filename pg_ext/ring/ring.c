/*
 * ring.c: the ring in shared memory: ring_core.c and the waiting.
 *
 * In: frames from the decoder.  Out: the same bytes to storer and senders.
 * Runs in: decoder (writer), storer and senders (readers), postmaster (init).
 * Locks: the ring's spinlock, around marks and the start of a generation;
 * SluiceShmem.lock, shared, to learn the storer's pid.  None across a wait.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "guc.h"
#include "ring.h"
#include "ring_core.h"

/* The writer publishes by itself when so many bytes wait. */
#define PUBLISH_BYTES (64 * 1024)

struct SluiceRing
{
	slock_t		mutex;			/* marks, start of a generation */
	ConditionVariable readers;	/* head moved, or a generation began */
	ConditionVariable room;		/* the storer consumed, or wants a restart */
	pg_atomic_uint32 restart_wanted;	/* a storer sets, the writer clears */
	SluiceStream *stream;		/* writer only */
	SluiceRingCore core;
};

Size
sluice_ring_shmem_size(Size capacity)
{
	return add_size(MAXALIGN(sizeof(SluiceRing)), capacity);
}

void
sluice_ring_init(SluiceRing *ring, Size capacity)
{
	Assert((capacity & (capacity - 1)) == 0);
	SpinLockInit(&ring->mutex);
	ConditionVariableInit(&ring->readers);
	ConditionVariableInit(&ring->room);
	pg_atomic_init_u32(&ring->restart_wanted, 0);
	ring->stream = NULL;
	sluice_ring_core_init(&ring->core, capacity, (char *) ring + MAXALIGN(sizeof(SluiceRing)));
}

/* ---- writer ---- */

void
sluice_ring_start(SluiceRing *ring, SluiceStream *stream, SluiceWatermark after)
{
	ring->stream = stream;
	SpinLockAcquire(&ring->mutex);
	sluice_ring_core_start(&ring->core, after);
	SpinLockRelease(&ring->mutex);
	pg_atomic_write_u32(&ring->restart_wanted, 0);
	ConditionVariableBroadcast(&ring->readers);
}

bool
sluice_ring_restart_wanted(SluiceRing *ring)
{
	return pg_atomic_read_u32(&ring->restart_wanted) != 0;
}

static void
set_waits_for(SluiceStream *stream, const char *what)
{
	SpinLockAcquire(&stream->mutex);
	strlcpy(stream->waits_for, what, sizeof(stream->waits_for));
	SpinLockRelease(&stream->mutex);
}

static pid_t
storer_of(SluiceStream *stream)
{
	pid_t		pid;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	pid = stream->storer_pid;
	LWLockRelease(sluice_shmem->lock);
	return pid;
}

/*
 * The storer is alive and gets nothing done: end it, so that what it waits for
 * does not hold back the slot for ever.  Its successor begins anew.
 */
static void
end_storer(SluiceStream *stream, pid_t pid)
{
	PGPROC	   *proc;
	const char *type = NULL;
	const char *event = NULL;

	proc = BackendPidGetProc(pid);
	if (proc != NULL)
	{
		uint32		info = proc->wait_event_info;

		type = pgstat_get_wait_event_type(info);
		event = pgstat_get_wait_event(info);
	}
	ereport(LOG,
			(errmsg("sluice: ending the storer of shard \"%s\" (process %d): it has made no progress for %d ms while the ring is full",
					stream->shard, (int) pid, sluice_storer_timeout),
			 event != NULL
			 ? errdetail("It waits for %s: %s.", type, event)
			 : errdetail("It is running, and waits for nothing."),
			 errhint("Sessions that hold locks on the tables of schema \"cdc_%s\" are in pg_locks.",
					 stream->shard)));
	if (kill(pid, SIGTERM) < 0 && errno != ESRCH)
		ereport(LOG,
				(errmsg("could not send a signal to process %d: %m", (int) pid)));
}

/* ms until the storer's time is over; -1: it has all the time it wants */
static long
storer_time_left(TimestampTz since)
{
	if (sluice_storer_timeout <= 0)
		return -1;
	return TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
										   TimestampTzPlusMilliseconds(since,
																	   sluice_storer_timeout));
}

static void
wait_for_room(SluiceRing *ring)
{
	TimestampTz since = GetCurrentTimestamp();
	uint64		floor = sluice_ring_core_floor(&ring->core);
	pid_t		storer = storer_of(ring->stream);

	sluice_ring_publish(ring);
	set_waits_for(ring->stream, "room on the ring: the storer is behind");
	ConditionVariablePrepareToSleep(&ring->room);
	while (sluice_ring_core_room(&ring->core) == 0)
	{
		pid_t		pid = storer_of(ring->stream);
		long		left;

		if (sluice_ring_restart_wanted(ring))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("decoding for shard \"%s\" starts anew, because its storer was replaced",
							ring->stream->shard)));

		/* one that has just been started has all its time before it */
		if (sluice_ring_core_floor(&ring->core) != floor || pid != storer)
		{
			storer = pid;
			floor = sluice_ring_core_floor(&ring->core);
			since = GetCurrentTimestamp();
		}
		left = storer_time_left(since);
		if (left == 0)
		{
			if (pid != 0)
				end_storer(ring->stream, pid);
			since = GetCurrentTimestamp();
			continue;
		}
		(void) ConditionVariableTimedSleep(&ring->room, left, sluice_wait_event(SLUICE_WAIT_RING_SPACE));
	}
	ConditionVariableCancelSleep();
	set_waits_for(ring->stream, "");
}

void
sluice_ring_append(SluiceRing *ring, const void *data, Size size)
{
	const char *at = data;

	while (size > 0)
	{
		uint64		n = sluice_ring_core_room(&ring->core);

		if (n == 0)
		{
			wait_for_room(ring);
			continue;
		}
		n = Min(n, size);
		n = Min(n, PUBLISH_BYTES);
		sluice_ring_core_write(&ring->core, at, n);
		at += n;
		size -= n;
		if (sluice_ring_core_unpublished(&ring->core) >= PUBLISH_BYTES)
			sluice_ring_publish(ring);
	}
}

void
sluice_ring_publish(SluiceRing *ring)
{
	if (sluice_ring_core_unpublished(&ring->core) == 0)
		return;
	sluice_ring_core_publish(&ring->core);
	ConditionVariableBroadcast(&ring->readers);
}

void
sluice_ring_mark(SluiceRing *ring, SluiceWatermark after)
{
	SpinLockAcquire(&ring->mutex);
	sluice_ring_core_mark(&ring->core, after);
	SpinLockRelease(&ring->mutex);
}

/* ---- readers ---- */

bool
sluice_ring_find(SluiceRing *ring, SluiceWatermark w, SluiceRingReader *reader)
{
	bool		found;

	reader->ring = ring;
	SpinLockAcquire(&ring->mutex);
	found = sluice_ring_core_find(&ring->core, w, &reader->generation, &reader->offset);
	SpinLockRelease(&ring->mutex);
	return found;
}

bool
sluice_ring_base(SluiceRing *ring, uint64 *generation, SluiceWatermark *after)
{
	SluiceRingCore *core = &ring->core;
	SluiceRingMark *mark;
	bool		found;

	SpinLockAcquire(&ring->mutex);
	*generation = atomic_load(&core->generation);
	mark = &core->marks[core->mark_first % SLUICE_RING_MARKS];
	*after = mark->after;
	found = *generation != 0 && mark->offset == atomic_load(&core->base);
	SpinLockRelease(&ring->mutex);
	return found;
}

bool
sluice_ring_find_storer(SluiceRing *ring, SluiceRingReader *reader)
{
	reader->ring = ring;
	SpinLockAcquire(&ring->mutex);
	reader->generation = atomic_load(&ring->core.generation);
	reader->offset = atomic_load(&ring->core.base);
	SpinLockRelease(&ring->mutex);

	if (reader->generation == 0)
		return false;
	if (sluice_ring_core_floor(&ring->core) == reader->offset)
		return true;

	/*
	 * What the predecessor took and did not store is nowhere but in the WAL.
	 * Asked for once: a broadcast would undo the caller's prepare_wait.
	 */
	if (pg_atomic_exchange_u32(&ring->restart_wanted, 1) != 0)
		return false;
	ConditionVariableBroadcast(&ring->room);
	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	if (ring->stream->decoder_latch != NULL)
		SetLatch(ring->stream->decoder_latch);
	LWLockRelease(sluice_shmem->lock);
	return false;
}

SluiceRingResult
sluice_ring_read(SluiceRingReader *reader, char *to, Size max, Size *size)
{
	uint64		n;
	SluiceRingCoreResult result;

	result = sluice_ring_core_read(&reader->ring->core, reader->generation, &reader->offset,
								   to, max, &n);
	*size = n;
	switch (result)
	{
		case SLUICE_RING_CORE_DATA:
			return SLUICE_RING_DATA;
		case SLUICE_RING_CORE_EMPTY:
			return SLUICE_RING_EMPTY;
		case SLUICE_RING_CORE_OVERRUN:
			return SLUICE_RING_OVERRUN;
		case SLUICE_RING_CORE_RESTARTED:
			break;
	}
	return SLUICE_RING_RESTARTED;
}

uint64
sluice_ring_unread(const SluiceRingReader *reader)
{
	return sluice_ring_core_unread(&reader->ring->core, reader->generation, reader->offset);
}

void
sluice_ring_consumed(const SluiceRingReader *reader)
{
	SluiceRing *ring = reader->ring;

	/* an offset of an earlier generation is below base and counts for nothing */
	atomic_store(&ring->core.consumed, reader->offset);
	ConditionVariableBroadcast(&ring->room);
}

void
sluice_ring_prepare_wait(SluiceRing *ring)
{
	ConditionVariablePrepareToSleep(&ring->readers);
}

void
sluice_ring_cancel_wait(void)
{
	ConditionVariableCancelSleep();
}
