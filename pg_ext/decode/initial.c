/*
 * initial.c: see initial.h.
 *
 * PostgreSQL keeps the value that rows older than a column show in
 * pg_attribute.attmissingval; it is there exactly if the column was added
 * without a rewrite of the table, and it stays what it was when the default is
 * changed later.
 *
 * In: pg_attribute under the historic snapshot.  Out: a SQLite value.
 * Runs in: decoder, in callbacks.  Locks: ACCESS SHARE on pg_attribute.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/indexing.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/fmgroids.h"

#include "allocator.h"
#include "initial.h"
#include "schema_reader.h"
#include "value.h"

typedef struct Missing
{
	bool		found;
	bool		has_value;
	bool		computed;		/* a default, an identity or an expression that is not in has_value */
	Oid			type;
	int32		typmod;
	Datum		value;
} Missing;

static void
read_attribute(Oid relid, int attnum, Missing *missing)
{
	SluiceCatalogScan scan;
	ScanKeyData keys[2];
	HeapTuple	tuple;

	memset(missing, 0, sizeof(*missing));
	ScanKeyInit(&keys[0], Anum_pg_attribute_attrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	ScanKeyInit(&keys[1], Anum_pg_attribute_attnum, BTEqualStrategyNumber, F_INT2EQ,
				Int16GetDatum(attnum));
	sluice_catalog_begin(&scan, AttributeRelationId, AttributeRelidNumIndexId, NULL, 2, keys);
	tuple = sluice_catalog_next(&scan);
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_attribute form = (Form_pg_attribute) GETSTRUCT(tuple);
		bool		isnull = true;
		Datum		array = (Datum) 0;
		int			one = 1;

		missing->found = true;
		missing->type = form->atttypid;
		missing->typmod = form->atttypmod;
		if (form->atthasmissing)
			array = sluice_catalog_value(&scan, tuple, Anum_pg_attribute_attmissingval, &isnull);
		if (!isnull)
			missing->value = array_get_element(array, 1, &one, -1, form->attlen, form->attbyval,
											   form->attalign, &isnull);
		missing->has_value = !isnull;
		missing->computed = !missing->has_value &&
			(form->atthasdef || form->attidentity != '\0' || form->attgenerated != '\0');
	}
	sluice_catalog_end(&scan);
}

bool
sluice_initial_value(SluiceDecoder *decoder, const SluiceTable *table, const SluiceColumn *column,
					 SluiceValue *value)
{
	Missing		missing;
	SluiceBuffer bytes;
	SluiceCursor cursor;

	memset(value, 0, sizeof(*value));
	value->class = SLUICE_NULL;
	read_attribute(table->oid, column->attnum, &missing);
	if (!missing.found || missing.computed)
		return false;
	if (!missing.has_value)
		/* no value at all is no value under NOT NULL: the table was empty, or rewritten */
		return (column->flags & SLUICE_COLUMN_NOT_NULL) == 0;

	sluice_buffer_init(&bytes, &sluice_palloc_allocator);
	sluice_value_encode(sluice_value_encoder(missing.type, missing.typmod, &decoder->options),
						missing.value, &bytes);
	sluice_cursor_init(&cursor, bytes.data, bytes.length);
	return sluice_cursor_value(&cursor, value);
}

/* ---- changed columns ---- */

/* varchar and text, where nothing is cut off. */
static bool
widens_text(const SluiceColumn *from, const SluiceColumn *to)
{
	if (from->type_oid != VARCHAROID && from->type_oid != TEXTOID)
		return false;
	if (to->type_oid == TEXTOID)
		return true;
	return to->type_oid == VARCHAROID && from->type_oid == VARCHAROID &&
		(to->max_length < 0 || (from->max_length >= 0 && to->max_length >= from->max_length));
}

/* numeric of the same scale, or of any: values are stored without trailing zeros. */
static bool
widens_numeric(const SluiceColumn *from, const SluiceColumn *to)
{
	int			from_scale = (from->typmod - VARHDRSZ) & 0x7ff;
	int			to_scale = (to->typmod - VARHDRSZ) & 0x7ff;
	int			from_precision = ((from->typmod - VARHDRSZ) >> 16) & 0xffff;
	int			to_precision = ((to->typmod - VARHDRSZ) >> 16) & 0xffff;

	if (from->type_oid != NUMERICOID || to->type_oid != NUMERICOID)
		return false;
	if (to->typmod < VARHDRSZ)
		return true;
	return from->typmod >= VARHDRSZ && from_scale == to_scale && to_precision >= from_precision;
}

bool
sluice_initial_same_values(const SluiceColumn *from, const SluiceColumn *to)
{
	if (from->storage != to->storage)
		return false;
	if ((from->flags ^ to->flags) & (SLUICE_COLUMN_ENUM | SLUICE_COLUMN_ARRAY))
		return false;
	if (from->type_oid == to->type_oid && from->typmod == to->typmod)
		return true;
	/* without a rewrite, that is: sluice_track_check_rewrite() */
	return widens_text(from, to) || widens_numeric(from, to);
}
