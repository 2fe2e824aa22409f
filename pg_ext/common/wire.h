/*
 * wire.h: the frame codec of the stream.
 *
 * A frame is: u32 payload length, u8 tag, payload.  All integers are little
 * endian.  A transaction is BEGIN, any number of change frames, COMMIT (or
 * ROLLBACK, which undoes what came since BEGIN).  STATUS stands between
 * transactions only.  docs/protocol.md has the same in prose.
 *
 * In: messages as structs.  Out: bytes, and back.  The same bytes are on the
 * ring, in the change log and on the connection.  An unknown tag, a short
 * payload or bytes left over are errors of the reader (SLUICE_WIRE_DAMAGED).
 *
 * Pure C: used by the extension and by the agent.  No locks, no state.
 */
#ifndef SLUICE_WIRE_H
#define SLUICE_WIRE_H

#include "buffer.h"
#include "spec.h"
#include "watermark.h"

#define SLUICE_WIRE_VERSION 1	/* format of frames, also stored with slices */

#define SLUICE_FRAME_HEADER 5
/* Larger payloads are refused when they are encoded. */
#define SLUICE_FRAME_MAX ((uint32_t) 0x7fffff00)
/* SQLite's limit of a row; the encoder flags what is above it. */
#define SLUICE_ROW_MAX 1000000000u

typedef enum SluiceTag
{
	SLUICE_TAG_BEGIN = 'B',
	SLUICE_TAG_COMMIT = 'C',
	SLUICE_TAG_ROLLBACK = 'A',
	SLUICE_TAG_INSERT = 'I',
	SLUICE_TAG_UPDATE = 'U',
	SLUICE_TAG_DELETE = 'D',
	SLUICE_TAG_TRUNCATE = 'T',
	SLUICE_TAG_CREATE_TABLE = 'c',
	SLUICE_TAG_RENAME_TABLE = 'r',
	SLUICE_TAG_TABLE_METADATA = 'm',
	SLUICE_TAG_ADD_COLUMN = 'a',
	SLUICE_TAG_UPDATE_COLUMN = 'u',
	SLUICE_TAG_DROP_COLUMN = 'd',
	SLUICE_TAG_DROP_TABLE = 'x',
	SLUICE_TAG_CREATE_INDEX = 'i',
	SLUICE_TAG_DROP_INDEX = 'j',
	SLUICE_TAG_BACKFILL_MARK = 'M',
	SLUICE_TAG_BACKFILL = 'F',
	SLUICE_TAG_BACKFILL_COMPLETED = 'E',
	SLUICE_TAG_TABLE_PROBLEM = 'P',
	SLUICE_TAG_STATUS = 'S'
} SluiceTag;

/* ---- values ---- */

typedef enum SluiceValueClass
{
	SLUICE_NULL,
	SLUICE_INTEGER,
	SLUICE_REAL,
	SLUICE_TEXT,
	SLUICE_BLOB,
	SLUICE_UNCHANGED			/* an unchanged TOAST value: keep what is there */
} SluiceValueClass;

typedef struct SluiceValue
{
	SluiceValueClass class;
	union
	{
		int64_t		integer;
		double		real;
		struct
		{
			const char *data;	/* not zero terminated */
			uint32_t	size;
		}			bytes;		/* TEXT (UTF-8) and BLOB */
	}			u;
} SluiceValue;

/*
 * On the wire a value is one type byte and what that byte calls for.  Integers
 * take the least of 1, 2, 4 and 8 bytes, texts below 256 bytes a one-byte
 * length.  The bytes are an implementation detail of wire.c.
 */
extern void sluice_wire_put_null(SluiceBuffer *out);
extern void sluice_wire_put_unchanged(SluiceBuffer *out);
extern void sluice_wire_put_integer(SluiceBuffer *out, int64_t value);
extern void sluice_wire_put_real(SluiceBuffer *out, double value);
extern void sluice_wire_put_text(SluiceBuffer *out, const char *data, size_t size);
extern void sluice_wire_put_blob(SluiceBuffer *out, const char *data, size_t size);
extern void sluice_wire_put_value(SluiceBuffer *out, const SluiceValue *value);

/* ---- messages ---- */

/* flags of SluiceBegin */
#define SLUICE_BEGIN_SKIP_ACK 0x01	/* a backfill's transaction */

typedef struct SluiceBegin
{
	SluiceWatermark watermark;
	uint64_t	xid;			/* 64-bit top xid; 0 in a backfill's */
	int64_t		commit_time;	/* microseconds since 1970 */
	uint8_t		flags;
} SluiceBegin;

typedef struct SluiceCommit
{
	SluiceWatermark watermark;	/* as in BEGIN */
	uint64_t	end_lsn;		/* end of the commit record; 0 in a backfill's */
} SluiceCommit;

typedef struct SluiceStatus
{
	uint64_t	position;		/* everything that ends before it is on the stream */
	int64_t		server_time;	/* microseconds since 1970 */
} SluiceStatus;

/* What a row frame carries of the old row. */
typedef enum SluiceOldRow
{
	SLUICE_OLD_NONE = 0,		/* the key has not changed: take it from the new row */
	SLUICE_OLD_KEY = 1,			/* nkey values, in key order */
	SLUICE_OLD_FULL = 2			/* ncolumns values */
} SluiceOldRow;

/*
 * INSERT, UPDATE, DELETE.  Values follow the head: the old ones if there are
 * any, then the new ones (ncolumns, by attnum; none in DELETE).
 */
typedef struct SluiceRowHead
{
	uint32_t	table_oid;
	uint32_t	fingerprint;
	SluiceOldRow old;
	uint16_t	nold;			/* 0, nkey or ncolumns */
	uint16_t	nnew;			/* ncolumns; 0 in DELETE */
} SluiceRowHead;

typedef struct SluiceTruncate
{
	uint32_t	ntables;
	const uint32_t *table_oids;
} SluiceTruncate;

/* RENAME_TABLE, TABLE_METADATA: the table's spec after the change. */
typedef struct SluiceTableChange
{
	uint32_t	table_oid;
	SluiceTable table;
} SluiceTableChange;

/*
 * CREATE_TABLE: the spec, and which of its columns are to be backfilled
 * (a bit a column, lowest bit of the first byte first; NULL: none).
 */
typedef struct SluiceCreateTable
{
	SluiceTable table;
	const uint8_t *backfill;	/* (ncolumns + 7) / 8 bytes, or NULL */
} SluiceCreateTable;

/* ADD_COLUMN, UPDATE_COLUMN, DROP_COLUMN: spec after it, and the column. */
typedef struct SluiceColumnChange
{
	SluiceTable table;
	int16_t		attnum;
	bool		backfill;		/* ADD and UPDATE: old rows come by a backfill */
	SluiceValue initial;		/* ADD without backfill: what old rows have */
} SluiceColumnChange;

/* CREATE_INDEX, DROP_INDEX: spec after it, and the index. */
typedef struct SluiceIndexChange
{
	SluiceTable table;
	uint32_t	index_oid;
	const char *name;			/* of the index */
} SluiceIndexChange;

/* BACKFILL_MARK, BACKFILL_COMPLETED; BACKFILL has rows behind it. */
typedef struct SluiceBackfill
{
	uint32_t	table_oid;
	uint32_t	fingerprint;
	SluiceWatermark low;		/* of the rows' snapshot; 0 in MARK */
	bool		resync;			/* rows that the snapshot lacks go */
	uint16_t	nkey;			/* key columns come first in each row */
	uint16_t	ncolumns;		/* then these */
	const int16_t *attnums;		/* nkey + ncolumns */
	uint32_t	nrows;			/* BACKFILL: rows of nkey + ncolumns values */
} SluiceBackfill;

/* TABLE_PROBLEM: a table that is not followed any more, and why; "" ends it. */
typedef struct SluiceTableProblem
{
	uint32_t	table_oid;
	const char *problem;
} SluiceTableProblem;

/* ---- writing ---- */

/*
 * sluice_wire_open() starts a frame and returns its offset in the buffer;
 * sluice_wire_close() sets the length of the frame at that offset.  It returns
 * false, and takes the frame back, if the payload is above SLUICE_FRAME_MAX.
 */
extern size_t sluice_wire_open(SluiceBuffer *out, SluiceTag tag);
extern bool sluice_wire_close(SluiceBuffer *out, size_t frame);

extern void sluice_wire_put_u8(SluiceBuffer *out, uint8_t value);
extern void sluice_wire_put_u16(SluiceBuffer *out, uint16_t value);
extern void sluice_wire_put_u32(SluiceBuffer *out, uint32_t value);
extern void sluice_wire_put_u64(SluiceBuffer *out, uint64_t value);
extern void sluice_wire_put_string(SluiceBuffer *out, const char *text); /* u32 length, bytes; NULL is told from "" */
extern void sluice_wire_put_watermark(SluiceBuffer *out, SluiceWatermark watermark);

/* Whole frames. */
extern void sluice_wire_begin(SluiceBuffer *out, const SluiceBegin *begin);
extern void sluice_wire_commit(SluiceBuffer *out, const SluiceCommit *commit);
extern void sluice_wire_rollback(SluiceBuffer *out);
extern void sluice_wire_status(SluiceBuffer *out, const SluiceStatus *status);
extern void sluice_wire_truncate(SluiceBuffer *out, const SluiceTruncate *truncate);
extern void sluice_wire_create_table(SluiceBuffer *out, const SluiceCreateTable *create);
extern void sluice_wire_drop_table(SluiceBuffer *out, uint32_t table_oid);
extern void sluice_wire_table_change(SluiceBuffer *out, SluiceTag tag, const SluiceTableChange *change);
extern void sluice_wire_column_change(SluiceBuffer *out, SluiceTag tag, const SluiceColumnChange *change);
extern void sluice_wire_index_change(SluiceBuffer *out, SluiceTag tag, const SluiceIndexChange *change);
extern void sluice_wire_backfill_note(SluiceBuffer *out, SluiceTag tag, const SluiceBackfill *note);
extern void sluice_wire_table_problem(SluiceBuffer *out, const SluiceTableProblem *problem);

/*
 * The head of an INSERT, UPDATE, DELETE or BACKFILL frame; the caller puts the
 * values behind it and closes the frame.
 */
extern size_t sluice_wire_open_row(SluiceBuffer *out, SluiceTag tag, const SluiceRowHead *head);
extern size_t sluice_wire_open_backfill(SluiceBuffer *out, const SluiceBackfill *head);

/* ---- reading ---- */

typedef enum SluiceWireResult
{
	SLUICE_WIRE_OK,
	SLUICE_WIRE_MORE,			/* the frame is not whole yet */
	SLUICE_WIRE_DAMAGED
} SluiceWireResult;

typedef struct SluiceFrame
{
	SluiceTag	tag;
	const char *payload;
	uint32_t	size;			/* of the payload */
	size_t		total;			/* header included */
} SluiceFrame;

/* Looks at data[0..size).  With MORE, frame->total is what a whole one needs (0: not known yet). */
extern SluiceWireResult sluice_wire_frame(const char *data, size_t size, SluiceFrame *frame);

/* A bounded cursor over a payload; damaged is sticky and later reads give zeros. */
typedef struct SluiceCursor
{
	const char *at;
	const char *end;
	bool		damaged;
} SluiceCursor;

extern void sluice_cursor_init(SluiceCursor *cursor, const void *data, size_t size);
extern uint8_t sluice_cursor_u8(SluiceCursor *cursor);
extern uint16_t sluice_cursor_u16(SluiceCursor *cursor);
extern uint32_t sluice_cursor_u32(SluiceCursor *cursor);
extern uint64_t sluice_cursor_u64(SluiceCursor *cursor);
extern SluiceWatermark sluice_cursor_watermark(SluiceCursor *cursor);
/* A copy in the allocator's memory, zero terminated; NULL for NULL or damage. */
extern char *sluice_cursor_string(SluiceCursor *cursor, const SluiceAllocator *allocator);
/* Points into the payload.  False at damage. */
extern bool sluice_cursor_value(SluiceCursor *cursor, SluiceValue *value);
/* True if everything was read and nothing was damaged. */
extern bool sluice_cursor_done(const SluiceCursor *cursor);

/* Each returns false if the payload is damaged or has bytes left over. */
extern bool sluice_wire_get_begin(const SluiceFrame *frame, SluiceBegin *begin);
extern bool sluice_wire_get_commit(const SluiceFrame *frame, SluiceCommit *commit);
extern bool sluice_wire_get_status(const SluiceFrame *frame, SluiceStatus *status);
extern bool sluice_wire_get_drop_table(const SluiceFrame *frame, uint32_t *table_oid);
/* These copy into the allocator's memory. */
extern bool sluice_wire_get_truncate(const SluiceFrame *frame, const SluiceAllocator *allocator, SluiceTruncate *truncate);
extern bool sluice_wire_get_create_table(const SluiceFrame *frame, const SluiceAllocator *allocator, SluiceCreateTable *create);
extern bool sluice_wire_get_table_change(const SluiceFrame *frame, const SluiceAllocator *allocator, SluiceTableChange *change);
extern bool sluice_wire_get_column_change(const SluiceFrame *frame, const SluiceAllocator *allocator, SluiceColumnChange *change);
extern bool sluice_wire_get_index_change(const SluiceFrame *frame, const SluiceAllocator *allocator, SluiceIndexChange *change);
extern bool sluice_wire_get_table_problem(const SluiceFrame *frame, const SluiceAllocator *allocator, SluiceTableProblem *problem);
/* The note; for BACKFILL the cursor then stands at the first value. */
extern bool sluice_wire_get_backfill(const SluiceFrame *frame, const SluiceAllocator *allocator, SluiceBackfill *note, SluiceCursor *rows);
/* The head; the cursor then stands at the first value, old ones first. */
extern bool sluice_wire_get_row(const SluiceFrame *frame, SluiceRowHead *head, SluiceCursor *values);

/* ---- following a byte stream that is cut anywhere ---- */

typedef enum SluiceScanEvent
{
	SLUICE_SCAN_NONE,			/* all bytes taken, no transaction boundary in them */
	SLUICE_SCAN_BEGIN,			/* stands behind a whole BEGIN frame */
	SLUICE_SCAN_COMMIT,
	SLUICE_SCAN_ROLLBACK,
	SLUICE_SCAN_DAMAGED			/* sticky */
} SluiceScanEvent;

/* Finds the transaction boundaries without looking into other payloads. */
typedef struct SluiceScanner
{
	SluiceBegin begin;			/* of the open transaction, or of the last one */
	SluiceCommit commit;		/* of the last one that ended */
	bool		in_transaction;
	bool		in_frame;		/* bytes of a frame that is not whole were taken */
	bool		damaged;
	uint8_t		tag;
	uint8_t		nhead;			/* bytes gathered in head */
	uint32_t	left;			/* bytes of the current payload still to come */
	char		head[SLUICE_FRAME_HEADER + 48];
} SluiceScanner;

extern void sluice_scanner_init(SluiceScanner *scanner);

/*
 * Takes bytes up to and including the next BEGIN, COMMIT or ROLLBACK frame, or
 * all of them.  Returns how many it took.
 */
extern size_t sluice_scanner_feed(SluiceScanner *scanner, const char *data, size_t size,
								  SluiceScanEvent *event);

#endif
