/*
 * row.c: tuples as INSERT, UPDATE and DELETE frames, by a table's spec.
 *
 * In: values as deformed from a tuple of the table, or of a leaf whose rows
 * come under its root (columns are then matched by name, for a leaf has its
 * own attnums).  Out: frames.
 *
 * Of the old row a frame carries what finds it in a replica: nothing if the
 * key is as in the new row, else the key, and without a key the whole row.
 *
 * Runs in: the decoder's callbacks, copiers.  Locks: none.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/tupdesc.h"
#include "catalog/pg_attribute.h"
#include "utils/builtins.h"
#include "utils/datum.h"

#include "row.h"
#include "value_internal.h"

#define LARGE_VALUE ((Size) 64 * 1024 * 1024)

typedef struct RowColumn
{
	int			at;				/* index in the tuple */
	int16		typlen;
	bool		typbyval;
	SluiceValueEncoder *value;
} RowColumn;

struct SluiceRowEncoder
{
	const SluiceTable *table;
	RowColumn  *columns;		/* as in the spec */
};

static Form_pg_attribute
find_attribute(TupleDesc desc, const SluiceColumn *column, bool by_name)
{
	if (!by_name)
	{
		Form_pg_attribute attribute;

		if (column->attnum > desc->natts)
			return NULL;
		attribute = TupleDescAttr(desc, column->attnum - 1);
		return attribute->attisdropped ? NULL : attribute;
	}
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (!attribute->attisdropped &&
			strcmp(sluice_value_name(NameStr(attribute->attname)), column->name) == 0)
			return attribute;
	}
	return NULL;
}

/* NULL: it is as the spec has it. */
static char *
match_column(const SluiceTable *table, const SluiceColumn *column, Form_pg_attribute attribute)
{
	if (attribute == NULL)
		return psprintf("column %s.%s.%s does not exist in its rows",
						table->schema, table->name, column->name);
	if (attribute->atttypid != column->type_oid)
		return psprintf("column %s.%s.%s has type %s in its rows, not %s",
						table->schema, table->name, column->name,
						format_type_be(attribute->atttypid), column->type);
	return NULL;
}

SluiceRowEncoder *
sluice_row_encoder(const SluiceTable *table, Oid relation, TupleDesc desc,
				   const SluiceEncodeOptions *options, char **mismatch)
{
	SluiceRowEncoder *encoder = palloc(sizeof(SluiceRowEncoder));

	encoder->table = table;
	encoder->columns = palloc(Max(table->ncolumns, 1) * sizeof(RowColumn));
	for (int i = 0; i < table->ncolumns; i++)
	{
		const SluiceColumn *column = &table->columns[i];
		Form_pg_attribute attribute = find_attribute(desc, column, relation != table->oid);

		*mismatch = match_column(table, column, attribute);
		if (*mismatch != NULL)
			return NULL;
		encoder->columns[i].at = attribute->attnum - 1;
		encoder->columns[i].typlen = attribute->attlen;
		encoder->columns[i].typbyval = attribute->attbyval;
		encoder->columns[i].value = sluice_value_encoder(column->type_oid, column->typmod, options);
	}
	*mismatch = NULL;
	return encoder;
}

static inline bool
on_disk(const RowColumn *column, Datum value)
{
	return column->typlen == -1 && VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value));
}

/*
 * A value so large that its text may be above what a palloc gives: that limit
 * is the row's, not the stream's.  Output functions leave nothing behind but
 * memory and references that the end of the transaction releases.
 */
static bool
encode_large(const RowColumn *column, Datum value, SluiceBuffer *out)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool fits = true;

	PG_TRY();
	{
		column->value->encode(column->value, value, out);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode != ERRCODE_PROGRAM_LIMIT_EXCEEDED &&
			strncmp(error->message, "invalid memory alloc request size", 33) != 0)
			PG_RE_THROW();
		FlushErrorState();
		FreeErrorData(error);
		fits = false;
	}
	PG_END_TRY();
	return fits;
}

static inline bool
encode_value(const RowColumn *column, Datum value, SluiceBuffer *out)
{
	if (unlikely(column->typlen == -1 && toast_raw_datum_size(value) > LARGE_VALUE))
		return encode_large(column, value, out);
	column->value->encode(column->value, value, out);
	return true;
}

/* Puts ncolumns values; false as soon as they are more than a row may have. */
static bool
put_row(SluiceRowEncoder *encoder, const Datum *values, const bool *nulls, bool fetch,
		SluiceBuffer *out)
{
	size_t		start = out->length;

	for (int i = 0; i < encoder->table->ncolumns; i++)
	{
		const RowColumn *column = &encoder->columns[i];

		if (nulls[column->at])
			sluice_wire_put_null(out);
		else if (!fetch && on_disk(column, values[column->at]))
			sluice_wire_put_unchanged(out);
		else if (!encode_value(column, values[column->at], out))
			return false;
		if (unlikely(out->length - start > SLUICE_ROW_MAX))
			return false;
	}
	return true;
}

/* An old row has all its key's values, or no replica can find it. */
static bool
put_key(SluiceRowEncoder *encoder, const Datum *old, const bool *old_nulls, SluiceBuffer *out)
{
	const SluiceTable *table = encoder->table;
	size_t		start = out->length;

	for (int i = 0; i < table->nkey; i++)
	{
		const RowColumn *column = &encoder->columns[table->key[i]];

		if (old_nulls[column->at] || on_disk(column, old[column->at]))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("an old row of %s.%s has no value of key column \"%s\"",
							table->schema, table->name, table->columns[table->key[i]].name),
					 errhint("Give the table and its partitions the same replica identity.")));
		column->value->encode(column->value, old[column->at], out);
		if (unlikely(out->length - start > SLUICE_ROW_MAX))
			return false;
	}
	return true;
}

/*
 * Does the new row have the key of the old one?  Not if it cannot be told
 * without fetching it.
 */
static bool
same_key(SluiceRowEncoder *encoder, const Datum *old, const bool *old_nulls,
		 const Datum *values, const bool *nulls)
{
	for (int i = 0; i < encoder->table->nkey; i++)
	{
		const RowColumn *column = &encoder->columns[encoder->table->key[i]];

		if (old_nulls[column->at] || nulls[column->at] ||
			on_disk(column, values[column->at]) || on_disk(column, old[column->at]) ||
			!datum_image_eq(old[column->at], values[column->at], column->typbyval, column->typlen))
			return false;
	}
	return true;
}

static bool
finish(SluiceBuffer *out, size_t frame, bool fits)
{
	if (fits)
		return sluice_wire_close(out, frame);
	out->length = frame;
	return false;
}

static size_t
open_frame(SluiceRowEncoder *encoder, SluiceTag tag, SluiceOldRow old, SluiceBuffer *out)
{
	const SluiceTable *table = encoder->table;
	SluiceRowHead head = {
		.table_oid = table->oid,
		.fingerprint = table->fingerprint,
		.old = old,
		.nold = old == SLUICE_OLD_KEY ? table->nkey : old == SLUICE_OLD_FULL ? table->ncolumns : 0,
		.nnew = tag == SLUICE_TAG_DELETE ? 0 : table->ncolumns,
	};

	return sluice_wire_open_row(out, tag, &head);
}

bool
sluice_row_insert(SluiceRowEncoder *encoder, const Datum *values, const bool *nulls,
				  bool fetch, SluiceBuffer *out)
{
	size_t		frame = open_frame(encoder, SLUICE_TAG_INSERT, SLUICE_OLD_NONE, out);

	return finish(out, frame, put_row(encoder, values, nulls, fetch, out));
}

/* What to send of an old row that is there. */
static SluiceOldRow
old_kind(SluiceRowEncoder *encoder, bool full)
{
	const SluiceTable *table = encoder->table;

	if (table->nkey > 0)
		return SLUICE_OLD_KEY;
	if (!full)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("an old row of %s.%s cannot be found by a replica: the table has no key",
						table->schema, table->name),
				 errhint("Give the table a primary key or REPLICA IDENTITY FULL.")));
	return SLUICE_OLD_FULL;
}

static bool
put_old(SluiceRowEncoder *encoder, SluiceOldRow kind, const Datum *old, const bool *old_nulls,
		SluiceBuffer *out)
{
	if (kind == SLUICE_OLD_NONE)
		return true;
	if (kind == SLUICE_OLD_KEY)
		return put_key(encoder, old, old_nulls, out);
	/* old rows come with their TOAST values; nothing is unchanged in them */
	return put_row(encoder, old, old_nulls, true, out);
}

bool
sluice_row_update(SluiceRowEncoder *encoder, const Datum *old, const bool *old_nulls, bool full,
				  const Datum *values, const bool *nulls, SluiceBuffer *out)
{
	SluiceOldRow kind = SLUICE_OLD_NONE;
	size_t		frame;

	if (old == NULL && encoder->table->nkey == 0)
		(void) old_kind(encoder, false);
	if (old != NULL)
		kind = old_kind(encoder, full);
	if (kind == SLUICE_OLD_KEY && same_key(encoder, old, old_nulls, values, nulls))
		kind = SLUICE_OLD_NONE;
	frame = open_frame(encoder, SLUICE_TAG_UPDATE, kind, out);
	return finish(out, frame,
				  put_old(encoder, kind, old, old_nulls, out) &&
				  put_row(encoder, values, nulls, false, out));
}

bool
sluice_row_delete(SluiceRowEncoder *encoder, const Datum *old, const bool *old_nulls, bool full,
				  SluiceBuffer *out)
{
	SluiceOldRow kind = old_kind(encoder, full);
	size_t		frame = open_frame(encoder, SLUICE_TAG_DELETE, kind, out);

	return finish(out, frame, put_old(encoder, kind, old, old_nulls, out));
}
