/*
 * json_internal.h: what json.c and json_scalar.c share.
 */
#ifndef SLUICE_JSON_INTERNAL_H
#define SLUICE_JSON_INTERNAL_H

#include "value_internal.h"

typedef void (*SluiceJsonWrite) (SluiceJsonWriter *writer, Datum value, SluiceBuffer *json);

/* A field of a composite; its writer is made when a value first comes. */
typedef struct SluiceJsonField
{
	Oid			type;
	SluiceJsonWriter *writer;
} SluiceJsonField;

struct SluiceJsonWriter
{
	SluiceJsonWrite write;
	Oid			type;
	FmgrInfo	output;
	MemoryContext context;		/* where it lives */
	/* arrays */
	SluiceJsonWriter *element;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	/* composites */
	int			nfields;
	SluiceJsonField *fields;
};

/* json_scalar.c */
extern void sluice_json_put_quoted(SluiceBuffer *json, const char *data, size_t size);
extern void sluice_json_write_output(SluiceJsonWriter *writer, Datum value, SluiceBuffer *json);
/* NULL: the type may hold others */
extern SluiceJsonWrite sluice_json_scalar(SluiceJsonWriter *writer);
/* For the text of the type's output function. */
extern SluiceJsonWrite sluice_json_output(SluiceJsonWriter *writer);

static inline void
sluice_json_put_string(SluiceBuffer *json, const char *string)
{
	sluice_buffer_append(json, string, strlen(string));
}

#endif
