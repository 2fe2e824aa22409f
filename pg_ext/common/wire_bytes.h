/*
 * wire_bytes.h: what the parts of the codec share: little-endian loads and
 * stores at any address, the type bytes of values, sizes of fixed payloads.
 *
 * Private to wire*.c and spec.c.  Pure C.  No locks.
 */
#ifndef SLUICE_WIRE_BYTES_H
#define SLUICE_WIRE_BYTES_H

#include <string.h>

#include "wire.h"

/* the type byte of a value; part of the format */
enum
{
	VALUE_NULL = 0,
	VALUE_UNCHANGED = 1,
	VALUE_INT8 = 2,
	VALUE_INT16 = 3,
	VALUE_INT32 = 4,
	VALUE_INT64 = 5,
	VALUE_REAL = 6,
	VALUE_TEXT_SHORT = 7,		/* u8 length */
	VALUE_TEXT = 8,				/* u32 length */
	VALUE_BLOB_SHORT = 9,
	VALUE_BLOB = 10
};

#define STRING_NULL UINT32_MAX	/* the length of a NULL string */

#define BEGIN_SIZE 33			/* watermark, u64 xid, i64 time, u8 flags */
#define COMMIT_SIZE 24			/* watermark, u64 end */
#define STATUS_SIZE 16			/* u64 position, i64 time */
#define ROW_HEAD_SIZE 13		/* u32 oid, u32 fingerprint, u8 old, u16 nold, u16 nnew */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LE16(x) __builtin_bswap16(x)
#define LE32(x) __builtin_bswap32(x)
#define LE64(x) __builtin_bswap64(x)
#else
#define LE16(x) (x)
#define LE32(x) (x)
#define LE64(x) (x)
#endif

static inline void
store_u16(char *at, uint16_t value)
{
	value = LE16(value);
	memcpy(at, &value, sizeof(value));
}

static inline void
store_u32(char *at, uint32_t value)
{
	value = LE32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void
store_u64(char *at, uint64_t value)
{
	value = LE64(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint16_t
load_u16(const char *at)
{
	uint16_t	value;

	memcpy(&value, at, sizeof(value));
	return LE16(value);
}

static inline uint32_t
load_u32(const char *at)
{
	uint32_t	value;

	memcpy(&value, at, sizeof(value));
	return LE32(value);
}

static inline uint64_t
load_u64(const char *at)
{
	uint64_t	value;

	memcpy(&value, at, sizeof(value));
	return LE64(value);
}

/* Room for `more` bytes at the buffer's end; the caller raises length. */
static inline char *
room(SluiceBuffer *out, size_t more)
{
	if (__builtin_expect(out->capacity - out->length < more, 0))
		return sluice_buffer_reserve(out, more);
	return out->data + out->length;
}

static inline size_t
cursor_left(const SluiceCursor *cursor)
{
	return (size_t) (cursor->end - cursor->at);
}

static inline void
cursor_damage(SluiceCursor *cursor)
{
	cursor->damaged = true;
	cursor->at = cursor->end;
}

static inline bool
tag_known(uint8_t tag)
{
	switch (tag)
	{
		case SLUICE_TAG_BEGIN:
		case SLUICE_TAG_COMMIT:
		case SLUICE_TAG_ROLLBACK:
		case SLUICE_TAG_INSERT:
		case SLUICE_TAG_UPDATE:
		case SLUICE_TAG_DELETE:
		case SLUICE_TAG_TRUNCATE:
		case SLUICE_TAG_CREATE_TABLE:
		case SLUICE_TAG_RENAME_TABLE:
		case SLUICE_TAG_TABLE_METADATA:
		case SLUICE_TAG_ADD_COLUMN:
		case SLUICE_TAG_UPDATE_COLUMN:
		case SLUICE_TAG_DROP_COLUMN:
		case SLUICE_TAG_DROP_TABLE:
		case SLUICE_TAG_CREATE_INDEX:
		case SLUICE_TAG_DROP_INDEX:
		case SLUICE_TAG_BACKFILL_MARK:
		case SLUICE_TAG_BACKFILL:
		case SLUICE_TAG_BACKFILL_COMPLETED:
		case SLUICE_TAG_TABLE_PROBLEM:
		case SLUICE_TAG_STATUS:
			return true;
		default:
			return false;
	}
}

#endif
