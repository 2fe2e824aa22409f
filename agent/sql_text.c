/*
 * sql_text.c: see sql_text.h.
 *
 * In: names, values.  Out: SQL.  Runs in: the thread that owns the replica.
 * Locks: none.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sql_text.h"

void
sluice_sql_put(SluiceBuffer *out, const char *text)
{
	sluice_buffer_append(out, text, strlen(text));
}

static void
put_bytes(SluiceBuffer *out, const char *data, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	sluice_sql_put(out, "x'");
	for (size_t i = 0; i < size; i++)
	{
		unsigned char byte = (unsigned char) data[i];
		char		pair[2] = {digits[byte >> 4], digits[byte & 15]};

		sluice_buffer_append(out, pair, 2);
	}
	sluice_sql_put(out, "'");
}

static void
put_text(SluiceBuffer *out, const char *data, size_t size)
{
	sluice_sql_put(out, "'");
	for (size_t i = 0; i < size; i++)
	{
		if (data[i] == '\'')
			sluice_buffer_append(out, "'", 1);
		sluice_buffer_append(out, &data[i], 1);
	}
	sluice_sql_put(out, "'");
}

static void
put_real(SluiceBuffer *out, double value)
{
	char		text[40];

	if (isinf(value))
	{
		sluice_sql_put(out, value > 0 ? "9e999" : "-9e999");
		return;
	}
	/* an exponent makes it a real, whatever its value */
	snprintf(text, sizeof(text), "%.17e", value);
	sluice_sql_put(out, text);
}

void
sluice_sql_literal(SluiceBuffer *out, const SluiceValue *value)
{
	char		text[32];

	switch (value->class)
	{
		case SLUICE_INTEGER:
			snprintf(text, sizeof(text), "%" PRId64, value->u.integer);
			sluice_sql_put(out, value->u.integer == INT64_MIN ? "(-9223372036854775807 - 1)" : text);
			break;
		case SLUICE_REAL:
			put_real(out, value->u.real);
			break;
		case SLUICE_TEXT:
			put_text(out, value->u.bytes.data, value->u.bytes.size);
			break;
		case SLUICE_BLOB:
			put_bytes(out, value->u.bytes.data, value->u.bytes.size);
			break;
		case SLUICE_NULL:
		case SLUICE_UNCHANGED:
			sluice_sql_put(out, "NULL");
			break;
	}
}

SluiceOutcome
sluice_sql_run(SluiceReplica *replica, SluiceBuffer *sql, const char *what)
{
	SluiceOutcome outcome;

	sluice_buffer_append(sql, "", 1);
	outcome = sluice_replica_exec(replica, sql->data, what);
	sluice_buffer_release(sql);
	return outcome;
}

/*
 * ALTER TABLE looks at all views, and takes exception to the JSON operators of
 * our own one unless the schema is trusted.
 */
SluiceOutcome
sluice_sql_alter(SluiceReplica *replica, SluiceBuffer *sql, const char *what)
{
	SluiceOutcome outcome = sluice_replica_exec(replica, "PRAGMA trusted_schema = 1", what);
	SluiceOutcome restored;

	if (outcome == SLUICE_OK)
		outcome = sluice_sql_run(replica, sql, what);
	restored = sluice_replica_exec(replica, "PRAGMA trusted_schema = 0", what);
	return outcome != SLUICE_OK ? outcome : restored;
}
