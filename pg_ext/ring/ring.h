/*
 * ring.h: one byte stream per slot in shared memory.
 *
 * One writer at a time; many readers, of whom only the storer holds the
 * writer back: bytes that it has not consumed are never overwritten.  Other
 * readers that fall behind find out (OVERRUN) and read the change log.
 * Offsets are 64-bit, rise for ever and are never wrapped.
 *
 * Generations: a decoder that starts begins a new generation at the current
 * end; what earlier ones left there is void.  Readers see RESTARTED, drop an
 * open transaction and look for their place again.
 *
 * Marks: between transactions the writer leaves marks (offset, watermark):
 * everything behind the watermark stands at or behind the offset.
 *
 * In: frames (any bytes).  Out: the same bytes.  Locks: none held by callers;
 * marks are guarded by a spinlock, the rest by atomics and barriers.
 */
#ifndef SLUICE_RING_H
#define SLUICE_RING_H

#include "shmem.h"

/* At start-up. capacity: bytes, a power of two. */
extern Size sluice_ring_shmem_size(Size capacity);
extern void sluice_ring_init(SluiceRing *ring, Size capacity);

/* ---- writer ---- */

/*
 * Begins a generation: everything that comes is behind `after`.  The stream
 * is needed for what the writer does while it waits for the storer.
 */
extern void sluice_ring_start(SluiceRing *ring, SluiceStream *stream, SluiceWatermark after);

/*
 * Appends; publishes by itself every 64 kB.  Waits while the storer has not
 * consumed enough (answers interrupts; after sluice.storer_timeout without
 * progress ends the storer, saying so).  Any size.
 */
extern void sluice_ring_append(SluiceRing *ring, const void *data, Size size);

/* Everything appended so far is visible; wakes readers that sleep. */
extern void sluice_ring_publish(SluiceRing *ring);

/* The appended bytes end a transaction; `after` is its watermark. Before publish. */
extern void sluice_ring_mark(SluiceRing *ring, SluiceWatermark after);

/* A storer has asked for a new generation (bytes were lost with its predecessor). */
extern bool sluice_ring_restart_wanted(SluiceRing *ring);

/* ---- readers ---- */

typedef struct SluiceRingReader
{
	SluiceRing *ring;
	uint64		generation;
	uint64		offset;			/* of the next byte */
} SluiceRingReader;

typedef enum SluiceRingResult
{
	SLUICE_RING_DATA,
	SLUICE_RING_EMPTY,
	SLUICE_RING_OVERRUN,		/* the reader's bytes are gone */
	SLUICE_RING_RESTARTED		/* another generation has begun, or none is there */
} SluiceRingResult;

/*
 * The newest mark whose watermark is at or before w and whose bytes are still
 * there.  False: the ring does not reach back to w (or no generation yet).
 * The caller skips transactions at or before w.
 */
extern bool sluice_ring_find(SluiceRing *ring, SluiceWatermark w, SluiceRingReader *reader);

/*
 * The generation that runs and what everything in it is behind.  What is at
 * or before that was in the log when the generation began.  False: there is
 * none, or it has gone on so far that this is forgotten.
 */
extern bool sluice_ring_base(SluiceRing *ring, uint64 *generation, SluiceWatermark *after);

/*
 * The storer's place: the base of the current generation.  False if there is
 * none yet, or if a predecessor had consumed bytes of it (then a restart has
 * been asked for).
 */
extern bool sluice_ring_find_storer(SluiceRing *ring, SluiceRingReader *reader);

/* Copies up to max bytes and moves on.  *size > 0 with DATA only. */
extern SluiceRingResult sluice_ring_read(SluiceRingReader *reader, char *to, Size max, Size *size);

/* Bytes published behind the reader; 0 if its generation is over. */
extern uint64 sluice_ring_unread(const SluiceRingReader *reader);

/* Storer only: its bytes before reader->offset may be overwritten. */
extern void sluice_ring_consumed(const SluiceRingReader *reader);

/*
 * To wait for bytes: prepare, look again, wait on the process latch, cancel.
 */
extern void sluice_ring_prepare_wait(SluiceRing *ring);
extern void sluice_ring_cancel_wait(void);

#endif
