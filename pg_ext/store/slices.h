/*
 * slices.h: looking slices up by number and by watermark, under one snapshot.
 *
 * For the files of store/ only.  Numbers are consecutive from the oldest to
 * the newest, and watermarks rise with them, so every search doubles its step
 * back from the newest slice and then halves: the dead index entries that
 * purge leaves at the other end are never walked over.
 *
 * Runs in: whoever has an open transaction.  Locks: the table's, ACCESS SHARE
 * or what the opener took.
 */
#ifndef SLUICE_SLICES_H
#define SLUICE_SLICES_H

#include "changelog.h"
#include "heap.h"

enum
{
	SLICE_NUMBER = 1,
	SLICE_FIRST_MAJOR,
	SLICE_FIRST_MINOR,
	SLICE_LAST_MAJOR,
	SLICE_LAST_MINOR,
	SLICE_COMMIT_TIME,
	SLICE_END_LSN,
	SLICE_XID,
	SLICE_BYTES_BEFORE,
	SLICE_FLAGS,
	SLICE_FORMAT,
	SLICE_DATA,
	SLICE_COLUMNS = SLICE_DATA
};

typedef struct SluiceSlices
{
	SluiceHeap *heap;
	Snapshot	snapshot;
	const char *shard;
	int64		newest;			/* open ones included; 0: none at all */
	SluiceSlice head;			/* data NULL; number 0: no complete transaction */
} SluiceSlices;

/* Opens, and finds newest and head.  Keeps the pointer to shard. */
extern void sluice_slices_open(SluiceSlices *slices, const char *shard, LOCKMODE lockmode);
extern void sluice_slices_close(SluiceSlices *slices);

/* All but data, which points into the tuple. */
extern void sluice_slices_form(SluiceSlice *slice, HeapTuple tuple, TupleDesc desc);

/* False: no such number.  slice->data is NULL. */
extern bool sluice_slices_get(SluiceSlices *slices, int64 number, SluiceSlice *slice);

/* The least number whose `last` is behind w; newest + 1 if there is none.  slices not empty. */
extern int64 sluice_slices_behind(SluiceSlices *slices, SluiceWatermark w);

/* 0: none at all */
extern int64 sluice_slices_oldest(SluiceSlices *slices);

/* Where positions that can be started from begin. */
extern SluiceWatermark sluice_slices_first(SluiceSlices *slices);

/* A scan in number order from `number` on. */
extern SysScanDesc sluice_slices_scan(SluiceSlices *slices, int64 number);

#endif
