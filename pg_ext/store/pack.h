/*
 * pack.h: the frame stream cut into slices, in memory.
 *
 * Whole small transactions share a slice; one that does not fit the rest of a
 * slice begins a new one, and if it is larger than a slice it has slices of
 * its own.  Transactions at or before the head, those that are rolled back and
 * what stands between transactions are left out.
 *
 * In: pieces of the stream, cut anywhere.  Out: slices that are ready.
 * Runs in: storer.  Locks: none.
 *
 * States: nothing open; a transaction open in the current slice, behind the
 * whole ones there; a transaction open that has filled slices (parts > 0: the
 * current slice is its next part, whole = 0); one that is left out (skipping).
 */
#ifndef SLUICE_PACK_H
#define SLUICE_PACK_H

#include "buffer.h"
#include "changelog.h"
#include "wire.h"

/* Slices that may be ready; one piece of the stream fills few. */
#define SLUICE_PACK_SLICES 96
#define SLUICE_PACK_FULL 64		/* write them out */

typedef struct SluicePack
{
	SluiceScanner scanner;
	SluiceBuffer begin;			/* BEGIN of the open transaction, encoded */
	SluiceWatermark head;		/* last whole transaction taken in */
	int64		transactions;	/* whole ones in ready slices */

	int			nready;
	SluiceSlice *slices;		/* nready ready ones, then the current one */
	char	   *memory;

	bool		skipping;		/* the transaction of the stream is left out */
	bool		open;			/* one is being taken in */
	int			whole;			/* whole ones in the current slice */
	Size		start;			/* where the open one begins in it, or the next will */
	int64		parts;			/* slices that the open transaction has filled */
	int64		parts_written;	/* of these, taken away already */
} SluicePack;

/* Lives in the current memory context. */
extern void sluice_pack_init(SluicePack *pack);

/* Drops everything; the stream begins anew behind head. */
extern void sluice_pack_restart(SluicePack *pack, SluiceWatermark head);

typedef enum SluicePackEvent
{
	SLUICE_PACK_NONE,			/* all bytes are taken */
	SLUICE_PACK_READY,			/* SLUICE_PACK_FULL slices are ready: take them first */
	SLUICE_PACK_ROLLBACK,		/* parts of it were taken: remove them from the log */
	SLUICE_PACK_DAMAGED
} SluicePackEvent;

/* Takes bytes; returns how many. */
extern Size sluice_pack_feed(SluicePack *pack, const char *data, Size size, SluicePackEvent *event);

/* Makes the whole transactions of the current slice ready too. */
extern void sluice_pack_close_whole(SluicePack *pack);

/* The ready slices were written. */
extern void sluice_pack_taken(SluicePack *pack);

#endif
