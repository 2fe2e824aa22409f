/*
 * json.h: values as JSON text, for row keys and metadata.
 * Pure.
 */
#ifndef SLUICE_JSON_H
#define SLUICE_JSON_H

#include "buffer.h"
#include "wire.h"

/* "…" with what JSON wants escaped; the text is UTF-8. */
extern void sluice_json_string(SluiceBuffer *out, const char *text, size_t size);

/*
 * null, number, string; a blob is a string of \x and hex digits, what JSON has
 * no number for (infinities) a string too.
 */
extern void sluice_json_value(SluiceBuffer *out, const SluiceValue *value);

#endif
