/*
 * json_scalar.c: elements and fields of JSON that hold no others.
 *
 * In: Datums.  Out: JSON text in the server encoding.
 * Runs in: the decoder's callbacks, backends.  Locks: none kept.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"

#include "json_internal.h"

void
sluice_json_put_quoted(SluiceBuffer *json, const char *data, size_t size)
{
	const char *end = data + size;
	const char *plain = data;
	char		code[8];

	sluice_buffer_append(json, "\"", 1);
	for (; data < end; data++)
	{
		const char *escape = NULL;

		if ((unsigned char) *data >= ' ' && *data != '"' && *data != '\\')
			continue;
		switch (*data)
		{
			case '\b':
				escape = "\\b";
				break;
			case '\f':
				escape = "\\f";
				break;
			case '\n':
				escape = "\\n";
				break;
			case '\r':
				escape = "\\r";
				break;
			case '\t':
				escape = "\\t";
				break;
			case '"':
				escape = "\\\"";
				break;
			case '\\':
				escape = "\\\\";
				break;
			default:
				snprintf(code, sizeof(code), "\\u%04x", (unsigned char) *data);
				escape = code;
		}
		sluice_buffer_append(json, plain, data - plain);
		sluice_json_put_string(json, escape);
		plain = data + 1;
	}
	sluice_buffer_append(json, plain, data - plain);
	sluice_buffer_append(json, "\"", 1);
}

static void
write_bool(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	sluice_json_put_string(json, DatumGetBool(value) ? "true" : "false");
}

static void
write_integer(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	char		printed[32];
	int64		integer = writer->type == INT2OID ? DatumGetInt16(value) :
		writer->type == INT4OID ? DatumGetInt32(value) : DatumGetInt64(value);

	sluice_buffer_append(json, printed, pg_lltoa(integer, printed));
}

/* NaN and infinities are strings. */
static void
write_float(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	char		printed[32];
	float8		number = writer->type == FLOAT4OID ? DatumGetFloat4(value) : DatumGetFloat8(value);

	if (isnan(number))
		sluice_json_put_string(json, "\"NaN\"");
	else if (isinf(number))
		sluice_json_put_string(json, number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	else if (writer->type == FLOAT4OID)
		sluice_buffer_append(json, printed, sluice_number_format_float4(DatumGetFloat4(value), printed));
	else
		sluice_buffer_append(json, printed, sluice_number_format_float8(number, printed));
}

static void
write_numeric(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	char	   *printed = OutputFunctionCall(&writer->output, value);

	if (strchr(printed, 'N') != NULL || strchr(printed, 'I') != NULL)
		sluice_json_put_quoted(json, printed, strlen(printed));
	else
		sluice_json_put_string(json, printed);
	pfree(printed);
}

static void
write_datetime(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	char		printed[MAXDATELEN + 1];
	int			utc = 0;

	JsonEncodeDateTime(printed, value, writer->type, &utc);
	sluice_json_put_quoted(json, printed, strlen(printed));
}

static void
write_json(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	struct varlena *written = PG_DETOAST_DATUM_PACKED(value);

	sluice_buffer_append(json, VARDATA_ANY(written), VARSIZE_ANY_EXHDR(written));
	if (written != (struct varlena *) DatumGetPointer(value))
		pfree(written);
}

static void
write_jsonb(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	StringInfoData printed;

	initStringInfo(&printed);
	(void) JsonbToCString(&printed, &jsonb->root, VARSIZE(jsonb));
	if ((Pointer) jsonb != DatumGetPointer(value))
		pfree(jsonb);
	sluice_buffer_append(json, printed.data, printed.len);
	pfree(printed.data);
}

static void
write_text(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	struct varlena *string = PG_DETOAST_DATUM_PACKED(value);

	sluice_json_put_quoted(json, VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string));
	if (string != (struct varlena *) DatumGetPointer(value))
		pfree(string);
}

static void
write_char(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	char		buffer[8];

	sluice_json_put_quoted(json, buffer, sluice_text_char(DatumGetChar(value), buffer));
}

static void
write_enum(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	char		name[NAMEDATALEN];

	sluice_text_enum_label(DatumGetObjectId(value), name);
	sluice_json_put_quoted(json, name, strlen(name));
}

void
sluice_json_write_output(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json)
{
	char	   *printed = OutputFunctionCall(&writer->output, value);

	sluice_json_put_quoted(json, printed, strlen(printed));
	pfree(printed);
}

SluiceJsonWrite
sluice_json_output(SluiceJsonWriter *writer)
{
	Oid			function;
	bool		varlena;

	getTypeOutputInfo(writer->type, &function, &varlena);
	fmgr_info(function, &writer->output);
	if (varlena && (writer->output.fn_addr == textout || writer->output.fn_addr == varcharout ||
					writer->output.fn_addr == bpcharout))
		return write_text;
	return sluice_json_write_output;
}

SluiceJsonWrite
sluice_json_scalar(SluiceJsonWriter *writer)
{
	switch (writer->type)
	{
		case BOOLOID:
			return write_bool;
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return write_integer;
		case FLOAT4OID:
		case FLOAT8OID:
			return write_float;
		case NUMERICOID:
			(void) sluice_json_output(writer);
			return write_numeric;
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return write_datetime;
		case JSONOID:
			return write_json;
		case JSONBOID:
			return write_jsonb;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			return write_text;
		case CHAROID:
			return write_char;
		default:
			break;
	}
	if (get_typtype(writer->type) == TYPTYPE_ENUM)
		return write_enum;
	return NULL;
}
