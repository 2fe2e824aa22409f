/*
 * copy_messages.h: messages of CALL sluice.copy, made by hand, to a copy.
 */
#ifndef COPY_MESSAGES_H
#define COPY_MESSAGES_H

#include "copy_table.h"
#include "sample.h"

#define A 16384					/* tables of these tests */
#define B 16390
#define C 16400

static SluiceBuffer message;

static inline void
put_placed(uint64_t low, uint64_t high)
{
	sluice_wire_put_u64(&message, 700);
	sluice_wire_put_u64(&message, 710);
	sluice_wire_put_u32(&message, 2);
	sluice_wire_put_u64(&message, 701);
	sluice_wire_put_u64(&message, 705);
	sluice_wire_put_watermark(&message, (SluiceWatermark) {low, 0});
	sluice_wire_put_u64(&message, high);
}

static inline void
put_item(uint32_t oid, const char *name, int64_t rows, int64_t bytes, const char *problem)
{
	sluice_wire_put_u32(&message, oid);
	sluice_wire_put_string(&message, "public");
	sluice_wire_put_string(&message, name);
	sluice_wire_put_u64(&message, (uint64_t) rows);
	sluice_wire_put_u64(&message, (uint64_t) bytes);
	sluice_wire_put_string(&message, problem);
}

static inline void
build_list(void)
{
	sluice_buffer_reset(&message);
	sluice_wire_put_u64(&message, UINT64_C(7500000000000000001));
	sluice_wire_put_u32(&message, 3);
	sluice_wire_put_string(&message, "4abcde");
	put_placed(1000, 2000);
	sluice_wire_put_u32(&message, 4);
	put_item(B, "b", -1, 8192, NULL);
	put_item(A, "a", 10, 100000, NULL);
	put_item(C, "c", 5, 0, NULL);
	put_item(C + 1, "d", 5, 5, "it has no key");
	sluice_wire_put_u8(&message, 1);
	sluice_wire_put_u8(&message, 0);
	sluice_wire_put_string(&message, "[\"p\"]");
}

/* id integer key, v text */
static inline SluiceTable
small_table(uint32_t oid, const char *name)
{
	static const SluiceColumn columns[] = {
		{1, SLUICE_COLUMN_NOT_NULL, SLUICE_STORAGE_INTEGER, 23, -1, -1, "id", "int4", NULL},
		{2, 0, SLUICE_STORAGE_TEXT, 25, -1, -1, "v", "text", NULL},
	};
	static const uint16_t key[] = {0};
	static const SluiceIndexColumn index_columns[] = {{1, false}};
	static const SluiceIndex indexes[] = {
		{50000, SLUICE_INDEX_UNIQUE | SLUICE_INDEX_PRIMARY, 1, index_columns, "pkey"},
	};
	SluiceTable table = {
		.oid = oid, .schema_oid = 2200, .identity = 'd', .ncolumns = 2, .nkey = 1, .nindexes = 1,
		.schema = "public", .name = name, .columns = columns, .key = key, .indexes = indexes,
	};

	table.fingerprint = sluice_table_fingerprint(&table);
	return table;
}

static inline SluiceOutcome
send(SluiceCopyTable *copy)
{
	return sluice_copy_table_message(copy, message.data, message.length);
}

static inline SluiceOutcome
send_header(SluiceCopyTable *copy, const SluiceTable *table)
{
	sluice_buffer_reset(&message);
	sluice_wire_put_u8(&message, 'H');
	sluice_wire_put_u32(&message, table->oid);
	sluice_table_encode(&message, table);
	put_placed(1100, 2100);
	sluice_wire_put_u64(&message, 12);
	sluice_wire_put_u64(&message, 9000);
	return send(copy);
}

static inline void
put_row(const SluiceTable *table, int64_t id, const char *v)
{
	SluiceRowHead head = {table->oid, table->fingerprint, SLUICE_OLD_NONE, 0, 2};
	size_t		frame = sluice_wire_open_row(&message, SLUICE_TAG_INSERT, &head);

	sluice_wire_put_integer(&message, id);
	if (v == NULL)
		sluice_wire_put_null(&message);
	else
		sluice_wire_put_text(&message, v, strlen(v));
	sluice_wire_close(&message, frame);
}

static inline SluiceOutcome
send_rows(SluiceCopyTable *copy, const SluiceTable *table, int64_t first, int count)
{
	sluice_buffer_reset(&message);
	sluice_wire_put_u8(&message, 'W');
	for (int i = 0; i < count; i++)
		put_row(table, first + i, i % 3 == 0 ? NULL : "some text");
	return send(copy);
}

static inline SluiceOutcome
send_end(SluiceCopyTable *copy, uint32_t oid, uint64_t rows)
{
	sluice_buffer_reset(&message);
	sluice_wire_put_u8(&message, 'F');
	sluice_wire_put_u32(&message, oid);
	sluice_wire_put_u64(&message, rows);
	return send(copy);
}

static inline SluiceOutcome
send_gone(SluiceCopyTable *copy, uint32_t oid)
{
	sluice_buffer_reset(&message);
	sluice_wire_put_u8(&message, 'N');
	sluice_wire_put_u32(&message, oid);
	return send(copy);
}

#endif
