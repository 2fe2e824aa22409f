/*
 * read_frame.h: reads a frame as whatever its tag says, all values included.
 */
#ifndef SLUICE_READ_FRAME_H
#define SLUICE_READ_FRAME_H

#include "wire.h"

static inline bool
read_frame(const SluiceFrame *frame, const SluiceAllocator *a)
{
	SluiceBegin begin;
	SluiceCommit commit;
	SluiceStatus status;
	SluiceTruncate truncate;
	SluiceCreateTable create;
	SluiceTableChange table;
	SluiceColumnChange column;
	SluiceIndexChange index;
	SluiceTableProblem problem;
	SluiceBackfill backfill;
	SluiceRowHead head;
	SluiceCursor cursor;
	SluiceValue value;
	uint64_t	nvalues = 0;
	uint32_t	oid;

	sluice_cursor_init(&cursor, NULL, 0);
	switch (frame->tag)
	{
		case SLUICE_TAG_BEGIN:
			return sluice_wire_get_begin(frame, &begin);
		case SLUICE_TAG_COMMIT:
			return sluice_wire_get_commit(frame, &commit);
		case SLUICE_TAG_ROLLBACK:
			return frame->size == 0;
		case SLUICE_TAG_STATUS:
			return sluice_wire_get_status(frame, &status);
		case SLUICE_TAG_TRUNCATE:
			return sluice_wire_get_truncate(frame, a, &truncate);
		case SLUICE_TAG_CREATE_TABLE:
			return sluice_wire_get_create_table(frame, a, &create);
		case SLUICE_TAG_DROP_TABLE:
			return sluice_wire_get_drop_table(frame, &oid);
		case SLUICE_TAG_RENAME_TABLE:
		case SLUICE_TAG_TABLE_METADATA:
			return sluice_wire_get_table_change(frame, a, &table);
		case SLUICE_TAG_ADD_COLUMN:
		case SLUICE_TAG_UPDATE_COLUMN:
		case SLUICE_TAG_DROP_COLUMN:
			return sluice_wire_get_column_change(frame, a, &column);
		case SLUICE_TAG_CREATE_INDEX:
		case SLUICE_TAG_DROP_INDEX:
			return sluice_wire_get_index_change(frame, a, &index);
		case SLUICE_TAG_TABLE_PROBLEM:
			return sluice_wire_get_table_problem(frame, a, &problem);
		case SLUICE_TAG_BACKFILL_MARK:
		case SLUICE_TAG_BACKFILL_COMPLETED:
			return sluice_wire_get_backfill(frame, a, &backfill, &cursor);
		case SLUICE_TAG_BACKFILL:
			if (!sluice_wire_get_backfill(frame, a, &backfill, &cursor))
				return false;
			nvalues = (uint64_t) backfill.nrows * ((uint32_t) backfill.nkey + backfill.ncolumns);
			break;
		case SLUICE_TAG_INSERT:
		case SLUICE_TAG_UPDATE:
		case SLUICE_TAG_DELETE:
			if (!sluice_wire_get_row(frame, &head, &cursor))
				return false;
			nvalues = (uint64_t) head.nold + head.nnew;
			break;
	}
	for (; nvalues > 0; nvalues--)
	{
		if (!sluice_cursor_value(&cursor, &value))
			return false;
	}
	return sluice_cursor_done(&cursor);
}

#endif
