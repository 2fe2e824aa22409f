/*
 * value_internal.h: what the files of the value encoder share (value.c,
 * number.c, datetime.c, json.c, text.c).
 */
#ifndef SLUICE_VALUE_INTERNAL_H
#define SLUICE_VALUE_INTERNAL_H

#include "fmgr.h"

#include "allocator.h"
#include "compat.h"
#include "value.h"

typedef struct SluiceJsonWriter SluiceJsonWriter;

typedef void (*SluiceEncodeFunction) (SluiceValueEncoder *encoder, Datum value,
									  SluiceBuffer *out);

struct SluiceValueEncoder
{
	SluiceEncodeFunction encode;
	Oid			type;			/* never a domain */
	bool		numerics_double;
	bool		varlena;		/* may be toasted */
	FmgrInfo	output;			/* of the types that have no way of their own */
	SluiceJsonWriter *json;		/* arrays */
};

/* text.c: server encoding to UTF-8; puts TEXT */
extern void sluice_text_put(SluiceBuffer *out, const char *data, size_t size);
/* The same string if it is UTF-8 already, else a palloc'd one. */
extern const char *sluice_text_utf8(const char *data, size_t *size);
extern void sluice_text_encode_enum(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out);
extern const char *sluice_text_enum_label(Oid label, char *name);	/* NAMEDATALEN */
/* "char": at most 4 bytes and a zero */
extern int	sluice_text_char(char value, char *text);

/* number.c */
extern void sluice_number_encode_numeric(SluiceValueEncoder *encoder, Datum value,
										 SluiceBuffer *out);
extern void sluice_number_encode_float4(SluiceValueEncoder *encoder, Datum value,
										SluiceBuffer *out);
extern void sluice_number_encode_float8(SluiceValueEncoder *encoder, Datum value,
										SluiceBuffer *out);
/* Shortest text that reads back the same; returns its length. */
extern int	sluice_number_format_float4(float4 value, char *text);
extern int	sluice_number_format_float8(float8 value, char *text);

/* datetime.c; NULL: the type is not one of its */
extern SluiceEncodeFunction sluice_datetime_encoder(Oid type, const SluiceEncodeOptions *options);

/* json.c: array elements and fields as to_json writes them */
extern SluiceJsonWriter *sluice_json_writer(Oid array_type);
extern void sluice_json_encode_array(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out);

#endif
