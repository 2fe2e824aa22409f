/*
 * spec.c: table specs: fingerprint, look-ups, wire form.
 *
 * In: SluiceTable structs or bytes.  Out: bytes or structs.  What is decoded
 * is checked so far that users need not: columns rise by attnum, key positions
 * and index columns exist, names are there, tables rise by OID.
 * Runs in: every process of the extension and the agent.  Locks: none.
 */
#include "wire_bytes.h"

/* what each takes on the wire at least; a count above that is damage */
#define COLUMN_MIN 28
#define KEY_SIZE 2
#define INDEX_MIN 11
#define INDEX_COLUMN_SIZE 3
#define TABLE_MIN 36

/* the version in which a table's filter came */
#define FILTER_SINCE 2

/* ---- fingerprint, look-ups ---- */

/* FNV-1a over the little-endian bytes: the same on every machine. */
static uint64_t
mix(uint64_t hash, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		hash = (hash ^ ((value >> (8 * i)) & 0xff)) * UINT64_C(0x100000001b3);
	return hash;
}

uint32_t
sluice_table_fingerprint(const SluiceTable *table)
{
	uint64_t	hash = UINT64_C(0xcbf29ce484222325);
	uint32_t	folded;

	hash = mix(hash, table->oid, 4);
	hash = mix(hash, (uint8_t) table->identity, 1);
	hash = mix(hash, table->nkey, 2);
	for (int i = 0; i < table->nkey; i++)
		hash = mix(hash, (uint16_t) table->columns[table->key[i]].attnum, 2);
	hash = mix(hash, table->ncolumns, 2);
	for (int i = 0; i < table->ncolumns; i++)
	{
		const SluiceColumn *column = &table->columns[i];

		hash = mix(hash, (uint16_t) column->attnum, 2);
		hash = mix(hash, column->type_oid, 4);
		hash = mix(hash, (uint32_t) column->typmod, 4);
		hash = mix(hash, (uint8_t) column->storage, 1);
	}
	folded = (uint32_t) (hash ^ (hash >> 32));
	return folded == 0 ? 1 : folded;
}

int
sluice_table_column_by_attnum(const SluiceTable *table, int attnum)
{
	int			low = 0;
	int			high = table->ncolumns - 1;

	while (low <= high)
	{
		int			middle = (low + high) / 2;

		if (table->columns[middle].attnum == attnum)
			return middle;
		if (table->columns[middle].attnum < attnum)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return -1;
}

int
sluice_table_column_by_name(const SluiceTable *table, const char *name)
{
	for (int i = 0; i < table->ncolumns; i++)
	{
		if (strcmp(table->columns[i].name, name) == 0)
			return i;
	}
	return -1;
}

const SluiceTable *
sluice_schema_find(const SluiceSchema *schema, uint32_t oid)
{
	uint32_t	low = 0;
	uint32_t	high = schema->ntables;

	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (schema->tables[middle].oid == oid)
			return &schema->tables[middle];
		if (schema->tables[middle].oid < oid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* ---- encoding ---- */

static void
encode_column(SluiceBuffer *out, const SluiceColumn *column)
{
	sluice_wire_put_u16(out, (uint16_t) column->attnum);
	sluice_wire_put_u8(out, column->flags);
	sluice_wire_put_u8(out, (uint8_t) column->storage);
	sluice_wire_put_u32(out, column->type_oid);
	sluice_wire_put_u32(out, (uint32_t) column->typmod);
	sluice_wire_put_u32(out, (uint32_t) column->max_length);
	sluice_wire_put_string(out, column->name);
	sluice_wire_put_string(out, column->type);
	sluice_wire_put_string(out, column->default_sql);
}

static void
encode_index(SluiceBuffer *out, const SluiceIndex *index)
{
	sluice_wire_put_u32(out, index->oid);
	sluice_wire_put_u8(out, index->flags);
	sluice_wire_put_u16(out, index->ncolumns);
	for (int i = 0; i < index->ncolumns; i++)
	{
		sluice_wire_put_u16(out, (uint16_t) index->columns[i].attnum);
		sluice_wire_put_u8(out, index->columns[i].descending);
	}
	sluice_wire_put_string(out, index->name);
}

void
sluice_table_encode(SluiceBuffer *out, const SluiceTable *table)
{
	uint32_t	fingerprint = table->fingerprint;

	if (fingerprint == 0)
		fingerprint = sluice_table_fingerprint(table);

	sluice_wire_put_u8(out, SLUICE_SPEC_VERSION);
	sluice_wire_put_u32(out, table->oid);
	sluice_wire_put_u32(out, table->schema_oid);
	sluice_wire_put_u32(out, fingerprint);
	sluice_wire_put_u8(out, table->flags);
	sluice_wire_put_u8(out, (uint8_t) table->identity);
	sluice_wire_put_u16(out, table->ncolumns);
	sluice_wire_put_u16(out, table->nkey);
	sluice_wire_put_u16(out, table->nindexes);
	sluice_wire_put_string(out, table->schema);
	sluice_wire_put_string(out, table->name);
	sluice_wire_put_string(out, table->problem);
	sluice_wire_put_string(out, table->filter);
	for (int i = 0; i < table->ncolumns; i++)
		encode_column(out, &table->columns[i]);
	for (int i = 0; i < table->nkey; i++)
		sluice_wire_put_u16(out, table->key[i]);
	for (int i = 0; i < table->nindexes; i++)
		encode_index(out, &table->indexes[i]);
}

void
sluice_schema_encode(SluiceBuffer *out, const SluiceSchema *schema)
{
	sluice_wire_put_u8(out, SLUICE_SPEC_VERSION);
	sluice_wire_put_u32(out, schema->ntables);
	for (uint32_t i = 0; i < schema->ntables; i++)
		sluice_table_encode(out, &schema->tables[i]);
}

/* ---- decoding ---- */

static inline bool
enough(const SluiceCursor *cursor, size_t count, size_t least)
{
	return !cursor->damaged && count <= cursor_left(cursor) / least;
}

static void *
take_memory(const SluiceAllocator *allocator, size_t count, size_t size)
{
	return count == 0 ? NULL : allocator->grow(allocator->context, NULL, count * size);
}

static bool
decode_column(SluiceCursor *cursor, const SluiceAllocator *allocator, SluiceColumn *column)
{
	column->attnum = (int16_t) sluice_cursor_u16(cursor);
	column->flags = sluice_cursor_u8(cursor);
	column->storage = (SluiceStorage) sluice_cursor_u8(cursor);
	column->type_oid = sluice_cursor_u32(cursor);
	column->typmod = (int32_t) sluice_cursor_u32(cursor);
	column->max_length = (int32_t) sluice_cursor_u32(cursor);
	column->name = sluice_cursor_string(cursor, allocator);
	column->type = sluice_cursor_string(cursor, allocator);
	column->default_sql = sluice_cursor_string(cursor, allocator);
	switch (column->storage)
	{
		case SLUICE_STORAGE_INTEGER:
		case SLUICE_STORAGE_ANY:
		case SLUICE_STORAGE_TEXT:
		case SLUICE_STORAGE_BLOB:
			return column->name != NULL && column->type != NULL && column->attnum > 0;
		default:
			return false;
	}
}

static bool
decode_columns(SluiceCursor *cursor, const SluiceAllocator *allocator, SluiceTable *table)
{
	SluiceColumn *columns;
	uint16_t   *key;

	if (!enough(cursor, table->ncolumns, COLUMN_MIN))
		return false;
	columns = take_memory(allocator, table->ncolumns, sizeof(SluiceColumn));
	table->columns = columns;
	for (int i = 0; i < table->ncolumns; i++)
	{
		if (!decode_column(cursor, allocator, &columns[i]) ||
			(i > 0 && columns[i].attnum <= columns[i - 1].attnum))
			return false;
	}

	if (!enough(cursor, table->nkey, KEY_SIZE))
		return false;
	key = take_memory(allocator, table->nkey, sizeof(uint16_t));
	table->key = key;
	for (int i = 0; i < table->nkey; i++)
	{
		key[i] = sluice_cursor_u16(cursor);
		if (key[i] >= table->ncolumns)
			return false;
	}
	return !cursor->damaged;
}

static bool
decode_index(SluiceCursor *cursor, const SluiceAllocator *allocator, const SluiceTable *table,
			 SluiceIndex *index)
{
	SluiceIndexColumn *columns;

	index->oid = sluice_cursor_u32(cursor);
	index->flags = sluice_cursor_u8(cursor);
	index->ncolumns = sluice_cursor_u16(cursor);
	if (index->ncolumns == 0 || !enough(cursor, index->ncolumns, INDEX_COLUMN_SIZE))
		return false;
	columns = take_memory(allocator, index->ncolumns, sizeof(SluiceIndexColumn));
	index->columns = columns;
	for (int i = 0; i < index->ncolumns; i++)
	{
		uint8_t		descending;

		columns[i].attnum = (int16_t) sluice_cursor_u16(cursor);
		descending = sluice_cursor_u8(cursor);
		columns[i].descending = descending == 1;
		if (descending > 1 || sluice_table_column_by_attnum(table, columns[i].attnum) < 0)
			return false;
	}
	index->name = sluice_cursor_string(cursor, allocator);
	return index->name != NULL;
}

static bool
decode_indexes(SluiceCursor *cursor, const SluiceAllocator *allocator, SluiceTable *table)
{
	SluiceIndex *indexes;

	if (!enough(cursor, table->nindexes, INDEX_MIN))
		return false;
	indexes = take_memory(allocator, table->nindexes, sizeof(SluiceIndex));
	table->indexes = indexes;
	for (int i = 0; i < table->nindexes; i++)
	{
		if (!decode_index(cursor, allocator, table, &indexes[i]))
			return false;
	}
	return !cursor->damaged;
}

static inline bool
known_version(uint8_t version)
{
	return version >= 1 && version <= SLUICE_SPEC_VERSION;
}

static bool
decode_table(SluiceCursor *cursor, const SluiceAllocator *allocator, SluiceTable *table)
{
	SluiceTable result = {0};
	uint8_t		version = sluice_cursor_u8(cursor);

	if (!known_version(version))
		return false;
	result.oid = sluice_cursor_u32(cursor);
	result.schema_oid = sluice_cursor_u32(cursor);
	result.fingerprint = sluice_cursor_u32(cursor);
	result.flags = sluice_cursor_u8(cursor);
	result.identity = (char) sluice_cursor_u8(cursor);
	result.ncolumns = sluice_cursor_u16(cursor);
	result.nkey = sluice_cursor_u16(cursor);
	result.nindexes = sluice_cursor_u16(cursor);
	result.schema = sluice_cursor_string(cursor, allocator);
	result.name = sluice_cursor_string(cursor, allocator);
	result.problem = sluice_cursor_string(cursor, allocator);
	if (version >= FILTER_SINCE)
		result.filter = sluice_cursor_string(cursor, allocator);
	if (cursor->damaged || result.schema == NULL || result.name == NULL ||
		result.fingerprint == 0)
		return false;
	if (!decode_columns(cursor, allocator, &result) ||
		!decode_indexes(cursor, allocator, &result))
		return false;
	*table = result;
	return true;
}

bool
sluice_table_decode(const void *data, size_t size, size_t *used, const SluiceAllocator *allocator,
					SluiceTable *table)
{
	SluiceCursor cursor;

	sluice_cursor_init(&cursor, data, size);
	if (!decode_table(&cursor, allocator, table))
		return false;
	*used = (size_t) (cursor.at - (const char *) data);
	return true;
}

bool
sluice_schema_decode(const void *data, size_t size, size_t *used, const SluiceAllocator *allocator,
					 SluiceSchema *schema)
{
	SluiceCursor cursor;
	SluiceTable *tables;
	uint32_t	ntables;

	sluice_cursor_init(&cursor, data, size);
	if (!known_version(sluice_cursor_u8(&cursor)))
		return false;
	ntables = sluice_cursor_u32(&cursor);
	if (!enough(&cursor, ntables, TABLE_MIN))
		return false;
	tables = take_memory(allocator, ntables, sizeof(SluiceTable));
	for (uint32_t i = 0; i < ntables; i++)
	{
		if (!decode_table(&cursor, allocator, &tables[i]) ||
			(i > 0 && tables[i].oid <= tables[i - 1].oid))
			return false;
	}
	schema->ntables = ntables;
	schema->tables = tables;
	*used = (size_t) (cursor.at - (const char *) data);
	return true;
}
