/*
 * json.c: values as JSON text, for row keys and metadata.
 *
 * In: SQLite values.  Out: JSON behind what the buffer has.
 * Runs in: agent.  Locks: none.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

static const char hex[] = "0123456789abcdef";

static void
put_escape(SluiceBuffer *out, unsigned char c)
{
	char		escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
	static const char from[] = "\"\\\b\f\n\r\t";
	static const char to[] = "\"\\bfnrt";
	const char *at = c != 0 ? strchr(from, c) : NULL;

	if (at == NULL)
	{
		sluice_buffer_append(out, escape, 6);
		return;
	}
	escape[1] = to[at - from];
	sluice_buffer_append(out, escape, 2);
}

void
sluice_json_string(SluiceBuffer *out, const char *text, size_t size)
{
	size_t		start = 0;

	sluice_buffer_append(out, "\"", 1);
	for (size_t i = 0; i < size; i++)
	{
		unsigned char c = (unsigned char) text[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		sluice_buffer_append(out, text + start, i - start);
		put_escape(out, c);
		start = i + 1;
	}
	sluice_buffer_append(out, text + start, size - start);
	sluice_buffer_append(out, "\"", 1);
}

static void
put_real(SluiceBuffer *out, double value)
{
	char		text[40];

	if (isinf(value))
	{
		sluice_json_string(out, value > 0 ? "Infinity" : "-Infinity", value > 0 ? 8 : 9);
		return;
	}
	/* the shortest of 15 to 17 digits that reads back as the same double */
	for (int digits = 15; digits <= 17; digits++)
	{
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	sluice_buffer_append(out, text, strlen(text));
}

static void
put_blob(SluiceBuffer *out, const char *data, size_t size)
{
	sluice_buffer_append(out, "\"\\\\x", 4);
	for (size_t i = 0; i < size; i++)
	{
		unsigned char c = (unsigned char) data[i];
		char		pair[2] = {hex[c >> 4], hex[c & 15]};

		sluice_buffer_append(out, pair, 2);
	}
	sluice_buffer_append(out, "\"", 1);
}

/* snprintf would be half of the row log's cost */
static void
put_integer(SluiceBuffer *out, int64_t value)
{
	char		text[24];
	size_t		at = sizeof(text);
	uint64_t	rest = value < 0 ? 0 - (uint64_t) value : (uint64_t) value;

	do
		text[--at] = (char) ('0' + rest % 10);
	while ((rest /= 10) != 0);
	if (value < 0)
		text[--at] = '-';
	sluice_buffer_append(out, text + at, sizeof(text) - at);
}

void
sluice_json_value(SluiceBuffer *out, const SluiceValue *value)
{
	switch (value->class)
	{
		case SLUICE_INTEGER:
			put_integer(out, value->u.integer);
			break;
		case SLUICE_REAL:
			put_real(out, value->u.real);
			break;
		case SLUICE_TEXT:
			sluice_json_string(out, value->u.bytes.data, value->u.bytes.size);
			break;
		case SLUICE_BLOB:
			put_blob(out, value->u.bytes.data, value->u.bytes.size);
			break;
		case SLUICE_NULL:
		case SLUICE_UNCHANGED:
			sluice_buffer_append(out, "null", 4);
			break;
	}
}
