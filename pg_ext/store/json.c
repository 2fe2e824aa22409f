/*
 * json.c: frames as JSON: the writing of JSON, tables by OID, transactions.
 *
 * In: frames in stream order.  Out: one JSON text a frame.
 * Runs in: whoever asks for the view.  Locks: none.
 */
#include "postgres.h"

#include <math.h>

#include "access/xlogdefs.h"
#include "common/shortest_dec.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "allocator.h"
#include "json.h"

/* JSON text is of type json: below the limit of a value, with room for what follows. */
#define JSON_MAX ((Size) MaxAllocSize - 1024 * 1024)

/* Bytes of text that are escaped before the limit is looked at again. */
#define CHUNK ((Size) 16 * 1024)

typedef struct TableEntry
{
	uint32		oid;			/* hash key */
	SluiceTable table;
} TableEntry;

SluiceJson *
sluice_json_create(void)
{
	SluiceJson *json = palloc0(sizeof(SluiceJson));
	HASHCTL		control = {0};

	control.keysize = sizeof(uint32);
	control.entrysize = sizeof(TableEntry);
	control.hcxt = json->context = CurrentMemoryContext;
	json->tables = hash_create("tables of a change log", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	json->ascii = GetDatabaseEncoding() != PG_UTF8;
	return json;
}

void
sluice_json_set_table(SluiceJson *json, const SluiceTable *table)
{
	MemoryContext old = MemoryContextSwitchTo(json->context);
	TableEntry *entry = hash_search(json->tables, &table->oid, HASH_ENTER, NULL);

	sluice_table_copy(&entry->table, table, &sluice_palloc_allocator);
	MemoryContextSwitchTo(old);
}

const SluiceTable *
sluice_json_table(SluiceJson *json, uint32 oid)
{
	TableEntry *entry = hash_search(json->tables, &oid, HASH_FIND, NULL);

	return entry ? &entry->table : NULL;
}

/* ---- errors ---- */

void
sluice_json_damaged(SluiceJson *json)
{
	char		watermark[SLUICE_WATERMARK_TEXT_MAX];

	sluice_watermark_format(json->watermark, watermark);
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("the change log is damaged in transaction %s", watermark)));
}

static void
too_large(SluiceJson *json)
{
	char		watermark[SLUICE_WATERMARK_TEXT_MAX];

	sluice_watermark_format(json->watermark, watermark);
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("a change of transaction %s is too large for a JSON value", watermark),
			 json->table && json->column
			 ? errdetail("The limit was reached in column \"%s\" of table \"%s.%s\".",
						 json->column, json->table->schema, json->table->name) : 0,
			 errhint("Ask sluice.change_log for a range without this transaction; replicas are not affected.")));
}

static void
make_room(SluiceJson *json, Size more)
{
	if ((Size) json->out->len + more > JSON_MAX)
		too_large(json);
}

/* ---- writing ---- */

void
sluice_json_raw(SluiceJson *json, const char *ascii)
{
	appendStringInfoString(json->out, ascii);
}

static void
escape_byte(StringInfo out, unsigned char c)
{
	switch (c)
	{
		case '"':
			appendStringInfoString(out, "\\\"");
			break;
		case '\\':
			appendStringInfoString(out, "\\\\");
			break;
		case '\n':
			appendStringInfoString(out, "\\n");
			break;
		case '\r':
			appendStringInfoString(out, "\\r");
			break;
		case '\t':
			appendStringInfoString(out, "\\t");
			break;
		default:
			appendStringInfo(out, "\\u%04x", c);
	}
}

/* One character beyond ASCII; returns its bytes. */
static Size
escape_character(StringInfo out, const unsigned char *at, Size left)
{
	Size		n = Min((Size) pg_utf_mblen(at), left);
	pg_wchar	c = n < (Size) pg_utf_mblen(at) ? 0xfffd : utf8_to_unicode(at);

	if (c >= 0x10000)
		appendStringInfo(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
	else
		appendStringInfo(out, "\\u%04x", c);
	return n;
}

static void
escape(SluiceJson *json, const unsigned char *data, Size size)
{
	Size		done = 0;

	while (done < size)
	{
		Size		plain = done;

		while (plain < size && data[plain] >= 0x20 && data[plain] != '"' && data[plain] != '\\' &&
			   (!json->ascii || data[plain] < 0x80))
			plain++;
		appendBinaryStringInfo(json->out, (const char *) data + done, plain - done);
		done = plain;
		if (done == size)
			break;
		if (data[done] < 0x80)
			escape_byte(json->out, data[done++]);
		else
			done += escape_character(json->out, data + done, size - done);
	}
}

/* A piece ends between two characters. */
static Size
piece(const char *data, Size size)
{
	Size		n = Min(size, CHUNK);

	while (n < size && n > CHUNK - 4 && ((unsigned char) data[n] & 0xc0) == 0x80)
		n--;
	return n;
}

void
sluice_json_string(SluiceJson *json, const char *data, Size size)
{
	appendStringInfoChar(json->out, '"');
	make_room(json, size);
	while (size > 0)
	{
		Size		n = piece(data, size);

		make_room(json, 6 * n);
		escape(json, (const unsigned char *) data, n);
		data += n;
		size -= n;
	}
	appendStringInfoChar(json->out, '"');
}

void
sluice_json_cstring(SluiceJson *json, const char *string)
{
	if (string == NULL)
		sluice_json_raw(json, "null");
	else
		sluice_json_string(json, string, strlen(string));
}

void
sluice_json_name(SluiceJson *json, const char *name)
{
	char		last = json->out->data[json->out->len - 1];

	if (last != '{' && last != '[')
		appendStringInfoChar(json->out, ',');
	sluice_json_string(json, name, strlen(name));
	appendStringInfoChar(json->out, ':');
}

void
sluice_json_pair(SluiceJson *json, const char *name, const char *string)
{
	sluice_json_name(json, name);
	sluice_json_cstring(json, string);
}

void
sluice_json_integer(SluiceJson *json, const char *name, int64 value)
{
	sluice_json_name(json, name);
	appendStringInfo(json->out, INT64_FORMAT, value);
}

void
sluice_json_bool(SluiceJson *json, const char *name, bool value)
{
	sluice_json_name(json, name);
	sluice_json_raw(json, value ? "true" : "false");
}

void
sluice_json_watermark(SluiceJson *json, const char *name, SluiceWatermark watermark)
{
	char		string[SLUICE_WATERMARK_TEXT_MAX];

	sluice_watermark_format(watermark, string);
	sluice_json_pair(json, name, string);
}

static void
put_real(SluiceJson *json, double real)
{
	char		digits[DOUBLE_SHORTEST_DECIMAL_LEN];

	if (isnan(real))
		sluice_json_raw(json, "\"NaN\"");
	else if (isinf(real))
		sluice_json_raw(json, real > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	else
	{
		double_to_shortest_decimal_buf(real, digits);
		sluice_json_raw(json, digits);
	}
}

static void
put_blob(SluiceJson *json, const char *data, Size size)
{
	static const char hex[] = "0123456789abcdef";
	char	   *to;

	make_room(json, 2 * size + 8);
	sluice_json_raw(json, "\"\\\\x");
	enlargeStringInfo(json->out, (int) (2 * size));
	to = json->out->data + json->out->len;
	for (Size i = 0; i < size; i++)
	{
		*to++ = hex[((unsigned char) data[i]) >> 4];
		*to++ = hex[((unsigned char) data[i]) & 15];
	}
	*to = '\0';
	json->out->len += (int) (2 * size);
	appendStringInfoChar(json->out, '"');
}

void
sluice_json_value(SluiceJson *json, const SluiceValue *value)
{
	switch (value->class)
	{
		case SLUICE_INTEGER:
			appendStringInfo(json->out, INT64_FORMAT, value->u.integer);
			break;
		case SLUICE_REAL:
			put_real(json, value->u.real);
			break;
		case SLUICE_TEXT:
			sluice_json_string(json, value->u.bytes.data, value->u.bytes.size);
			break;
		case SLUICE_BLOB:
			put_blob(json, value->u.bytes.data, value->u.bytes.size);
			break;
		case SLUICE_NULL:
		case SLUICE_UNCHANGED:
			sluice_json_raw(json, "null");
	}
}

void
sluice_json_open(SluiceJson *json, const char *tag)
{
	appendStringInfoChar(json->out, '{');
	sluice_json_pair(json, "tag", tag);
}

/* ---- transactions ---- */

static void
begin_frame(SluiceJson *json, const SluiceFrame *frame)
{
	SluiceBegin begin;

	if (!sluice_wire_get_begin(frame, &begin))
		sluice_json_damaged(json);
	sluice_json_open(json, "begin");
	sluice_json_pair(json, "json", "s");
	if (begin.flags & SLUICE_BEGIN_SKIP_ACK)
		sluice_json_bool(json, "skipAck", true);
	else
	{
		sluice_json_pair(json, "commitLsn", psprintf("%X/%X", LSN_FORMAT_ARGS(begin.watermark.major)));
		sluice_json_integer(json, "commitTime", begin.commit_time);
		sluice_json_integer(json, "xid", (int64) begin.xid);
	}
	json->commit_time_ms = begin.flags & SLUICE_BEGIN_SKIP_ACK ? 0 : begin.commit_time / 1000;
}

static void
commit_frame(SluiceJson *json, const SluiceFrame *frame)
{
	SluiceCommit commit;

	if (!sluice_wire_get_commit(frame, &commit))
		sluice_json_damaged(json);
	sluice_json_open(json, "commit");
	if (json->commit_time_ms != 0)
		sluice_json_integer(json, "commitTimeMs", json->commit_time_ms);
}

void
sluice_json_frame(SluiceJson *json, const SluiceFrame *frame, StringInfo out)
{
	json->out = out;
	json->table = NULL;
	json->column = NULL;
	switch (frame->tag)
	{
		case SLUICE_TAG_BEGIN:
			begin_frame(json, frame);
			break;
		case SLUICE_TAG_COMMIT:
			commit_frame(json, frame);
			break;
		case SLUICE_TAG_INSERT:
		case SLUICE_TAG_UPDATE:
		case SLUICE_TAG_DELETE:
			sluice_json_row_frame(json, frame);
			break;
		case SLUICE_TAG_TRUNCATE:
			sluice_json_truncate_frame(json, frame);
			break;
		case SLUICE_TAG_BACKFILL:
		case SLUICE_TAG_BACKFILL_MARK:
		case SLUICE_TAG_BACKFILL_COMPLETED:
			sluice_json_backfill_frame(json, frame);
			break;
		case SLUICE_TAG_ROLLBACK:
		case SLUICE_TAG_STATUS:
			sluice_json_damaged(json);	/* these are not stored */
			break;
		default:
			sluice_json_schema_frame(json, frame);
	}
	appendStringInfoChar(json->out, '}');
}
