/*
 * evolve.c: see evolve.h.
 *
 * In: tables before and after.  Out: frames, in the open transaction.
 * Runs in: decoder, in callbacks.  Locks: ACCESS SHARE on catalogs in reads.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "diff.h"
#include "evolve.h"
#include "initial.h"
#include "plugin.h"

/* A table on its way from one state to the other: arrays of its own. */
typedef struct Step
{
	SluiceDecoder *decoder;
	ReorderBufferTXN *txn;
	const SluiceTable *to;
	SluiceTable now;
	SluiceColumn *columns;
	SluiceIndex *indexes;
	uint16_t   *key;
} Step;

static const char *
name_of(const SluiceTable *table)
{
	return quote_qualified_identifier(table->schema, table->name);
}

/* ---- what is the same ---- */

static const SluiceIndex *
find_index(const SluiceTable *table, uint32_t oid)
{
	for (int i = 0; i < table->nindexes; i++)
		if (table->indexes[i].oid == oid)
			return &table->indexes[i];
	return NULL;
}

static bool
same_index(const SluiceIndex *a, const SluiceIndex *b)
{
	return strcmp(a->name, b->name) == 0 && sluice_diff_same_index(a, b);
}

static bool
same_key(const SluiceTable *a, const SluiceTable *b)
{
	if (a->identity != b->identity || a->nkey != b->nkey || a->flags != b->flags ||
		a->schema_oid != b->schema_oid)
		return false;
	for (int i = 0; i < a->nkey; i++)
		if (a->columns[a->key[i]].attnum != b->columns[b->key[i]].attnum)
			return false;
	return true;
}

static bool
same_column(const SluiceColumn *a, const SluiceColumn *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->type, b->type) == 0 &&
		a->type_oid == b->type_oid && a->typmod == b->typmod && a->storage == b->storage &&
		a->flags == b->flags;
}

bool
sluice_evolution_differs(const SluiceEvolution *evolution)
{
	if (evolution->from == NULL || evolution->to == NULL)
		return evolution->from != evolution->to;
	return sluice_diff_table(evolution->from, evolution->to) != NULL ||
		evolution->from->schema_oid != evolution->to->schema_oid;
}

/* ---- steps ---- */

static void
start(Step *step, SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTable *from,
	  const SluiceTable *to)
{
	step->decoder = decoder;
	step->txn = txn;
	step->to = to;
	step->now = *from;
	step->columns = palloc((from->ncolumns + (to ? to->ncolumns : 0) + 1) * sizeof(SluiceColumn));
	step->indexes = palloc((from->nindexes + (to ? to->nindexes : 0) + 1) * sizeof(SluiceIndex));
	step->key = palloc((from->nkey + (to ? to->nkey : 0) + 1) * sizeof(uint16_t));
	memcpy(step->columns, from->columns, from->ncolumns * sizeof(SluiceColumn));
	memcpy(step->indexes, from->indexes, from->nindexes * sizeof(SluiceIndex));
	memcpy(step->key, from->key, from->nkey * sizeof(uint16_t));
	step->now.columns = step->columns;
	step->now.indexes = step->indexes;
	step->now.key = step->key;
}

static SluiceBuffer *
open_message(Step *step)
{
	step->now.fingerprint = sluice_table_fingerprint(&step->now);
	return sluice_plugin_open_frames(step->decoder, step->txn);
}

static void
put_index(Step *step, SluiceTag tag, const SluiceIndex *index)
{
	SluiceBuffer *out = open_message(step);
	SluiceIndexChange change = {.table = step->now,.index_oid = index->oid,.name = index->name};

	sluice_wire_index_change(out, tag, &change);
	sluice_plugin_put_frames(step->decoder);
}

static void
put_table(Step *step, SluiceTag tag)
{
	SluiceBuffer *out = open_message(step);
	SluiceTableChange change = {.table_oid = step->now.oid,.table = step->now};

	sluice_wire_table_change(out, tag, &change);
	sluice_plugin_put_frames(step->decoder);
}

static void
put_column(Step *step, SluiceTag tag, int attnum, const SluiceValue *initial)
{
	SluiceBuffer *out = open_message(step);
	SluiceColumnChange change = {.table = step->now,.attnum = attnum};

	if (initial != NULL)
		change.initial = *initial;
	sluice_wire_column_change(out, tag, &change);
	sluice_plugin_put_frames(step->decoder);
}

/* ---- indexes ---- */

static void
drop_indexes(Step *step)
{
	for (int i = step->now.nindexes - 1; i >= 0; i--)
	{
		SluiceIndex index = step->indexes[i];
		const SluiceIndex *kept = find_index(step->to, index.oid);

		if (kept != NULL && same_index(&index, kept))
			continue;
		step->now.nindexes--;
		memmove(&step->indexes[i], &step->indexes[i + 1],
				(step->now.nindexes - i) * sizeof(SluiceIndex));
		put_index(step, SLUICE_TAG_DROP_INDEX, &index);
	}
}

static void
create_indexes(Step *step)
{
	for (int i = 0; i < step->to->nindexes; i++)
	{
		const SluiceIndex *index = &step->to->indexes[i];
		int			at = 0;

		if (find_index(&step->now, index->oid) != NULL)
			continue;
		while (at < step->now.nindexes && step->indexes[at].oid < index->oid)
			at++;
		memmove(&step->indexes[at + 1], &step->indexes[at],
				(step->now.nindexes - at) * sizeof(SluiceIndex));
		step->indexes[at] = *index;
		step->now.nindexes++;
		put_index(step, SLUICE_TAG_CREATE_INDEX, index);
	}
}

/* ---- columns ---- */

/* Positions behind a column that went or came; the key loses one that went. */
static void
shift_key(Step *step, int position, int by)
{
	int			kept = 0;

	for (int i = 0; i < step->now.nkey; i++)
	{
		if (by < 0 && step->key[i] == position)
			continue;
		step->key[kept++] = step->key[i] + (step->key[i] >= position ? by : 0);
	}
	step->now.nkey = kept;
}

static void
drop_columns(Step *step)
{
	for (int i = step->now.ncolumns - 1; i >= 0; i--)
	{
		int			attnum = step->columns[i].attnum;

		if (sluice_table_column_by_attnum(step->to, attnum) >= 0)
			continue;
		step->now.ncolumns--;
		memmove(&step->columns[i], &step->columns[i + 1],
				(step->now.ncolumns - i) * sizeof(SluiceColumn));
		shift_key(step, i, -1);
		put_column(step, SLUICE_TAG_DROP_COLUMN, attnum, NULL);
	}
}

static void
update_columns(Step *step)
{
	for (int i = 0; i < step->now.ncolumns; i++)
	{
		SluiceColumn from = step->columns[i];
		const SluiceColumn *to =
			&step->to->columns[sluice_table_column_by_attnum(step->to, from.attnum)];

		if (same_column(&from, to))
			continue;
		if (!sluice_initial_same_values(&from, to))
			sluice_decoder_stop(step->decoder,
								"table %s: the type of column %s was changed (%s to %s)",
								name_of(step->to), quote_identifier(to->name), from.type, to->type);
		step->columns[i] = *to;
		put_column(step, SLUICE_TAG_UPDATE_COLUMN, to->attnum, NULL);
	}
}

static void
add_columns(Step *step)
{
	for (int i = 0; i < step->to->ncolumns; i++)
	{
		const SluiceColumn *column = &step->to->columns[i];
		SluiceValue initial;

		/* both are by attnum: what is not there yet belongs exactly here */
		if (i < step->now.ncolumns && step->columns[i].attnum == column->attnum)
			continue;
		if (!sluice_initial_value(step->decoder, step->to, column, &initial))
			sluice_decoder_stop(step->decoder,
								"table %s: column %s was added, and its values in old rows are not in the WAL",
								name_of(step->to), quote_identifier(column->name));
		memmove(&step->columns[i + 1], &step->columns[i],
				(step->now.ncolumns - i) * sizeof(SluiceColumn));
		step->columns[i] = *column;
		step->now.ncolumns++;
		shift_key(step, i, 1);
		put_column(step, SLUICE_TAG_ADD_COLUMN, column->attnum, &initial);
	}
}

/* Columns are what they will be: so are the positions of the key. */
static void
change_key(Step *step)
{
	if (same_key(&step->now, step->to))
		return;
	memcpy(step->key, step->to->key, step->to->nkey * sizeof(uint16_t));
	step->now.nkey = step->to->nkey;
	step->now.identity = step->to->identity;
	step->now.flags = step->to->flags;
	step->now.schema_oid = step->to->schema_oid;
	put_table(step, SLUICE_TAG_TABLE_METADATA);
}

/* ---- tables ---- */

static void
change_table(Step *step)
{
	if (!sluice_diff_same_filter(&step->now, step->to))
		sluice_decoder_stop(step->decoder, "table %s: its row filter was changed",
							name_of(step->to));
	if (strcmp(step->now.schema, step->to->schema) != 0 ||
		strcmp(step->now.name, step->to->name) != 0)
	{
		step->now.schema = step->to->schema;
		step->now.name = step->to->name;
		put_table(step, SLUICE_TAG_RENAME_TABLE);
	}
	drop_columns(step);
	update_columns(step);
	add_columns(step);
	change_key(step);
	Assert(sluice_table_fingerprint(&step->now) == sluice_table_fingerprint(step->to));
}

static void
drop_table(SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTable *table)
{
	sluice_wire_drop_table(sluice_plugin_open_frames(decoder, txn), table->oid);
	sluice_plugin_put_frames(decoder);
}

/* With all its indexes, which are told of once more at the end, one by one. */
static void
create_table(SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceEvolution *evolution,
			 Step *step)
{
	SluiceTable empty = *evolution->to;
	SluiceCreateTable create = {0};
	SluiceBuffer *out;

	if (!evolution->complete && evolution->to->problem == NULL)
		sluice_decoder_stop(decoder, "table %s was created or is published now, and not all of its rows are in the WAL",
							name_of(evolution->to));
	empty.nindexes = 0;
	start(step, decoder, txn, &empty, evolution->to);
	out = open_message(step);
	create.table = *evolution->to;
	sluice_wire_create_table(out, &create);
	sluice_plugin_put_frames(decoder);
}

/* Followed before, and cannot be any more (or not yet). */
static bool
has_problem(const SluiceEvolution *evolution)
{
	return evolution->to != NULL && evolution->to->problem != NULL;
}

void
sluice_evolve(SluiceDecoder *decoder, ReorderBufferTXN *txn, List *evolutions)
{
	int			n = list_length(evolutions);
	Step	   *steps = palloc0(n * sizeof(Step));
	int			i;

	for (i = 0; i < n; i++)
	{
		const SluiceEvolution *evolution = list_nth(evolutions, i);

		if (evolution->from == NULL || evolution->to == NULL || has_problem(evolution))
			continue;
		start(&steps[i], decoder, txn, evolution->from, evolution->to);
		drop_indexes(&steps[i]);
	}
	for (i = 0; i < n; i++)
	{
		const SluiceEvolution *evolution = list_nth(evolutions, i);

		if (evolution->to == NULL)
			drop_table(decoder, txn, evolution->from);
		else if (evolution->from != NULL && has_problem(evolution))
			sluice_plugin_put_problem(decoder, txn, evolution->to, evolution->to->problem);
	}
	for (i = 0; i < n; i++)
		if (steps[i].to != NULL)
			change_table(&steps[i]);
	for (i = 0; i < n; i++)
	{
		const SluiceEvolution *evolution = list_nth(evolutions, i);

		if (evolution->from == NULL)
			create_table(decoder, txn, evolution, &steps[i]);
	}
	for (i = 0; i < n; i++)
		if (steps[i].to != NULL && !has_problem(list_nth(evolutions, i)))
			create_indexes(&steps[i]);
}
