/*
 * placed.c: which transactions copied rows already have.
 *
 * In: a begin message or a position.  Out: yes or no.
 * Runs in: agent.  Locks: none.
 */
#include "placed.h"

static bool
visible(const SluicePlaced *placed, uint64_t xid)
{
	if (xid < placed->xmin)
		return true;
	if (xid >= placed->xmax)
		return false;
	for (uint32_t i = 0; i < placed->nxids; i++)
		if (placed->xids[i] == xid)
			return false;
	return true;
}

bool
sluice_placed_has(const SluicePlaced *placed, const SluiceBegin *begin)
{
	if (sluice_watermark_compare(begin->watermark, placed->low) <= 0)
		return true;
	/* high is where a record ended: what S saw starts before it */
	if (begin->watermark.major >= placed->high)
		return false;
	/* a backfill's transaction has no xid; S was taken without regard to it */
	if (begin->xid == 0)
		return false;
	return visible(placed, begin->xid);
}

bool
sluice_placed_passed(const SluicePlaced *placed, uint64_t position)
{
	return position >= placed->high;
}

bool
sluice_placed_decode(SluiceCursor *cursor, const SluiceAllocator *allocator, SluicePlaced *placed)
{
	uint64_t   *xids = NULL;

	placed->xmin = sluice_cursor_u64(cursor);
	placed->xmax = sluice_cursor_u64(cursor);
	placed->nxids = sluice_cursor_u32(cursor);
	if (cursor->damaged || placed->nxids > (size_t) (cursor->end - cursor->at) / 8)
	{
		cursor->damaged = true;
		return false;
	}
	if (placed->nxids > 0)
		xids = allocator->grow(allocator->context, NULL, placed->nxids * sizeof(uint64_t));
	for (uint32_t i = 0; i < placed->nxids; i++)
		xids[i] = sluice_cursor_u64(cursor);
	placed->xids = xids;
	return !cursor->damaged;
}

void
sluice_placed_encode(SluiceBuffer *out, const SluicePlaced *placed)
{
	sluice_wire_put_u64(out, placed->xmin);
	sluice_wire_put_u64(out, placed->xmax);
	sluice_wire_put_u32(out, placed->nxids);
	for (uint32_t i = 0; i < placed->nxids; i++)
		sluice_wire_put_u64(out, placed->xids[i]);
}
