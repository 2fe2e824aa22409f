/*
 * spec_copy.c: deep copies of table specs, and whether two are equal.
 *
 * In: SluiceTable structs.  Out: one that shares no memory with it.
 * Runs in: every process of the extension and the agent.  Locks: none.
 */
#include <string.h>

#include "spec.h"

static void *
copy_bytes(const SluiceAllocator *allocator, const void *from, size_t size)
{
	void	   *to;

	if (size == 0)
		return NULL;
	to = allocator->grow(allocator->context, NULL, size);
	memcpy(to, from, size);
	return to;
}

static const char *
copy_text(const SluiceAllocator *allocator, const char *from)
{
	return from == NULL ? NULL : copy_bytes(allocator, from, strlen(from) + 1);
}

void
sluice_table_copy(SluiceTable *to, const SluiceTable *from, const SluiceAllocator *allocator)
{
	SluiceColumn *columns;
	SluiceIndex *indexes;

	*to = *from;
	to->schema = copy_text(allocator, from->schema);
	to->name = copy_text(allocator, from->name);
	to->problem = copy_text(allocator, from->problem);
	to->filter = copy_text(allocator, from->filter);
	to->key = copy_bytes(allocator, from->key, from->nkey * sizeof(uint16_t));

	columns = copy_bytes(allocator, from->columns, from->ncolumns * sizeof(SluiceColumn));
	for (int i = 0; i < from->ncolumns; i++)
	{
		columns[i].name = copy_text(allocator, columns[i].name);
		columns[i].type = copy_text(allocator, columns[i].type);
		columns[i].default_sql = copy_text(allocator, columns[i].default_sql);
	}
	to->columns = columns;

	indexes = copy_bytes(allocator, from->indexes, from->nindexes * sizeof(SluiceIndex));
	for (int i = 0; i < from->nindexes; i++)
	{
		indexes[i].columns = copy_bytes(allocator, indexes[i].columns,
										indexes[i].ncolumns * sizeof(SluiceIndexColumn));
		indexes[i].name = copy_text(allocator, indexes[i].name);
	}
	to->indexes = indexes;
}

static bool
same_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return strcmp(a, b) == 0;
}

static bool
same_column(const SluiceColumn *a, const SluiceColumn *b)
{
	return a->attnum == b->attnum &&
		a->flags == b->flags &&
		a->storage == b->storage &&
		a->type_oid == b->type_oid &&
		a->typmod == b->typmod &&
		a->max_length == b->max_length &&
		same_text(a->name, b->name) &&
		same_text(a->type, b->type) &&
		same_text(a->default_sql, b->default_sql);
}

static bool
same_index(const SluiceIndex *a, const SluiceIndex *b)
{
	if (a->oid != b->oid || a->flags != b->flags || a->ncolumns != b->ncolumns ||
		!same_text(a->name, b->name))
		return false;
	for (int i = 0; i < a->ncolumns; i++)
	{
		if (a->columns[i].attnum != b->columns[i].attnum ||
			a->columns[i].descending != b->columns[i].descending)
			return false;
	}
	return true;
}

/* The fingerprint follows from the rest and does not count. */
bool
sluice_table_equal(const SluiceTable *a, const SluiceTable *b)
{
	if (a->oid != b->oid || a->schema_oid != b->schema_oid || a->flags != b->flags ||
		a->identity != b->identity || a->ncolumns != b->ncolumns || a->nkey != b->nkey ||
		a->nindexes != b->nindexes)
		return false;
	if (!same_text(a->schema, b->schema) || !same_text(a->name, b->name) ||
		!same_text(a->problem, b->problem) || !same_text(a->filter, b->filter))
		return false;
	for (int i = 0; i < a->ncolumns; i++)
	{
		if (!same_column(&a->columns[i], &b->columns[i]))
			return false;
	}
	for (int i = 0; i < a->nkey; i++)
	{
		if (a->key[i] != b->key[i])
			return false;
	}
	for (int i = 0; i < a->nindexes; i++)
	{
		if (!same_index(&a->indexes[i], &b->indexes[i]))
			return false;
	}
	return true;
}
