/*
 * verify_value.h: what a replica must hold for a text that PostgreSQL prints.
 *
 * This is the mapping of docs/types.md written a second time, from text: it
 * shares nothing with the encoder of the extension, so that neither hides the
 * other's faults.
 *
 * In: fields of COPY in text format (settings as in verify_server.c).
 * Out: expected SQLite values.  Pure but for the comparison with a statement's
 * column.
 */
#ifndef SLUICE_VERIFY_VALUE_H
#define SLUICE_VERIFY_VALUE_H

#include <sqlite3.h>

#include "wire.h"

typedef enum SluiceVerifyKind
{
	SLUICE_VERIFY_TEXT,
	SLUICE_VERIFY_BOOLEAN,
	SLUICE_VERIFY_INTEGER,
	SLUICE_VERIFY_FLOAT,
	SLUICE_VERIFY_NUMERIC,
	SLUICE_VERIFY_BYTEA,
	SLUICE_VERIFY_MOMENT,		/* date, timestamp, timestamptz */
	SLUICE_VERIFY_CLOCK			/* time */
} SluiceVerifyKind;

/* Of a base type of pg_catalog by name, under the shard's options. */
extern SluiceVerifyKind sluice_verify_kind(const char *type, bool timestamps_text,
										   bool numerics_double);

/*
 * field[0..size) is changed in place (unescaped, hex decoded) and *value may
 * point into it.  False: the text is not what that kind prints.
 */
extern bool sluice_verify_expect(SluiceVerifyKind kind, char *field, size_t size,
								 SluiceValue *value);

/* Undoes the escapes of COPY in place; returns the new size. */
extern size_t sluice_verify_unescape(char *field, size_t size);

extern bool sluice_verify_same(const SluiceValue *value, sqlite3_stmt *statement, int column);
extern void sluice_verify_bind(sqlite3_stmt *statement, int parameter, const SluiceValue *value);

/* The column of a statement as a value; points into the statement. */
extern SluiceValue sluice_verify_column(sqlite3_stmt *statement, int column);

/* Changes a running hash by class and content. */
extern uint64_t sluice_verify_hash(uint64_t hash, const SluiceValue *value);

#endif
