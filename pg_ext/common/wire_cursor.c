/*
 * wire_cursor.c: frames, parts and values, the reading side.
 *
 * In: bytes of any origin.  Out: numbers, texts, values; damage is noticed
 * before a byte behind the end is read.
 * Runs in: storer, sender, agent and tests.  Locks: none.
 */
#include "wire_bytes.h"

SluiceWireResult
sluice_wire_frame(const char *data, size_t size, SluiceFrame *frame)
{
	uint32_t	payload;

	frame->total = 0;
	if (size < SLUICE_FRAME_HEADER)
		return SLUICE_WIRE_MORE;
	payload = load_u32(data);
	if (payload > SLUICE_FRAME_MAX || !tag_known((uint8_t) data[4]))
		return SLUICE_WIRE_DAMAGED;
	frame->total = (size_t) payload + SLUICE_FRAME_HEADER;
	if (size < frame->total)
		return SLUICE_WIRE_MORE;
	frame->tag = (SluiceTag) data[4];
	frame->payload = data + SLUICE_FRAME_HEADER;
	frame->size = payload;
	return SLUICE_WIRE_OK;
}

/* ---- the cursor ---- */

void
sluice_cursor_init(SluiceCursor *cursor, const void *data, size_t size)
{
	cursor->at = data;
	cursor->end = size == 0 ? cursor->at : cursor->at + size;
	cursor->damaged = false;
}

/* The next `size` bytes, or NULL and damage. */
static inline const char *
take(SluiceCursor *cursor, size_t size)
{
	const char *at = cursor->at;

	if (__builtin_expect(cursor_left(cursor) < size, 0))
	{
		cursor->damaged = true;
		cursor->at = cursor->end;
		return NULL;
	}
	cursor->at += size;
	return at;
}

uint8_t
sluice_cursor_u8(SluiceCursor *cursor)
{
	const char *at = take(cursor, 1);

	return at == NULL ? 0 : (uint8_t) *at;
}

uint16_t
sluice_cursor_u16(SluiceCursor *cursor)
{
	const char *at = take(cursor, 2);

	return at == NULL ? 0 : load_u16(at);
}

uint32_t
sluice_cursor_u32(SluiceCursor *cursor)
{
	const char *at = take(cursor, 4);

	return at == NULL ? 0 : load_u32(at);
}

uint64_t
sluice_cursor_u64(SluiceCursor *cursor)
{
	const char *at = take(cursor, 8);

	return at == NULL ? 0 : load_u64(at);
}

SluiceWatermark
sluice_cursor_watermark(SluiceCursor *cursor)
{
	SluiceWatermark watermark = {0, 0};
	const char *at = take(cursor, 16);

	if (at != NULL)
	{
		watermark.major = load_u64(at);
		watermark.minor = load_u64(at + 8);
	}
	return watermark;
}

char *
sluice_cursor_string(SluiceCursor *cursor, const SluiceAllocator *allocator)
{
	uint32_t	size = sluice_cursor_u32(cursor);
	const char *at;
	char	   *text;

	if (cursor->damaged || size == STRING_NULL)
		return NULL;
	at = take(cursor, size);
	if (at == NULL)
		return NULL;
	if (memchr(at, '\0', size) != NULL)
	{
		cursor_damage(cursor);
		return NULL;
	}
	text = allocator->grow(allocator->context, NULL, (size_t) size + 1);
	memcpy(text, at, size);
	text[size] = '\0';
	return text;
}

/* Bytes of a text or blob whose length has been read. */
static inline bool
value_bytes(SluiceCursor *cursor, SluiceValue *value, SluiceValueClass class, uint32_t size)
{
	value->class = class;
	value->u.bytes.data = take(cursor, size);
	value->u.bytes.size = size;
	return !cursor->damaged;
}

static inline bool
value_integer(SluiceCursor *cursor, SluiceValue *value, int64_t integer)
{
	value->class = SLUICE_INTEGER;
	value->u.integer = integer;
	return !cursor->damaged;
}

bool
sluice_cursor_value(SluiceCursor *cursor, SluiceValue *value)
{
	uint64_t	bits;
	const char *at = take(cursor, 1);

	value->class = SLUICE_NULL;
	if (at == NULL)
		return false;
	switch ((uint8_t) *at)
	{
		case VALUE_NULL:
			return true;
		case VALUE_UNCHANGED:
			value->class = SLUICE_UNCHANGED;
			return true;
		case VALUE_INT8:
			return value_integer(cursor, value, (int8_t) sluice_cursor_u8(cursor));
		case VALUE_INT16:
			return value_integer(cursor, value, (int16_t) sluice_cursor_u16(cursor));
		case VALUE_INT32:
			return value_integer(cursor, value, (int32_t) sluice_cursor_u32(cursor));
		case VALUE_INT64:
			return value_integer(cursor, value, (int64_t) sluice_cursor_u64(cursor));
		case VALUE_REAL:
			bits = sluice_cursor_u64(cursor);
			value->class = SLUICE_REAL;
			memcpy(&value->u.real, &bits, sizeof(bits));
			return !cursor->damaged;
		case VALUE_TEXT_SHORT:
			return value_bytes(cursor, value, SLUICE_TEXT, sluice_cursor_u8(cursor));
		case VALUE_TEXT:
			return value_bytes(cursor, value, SLUICE_TEXT, sluice_cursor_u32(cursor));
		case VALUE_BLOB_SHORT:
			return value_bytes(cursor, value, SLUICE_BLOB, sluice_cursor_u8(cursor));
		case VALUE_BLOB:
			return value_bytes(cursor, value, SLUICE_BLOB, sluice_cursor_u32(cursor));
		default:
			cursor_damage(cursor);
			return false;
	}
}

bool
sluice_cursor_done(const SluiceCursor *cursor)
{
	return !cursor->damaged && cursor->at == cursor->end;
}
