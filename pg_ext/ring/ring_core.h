/*
 * ring_core.h: the arithmetic of the ring: offsets, reservation, overruns, marks.
 * Nothing here waits or knows the server, so that a unit test can run it with
 * plain threads and processes.
 *
 * Life of a byte: its offset is reserved, then it is written, then published
 * by moving head behind it, then it may be overwritten once the storer has
 * consumed it: offset < reserved - capacity means that it is gone or about to
 * be.  Because the reservation is visible before the first byte is touched, a
 * reader that looks at it after its copy knows whether the copy is whole.
 *
 *   base <= consumed <= head <= reserved,   reserved - consumed <= capacity
 *   (consumed below base, left by an earlier generation, counts as base)
 *
 * In: bytes and marks of one writer.  Out: the bytes, or the news that they
 * are gone.
 * Runs in: decoder (writer), storer and senders (readers), unit test.
 * Locks: functions that say so want the owner's lock; the others need none.
 */
#ifndef SLUICE_RING_CORE_H
#define SLUICE_RING_CORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watermark.h"

/* Marks are at least capacity / SLUICE_RING_MARK_SHARE bytes apart. */
#define SLUICE_RING_MARK_SHARE 1024
#define SLUICE_RING_MARKS (SLUICE_RING_MARK_SHARE + 2)

typedef struct SluiceRingMark
{
	uint64_t	offset;
	SluiceWatermark after;		/* what lies behind it stands at or behind offset */
} SluiceRingMark;

typedef struct SluiceRingCore
{
	uint64_t	capacity;		/* a power of two; set at start-up */
	char	   *data;

	/* writer; base and generation under the lock */
	_Atomic uint64_t generation;	/* 0: none yet */
	_Atomic uint64_t base;		/* where the generation begins */
	_Atomic uint64_t reserved;
	_Atomic uint64_t head;
	uint64_t	written;		/* writer only */

	/* storer */
	_Atomic uint64_t consumed;

	/* lock; counters that only rise, of places modulo SLUICE_RING_MARKS */
	uint64_t	mark_first;
	uint64_t	mark_end;
	SluiceRingMark marks[SLUICE_RING_MARKS];
} SluiceRingCore;

typedef enum SluiceRingCoreResult
{
	SLUICE_RING_CORE_DATA,
	SLUICE_RING_CORE_EMPTY,
	SLUICE_RING_CORE_OVERRUN,
	SLUICE_RING_CORE_RESTARTED
} SluiceRingCoreResult;

extern void sluice_ring_core_init(SluiceRingCore *core, uint64_t capacity, char *data);

/* ---- writer ---- */

/* Lock.  Everything that comes is behind `after`. */
extern void sluice_ring_core_start(SluiceRingCore *core, SluiceWatermark after);

/* Bytes that may be written now. */
extern uint64_t sluice_ring_core_room(SluiceRingCore *core);

/* size is at most the room. */
extern void sluice_ring_core_write(SluiceRingCore *core, const char *data, uint64_t size);
extern void sluice_ring_core_publish(SluiceRingCore *core);

/* Lock.  Leaves the mark out if the last one is near. */
extern void sluice_ring_core_mark(SluiceRingCore *core, SluiceWatermark after);

static inline uint64_t
sluice_ring_core_unpublished(SluiceRingCore *core)
{
	return core->written - atomic_load_explicit(&core->head, memory_order_relaxed);
}

/* ---- readers ---- */

/* Lock.  The newest mark at or before w whose bytes are there. */
extern bool sluice_ring_core_find(SluiceRingCore *core, SluiceWatermark w, uint64_t *generation,
								  uint64_t *offset);

/* Moves *offset on; *size > 0 with DATA only. */
extern SluiceRingCoreResult sluice_ring_core_read(SluiceRingCore *core, uint64_t generation,
												  uint64_t *offset, char *to, uint64_t max,
												  uint64_t *size);
extern uint64_t sluice_ring_core_unread(SluiceRingCore *core, uint64_t generation,
										uint64_t offset);

/* Where the writer is held back. */
extern uint64_t sluice_ring_core_floor(SluiceRingCore *core);

#endif
