/*
 * row_plan.c: the prepared statements of a table.
 *
 * In: a table as noted, which columns an update leaves alone.
 * Out: statements, kept in the connection's cache.
 * Runs in: the thread that owns the replica.  Locks: none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "log.h"
#include "names.h"
#include "replica_meta.h"
#include "row.h"
#include "row_plan.h"

static void
put(SluiceBuffer *out, const char *text)
{
	sluice_buffer_append(out, text, strlen(text));
}

static void
put_parameter(SluiceBuffer *out, const char *before, int number)
{
	char		text[16];

	put(out, before);
	snprintf(text, sizeof(text), "?%d", number);
	put(out, text);
}

SluiceRowPlans *
sluice_row_plans(SluiceReplicaTable *table)
{
	SluiceRowPlans *plans = table->plans;
	const SluiceTable *spec = &table->spec;

	if (plans != NULL)
		return plans;
	plans = sluice_arena_alloc(&table->arena, sizeof(*plans));
	plans->by_row = spec->nkey == 0 || sluice_replica_key_is_late(spec);
	plans->in_key = sluice_arena_alloc(&table->arena, spec->ncolumns + 1u);
	for (int k = 0; k < spec->nkey; k++)
		plans->in_key[spec->key[k]] = true;
	table->plans = plans;
	return plans;
}

void
sluice_row_release_plans(SluiceReplica *replica, SluiceReplicaTable *table)
{
	SluiceRowPlans *plans = table->plans;
	SluicePlan **slots[] = {plans ? &plans->copy : NULL, plans ? &plans->insert : NULL,
		plans ? &plans->update : NULL, plans ? &plans->delete : NULL,
	plans ? &plans->truncate : NULL};

	/* names may be other ones from here on */
	table->key_form = NULL;
	if (plans == NULL)
		return;
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (*slots[i] != NULL)
			sluice_statements_drop(replica->statements, *slots[i]);
	for (int i = 0; i < SLUICE_UPDATE_VARIANTS; i++)
		if (plans->variants[i].plan != NULL)
			sluice_statements_drop(replica->statements, plans->variants[i].plan);
	table->plans = NULL;
}

/* The statement of a slot; sql is given back. */
static sqlite3_stmt *
prepare(SluiceReplica *replica, SluiceReplicaTable *table, SluiceBuffer *sql, SluicePlan **slot)
{
	SluicePlan *plan = sluice_statements_plan(replica->statements, sql->data, sql->length, slot);

	if (plan == NULL)
		sluice_log(SLUICE_ERROR, "cannot prepare a statement for table \"%s\": %s", table->name,
				   sqlite3_errmsg(replica->db));
	sluice_buffer_release(sql);
	return plan == NULL ? NULL : plan->statement;
}

static sqlite3_stmt *
known(SluiceReplica *replica, SluicePlan *plan)
{
	sluice_statements_used(replica->statements, plan);
	return plan->statement;
}

/* A name of the rowid that no column has taken. */
static const char *
rowid_name(const SluiceReplicaTable *table)
{
	static const char *const names[] = {"rowid", "_rowid_", "oid"};

	for (int i = 0; i < 3; i++)
	{
		bool		taken = false;

		for (int c = 0; c < table->spec.ncolumns; c++)
			if (strcasecmp(table->columns[c], names[i]) == 0)
				taken = true;
		if (!taken)
			return names[i];
	}
	sluice_log(SLUICE_ERROR, "rows of table \"%s\" cannot be told apart: it has no key and all "
			   "names of the row number are names of columns", table->name);
	return NULL;
}

/* One of the rows that have all the old values: equal rows are alike. */
static bool
put_where_row(SluiceBuffer *sql, const SluiceReplicaTable *table)
{
	const char *rowid = rowid_name(table);
	int			n = table->spec.ncolumns;

	if (rowid == NULL)
		return false;
	put(sql, " WHERE ");
	put(sql, rowid);
	put(sql, " = (SELECT ");
	put(sql, rowid);
	put(sql, " FROM ");
	sluice_names_quote(sql, table->name);
	for (int i = 0; i < n; i++)
	{
		put(sql, i == 0 ? " WHERE " : " AND ");
		sluice_names_quote(sql, table->columns[i]);
		put_parameter(sql, " IS ", n + 2 + i);
	}
	put(sql, " LIMIT 1)");
	return true;
}

static void
put_where_key(SluiceBuffer *sql, const SluiceReplicaTable *table, bool by_old)
{
	const SluiceTable *spec = &table->spec;

	for (int k = 0; k < spec->nkey; k++)
	{
		put(sql, k == 0 ? " WHERE " : " AND ");
		sluice_names_quote(sql, table->columns[spec->key[k]]);
		put_parameter(sql, " = ", by_old ? spec->ncolumns + 2 + k : spec->key[k] + 1);
	}
}

static sqlite3_stmt *
plan_insert(SluiceReplica *replica, SluiceReplicaTable *table, SluicePlan **slot, bool version)
{
	const SluiceTable *spec = &table->spec;
	SluiceBuffer sql;

	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	put(&sql, "INSERT INTO ");
	sluice_names_quote(&sql, table->name);
	if (spec->ncolumns == 0 && !version)
		put(&sql, " DEFAULT VALUES");
	else
	{
		put(&sql, "(");
		for (int i = 0; i < spec->ncolumns; i++)
		{
			put(&sql, i > 0 ? ", " : "");
			sluice_names_quote(&sql, table->columns[i]);
		}
		if (version)
			put(&sql, spec->ncolumns > 0 ? ", \"_0_version\"" : "\"_0_version\"");
		put(&sql, ") VALUES(");
		for (int i = 0; i < spec->ncolumns + (version ? 1 : 0); i++)
			put_parameter(&sql, i > 0 ? ", " : "", i + 1);
		put(&sql, ")");
	}
	return prepare(replica, table, &sql, slot);
}

sqlite3_stmt *
sluice_row_plan_copy(SluiceReplica *replica, SluiceReplicaTable *table)
{
	SluiceRowPlans *plans = sluice_row_plans(table);

	if (plans->copy != NULL)
		return known(replica, plans->copy);
	return plan_insert(replica, table, &plans->copy, false);
}

sqlite3_stmt *
sluice_row_plan_insert(SluiceReplica *replica, SluiceReplicaTable *table)
{
	SluiceRowPlans *plans = sluice_row_plans(table);

	if (plans->insert != NULL)
		return known(replica, plans->insert);
	return plan_insert(replica, table, &plans->insert, true);
}

sqlite3_stmt *
sluice_row_plan_delete(SluiceReplica *replica, SluiceReplicaTable *table)
{
	SluiceRowPlans *plans = sluice_row_plans(table);
	SluiceBuffer sql;

	if (plans->delete != NULL)
		return known(replica, plans->delete);
	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	put(&sql, "DELETE FROM ");
	sluice_names_quote(&sql, table->name);
	if (!plans->by_row)
		put_where_key(&sql, table, true);
	else if (!put_where_row(&sql, table))
	{
		sluice_buffer_release(&sql);
		return NULL;
	}
	return prepare(replica, table, &sql, &plans->delete);
}

sqlite3_stmt *
sluice_row_plan_truncate(SluiceReplica *replica, SluiceReplicaTable *table)
{
	SluiceRowPlans *plans = sluice_row_plans(table);
	SluiceBuffer sql;

	if (plans->truncate != NULL)
		return known(replica, plans->truncate);
	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	put(&sql, "DELETE FROM ");
	sluice_names_quote(&sql, table->name);
	return prepare(replica, table, &sql, &plans->truncate);
}

static sqlite3_stmt *
plan_update(SluiceReplica *replica, SluiceReplicaTable *table, const SluiceValue *new_values,
			bool by_old, SluicePlan **slot)
{
	SluiceRowPlans *plans = table->plans;
	int			n = table->spec.ncolumns;
	SluiceBuffer sql;

	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	put(&sql, "UPDATE ");
	sluice_names_quote(&sql, table->name);
	put(&sql, " SET ");
	for (int i = 0; i < n; i++)
	{
		if (new_values[i].class == SLUICE_UNCHANGED || (!by_old && plans->in_key[i]))
			continue;
		sluice_names_quote(&sql, table->columns[i]);
		put_parameter(&sql, " = ", i + 1);
		put(&sql, ", ");
	}
	put_parameter(&sql, "\"_0_version\" = ", n + 1);
	if (!plans->by_row)
		put_where_key(&sql, table, by_old);
	else if (!put_where_row(&sql, table))
	{
		sluice_buffer_release(&sql);
		return NULL;
	}
	return prepare(replica, table, &sql, slot);
}

static bool
same_pattern(const SluiceUpdateVariant *variant, const SluiceValue *new_values, int n)
{
	for (int i = 0; i < n; i++)
		if (variant->pattern[i] != (new_values[i].class == SLUICE_UNCHANGED))
			return false;
	return true;
}

sqlite3_stmt *
sluice_row_plan_update(SluiceReplica *replica, SluiceReplicaTable *table,
					   const SluiceValue *new_values, bool by_old)
{
	SluiceRowPlans *plans = sluice_row_plans(table);
	int			n = table->spec.ncolumns;
	bool		whole = !by_old;
	SluiceUpdateVariant *variant;

	for (int i = 0; whole && i < n; i++)
		whole = new_values[i].class != SLUICE_UNCHANGED;
	if (whole)
		return plans->update != NULL ? known(replica, plans->update) :
			plan_update(replica, table, new_values, false, &plans->update);
	for (int i = 0; i < SLUICE_UPDATE_VARIANTS; i++)
	{
		variant = &plans->variants[i];
		if (variant->plan != NULL && variant->by_old == by_old &&
			same_pattern(variant, new_values, n))
			return known(replica, variant->plan);
	}
	variant = &plans->variants[plans->victim];
	plans->victim = (plans->victim + 1) % SLUICE_UPDATE_VARIANTS;
	if (variant->plan != NULL)
		sluice_statements_drop(replica->statements, variant->plan);
	if (variant->pattern == NULL)
		variant->pattern = sluice_arena_alloc(&table->arena, (size_t) n + 1);
	for (int i = 0; i < n; i++)
		variant->pattern[i] = new_values[i].class == SLUICE_UNCHANGED;
	variant->by_old = by_old;
	return plan_update(replica, table, new_values, by_old, &variant->plan);
}
