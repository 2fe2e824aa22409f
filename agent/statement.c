/*
 * statement.c: prepared statements of one SQLite connection.
 *
 * In: SQL.  Out: statements, reset and without bindings.
 * Runs in: the thread of the connection.  Locks: none.
 */
#include <stdint.h>
#include <stdlib.h>

#include "memory.h"
#include "statement.h"

#define MAX_PLANS 400			/* some 10 kB each */
#define FIXED_SLOTS 256			/* power of two, above the number of literals */

typedef struct Fixed
{
	const char *sql;
	sqlite3_stmt *statement;
} Fixed;

struct SluiceStatements
{
	sqlite3    *db;
	Fixed		fixed[FIXED_SLOTS];
	SluicePlan *newest;
	SluicePlan *oldest;
	size_t		nplans;
};

static void *
allocate(size_t size)
{
	const SluiceAllocator *a = &sluice_malloc_allocator;
	char	   *memory = a->grow(a->context, NULL, size);

	for (size_t i = 0; i < size; i++)
		memory[i] = 0;
	return memory;
}

SluiceStatements *
sluice_statements_create(sqlite3 *db)
{
	SluiceStatements *statements = allocate(sizeof(*statements));

	statements->db = db;
	return statements;
}

void
sluice_statements_destroy(SluiceStatements *statements)
{
	if (statements == NULL)
		return;
	while (statements->oldest != NULL)
		sluice_statements_drop(statements, statements->oldest);
	for (int i = 0; i < FIXED_SLOTS; i++)
		sqlite3_finalize(statements->fixed[i].statement);
	free(statements);
}

sqlite3_stmt *
sluice_statements_fixed(SluiceStatements *statements, const char *sql)
{
	size_t		at = ((uintptr_t) sql >> 3) * 2654435761u;
	Fixed	   *fixed;

	for (;; at++)
	{
		fixed = &statements->fixed[at & (FIXED_SLOTS - 1)];
		if (fixed->sql == sql)
			return fixed->statement;
		if (fixed->sql == NULL)
			break;
	}
	if (sqlite3_prepare_v3(statements->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
						   &fixed->statement, NULL) != SQLITE_OK)
		return NULL;
	fixed->sql = sql;
	return fixed->statement;
}

static void
unlink_plan(SluiceStatements *statements, SluicePlan *plan)
{
	if (plan->newer != NULL)
		plan->newer->older = plan->older;
	else
		statements->newest = plan->older;
	if (plan->older != NULL)
		plan->older->newer = plan->newer;
	else
		statements->oldest = plan->newer;
	plan->newer = plan->older = NULL;
}

static void
link_plan(SluiceStatements *statements, SluicePlan *plan)
{
	plan->older = statements->newest;
	if (plan->older != NULL)
		plan->older->newer = plan;
	else
		statements->oldest = plan;
	statements->newest = plan;
}

SluicePlan *
sluice_statements_plan(SluiceStatements *statements, const char *sql, size_t size,
					   SluicePlan **slot)
{
	sqlite3_stmt *statement;
	SluicePlan *plan;

	if (sqlite3_prepare_v3(statements->db, sql, (int) size, SQLITE_PREPARE_PERSISTENT,
						   &statement, NULL) != SQLITE_OK)
		return NULL;
	if (statements->nplans >= MAX_PLANS)
		sluice_statements_drop(statements, statements->oldest);
	if (*slot != NULL)
		sluice_statements_drop(statements, *slot);
	plan = allocate(sizeof(*plan));
	plan->statement = statement;
	plan->slot = slot;
	*slot = plan;
	link_plan(statements, plan);
	statements->nplans++;
	return plan;
}

void
sluice_statements_used(SluiceStatements *statements, SluicePlan *plan)
{
	if (statements->newest == plan)
		return;
	unlink_plan(statements, plan);
	link_plan(statements, plan);
}

void
sluice_statements_drop(SluiceStatements *statements, SluicePlan *plan)
{
	unlink_plan(statements, plan);
	statements->nplans--;
	*plan->slot = NULL;
	sqlite3_finalize(plan->statement);
	free(plan);
}
