/*
 * schema_filter.c: what the publications of a table publish of it: which
 * commands, which rows.
 *
 * A row is published if one of the filters is true for it.  Without WHERE, FOR
 * ALL TABLES and FOR TABLES IN SCHEMA publish all rows, whatever other
 * publications say.  TRUNCATE knows no filter.
 *
 * In: the publications as loaded.  Out: table->filter, table->problem.
 * Runs in: the decoder's callbacks, backends.  Locks: none.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodes.h"
#include "utils/builtins.h"

#include "schema_reader.h"

/* insert, update, delete: those that filters are for */
#define ROW_ACTIONS 3

static const char *const action_names[] = {"insert", "update", "delete", "truncate"};

static int
compare_texts(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

/* Not by place in the statement that made it, so that the same is the same. */
static char *
normal_form(const char *filter)
{
	return nodeToString(stringToNode(filter));
}

/* The publication's filter for the table; NULL: all rows. */
static const char *
filter_of(SluiceSchemaReader *reader, const SluicePublication *publication,
		  const SluiceRelationFacts *relation)
{
	const SluicePublishedRelation *entry;

	if (publication->all_tables ||
		list_member_oid(publication->namespaces, relation->namespace))
		return NULL;
	entry = sluice_publication_entry(reader, publication, relation->oid);
	return entry == NULL ? NULL : entry->filter;
}

/* Texts of the filters of those that publish the action, each once, sorted; NIL: all rows. */
static List *
filters_for(SluiceSchemaReader *reader, const SluiceRelationFacts *relation, List *publications,
			uint8 action)
{
	List	   *filters = NIL;
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, publications)
	{
		const SluicePublication *publication = lfirst(cell);
		const char *filter;

		if ((publication->actions & action) == 0)
			continue;
		filter = filter_of(reader, publication, relation);
		if (filter == NULL)
			return NIL;
		filters = lappend(filters, normal_form(filter));
	}
	list_sort(filters, compare_texts);
	foreach(cell, filters)
		if (result == NIL || strcmp(llast(result), lfirst(cell)) != 0)
			result = lappend(result, lfirst(cell));
	return result;
}

static bool
same_filters(const List *a, const List *b)
{
	if (list_length(a) != list_length(b))
		return false;
	for (int i = 0; i < list_length(a); i++)
		if (strcmp(list_nth(a, i), list_nth(b, i)) != 0)
			return false;
	return true;
}

static const char *
any_of(SluiceSchemaReader *reader, List *filters)
{
	List	   *expressions = NIL;
	ListCell   *cell;

	if (filters == NIL)
		return NULL;
	if (list_length(filters) == 1)
		return sluice_schema_string(reader, linitial(filters));
	foreach(cell, filters)
		expressions = lappend(expressions, stringToNode(lfirst(cell)));
	return sluice_schema_string(reader,
								nodeToString(makeBoolExpr(OR_EXPR, expressions, -1)));
}

static void
check_actions(SluiceSchemaReader *reader, List *publications, SluiceTable *table)
{
	const char *first = quote_identifier(((SluicePublication *) linitial(publications))->name);
	uint8		actions = 0;
	ListCell   *cell;

	foreach(cell, publications)
		actions |= ((SluicePublication *) lfirst(cell))->actions;
	for (int i = 0; i < lengthof(action_names); i++)
		if ((actions & (1 << i)) == 0)
			sluice_schema_problem(reader, table,
								  "publication %s does not publish %s: ALTER PUBLICATION %s "
								  "SET (publish = 'insert, update, delete, truncate')",
								  first, action_names[i], first);
}

void
sluice_schema_fill_filter(SluiceSchemaReader *reader, const SluiceRelationFacts *relation,
						  List *publications, SluiceTable *table)
{
	List	   *filters[ROW_ACTIONS];

	check_actions(reader, publications, table);
	for (int i = 0; i < ROW_ACTIONS; i++)
		filters[i] = filters_for(reader, relation, publications, 1 << i);
	for (int i = 1; i < ROW_ACTIONS; i++)
		if (!same_filters(filters[0], filters[i]))
			sluice_schema_problem(reader, table,
								  "its publications filter %s other rows than %s: "
								  "let all that have it publish 'insert, update, delete, truncate'",
								  action_names[0], action_names[i]);
	table->filter = any_of(reader, filters[0]);
}
