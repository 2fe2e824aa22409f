/*
 * json.c: arrays as JSON, as to_json() would write them at TimeZone UTC.
 *
 * A cast to json that a user made is never run: such elements are the text of
 * their output function.  An array with another lower bound than 1 has no
 * JSON form that keeps it: it is PostgreSQL's array text, inside another
 * value as a JSON string.
 *
 * In: array Datums.  Out: TEXT values.
 * Runs in: the decoder's callbacks (only the caches are asked), backends.
 * Locks: ACCESS SHARE on a composite's pg_class entry while it is looked up.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "json_internal.h"

static SluiceJsonWriter *make_writer(Oid type);

/* Where an array is being read. */
typedef struct ArrayCursor
{
	char	   *data;
	bits8	   *nulls;
	int			item;
} ArrayCursor;

static void
write_element(SluiceJsonWriter *writer, ArrayCursor *cursor, SluiceBuffer *json)
{
	int			item = cursor->item++;
	Datum		value;

	if (cursor->nulls != NULL && (cursor->nulls[item / 8] & (1 << (item % 8))) == 0)
	{
		sluice_json_put_string(json, "null");
		return;
	}
	value = fetch_att(cursor->data, writer->typbyval, writer->typlen);
	cursor->data = att_addlength_pointer(cursor->data, writer->typlen, cursor->data);
	cursor->data = (char *) att_align_nominal(cursor->data, writer->typalign);
	writer->element->write(writer->element, value, json);
}

static void
write_dimension(SluiceJsonWriter *writer, ArrayType *array, int dimension,
				ArrayCursor *cursor, SluiceBuffer *json)
{
	sluice_buffer_append(json, "[", 1);
	for (int i = 0; i < ARR_DIMS(array)[dimension]; i++)
	{
		if (i > 0)
			sluice_buffer_append(json, ",", 1);
		if (dimension + 1 < ARR_NDIM(array))
			write_dimension(writer, array, dimension + 1, cursor, json);
		else
			write_element(writer, cursor, json);
	}
	sluice_buffer_append(json, "]", 1);
}

static bool
starts_at_one(ArrayType *array)
{
	for (int i = 0; i < ARR_NDIM(array); i++)
		if (ARR_LBOUND(array)[i] != 1)
			return false;
	return true;
}

static void
write_plain_array(SluiceJsonWriter *writer, ArrayType *array, SluiceBuffer *json)
{
	ArrayCursor cursor = {ARR_DATA_PTR(array), ARR_NULLBITMAP(array), 0};

	check_stack_depth();
	if (ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) == 0)
		sluice_json_put_string(json, "[]");
	else
		write_dimension(writer, array, 0, &cursor, json);
}

/* An array inside another value. */
static void
write_array(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	ArrayType  *array = DatumGetArrayTypeP(value);

	if (starts_at_one(array))
		write_plain_array(writer, array, json);
	else
		sluice_json_write_output(writer, PointerGetDatum(array), json);
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
}

static SluiceJsonWriter *
field_writer(SluiceJsonWriter *writer, int field, Oid type)
{
	MemoryContext old;

	if (writer->fields[field].type != type)
	{
		old = MemoryContextSwitchTo(writer->context);
		writer->fields[field].writer = make_writer(type);
		writer->fields[field].type = type;
		MemoryContextSwitchTo(old);
	}
	return writer->fields[field].writer;
}

/* The type may have got more fields since the last value. */
static void
ensure_fields(SluiceJsonWriter *writer, int nfields)
{
	Size		old = writer->nfields * sizeof(SluiceJsonField);
	SluiceJsonField	   *fields;

	if (nfields <= writer->nfields)
		return;
	fields = MemoryContextAllocZero(writer->context, nfields * sizeof(SluiceJsonField));
	if (old > 0)
		memcpy(fields, writer->fields, old);
	writer->fields = fields;
	writer->nfields = nfields;
}

static void
write_composite(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(value);
	TupleDesc	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
											  HeapTupleHeaderGetTypMod(header));
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	const char *separator = "{";

	check_stack_depth();
	ensure_fields(writer, desc->natts);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		Datum		field;
		bool		isnull;

		if (attribute->attisdropped)
			continue;
		sluice_json_put_string(json, separator);
		separator = ",";
		sluice_json_put_quoted(json, NameStr(attribute->attname), strlen(NameStr(attribute->attname)));
		sluice_buffer_append(json, ":", 1);
		field = heap_getattr(&tuple, i + 1, desc, &isnull);
		if (isnull)
			sluice_json_put_string(json, "null");
		else
		{
			SluiceJsonWriter *inner = field_writer(writer, i, attribute->atttypid);

			inner->write(inner, field, json);
		}
	}
	sluice_json_put_string(json, *separator == '{' ? "{}" : "}");
	ReleaseTupleDesc(desc);
	if ((Pointer) header != DatumGetPointer(value))
		pfree(header);
}

static SluiceJsonWrite
choose(SluiceJsonWriter *writer)
{
	SluiceJsonWrite output = sluice_json_scalar(writer);

	if (output != NULL)
		return output;
	if (type_is_rowtype(writer->type))
		return write_composite;
	output = sluice_json_output(writer);
	if (writer->type == INT2VECTOROID || writer->type == OIDVECTOROID)
		return output;			/* they start at 0 */
	writer->element = OidIsValid(get_element_type(writer->type)) ?
		make_writer(get_element_type(writer->type)) : NULL;
	if (writer->element == NULL)
		return output;
	get_typlenbyvalalign(get_element_type(writer->type), &writer->typlen, &writer->typbyval,
						 &writer->typalign);
	return write_array;
}

static SluiceJsonWriter *
make_writer(Oid type)
{
	SluiceJsonWriter *writer = palloc0(sizeof(SluiceJsonWriter));

	writer->type = getBaseType(type);
	writer->context = CurrentMemoryContext;
	writer->write = choose(writer);
	return writer;
}

SluiceJsonWriter *
sluice_json_writer(Oid array_type)
{
	return make_writer(array_type);
}

void
sluice_json_encode_array(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	ArrayType  *array = DatumGetArrayTypeP(value);

	if (starts_at_one(array))
	{
		SluiceBuffer json;

		sluice_buffer_init(&json, &sluice_palloc_allocator);
		write_plain_array(encoder->json, array, &json);
		sluice_text_put(out, json.data, json.length);
		sluice_buffer_release(&json);
	}
	else
	{
		char	   *printed = OutputFunctionCall(&encoder->output, PointerGetDatum(array));

		sluice_text_put(out, printed, strlen(printed));
		pfree(printed);
	}
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
}
