/*
 * diff.c: what is different between two states of the published schema.
 *
 * Tables are the same by OID, columns by attnum, indexes by OID.
 *
 * In: two schemas.  Out: a text that names the first difference.
 * Runs in: decoder, in callbacks.  Locks: none.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "diff.h"

static const char *
name_of(const SluiceTable *table)
{
	return quote_qualified_identifier(table->schema, table->name);
}

static char *
diff_column(const SluiceTable *table, const SluiceColumn *from, const SluiceColumn *to)
{
	const char *name = quote_identifier(from->name);

	if (strcmp(from->name, to->name) != 0)
		return psprintf("table %s: column %s was renamed to %s", name_of(table), name,
						quote_identifier(to->name));
	if (from->type_oid != to->type_oid || from->typmod != to->typmod ||
		from->storage != to->storage || strcmp(from->type, to->type) != 0)
		return psprintf("table %s: the type of column %s was changed (%s to %s)",
						name_of(table), name, from->type, to->type);
	if ((from->flags ^ to->flags) & SLUICE_COLUMN_NOT_NULL)
		return psprintf("table %s: NOT NULL of column %s was %s", name_of(table), name,
						(to->flags & SLUICE_COLUMN_NOT_NULL) ? "set" : "dropped");
	if (from->flags != to->flags)
		return psprintf("table %s: column %s was changed", name_of(table), name);
	return NULL;
}

static char *
diff_columns(const SluiceTable *from, const SluiceTable *to)
{
	int			i = 0;
	int			j = 0;

	while (i < from->ncolumns || j < to->ncolumns)
	{
		const SluiceColumn *a = i < from->ncolumns ? &from->columns[i] : NULL;
		const SluiceColumn *b = j < to->ncolumns ? &to->columns[j] : NULL;
		char	   *said;

		if (b == NULL || (a != NULL && a->attnum < b->attnum))
			return psprintf("table %s: column %s was dropped", name_of(from),
							quote_identifier(a->name));
		if (a == NULL || b->attnum < a->attnum)
			return psprintf("table %s: column %s was added", name_of(from),
							quote_identifier(b->name));
		said = diff_column(from, a, b);
		if (said != NULL)
			return said;
		i++;
		j++;
	}
	return NULL;
}

static char *
diff_key(const SluiceTable *from, const SluiceTable *to)
{
	bool		same = from->identity == to->identity && from->nkey == to->nkey;

	for (int i = 0; same && i < from->nkey; i++)
		same = from->columns[from->key[i]].attnum == to->columns[to->key[i]].attnum;
	return same ? NULL : psprintf("table %s: its key or replica identity was changed",
								  name_of(from));
}

bool
sluice_diff_same_index(const SluiceIndex *from, const SluiceIndex *to)
{
	if (from->flags != to->flags || from->ncolumns != to->ncolumns)
		return false;
	for (int i = 0; i < from->ncolumns; i++)
	{
		if (from->columns[i].attnum != to->columns[i].attnum ||
			from->columns[i].descending != to->columns[i].descending)
			return false;
	}
	return true;
}

static char *
diff_indexes(const SluiceTable *from, const SluiceTable *to)
{
	int			i = 0;
	int			j = 0;

	while (i < from->nindexes || j < to->nindexes)
	{
		const SluiceIndex *a = i < from->nindexes ? &from->indexes[i] : NULL;
		const SluiceIndex *b = j < to->nindexes ? &to->indexes[j] : NULL;

		if (b == NULL || (a != NULL && a->oid < b->oid))
			return psprintf("table %s: index %s was dropped", name_of(from),
							quote_identifier(a->name));
		if (a == NULL || b->oid < a->oid)
			return psprintf("table %s: index %s was created", name_of(from),
							quote_identifier(b->name));
		if (strcmp(a->name, b->name) != 0)
			return psprintf("table %s: index %s was renamed to %s", name_of(from),
							quote_identifier(a->name), quote_identifier(b->name));
		if (!sluice_diff_same_index(a, b))
			return psprintf("table %s: index %s was changed", name_of(from),
							quote_identifier(a->name));
		i++;
		j++;
	}
	return NULL;
}

bool
sluice_diff_same_filter(const SluiceTable *from, const SluiceTable *to)
{
	if (from->filter == NULL || to->filter == NULL)
		return from->filter == to->filter;
	return strcmp(from->filter, to->filter) == 0;
}

char *
sluice_diff_table(const SluiceTable *from, const SluiceTable *to)
{
	char	   *said = NULL;

	if (from != NULL && from->problem != NULL)
		return NULL;
	if (from == NULL && to == NULL)
		return NULL;
	if (to == NULL)
		return psprintf("table %s was dropped or is no longer published", name_of(from));
	if (from == NULL)
		return psprintf("table %s was created or is published now", name_of(to));

	if (strcmp(from->schema, to->schema) != 0 || strcmp(from->name, to->name) != 0)
		return psprintf("table %s was renamed to %s", name_of(from), name_of(to));
	if (to->problem != NULL)
		return psprintf("table %s cannot be followed any more: %s", name_of(from), to->problem);
	said = diff_columns(from, to);
	if (said == NULL)
		said = diff_key(from, to);
	if (said == NULL)
		said = diff_indexes(from, to);
	if (said == NULL && !sluice_diff_same_filter(from, to))
		said = psprintf("table %s: its row filter was changed", name_of(from));
	if (said == NULL && from->flags != to->flags)
		said = psprintf("table %s was changed", name_of(from));
	return said;
}
