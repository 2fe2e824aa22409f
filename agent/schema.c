/*
 * schema.c: CREATE TABLE and CREATE INDEX of a replica from a SluiceTable.
 *
 * In: specs.  Out: SQLite's tables and indexes.
 * Runs in: the thread that owns the replica, inside its transaction.
 * Locks: none.
 */
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "names.h"
#include "replica_meta.h"
#include "schema.h"

static void
put(SluiceBuffer *out, const char *text)
{
	sluice_buffer_append(out, text, strlen(text));
}

const char *
sluice_schema_declared(SluiceStorage storage)
{
	switch (storage)
	{
		case SLUICE_STORAGE_INTEGER:
			return "INTEGER";
		case SLUICE_STORAGE_ANY:
			return "ANY";
		case SLUICE_STORAGE_BLOB:
			return "BLOB";
		case SLUICE_STORAGE_TEXT:
			break;
	}
	return "TEXT";
}

static SluiceOutcome
run(SluiceReplica *replica, SluiceBuffer *sql, const char *what)
{
	SluiceOutcome outcome;

	sluice_buffer_append(sql, "", 1);
	outcome = sluice_replica_exec(replica, sql->data, what);
	sluice_buffer_release(sql);
	return outcome;
}

/* ---- tables ---- */

SluiceOutcome
sluice_schema_create_table(SluiceReplica *replica, const SluiceTable *spec, const char *name,
						   const SluicePlaced *placed, SluiceWatermark version,
						   SluiceReplicaTable **table)
{
	char		text[SLUICE_WATERMARK_TEXT_MAX];
	SluiceReplicaTable *noted;
	SluiceBuffer sql;
	SluiceOutcome outcome;

	outcome = sluice_replica_note(replica, spec, name, placed, &noted);
	if (outcome != SLUICE_OK)
		return outcome;
	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	put(&sql, "CREATE TABLE ");
	sluice_names_quote(&sql, name);
	put(&sql, "(");
	for (int i = 0; i < spec->ncolumns; i++)
	{
		sluice_names_quote(&sql, noted->columns[i]);
		put(&sql, " ");
		put(&sql, sluice_schema_declared(spec->columns[i].storage));
		if (noted->integer_key && spec->key[0] == i)
			put(&sql, " PRIMARY KEY");
		put(&sql, ", ");
	}
	put(&sql, "\"_0_version\" TEXT NOT NULL");
	if (placed != NULL)
	{
		sluice_watermark_format(version, text);
		put(&sql, " DEFAULT '");
		put(&sql, text);
		put(&sql, "'");
	}
	put(&sql, ") STRICT");
	outcome = run(replica, &sql, "create a table");
	if (outcome != SLUICE_OK)
		sluice_log(SLUICE_ERROR, "table \"%s\".\"%s\" cannot be created", spec->schema,
				   spec->name);
	else if (table != NULL)
		*table = noted;
	return outcome;
}

SluiceOutcome
sluice_schema_drop_table(SluiceReplica *replica, SluiceReplicaTable *table)
{
	SluiceBuffer sql;
	SluiceOutcome outcome;

	sluice_row_release_plans(replica, table);
	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	put(&sql, "DROP TABLE IF EXISTS ");
	sluice_names_quote(&sql, table->name);
	outcome = run(replica, &sql, "drop a table");
	return outcome == SLUICE_OK ? sluice_replica_forget(replica, table) : outcome;
}

void
sluice_schema_table_names(const SluiceTable *tables, size_t count, const char **names,
						  const SluiceAllocator *allocator)
{
	SluiceName *set = allocator->grow(allocator->context, NULL, (count + 1) * sizeof(*set));

	for (size_t i = 0; i < count; i++)
	{
		set[i].id = tables[i].oid;
		set[i].plain = sluice_names_plain(tables[i].schema, tables[i].name, allocator);
	}
	sluice_names_assign(set, count, false, allocator);
	/* they come back by OID: look each one up */
	for (size_t i = 0; i < count; i++)
	{
		size_t		low = 0;
		size_t		high = count;

		while (low < high)
		{
			size_t		middle = (low + high) / 2;

			if (set[middle].id < tables[i].oid)
				low = middle + 1;
			else
				high = middle;
		}
		names[i] = set[low].name;
	}
	allocator->release(allocator->context, set);
}

/* ---- indexes ---- */

/* The index's columns are the table's key, in any order. */
static bool
is_key(const SluiceTable *spec, const SluiceIndex *index)
{
	if (index->ncolumns != spec->nkey)
		return false;
	for (int i = 0; i < index->ncolumns; i++)
	{
		bool		found = false;

		for (int k = 0; k < spec->nkey; k++)
			if (spec->columns[spec->key[k]].attnum == index->columns[i].attnum)
				found = true;
		if (!found)
			return false;
	}
	return spec->nkey > 0;
}

/* What PostgreSQL checks late, or with nulls alike, SQLite must not check. */
static bool
is_unique(const SluiceIndex *index)
{
	return (index->flags & SLUICE_INDEX_UNIQUE) != 0 &&
		(index->flags & (SLUICE_INDEX_DEFERRABLE | SLUICE_INDEX_NULLS_EQUAL)) == 0;
}

/* The first unique index over the key, else the first plain one; -1: none. */
static int
key_index(const SluiceTable *spec)
{
	int			plain = -1;

	for (int i = 0; i < spec->nindexes; i++)
		if (is_key(spec, &spec->indexes[i]))
		{
			if (is_unique(&spec->indexes[i]))
				return i;
			if (plain < 0)
				plain = i;
		}
	return plain;
}

static SluiceOutcome
create_index(SluiceReplica *replica, const SluiceReplicaTable *table, const SluiceIndex *index,
			 const char *name)
{
	const SluiceTable *spec = &table->spec;
	SluiceBuffer sql;
	SluiceOutcome outcome;

	sluice_buffer_init(&sql, &sluice_malloc_allocator);
	put(&sql, is_unique(index) ? "CREATE UNIQUE INDEX IF NOT EXISTS " :
		"CREATE INDEX IF NOT EXISTS ");
	sluice_names_quote(&sql, name);
	put(&sql, " ON ");
	sluice_names_quote(&sql, table->name);
	put(&sql, "(");
	for (int i = 0; i < index->ncolumns; i++)
	{
		int			at = sluice_table_column_by_attnum(spec, index->columns[i].attnum);

		if (at < 0)
		{
			sluice_buffer_release(&sql);
			return SLUICE_OK;	/* over a column that is not published */
		}
		put(&sql, i > 0 ? ", " : "");
		sluice_names_quote(&sql, table->columns[at]);
		put(&sql, index->columns[i].descending ? " DESC" : "");
	}
	put(&sql, ")");
	outcome = run(replica, &sql, "create an index");
	if (outcome != SLUICE_OK)
		sluice_log(SLUICE_ERROR, "index \"%s\" of table \"%s\" cannot be created", index->name,
				   table->name);
	return outcome == SLUICE_OK ?
		sluice_replica_write_name(replica, "index", index->oid, 0, spec->schema, index->name,
								  name) : outcome;
}

void
sluice_schema_name_indexes(SluiceReplica *replica, SluiceIndexNames *names)
{
	size_t		ntables = sluice_replica_count(replica);
	SluiceName *taken;
	size_t		count = 0;

	sluice_arena_init(&names->arena);
	taken = sluice_arena_alloc(&names->arena, (ntables + 1) * sizeof(*taken));
	for (size_t i = 0; i < ntables; i++)
		count += sluice_replica_at(replica, i)->spec.nindexes;
	names->names = sluice_arena_alloc(&names->arena, (count + 1) * sizeof(SluiceName));
	names->count = 0;
	for (size_t i = 0; i < ntables; i++)
	{
		const SluiceReplicaTable *table = sluice_replica_at(replica, i);

		taken[i].name = table->name;
		for (int k = 0; k < table->spec.nindexes; k++)
		{
			SluiceName *name = &names->names[names->count++];

			name->id = table->spec.indexes[k].oid;
			name->plain = sluice_names_plain(table->spec.schema, table->spec.indexes[k].name,
											 &names->arena.allocator);
		}
	}
	sluice_names_assign_beside(names->names, names->count, taken, ntables,
							   &names->arena.allocator);
}

/* They come back by OID. */
static const char *
name_of(const SluiceIndexNames *names, uint32_t oid)
{
	size_t		low = 0;
	size_t		high = names->count;

	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (names->names[middle].id < oid)
			low = middle + 1;
		else
			high = middle;
	}
	return names->names[low].name;
}

SluiceOutcome
sluice_schema_create_named_indexes(SluiceReplica *replica, SluiceReplicaTable *table,
								   SluiceIndexes which, const SluiceIndexNames *names)
{
	const SluiceTable *spec = &table->spec;
	int			key = key_index(spec);
	SluiceOutcome outcome = SLUICE_OK;

	for (int i = 0; i < spec->nindexes && outcome == SLUICE_OK; i++)
	{
		const SluiceIndex *index = &spec->indexes[i];

		if (which == (i == key ? SLUICE_INDEXES_OTHERS : SLUICE_INDEXES_KEY))
			continue;
		/* INTEGER PRIMARY KEY has no index of its own */
		if (table->integer_key && is_key(spec, index))
			continue;
		outcome = create_index(replica, table, index, name_of(names, index->oid));
	}
	return outcome;
}

SluiceOutcome
sluice_schema_create_indexes(SluiceReplica *replica, SluiceReplicaTable *table,
							 SluiceIndexes which)
{
	SluiceIndexNames names;
	SluiceOutcome outcome;

	if (table->spec.nindexes == 0)
		return SLUICE_OK;
	sluice_schema_name_indexes(replica, &names);
	outcome = sluice_schema_create_named_indexes(replica, table, which, &names);
	sluice_arena_release(&names.arena);
	return outcome;
}
