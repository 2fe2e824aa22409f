/*
 * filter.c: see filter.h.
 *
 * PostgreSQL lets only immutable functions and types of its own into a filter,
 * so that it can be evaluated under any snapshot.
 *
 * In: the filter's node text, rows.  Out: yes or no.
 * Runs in: the decoder's callbacks, copiers.  Locks: none.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "nodes/nodes.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "filter.h"
#include "value.h"

struct SluiceFilter
{
	const SluiceTable *table;
	Oid			relation;
	TupleDesc	desc;			/* of the relation; its own copy */
	bool		fetch;
	Bitmapset  *columns;
	MemoryContext memory;
	Node	   *expression;
	ExprState  *state;			/* NULL until the first row */
	ExprContext *context;
	TupleTableSlot *slot;		/* NULL in what the filter does not look at */
	char	   *mismatch;		/* while it is made */
};

/* The relation's attribute for one of the filter's table; NULL: none. */
static Form_pg_attribute
find_attribute(const SluiceFilter *filter, const Var *var)
{
	char	   *name;

	if (filter->relation == filter->table->oid)
	{
		Form_pg_attribute attribute;

		if (var->varattno < 1 || var->varattno > filter->desc->natts)
			return NULL;
		attribute = TupleDescAttr(filter->desc, var->varattno - 1);
		return attribute->attisdropped ? NULL : attribute;
	}
	/* names are the same all over a tree of partitions, under every snapshot */
	name = get_attname(filter->table->oid, var->varattno, true);
	for (int i = 0; name != NULL && i < filter->desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(filter->desc, i);

		if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0)
			return attribute;
	}
	return NULL;
}

/* The expression becomes one on rows of the relation, in its place. */
static bool
map_columns(Node *node, void *argument)
{
	SluiceFilter *filter = argument;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;
		Form_pg_attribute attribute = find_attribute(filter, var);

		if (attribute == NULL || attribute->atttypid != var->vartype)
		{
			filter->mismatch = psprintf("the row filter of %s.%s has a column (number %d) that its rows have not",
										filter->table->schema, filter->table->name,
										var->varattno);
			return true;
		}
		var->varattno = attribute->attnum;
		filter->columns = bms_add_member(filter->columns, attribute->attnum);
		return false;
	}
	return expression_tree_walker(node, map_columns, argument);
}

SluiceFilter *
sluice_filter_create(const SluiceTable *table, Oid relation, TupleDesc desc, bool fetch,
					 char **mismatch)
{
	SluiceFilter *filter;

	*mismatch = NULL;
	if (table->filter == NULL)
		return NULL;
	filter = palloc0(sizeof(SluiceFilter));
	filter->table = table;
	filter->relation = relation;
	filter->desc = CreateTupleDescCopy(desc);
	filter->fetch = fetch;
	filter->memory = CurrentMemoryContext;
	filter->expression = stringToNode(table->filter);
	if (map_columns(filter->expression, filter))
	{
		*mismatch = filter->mismatch;
		return NULL;
	}
	filter->slot = MakeSingleTupleTableSlot(filter->desc, &TTSOpsVirtual);
	ExecStoreAllNullTuple(filter->slot);
	filter->context = CreateStandaloneExprContext();
	filter->context->ecxt_scantuple = filter->slot;
	return filter;
}

const Bitmapset *
sluice_filter_columns(const SluiceFilter *filter)
{
	return filter->columns;
}

static inline bool
missing(const SluiceFilter *filter, int at, Datum value)
{
	return !filter->fetch && TupleDescAttr(filter->desc, at)->attlen == -1 &&
		VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value));
}

/* False: *problem says what is not there. */
static bool
fill_slot(SluiceFilter *filter, const Datum *values, const bool *nulls,
		  const Datum *old_values, const bool *old_nulls, char **problem)
{
	int			attnum = -1;

	while ((attnum = bms_next_member(filter->columns, attnum)) >= 0)
	{
		int			at = attnum - 1;
		Datum		value = values[at];

		if (!nulls[at] && missing(filter, at, value))
		{
			if (old_values == NULL || old_nulls[at] || missing(filter, at, old_values[at]))
			{
				*problem = psprintf("its row filter needs column %s of a row, whose value is not in the WAL: "
									"make it a part of the replica identity, and make the shard anew",
									quote_identifier(NameStr(TupleDescAttr(filter->desc, at)->attname)));
				return false;
			}
			value = old_values[at];
		}
		filter->slot->tts_values[at] = value;
		filter->slot->tts_isnull[at] = nulls[at];
	}
	return true;
}

/* At the first row: constants that cannot be computed are an error of that row. */
static void
prepare(SluiceFilter *filter)
{
	MemoryContext caller = MemoryContextSwitchTo(filter->memory);

	filter->state = ExecInitExpr(expression_planner((Expr *) filter->expression), NULL);
	MemoryContextSwitchTo(caller);
}

/*
 * An error that the row's values give rise to (1 / 0) is this table's alone.
 * Functions that can be in a filter leave nothing behind but memory.
 */
static bool
evaluate(SluiceFilter *filter, char **problem)
{
	MemoryContext caller = CurrentMemoryContext;
	volatile bool result = false;

	PG_TRY();
	{
		bool		isnull;
		Datum		value;

		if (filter->state == NULL)
			prepare(filter);
		value = ExecEvalExprSwitchContext(filter->state, filter->context, &isnull);
		result = !isnull && DatumGetBool(value);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		FlushErrorState();
		*problem = psprintf("its row filter fails for a row (%s): change the filter or the row, and make the shard anew",
							sluice_value_name(error->message));
		FreeErrorData(error);
	}
	PG_END_TRY();
	ResetExprContext(filter->context);
	return result;
}

bool
sluice_filter_matches(SluiceFilter *filter, const Datum *values, const bool *nulls,
					  const Datum *old_values, const bool *old_nulls, char **problem)
{
	*problem = NULL;
	return fill_slot(filter, values, nulls, old_values, old_nulls, problem) &&
		evaluate(filter, problem);
}
