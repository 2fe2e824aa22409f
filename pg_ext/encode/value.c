/*
 * value.c: one value of any type as a SQLite value (docs/types.md).
 *
 * An encoder is chosen once per column.  The common types are read as they
 * lie in the tuple; what has no way of its own is the text of its output
 * function, under the settings of sluice_value_pin_settings().
 *
 * In: a Datum, toasted or not.  Out: one value at the buffer's end.
 * Runs in: the decoder's callbacks (historic snapshot, no xid, no user
 * tables: only the syscache is asked), backends.  Locks: none kept.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"

#include "value_internal.h"

static void
encode_bool(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	sluice_wire_put_integer(out, DatumGetBool(value) ? 1 : 0);
}

static void
encode_int2(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	sluice_wire_put_integer(out, DatumGetInt16(value));
}

static void
encode_int4(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	sluice_wire_put_integer(out, DatumGetInt32(value));
}

static void
encode_int8(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	sluice_wire_put_integer(out, DatumGetInt64(value));
}

static void
encode_oid(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	sluice_wire_put_integer(out, DatumGetObjectId(value));
}

/* text, varchar, char(n) with its padding, json, citext */
static void
encode_text(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	struct varlena *text_value = PG_DETOAST_DATUM_PACKED(value);

	sluice_text_put(out, VARDATA_ANY(text_value), VARSIZE_ANY_EXHDR(text_value));
	if (text_value != (struct varlena *) DatumGetPointer(value))
		pfree(text_value);
}

static void
encode_bytea(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	struct varlena *bytes = PG_DETOAST_DATUM_PACKED(value);

	sluice_wire_put_blob(out, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	if (bytes != (struct varlena *) DatumGetPointer(value))
		pfree(bytes);
}

static void
encode_name(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	const char *name = NameStr(*DatumGetName(value));

	sluice_text_put(out, name, strnlen(name, NAMEDATALEN));
}

static void
encode_char(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	char		buffer[8];
	int			length = sluice_text_char(DatumGetChar(value), buffer);

	sluice_wire_put_text(out, buffer, length);
}

static void
encode_uuid(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *bytes = DatumGetUUIDP(value)->data;
	char		buffer[2 * UUID_LEN + 4];
	char	   *at = buffer;

	for (int i = 0; i < UUID_LEN; i++)
	{
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = digits[bytes[i] >> 4];
		*at++ = digits[bytes[i] & 0x0f];
	}
	sluice_wire_put_text(out, buffer, at - buffer);
}

static void
encode_jsonb(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	StringInfoData printed;

	initStringInfo(&printed);
	(void) JsonbToCString(&printed, &jsonb->root, VARSIZE(jsonb));
	if ((Pointer) jsonb != DatumGetPointer(value))
		pfree(jsonb);
	sluice_text_put(out, printed.data, printed.len);
	pfree(printed.data);
}

/* The text of the type's output function. */
static void
encode_output(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	Datum		plain = encoder->varlena ? PointerGetDatum(PG_DETOAST_DATUM_PACKED(value)) : value;
	char	   *printed = OutputFunctionCall(&encoder->output, plain);

	if (plain != value)
		pfree(DatumGetPointer(plain));
	sluice_text_put(out, printed, strlen(printed));
	pfree(printed);
}

/* Types whose value is its own text, whatever their name (citext). */
static bool
output_is_text(const FmgrInfo *output)
{
	return output->fn_addr == textout || output->fn_addr == varcharout ||
		output->fn_addr == bpcharout;
}

static SluiceEncodeFunction
choose_output(SluiceValueEncoder *encoder)
{
	Oid			function;

	getTypeOutputInfo(encoder->type, &function, &encoder->varlena);
	fmgr_info(function, &encoder->output);
	return encoder->varlena && output_is_text(&encoder->output) ? encode_text : encode_output;
}

static SluiceEncodeFunction
choose(SluiceValueEncoder *encoder, const SluiceEncodeOptions *options)
{
	SluiceEncodeFunction datetime = sluice_datetime_encoder(encoder->type, options);

	if (datetime != NULL)
		return datetime;
	switch (encoder->type)
	{
		case BOOLOID:
			return encode_bool;
		case INT2OID:
			return encode_int2;
		case INT4OID:
			return encode_int4;
		case INT8OID:
			return encode_int8;
		case OIDOID:
			return encode_oid;
		case FLOAT4OID:
			return sluice_number_encode_float4;
		case FLOAT8OID:
			return sluice_number_encode_float8;
		case NUMERICOID:
			return sluice_number_encode_numeric;
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case JSONOID:
			return encode_text;
		case JSONBOID:
			return encode_jsonb;
		case BYTEAOID:
			return encode_bytea;
		case NAMEOID:
			return encode_name;
		case CHAROID:
			return encode_char;
		case UUIDOID:
			return encode_uuid;
		case INT2VECTOROID:
		case OIDVECTOROID:
			return choose_output(encoder);
		default:
			break;
	}
	if (get_typtype(encoder->type) == TYPTYPE_ENUM)
		return sluice_text_encode_enum;
	if (OidIsValid(get_element_type(encoder->type)))
	{
		(void) choose_output(encoder);	/* for other lower bounds than 1 */
		encoder->json = sluice_json_writer(encoder->type);
		return sluice_json_encode_array;
	}
	return choose_output(encoder);
}

SluiceValueEncoder *
sluice_value_encoder(Oid type, int32 typmod, const SluiceEncodeOptions *options)
{
	SluiceValueEncoder *encoder = palloc0(sizeof(SluiceValueEncoder));

	encoder->type = getBaseType(type);
	encoder->numerics_double = options->numerics_double;
	encoder->encode = choose(encoder, options);
	return encoder;
}

void
sluice_value_encode(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	encoder->encode(encoder, value, out);
}
