/*
 * changelog.h: cdc_<shard>.slices, the durable form of the frame stream.
 *
 * A slice is a run of the stream's bytes, at most SLUICE_SLICE_SIZE of them,
 * cut anywhere, with a consecutive number.  Slices that belong to a
 * transaction whose end is not stored yet are not part of the log; they are
 * removed when a storer starts.  A missing number is "too old", never skipped.
 *
 * In: frame bytes from the storer.  Out: the same bytes, in order, from a
 * watermark.  All writes are at heap level and reach no logical slot.
 * All functions want an open transaction and a switched user.
 */
#ifndef SLUICE_CHANGELOG_H
#define SLUICE_CHANGELOG_H

#include "shmem.h"

/* Fits a heap page with its header and tuple, so that nothing is TOASTed. */
#define SLUICE_SLICE_SIZE 8000

/* slice flags */
#define SLUICE_SLICE_OPEN_START 0x01	/* its first bytes continue a transaction */
#define SLUICE_SLICE_OPEN_END	0x02	/* its last transaction goes on in the next slice */

typedef struct SluiceSlice
{
	int64		number;			/* consecutive, from 1 */
	SluiceWatermark first;		/* of the first transaction with bytes in it */
	SluiceWatermark last;		/* of the last transaction with bytes in it */
	TimestampTz commit_time;	/* of `last` */
	uint64		end_lsn;		/* end of the commit record of `last`, 0: it is open or a backfill's */
	uint64		xid;			/* 64-bit, of `last` */
	uint16		flags;
	uint16		format;			/* SLUICE_WIRE_VERSION */
	Size		size;
	const char *data;
} SluiceSlice;

/* Ends of the log. */
typedef struct SluiceLogBounds
{
	bool		empty;
	SluiceWatermark oldest;		/* first watermark of the oldest slice */
	SluiceWatermark head;		/* last complete transaction; state.first if empty */
	int64		oldest_number;
	int64		head_number;	/* of the slice where that transaction ends; 0 if empty */
	uint64		head_end_lsn;
	TimestampTz head_commit_time;
} SluiceLogBounds;

extern void sluice_changelog_bounds(const char *shard, SluiceLogBounds *bounds);

/* Appends in the caller's transaction; number, size and data are given. */
extern void sluice_changelog_append(const char *shard, const SluiceSlice *slice);

/* Removes slices above `number` (a transaction that never ended). */
extern void sluice_changelog_remove_above(const char *shard, int64 number);

/*
 * A place in the log.  start: SL002 if `after` is before the log's first
 * position, else stands where the first transaction behind `after` may begin
 * (the reader skips transactions at or before it).
 */
typedef struct SluiceLogPlace
{
	int64		number;			/* of the next slice; 0: behind the head of that moment */
	SluiceWatermark after;
} SluiceLogPlace;

extern void sluice_changelog_place(const char *shard, SluiceWatermark after, SluiceLogPlace *place);

/*
 * Reads slices of complete transactions from the place on, up to max_bytes
 * (at least one if there is one), into `out` (palloc'd array in the current
 * context), and moves the place.  Returns their number, 0 at the head.  SL002
 * if purge has taken what comes next.
 */
extern int	sluice_changelog_read(const char *shard, SluiceLogPlace *place, Size max_bytes,
								  SluiceSlice **out);

/* The replicas table: one row a known replica. */
extern void sluice_replicas_save(const char *shard, const char *name, SluiceWatermark durable,
								 SluiceWatermark lineage);
/* The least durable position of known replicas; false: none is known. */
extern bool sluice_replicas_floor(const char *shard, SluiceWatermark *floor);

/* The tracked schema (spec.h), stored for exactly the stored position. */
extern void sluice_schema_store(const char *shard, SluiceWatermark at, const char *data, Size size);
extern char *sluice_schema_load(const char *shard, SluiceWatermark *at, Size *size);

#endif
