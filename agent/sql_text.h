/*
 * sql_text.h: SQL as text, for what cannot be bound.
 */
#ifndef SLUICE_SQL_TEXT_H
#define SLUICE_SQL_TEXT_H

#include "names.h"
#include "replica.h"
#include "wire.h"

extern void sluice_sql_put(SluiceBuffer *out, const char *text);

/* A literal that gives the same storage class and value, a real to the bit. */
extern void sluice_sql_literal(SluiceBuffer *out, const SluiceValue *value);

/* Runs the text and releases the buffer; logged on failure as "cannot <what>". */
extern SluiceOutcome sluice_sql_run(SluiceReplica *replica, SluiceBuffer *sql, const char *what);

/* The same for ALTER TABLE. */
extern SluiceOutcome sluice_sql_alter(SluiceReplica *replica, SluiceBuffer *sql, const char *what);

#endif
