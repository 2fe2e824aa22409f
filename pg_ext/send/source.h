/*
 * source.h: where a sender reads the stream: the change log while its replica
 * is behind the ring, the ring when the ring reaches back far enough.
 *
 * Hand-over needs no agreement with anyone: both have whole transactions in
 * the same order, and the subscriber drops what its replica has.
 *
 * Out: bytes, into a subscriber.  Owner: the sender's backend.  Locks: none
 * between calls.
 */
#ifndef SLUICE_SOURCE_H
#define SLUICE_SOURCE_H

#include "changelog.h"
#include "ring.h"
#include "sender.h"
#include "subscriber.h"

typedef struct SluiceSource
{
	SluiceStream *stream;
	const char *shard;
	const SluiceSenderTask *task;
	bool		on_ring;
	SluiceRingReader reader;

	bool		placed;			/* place is valid */
	SluiceLogPlace place;
	MemoryContext batch;		/* slices that were read and not taken yet */
	SluiceSlice *slices;
	int			nslices;
	int			next;
	char	   *piece;			/* bytes copied from the ring */
} SluiceSource;

/* Lives in the current memory context. */
extern void sluice_source_init(SluiceSource *source, const SluiceSenderTask *task);

/*
 * Takes some 64 kB at most into the subscriber.  False: there is nothing now.
 * ERROR SL002 if the log no longer has what comes next, SL001 if it is of
 * another lineage by now.
 */
extern bool sluice_source_read(SluiceSource *source, SluiceSubscriber *subscriber);

/*
 * Before a wait on the process latch; the caller looks once more after it.
 * cancel is needed before other condition variables are used.
 */
extern void sluice_source_prepare_wait(SluiceSource *source);
extern void sluice_source_cancel_wait(void);

/*
 * Every commit that starts before the returned position has been taken by the
 * subscriber (docs/protocol.md, K).
 */
extern uint64 sluice_source_position(const SluiceSource *source, const SluiceSubscriber *subscriber);

#endif
