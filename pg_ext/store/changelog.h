/*
 * changelog.h: cdc_<shard>.slices, the durable form of the frame stream.
 *
 * A slice is a run of the stream's bytes, at most SLUICE_SLICE_SIZE of them,
 * with a consecutive number: either a number of whole transactions, or a part
 * (cut anywhere) of one that is larger than a slice.  Slices that belong to a
 * transaction whose end is not stored yet are not part of the log; they are
 * removed when a storer starts.  A missing number is "too old", never skipped.
 * STATUS frames and transactions that were rolled back are not stored.
 *
 * Numbers and watermarks rise together, so a place by watermark is found by
 * halving over the numbers' index; there is no second index to keep.
 *
 * A position p is valid to start from if p >= oldest.first, or if nothing was
 * purged yet (the oldest slice is number 1, or there is none) and
 * p >= state.first.
 *
 * In: frame bytes from the storer.  Out: the same bytes, in order, from a
 * watermark.  All writes are at heap level and reach no logical slot.
 * All functions want an open transaction and a switched user.
 */
#ifndef SLUICE_CHANGELOG_H
#define SLUICE_CHANGELOG_H

#include "nodes/pg_list.h"

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
	uint64		bytes_before;	/* of all slices before it; given by append */
	uint16		flags;
	uint16		format;			/* SLUICE_WIRE_VERSION */
	Size		size;
	const char *data;
} SluiceSlice;

/* Ends of the log. */
typedef struct SluiceLogBounds
{
	bool		empty;			/* no complete transaction is stored */
	SluiceWatermark oldest;		/* positions from here on can be started from */
	SluiceWatermark head;		/* last complete transaction; state.first if empty */
	int64		oldest_number;	/* 0 if empty */
	int64		head_number;	/* of the slice where that transaction ends; 0 if empty */
	uint64		head_end_lsn;
	TimestampTz head_commit_time;
	uint64		bytes;			/* bytes_before of the slice behind the head */
} SluiceLogBounds;

extern void sluice_changelog_bounds(const char *shard, SluiceLogBounds *bounds);

/*
 * Appends in the caller's transaction, keeping the table open.  `last` is the
 * number of the newest slice of all, open ones included, and bytes what
 * bytes_before of the next one is.  number and bytes_before of the slice are
 * set by append.
 */
typedef struct SluiceLogWriter SluiceLogWriter;

extern SluiceLogWriter *sluice_changelog_open_writer(const char *shard, int64 last, uint64 bytes);
extern void sluice_changelog_append(SluiceLogWriter *writer, SluiceSlice *slice);
extern void sluice_changelog_close_writer(SluiceLogWriter *writer);

/* Removes slices above `number` (a transaction that never ended); how many. */
extern int64 sluice_changelog_remove_above(const char *shard, int64 number);

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

/*
 * A new lineage begins: slices, versions of the schema, known replicas and
 * cookies go; the state row stays.  The caller holds its lock, SHARE ROW
 * EXCLUSIVE.  Waits for who reads the log.
 */
extern void sluice_changelog_clear(const char *shard);

/* The replicas table: one row a known replica.  Committed without waiting for the disk. */
extern void sluice_replicas_save(const char *shard, const char *name, SluiceWatermark durable,
								 SluiceWatermark lineage);
/* All known replicas by name, of SluiceReplica *. */
typedef struct SluiceReplica
{
	char	   *name;
	SluiceWatermark durable;
	SluiceWatermark lineage;
	TimestampTz seen_at;
} SluiceReplica;

extern List *sluice_replicas_list(const char *shard);
/* Keeps writers of the table out until the transaction ends. */
extern void sluice_replicas_lock(const char *shard);
/* False: no such row. */
extern bool sluice_replicas_forget(const char *shard, const char *name);
/* The least durable position of known replicas; false: none is known. */
extern bool sluice_replicas_floor(const char *shard, SluiceWatermark *floor);

/*
 * The tracked schema (spec.h): a version for each transaction that changed it,
 * from the oldest position that can be started from.
 */
extern void sluice_schema_store(const char *shard, SluiceWatermark at, const char *data, Size size);

/* The version as of `upto`, and since when it holds; NULL: none is stored yet. */
extern char *sluice_schema_load(const char *shard, SluiceWatermark upto, SluiceWatermark *at,
								Size *size);

#endif
