/*
 * wire.c: frames and values, the writing side.
 *
 * In: messages as structs, values.  Out: bytes at the end of a buffer.
 * Runs in: decoder, copier, backfill, storer and tests.  Locks: none.
 *
 * Lengths above what a u32 holds are written cut off on purpose: such a frame
 * is above SLUICE_FRAME_MAX and sluice_wire_close() takes it back.
 */
#include "wire_bytes.h"

/* ---- values ---- */

static inline void
put_byte(SluiceBuffer *out, uint8_t value)
{
	*room(out, 1) = (char) value;
	out->length += 1;
}

void
sluice_wire_put_null(SluiceBuffer *out)
{
	put_byte(out, VALUE_NULL);
}

void
sluice_wire_put_unchanged(SluiceBuffer *out)
{
	put_byte(out, VALUE_UNCHANGED);
}

void
sluice_wire_put_integer(SluiceBuffer *out, int64_t value)
{
	char	   *at = room(out, 9);

	if (value >= INT8_MIN && value <= INT8_MAX)
	{
		at[0] = VALUE_INT8;
		at[1] = (char) value;
		out->length += 2;
	}
	else if (value >= INT16_MIN && value <= INT16_MAX)
	{
		at[0] = VALUE_INT16;
		store_u16(at + 1, (uint16_t) value);
		out->length += 3;
	}
	else if (value >= INT32_MIN && value <= INT32_MAX)
	{
		at[0] = VALUE_INT32;
		store_u32(at + 1, (uint32_t) value);
		out->length += 5;
	}
	else
	{
		at[0] = VALUE_INT64;
		store_u64(at + 1, (uint64_t) value);
		out->length += 9;
	}
}

void
sluice_wire_put_real(SluiceBuffer *out, double value)
{
	char	   *at = room(out, 9);
	uint64_t	bits;

	memcpy(&bits, &value, sizeof(bits));
	at[0] = VALUE_REAL;
	store_u64(at + 1, bits);
	out->length += 9;
}

static inline void
put_bytes(SluiceBuffer *out, uint8_t short_type, uint8_t type, const char *data, size_t size)
{
	char	   *at;

	if (size <= UINT8_MAX)
	{
		at = room(out, 2 + size);
		at[0] = (char) short_type;
		at[1] = (char) size;
		at += 2;
		out->length += 2;
	}
	else
	{
		at = room(out, 5 + size);
		at[0] = (char) type;
		store_u32(at + 1, (uint32_t) size);
		at += 5;
		out->length += 5;
	}
	if (size > 0)
		memcpy(at, data, size);
	out->length += size;
}

void
sluice_wire_put_text(SluiceBuffer *out, const char *data, size_t size)
{
	put_bytes(out, VALUE_TEXT_SHORT, VALUE_TEXT, data, size);
}

void
sluice_wire_put_blob(SluiceBuffer *out, const char *data, size_t size)
{
	put_bytes(out, VALUE_BLOB_SHORT, VALUE_BLOB, data, size);
}

void
sluice_wire_put_value(SluiceBuffer *out, const SluiceValue *value)
{
	switch (value->class)
	{
		case SLUICE_NULL:
			sluice_wire_put_null(out);
			break;
		case SLUICE_INTEGER:
			sluice_wire_put_integer(out, value->u.integer);
			break;
		case SLUICE_REAL:
			sluice_wire_put_real(out, value->u.real);
			break;
		case SLUICE_TEXT:
			sluice_wire_put_text(out, value->u.bytes.data, value->u.bytes.size);
			break;
		case SLUICE_BLOB:
			sluice_wire_put_blob(out, value->u.bytes.data, value->u.bytes.size);
			break;
		case SLUICE_UNCHANGED:
			sluice_wire_put_unchanged(out);
			break;
	}
}

/* ---- parts ---- */

void
sluice_wire_put_u8(SluiceBuffer *out, uint8_t value)
{
	put_byte(out, value);
}

void
sluice_wire_put_u16(SluiceBuffer *out, uint16_t value)
{
	store_u16(room(out, sizeof(value)), value);
	out->length += sizeof(value);
}

void
sluice_wire_put_u32(SluiceBuffer *out, uint32_t value)
{
	store_u32(room(out, sizeof(value)), value);
	out->length += sizeof(value);
}

void
sluice_wire_put_u64(SluiceBuffer *out, uint64_t value)
{
	store_u64(room(out, sizeof(value)), value);
	out->length += sizeof(value);
}

void
sluice_wire_put_string(SluiceBuffer *out, const char *text)
{
	size_t		size;

	if (text == NULL)
	{
		sluice_wire_put_u32(out, STRING_NULL);
		return;
	}
	size = strlen(text);
	sluice_wire_put_u32(out, (uint32_t) size);
	sluice_buffer_append(out, text, size);
}

void
sluice_wire_put_watermark(SluiceBuffer *out, SluiceWatermark watermark)
{
	char	   *at = room(out, 16);

	store_u64(at, watermark.major);
	store_u64(at + 8, watermark.minor);
	out->length += 16;
}

/* ---- frames ---- */

size_t
sluice_wire_open(SluiceBuffer *out, SluiceTag tag)
{
	size_t		frame = out->length;
	char	   *at = room(out, SLUICE_FRAME_HEADER);

	store_u32(at, 0);
	at[4] = (char) tag;
	out->length += SLUICE_FRAME_HEADER;
	return frame;
}

bool
sluice_wire_close(SluiceBuffer *out, size_t frame)
{
	size_t		size = out->length - frame - SLUICE_FRAME_HEADER;

	if (size > SLUICE_FRAME_MAX)
	{
		out->length = frame;
		return false;
	}
	store_u32(out->data + frame, (uint32_t) size);
	return true;
}

void
sluice_wire_begin(SluiceBuffer *out, const SluiceBegin *begin)
{
	size_t		frame = sluice_wire_open(out, SLUICE_TAG_BEGIN);

	sluice_wire_put_watermark(out, begin->watermark);
	sluice_wire_put_u64(out, begin->xid);
	sluice_wire_put_u64(out, (uint64_t) begin->commit_time);
	sluice_wire_put_u8(out, begin->flags);
	sluice_wire_close(out, frame);
}

void
sluice_wire_commit(SluiceBuffer *out, const SluiceCommit *commit)
{
	size_t		frame = sluice_wire_open(out, SLUICE_TAG_COMMIT);

	sluice_wire_put_watermark(out, commit->watermark);
	sluice_wire_put_u64(out, commit->end_lsn);
	sluice_wire_close(out, frame);
}

void
sluice_wire_rollback(SluiceBuffer *out)
{
	sluice_wire_close(out, sluice_wire_open(out, SLUICE_TAG_ROLLBACK));
}

void
sluice_wire_status(SluiceBuffer *out, const SluiceStatus *status)
{
	size_t		frame = sluice_wire_open(out, SLUICE_TAG_STATUS);

	sluice_wire_put_u64(out, status->position);
	sluice_wire_put_u64(out, (uint64_t) status->server_time);
	sluice_wire_close(out, frame);
}

void
sluice_wire_truncate(SluiceBuffer *out, const SluiceTruncate *truncate)
{
	size_t		frame = sluice_wire_open(out, SLUICE_TAG_TRUNCATE);

	sluice_wire_put_u32(out, truncate->ntables);
	for (uint32_t i = 0; i < truncate->ntables; i++)
		sluice_wire_put_u32(out, truncate->table_oids[i]);
	sluice_wire_close(out, frame);
}

void
sluice_wire_create_table(SluiceBuffer *out, const SluiceCreateTable *create)
{
	size_t		frame = sluice_wire_open(out, SLUICE_TAG_CREATE_TABLE);

	sluice_table_encode(out, &create->table);
	sluice_wire_put_u8(out, create->backfill != NULL);
	if (create->backfill != NULL)
		sluice_buffer_append(out, create->backfill, (create->table.ncolumns + 7u) / 8u);
	sluice_wire_close(out, frame);
}

void
sluice_wire_drop_table(SluiceBuffer *out, uint32_t table_oid)
{
	size_t		frame = sluice_wire_open(out, SLUICE_TAG_DROP_TABLE);

	sluice_wire_put_u32(out, table_oid);
	sluice_wire_close(out, frame);
}

void
sluice_wire_table_change(SluiceBuffer *out, SluiceTag tag, const SluiceTableChange *change)
{
	size_t		frame = sluice_wire_open(out, tag);

	sluice_wire_put_u32(out, change->table_oid);
	sluice_table_encode(out, &change->table);
	sluice_wire_close(out, frame);
}

void
sluice_wire_column_change(SluiceBuffer *out, SluiceTag tag, const SluiceColumnChange *change)
{
	size_t		frame = sluice_wire_open(out, tag);

	sluice_table_encode(out, &change->table);
	sluice_wire_put_u16(out, (uint16_t) change->attnum);
	sluice_wire_put_u8(out, change->backfill);
	sluice_wire_put_value(out, &change->initial);
	sluice_wire_close(out, frame);
}

void
sluice_wire_index_change(SluiceBuffer *out, SluiceTag tag, const SluiceIndexChange *change)
{
	size_t		frame = sluice_wire_open(out, tag);

	sluice_table_encode(out, &change->table);
	sluice_wire_put_u32(out, change->index_oid);
	sluice_wire_put_string(out, change->name);
	sluice_wire_close(out, frame);
}

void
sluice_wire_table_problem(SluiceBuffer *out, const SluiceTableProblem *problem)
{
	size_t		frame = sluice_wire_open(out, SLUICE_TAG_TABLE_PROBLEM);

	sluice_wire_put_u32(out, problem->table_oid);
	sluice_wire_put_string(out, problem->problem);
	sluice_wire_close(out, frame);
}

static size_t
open_backfill(SluiceBuffer *out, SluiceTag tag, const SluiceBackfill *head, uint32_t nrows)
{
	size_t		frame = sluice_wire_open(out, tag);

	sluice_wire_put_u32(out, head->table_oid);
	sluice_wire_put_u32(out, head->fingerprint);
	sluice_wire_put_watermark(out, head->low);
	sluice_wire_put_u8(out, head->resync);
	sluice_wire_put_u16(out, head->nkey);
	sluice_wire_put_u16(out, head->ncolumns);
	for (uint32_t i = 0; i < (uint32_t) head->nkey + head->ncolumns; i++)
		sluice_wire_put_u16(out, (uint16_t) head->attnums[i]);
	sluice_wire_put_u32(out, nrows);
	return frame;
}

void
sluice_wire_backfill_note(SluiceBuffer *out, SluiceTag tag, const SluiceBackfill *note)
{
	sluice_wire_close(out, open_backfill(out, tag, note, 0));
}

size_t
sluice_wire_open_backfill(SluiceBuffer *out, const SluiceBackfill *head)
{
	return open_backfill(out, SLUICE_TAG_BACKFILL, head, head->nrows);
}

size_t
sluice_wire_open_row(SluiceBuffer *out, SluiceTag tag, const SluiceRowHead *head)
{
	size_t		frame = out->length;
	char	   *at = room(out, SLUICE_FRAME_HEADER + ROW_HEAD_SIZE);

	store_u32(at, 0);
	at[4] = (char) tag;
	store_u32(at + 5, head->table_oid);
	store_u32(at + 9, head->fingerprint);
	at[13] = (char) head->old;
	store_u16(at + 14, head->nold);
	store_u16(at + 16, head->nnew);
	out->length += SLUICE_FRAME_HEADER + ROW_HEAD_SIZE;
	return frame;
}
