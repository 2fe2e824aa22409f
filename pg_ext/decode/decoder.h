/*
 * decoder.h: what the decoder's files share: its state, between WAL and ring.
 *
 * Memory: context lives as long as the process, txn is reset when a
 * transaction begins, change after each row.
 */
#ifndef SLUICE_DECODER_H
#define SLUICE_DECODER_H

#include "nodes/pg_list.h"
#include "replication/logical.h"

#include "compat.h"
#include "low.h"
#include "ring.h"
#include "schema.h"
#include "shmem.h"
#include "state.h"
#include "wire.h"

typedef struct SluiceRelations SluiceRelations; /* relation.h */
typedef struct SluiceDrift SluiceDrift; /* drift.h */

typedef struct SluiceDecoder
{
	SluiceStream *stream;
	SluiceRing *ring;
	MemoryContext context;
	MemoryContext txn;
	MemoryContext change;
	LogicalDecodingContext *logical;

	/* the shard, as of the stream's position */
	List	   *publications;	/* of char * */
	SluiceEncodeOptions options;
	SluiceSchema *schema;		/* the tracked schema */
	MemoryContext schema_context;	/* of schema */
	SluiceRelations *relations;
	SluiceDrift *drift;

	/* the transaction that is being decoded */
	SluiceBuffer frame;
	bool		begun;			/* its BEGIN is on the ring */
	List	   *skipped;		/* relations whose rows were not published; in txn,
								 * kept if the transaction changes catalogs */
	struct SluiceTouched *touched;	/* what its messages touch, once asked for; in txn */
	bool		schema_changed; /* it has changed the tracked schema */

	/* its end */
	SluiceCommit commit;
	TransactionId commit_xid;
	TimestampTz commit_time;
	bool		commit_waits;	/* for the schema to be stored, see decoder.c */

	/* the stream */
	SluiceWatermark log_head;	/* what the log had when we began */
	SluiceWatermark head;		/* the last transaction, or where it began */
	TimestampTz head_time;		/* its commit time; 0: none yet */
	uint64		on_ring;		/* transactions of this generation */
	uint64		changes;
	uint64		bytes;
	uint64		published;		/* of on_ring: readers know of them */
	uint64		published_bytes;
	SluiceLow  *low;
} SluiceDecoder;

/* The decoder of this process; NULL in any other. */
extern SluiceDecoder *sluice_decoder_current(void);

/* Gives the frame's buffer its first memory, which lives with the process. */
extern void sluice_decoder_open_frame(SluiceDecoder *decoder);

/* Puts the frame on the ring. */
extern void sluice_decoder_emit(SluiceDecoder *decoder);

/*
 * The shard cannot go on from here: asks for its reset (reset.h) and ends the
 * process.  With option auto_reset off the next decoder stops the shard: SL006,
 * with what happened and what to do.  What the open transaction has on the
 * ring is never completed.
 */
extern void sluice_decoder_stop(SluiceDecoder *decoder, const char *format,...)
			pg_attribute_printf(2, 3) SLUICE_NORETURN;

/* Stops the shard, where a reset would not help. */
extern void sluice_decoder_stop_plain(SluiceDecoder *decoder, const char *format,...)
			pg_attribute_printf(2, 3) SLUICE_NORETURN;

#endif
