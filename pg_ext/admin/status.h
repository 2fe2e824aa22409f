/*
 * status.h: rows of the status views, and what they are made of.
 */
#ifndef SLUICE_ADMIN_STATUS_H
#define SLUICE_ADMIN_STATUS_H

#include "nodes/execnodes.h"

#include "shmem.h"

/* A row is put together column by column, in the order of the SQL function. */
#define SLUICE_ROW_COLUMNS 32

typedef struct SluiceRow
{
	int			count;
	Datum		values[SLUICE_ROW_COLUMNS];
	bool		nulls[SLUICE_ROW_COLUMNS];
} SluiceRow;

extern void sluice_row_begin(SluiceRow *row);
extern void sluice_row_null(SluiceRow *row);
extern void sluice_row_text(SluiceRow *row, const char *value);	/* NULL, "": null */
extern void sluice_row_names(SluiceRow *row, List *names);
extern void sluice_row_bool(SluiceRow *row, bool value);
extern void sluice_row_int4(SluiceRow *row, int32 value);
extern void sluice_row_int8(SluiceRow *row, uint64 value);
extern void sluice_row_pid(SluiceRow *row, pid_t pid);	/* 0: null */
extern void sluice_row_lsn(SluiceRow *row, uint64 lsn);	/* 0: null */
extern void sluice_row_time(SluiceRow *row, TimestampTz at);	/* 0: null */
extern void sluice_row_watermark(SluiceRow *row, SluiceWatermark watermark);	/* 0: null */
/* Neither is ever negative. */
extern void sluice_row_interval(SluiceRow *row, int64 us);
extern void sluice_row_distance(SluiceRow *row, uint64 from, uint64 to);
extern void sluice_row_end(SluiceRow *row, ReturnSetInfo *result);

/* A copy of a stream's entry. */
typedef struct SluiceStreamView
{
	bool		known;			/* false: the rest is zero */
	NameData	slot;
	pid_t		decoder_pid;
	pid_t		storer_pid;
	SluiceStreamState state;
	TimestampTz state_since;
	char		message[SLUICE_MESSAGE_MAX];
	char		waits_for[SLUICE_MESSAGE_MAX];
	int			sqlerrcode;
	bool		low_valid;
	SluiceWatermark low;
	SluiceWatermark head;
	SluiceWatermark stored;
	SluiceWatermark first;
	TimestampTz last_commit_time;
	TimestampTz stored_time;
	TimestampTz current_at;
	uint64		resets;
	TimestampTz reset_at;
	char		reset_last[SLUICE_MESSAGE_MAX];
	uint64		decoded;
	uint64		confirmed;
	uint64		transactions;
	uint64		changes;
	uint64		bytes;
	uint64		stored_transactions;
	uint64		stored_bytes;
} SluiceStreamView;

extern void sluice_view_stream(const char *shard, SluiceStreamView *view);

#endif
