/*
 * json_row.c: rows as JSON: insert, update, delete, truncate, backfill.
 *
 * In: frames.  Out: JSON.  Rows that do not fit what is known of their table
 * (they are older than the stored schema) have "$1", "$2", … as column names.
 * Runs in: whoever asks for the view.  Locks: none.
 */
#include "postgres.h"

#include "allocator.h"
#include "json.h"

static const char *
identity_name(char identity)
{
	switch (identity)
	{
		case 'f':
			return "full";
		case 'i':
			return "index";
		case 'n':
			return "nothing";
		default:
			return "default";
	}
}

static const char *
key_name(const SluiceTable *table, int i)
{
	return table->columns[table->key[i]].name;
}

void
sluice_json_relation(SluiceJson *json, const char *name, const SluiceTable *table, uint32 oid)
{
	if (name != NULL)
		sluice_json_name(json, name);
	sluice_json_raw(json, "{");
	sluice_json_pair(json, "schema", table ? table->schema : NULL);
	sluice_json_pair(json, "name", table ? table->name : NULL);
	if (table != NULL)
	{
		sluice_json_name(json, "rowKey");
		sluice_json_raw(json, "{");
		sluice_json_name(json, "columns");
		sluice_json_raw(json, "[");
		for (int i = 0; i < table->nkey; i++)
		{
			if (i > 0)
				sluice_json_raw(json, ",");
			sluice_json_cstring(json, key_name(table, i));
		}
		sluice_json_raw(json, "]");
		sluice_json_pair(json, "type", identity_name(table->identity));
		sluice_json_raw(json, "}");
	}
	sluice_json_integer(json, "relationOid", oid);
	sluice_json_raw(json, "}");
}

/* An object of n values; unchanged ones are left out. */
static void
put_values(SluiceJson *json, const SluiceTable *table, bool key, int n, SluiceCursor *cursor)
{
	char		number[16];

	sluice_json_raw(json, "{");
	for (int i = 0; i < n; i++)
	{
		SluiceValue value;

		if (!sluice_cursor_value(cursor, &value))
			sluice_json_damaged(json);
		if (table != NULL)
			json->column = key ? key_name(table, i) : table->columns[i].name;
		else
		{
			snprintf(number, sizeof(number), "$%d", i + 1);
			json->column = number;
		}
		if (value.class == SLUICE_UNCHANGED)
			continue;
		sluice_json_name(json, json->column);
		sluice_json_value(json, &value);
	}
	sluice_json_raw(json, "}");
	json->column = NULL;
}

/* Whether the row's shape is that of the table as it is known. */
static bool
row_fits(const SluiceTable *table, const SluiceRowHead *head)
{
	if (table == NULL || table->fingerprint != head->fingerprint)
		return false;
	return (head->nnew == 0 || head->nnew == table->ncolumns) &&
		(head->nold == 0 || head->nold == (head->old == SLUICE_OLD_FULL ? table->ncolumns : table->nkey));
}

void
sluice_json_row_frame(SluiceJson *json, const SluiceFrame *frame)
{
	SluiceRowHead head;
	SluiceCursor values;
	const SluiceTable *known;

	if (!sluice_wire_get_row(frame, &head, &values))
		sluice_json_damaged(json);
	known = sluice_json_table(json, head.table_oid);
	json->table = row_fits(known, &head) ? known : NULL;

	sluice_json_open(json, frame->tag == SLUICE_TAG_INSERT ? "insert" :
					 frame->tag == SLUICE_TAG_UPDATE ? "update" : "delete");
	sluice_json_relation(json, "relation", known, head.table_oid);
	if (frame->tag != SLUICE_TAG_INSERT)
	{
		sluice_json_name(json, "key");
		if (head.old == SLUICE_OLD_NONE)
			sluice_json_raw(json, "null");
		else
			put_values(json, json->table, head.old == SLUICE_OLD_KEY, head.nold, &values);
	}
	if (frame->tag != SLUICE_TAG_DELETE)
	{
		sluice_json_name(json, "new");
		put_values(json, json->table, false, head.nnew, &values);
	}
	if (!sluice_cursor_done(&values))
		sluice_json_damaged(json);
}

void
sluice_json_truncate_frame(SluiceJson *json, const SluiceFrame *frame)
{
	SluiceTruncate truncate;

	if (!sluice_wire_get_truncate(frame, &sluice_palloc_allocator, &truncate))
		sluice_json_damaged(json);
	sluice_json_open(json, "truncate");
	sluice_json_name(json, "relations");
	sluice_json_raw(json, "[");
	for (uint32 i = 0; i < truncate.ntables; i++)
	{
		if (i > 0)
			sluice_json_raw(json, ",");
		sluice_json_relation(json, NULL, sluice_json_table(json, truncate.table_oids[i]),
							 truncate.table_oids[i]);
	}
	sluice_json_raw(json, "]");
}

/* Name of a column by attnum, "$n" if it is not known. */
static const char *
column_name(const SluiceTable *table, int attnum)
{
	int			i = table ? sluice_table_column_by_attnum(table, attnum) : -1;

	return i >= 0 ? table->columns[i].name : psprintf("$%d", attnum);
}

static void
backfill_rows(SluiceJson *json, const SluiceBackfill *note, SluiceCursor *rows)
{
	int			n = note->nkey + note->ncolumns;

	sluice_json_name(json, "rowValues");
	sluice_json_raw(json, "[");
	for (uint32 row = 0; row < note->nrows; row++)
	{
		sluice_json_raw(json, row > 0 ? ",[" : "[");
		for (int i = 0; i < n; i++)
		{
			SluiceValue value;

			if (!sluice_cursor_value(rows, &value))
				sluice_json_damaged(json);
			json->column = column_name(json->table, note->attnums[i]);
			if (i > 0)
				sluice_json_raw(json, ",");
			sluice_json_value(json, &value);
		}
		sluice_json_raw(json, "]");
	}
	sluice_json_raw(json, "]");
	json->column = NULL;
	if (!sluice_cursor_done(rows))
		sluice_json_damaged(json);
}

void
sluice_json_backfill_frame(SluiceJson *json, const SluiceFrame *frame)
{
	SluiceBackfill note;
	SluiceCursor rows;

	if (!sluice_wire_get_backfill(frame, &sluice_palloc_allocator, &note, &rows))
		sluice_json_damaged(json);
	json->table = sluice_json_table(json, note.table_oid);
	sluice_json_open(json, frame->tag == SLUICE_TAG_BACKFILL ? "backfill" :
					 frame->tag == SLUICE_TAG_BACKFILL_MARK ? "backfill-mark" : "backfill-completed");
	sluice_json_relation(json, "relation", json->table, note.table_oid);
	sluice_json_name(json, "columns");
	sluice_json_raw(json, "[");
	for (int i = 0; i < note.ncolumns; i++)
	{
		if (i > 0)
			sluice_json_raw(json, ",");
		sluice_json_cstring(json, column_name(json->table, note.attnums[note.nkey + i]));
	}
	sluice_json_raw(json, "]");
	if (frame->tag != SLUICE_TAG_BACKFILL_MARK)
		sluice_json_watermark(json, "watermark", note.low);
	if (frame->tag == SLUICE_TAG_BACKFILL)
		backfill_rows(json, &note, &rows);
}
