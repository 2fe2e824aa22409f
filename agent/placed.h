/*
 * placed.h: a snapshot whose place in the stream is known (low, S, high).
 *
 * Everything up to low is in the copied rows, nothing that comes at or after
 * high is; between them a transaction is in them exactly if its xid is visible
 * in the snapshot.  One per copied table, and one of the list of tables, until
 * the stream has passed high.
 *
 * In: the *snapshot*, low and high of docs/protocol.md.  Pure C.  No locks.
 */
#ifndef SLUICE_PLACED_H
#define SLUICE_PLACED_H

#include "buffer.h"
#include "wire.h"

typedef struct SluicePlaced
{
	SluiceWatermark low;
	uint64_t	high;
	uint64_t	xmin;
	uint64_t	xmax;
	uint32_t	nxids;
	const uint64_t *xids;		/* in progress when S was taken */
} SluicePlaced;

/* True if the rows that were copied have that transaction's changes. */
extern bool sluice_placed_has(const SluicePlaced *placed, const SluiceBegin *begin);

/* True once everything before `position` (a bare WAL position) was seen. */
extern bool sluice_placed_passed(const SluicePlaced *placed, uint64_t position);

/*
 * u64 xmin, xmax, u32 count, xids (rising or not), as on the wire; low and
 * high stand apart there.  False at damage.
 */
extern bool sluice_placed_decode(SluiceCursor *cursor, const SluiceAllocator *allocator,
								 SluicePlaced *placed);
extern void sluice_placed_encode(SluiceBuffer *out, const SluicePlaced *placed);

#endif
