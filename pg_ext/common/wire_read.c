/*
 * wire_read.c: messages, the reading side.
 *
 * In: frames of any origin.  Out: messages as structs.  Nothing is believed: a
 * count is checked against the bytes that are there before memory is taken.
 * Runs in: storer, sender, agent and tests.  Locks: none.
 */
#include "wire_bytes.h"

/* A byte that says yes or no; anything else is damage. */
static bool
cursor_bool(SluiceCursor *cursor)
{
	uint8_t		value = sluice_cursor_u8(cursor);

	if (value > 1)
		cursor_damage(cursor);
	return value == 1;
}

static inline SluiceCursor
open_payload(const SluiceFrame *frame)
{
	SluiceCursor cursor;

	sluice_cursor_init(&cursor, frame->payload, frame->size);
	return cursor;
}

bool
sluice_wire_get_begin(const SluiceFrame *frame, SluiceBegin *begin)
{
	SluiceCursor cursor = open_payload(frame);

	begin->watermark = sluice_cursor_watermark(&cursor);
	begin->xid = sluice_cursor_u64(&cursor);
	begin->commit_time = (int64_t) sluice_cursor_u64(&cursor);
	begin->flags = sluice_cursor_u8(&cursor);
	return sluice_cursor_done(&cursor);
}

bool
sluice_wire_get_commit(const SluiceFrame *frame, SluiceCommit *commit)
{
	SluiceCursor cursor = open_payload(frame);

	commit->watermark = sluice_cursor_watermark(&cursor);
	commit->end_lsn = sluice_cursor_u64(&cursor);
	return sluice_cursor_done(&cursor);
}

bool
sluice_wire_get_status(const SluiceFrame *frame, SluiceStatus *status)
{
	SluiceCursor cursor = open_payload(frame);

	status->position = sluice_cursor_u64(&cursor);
	status->server_time = (int64_t) sluice_cursor_u64(&cursor);
	return sluice_cursor_done(&cursor);
}

bool
sluice_wire_get_drop_table(const SluiceFrame *frame, uint32_t *table_oid)
{
	SluiceCursor cursor = open_payload(frame);

	*table_oid = sluice_cursor_u32(&cursor);
	return sluice_cursor_done(&cursor);
}

bool
sluice_wire_get_truncate(const SluiceFrame *frame, const SluiceAllocator *allocator,
						 SluiceTruncate *truncate)
{
	SluiceCursor cursor = open_payload(frame);
	uint32_t	n = sluice_cursor_u32(&cursor);
	uint32_t   *oids = NULL;

	if (cursor.damaged || cursor_left(&cursor) != (uint64_t) n * sizeof(uint32_t))
		return false;
	if (n > 0)
		oids = allocator->grow(allocator->context, NULL, n * sizeof(uint32_t));
	for (uint32_t i = 0; i < n; i++)
		oids[i] = sluice_cursor_u32(&cursor);
	truncate->ntables = n;
	truncate->table_oids = oids;
	return sluice_cursor_done(&cursor);
}

/* A table spec at the cursor. */
static bool
get_table(SluiceCursor *cursor, const SluiceAllocator *allocator, SluiceTable *table)
{
	size_t		used;

	if (cursor->damaged ||
		!sluice_table_decode(cursor->at, cursor_left(cursor), &used, allocator, table))
	{
		cursor_damage(cursor);
		return false;
	}
	cursor->at += used;
	return true;
}

bool
sluice_wire_get_create_table(const SluiceFrame *frame, const SluiceAllocator *allocator,
							 SluiceCreateTable *create)
{
	SluiceCursor cursor = open_payload(frame);
	size_t		size;
	uint8_t    *bits;

	create->backfill = NULL;
	if (!get_table(&cursor, allocator, &create->table))
		return false;
	if (cursor_bool(&cursor))
	{
		size = (create->table.ncolumns + 7u) / 8u;
		if (cursor_left(&cursor) != size)
			return false;
		bits = allocator->grow(allocator->context, NULL, size + 1);
		memcpy(bits, cursor.at, size);
		cursor.at += size;
		create->backfill = bits;
	}
	return sluice_cursor_done(&cursor);
}

bool
sluice_wire_get_table_change(const SluiceFrame *frame, const SluiceAllocator *allocator,
							 SluiceTableChange *change)
{
	SluiceCursor cursor = open_payload(frame);

	change->table_oid = sluice_cursor_u32(&cursor);
	return get_table(&cursor, allocator, &change->table) && sluice_cursor_done(&cursor);
}

bool
sluice_wire_get_column_change(const SluiceFrame *frame, const SluiceAllocator *allocator,
							  SluiceColumnChange *change)
{
	SluiceCursor cursor = open_payload(frame);
	SluiceValue *initial = &change->initial;
	char	   *copy;

	if (!get_table(&cursor, allocator, &change->table))
		return false;
	change->attnum = (int16_t) sluice_cursor_u16(&cursor);
	change->backfill = cursor_bool(&cursor);
	if (!sluice_cursor_value(&cursor, initial) || !sluice_cursor_done(&cursor))
		return false;
	if (initial->class == SLUICE_TEXT || initial->class == SLUICE_BLOB)
	{
		copy = allocator->grow(allocator->context, NULL, (size_t) initial->u.bytes.size + 1);
		memcpy(copy, initial->u.bytes.data, initial->u.bytes.size);
		copy[initial->u.bytes.size] = '\0';
		initial->u.bytes.data = copy;
	}
	return true;
}

bool
sluice_wire_get_index_change(const SluiceFrame *frame, const SluiceAllocator *allocator,
							 SluiceIndexChange *change)
{
	SluiceCursor cursor = open_payload(frame);

	if (!get_table(&cursor, allocator, &change->table))
		return false;
	change->index_oid = sluice_cursor_u32(&cursor);
	change->name = sluice_cursor_string(&cursor, allocator);
	return change->name != NULL && sluice_cursor_done(&cursor);
}

bool
sluice_wire_get_table_problem(const SluiceFrame *frame, const SluiceAllocator *allocator,
							  SluiceTableProblem *problem)
{
	SluiceCursor cursor = open_payload(frame);

	problem->table_oid = sluice_cursor_u32(&cursor);
	problem->problem = sluice_cursor_string(&cursor, allocator);
	return problem->problem != NULL && sluice_cursor_done(&cursor);
}

bool
sluice_wire_get_backfill(const SluiceFrame *frame, const SluiceAllocator *allocator,
						 SluiceBackfill *note, SluiceCursor *rows)
{
	SluiceCursor cursor = open_payload(frame);
	uint32_t	width;
	int16_t    *attnums;

	note->table_oid = sluice_cursor_u32(&cursor);
	note->fingerprint = sluice_cursor_u32(&cursor);
	note->low = sluice_cursor_watermark(&cursor);
	note->resync = cursor_bool(&cursor);
	note->nkey = sluice_cursor_u16(&cursor);
	note->ncolumns = sluice_cursor_u16(&cursor);
	width = (uint32_t) note->nkey + note->ncolumns;
	if (cursor.damaged || cursor_left(&cursor) < width * sizeof(int16_t))
		return false;
	attnums = allocator->grow(allocator->context, NULL, (width + 1) * sizeof(int16_t));
	for (uint32_t i = 0; i < width; i++)
		attnums[i] = (int16_t) sluice_cursor_u16(&cursor);
	note->attnums = attnums;
	note->nrows = sluice_cursor_u32(&cursor);

	/* a value takes a byte at least, so the count cannot send a loop astray */
	if (cursor.damaged || (width == 0 && note->nrows > 0) ||
		(uint64_t) note->nrows * width > cursor_left(&cursor))
		return false;
	if (frame->tag != SLUICE_TAG_BACKFILL)
		return note->nrows == 0 && sluice_cursor_done(&cursor);
	*rows = cursor;
	return true;
}

bool
sluice_wire_get_row(const SluiceFrame *frame, SluiceRowHead *head, SluiceCursor *values)
{
	const char *at = frame->payload;
	uint8_t		old;

	if (frame->size < ROW_HEAD_SIZE)
		return false;
	head->table_oid = load_u32(at);
	head->fingerprint = load_u32(at + 4);
	old = (uint8_t) at[8];
	head->nold = load_u16(at + 9);
	head->nnew = load_u16(at + 11);
	if (old > SLUICE_OLD_FULL || (old == SLUICE_OLD_NONE && head->nold != 0) ||
		(old == SLUICE_OLD_KEY && head->nold == 0) ||
		(uint32_t) head->nold + head->nnew > frame->size - ROW_HEAD_SIZE)
		return false;
	if (frame->tag == SLUICE_TAG_INSERT && old != SLUICE_OLD_NONE)
		return false;
	if (frame->tag == SLUICE_TAG_DELETE && (old == SLUICE_OLD_NONE || head->nnew != 0))
		return false;
	if (frame->tag == SLUICE_TAG_UPDATE && old == SLUICE_OLD_FULL && head->nold != head->nnew)
		return false;
	head->old = (SluiceOldRow) old;
	sluice_cursor_init(values, at + ROW_HEAD_SIZE, frame->size - ROW_HEAD_SIZE);
	return true;
}
