/*
 * statement.h: prepared statements of one SQLite connection.
 *
 * Two kinds: fixed ones, by the address of their literal text, kept for good;
 * and plans of tables, of which the least recently used are dropped, so that
 * thousands of tables do not hold thousands of statements.
 *
 * A SluiceStatements belongs to the thread of its connection.
 */
#ifndef SLUICE_STATEMENT_H
#define SLUICE_STATEMENT_H

#include <sqlite3.h>
#include <stddef.h>

typedef struct SluicePlan
{
	sqlite3_stmt *statement;
	struct SluicePlan **slot;	/* where its owner looks for it; NULL when dropped */
	struct SluicePlan *newer;
	struct SluicePlan *older;
} SluicePlan;

typedef struct SluiceStatements SluiceStatements;

extern SluiceStatements *sluice_statements_create(sqlite3 *db);
extern void sluice_statements_destroy(SluiceStatements *statements);

/* NULL on failure; see sqlite3_errmsg(). */
extern sqlite3_stmt *sluice_statements_fixed(SluiceStatements *statements, const char *sql);

/* Prepares a plan into *slot; NULL on failure.  May drop another one. */
extern SluicePlan *sluice_statements_plan(SluiceStatements *statements, const char *sql,
										  size_t size, SluicePlan **slot);
extern void sluice_statements_used(SluiceStatements *statements, SluicePlan *plan);
extern void sluice_statements_drop(SluiceStatements *statements, SluicePlan *plan);

#endif
