/*
 * encode_plugin.c: an output plugin that prints rows as the product encodes
 * them, so that tests see what happens under a historic snapshot.
 *
 * Option publications: a comma-separated list.  With option schema, a commit
 * that changed catalogs prints the published schema as it is then.
 *
 * In: changes.  Out: a line of text each.  Runs in: backends, in the SQL
 * functions of logical decoding.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_publication.h"
#include "nodes/parsenodes.h"
#include "replication/logical.h"
#include "replication/output_plugin.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/varlena.h"

#include "compat.h"
#include "encode_test.h"
#include "row.h"
#include "schema.h"

extern PGDLLEXPORT void _PG_output_plugin_init(OutputPluginCallbacks *cb);

typedef struct State
{
	List	   *publications;
	bool		schema;
	SluiceEncodeOptions options;
	MemoryContext context;
} State;

static void
startup(LogicalDecodingContext *ctx, OutputPluginOptions *opt, bool is_init)
{
	State	   *state = palloc0(sizeof(State));
	ListCell   *cell;

	opt->output_type = OUTPUT_PLUGIN_TEXTUAL_OUTPUT;
	state->context = AllocSetContextCreate(ctx->context, "change", ALLOCSET_DEFAULT_SIZES);
	foreach(cell, ctx->output_plugin_options)
	{
		DefElem    *option = lfirst(cell);

		if (strcmp(option->defname, "publications") == 0)
			SplitIdentifierString(pstrdup(strVal(option->arg)), ',', &state->publications);
		else if (strcmp(option->defname, "schema") == 0)
			state->schema = true;
	}
	ctx->output_plugin_private = state;
}

static void
begin(LogicalDecodingContext *ctx, ReorderBufferTXN *txn)
{
}

static void
deform(Relation relation, HeapTuple tuple, Datum **values, bool **nulls)
{
	TupleDesc	desc = RelationGetDescr(relation);

	*values = NULL;
	*nulls = NULL;
	if (tuple == NULL)
		return;
	*values = palloc(desc->natts * sizeof(Datum));
	*nulls = palloc(desc->natts * sizeof(bool));
	heap_deform_tuple(tuple, desc, *values, *nulls);
}

static void
write_line(LogicalDecodingContext *ctx, const char *line)
{
	OutputPluginPrepareWrite(ctx, true);
	appendStringInfoString(ctx->out, line);
	OutputPluginWrite(ctx, true);
}

static void
print_change(State *state, Relation relation, ReorderBufferChange *change, StringInfo line)
{
	SluiceSchema *schema = sluice_schema_read(state->publications, NULL, &state->options);
	const SluiceTable *table = sluice_schema_find(schema, sluice_schema_publish_as(schema,
																				   RelationGetRelid(relation)));
	bool		full = relation->rd_rel->relreplident == REPLICA_IDENTITY_FULL;
	SluiceRowEncoder *encoder;
	SluiceBuffer out;
	char	   *mismatch;
	Datum	   *old;
	Datum	   *values;
	bool	   *old_nulls;
	bool	   *nulls;

	if (table == NULL)
		return;
	encoder = sluice_row_encoder(table, RelationGetRelid(relation), RelationGetDescr(relation),
								 &state->options, &mismatch);
	if (encoder == NULL)
	{
		appendStringInfo(line, "mismatch: %s", mismatch);
		return;
	}
	deform(relation, sluice_change_old(change), &old, &old_nulls);
	deform(relation, sluice_change_new(change), &values, &nulls);
	sluice_buffer_init(&out, &sluice_palloc_allocator);
	if (change->action == REORDER_BUFFER_CHANGE_INSERT)
		sluice_row_insert(encoder, values, nulls, false, &out);
	else if (change->action == REORDER_BUFFER_CHANGE_UPDATE)
		sluice_row_update(encoder, old, old_nulls, full, values, nulls, &out);
	else
		sluice_row_delete(encoder, old, old_nulls, full, &out);
	encode_test_frame(line, table, out.data, out.length);
}

static void
change_cb(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, Relation relation,
		  ReorderBufferChange *change)
{
	State	   *state = ctx->output_plugin_private;
	MemoryContext old = MemoryContextSwitchTo(state->context);
	int			level = sluice_value_pin_settings();
	StringInfoData line;

	initStringInfo(&line);
	print_change(state, relation, change, &line);
	AtEOXact_GUC(true, level);
	MemoryContextSwitchTo(old);
	if (line.len > 0)
		write_line(ctx, line.data);
	MemoryContextReset(state->context);
}

static void
commit(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, XLogRecPtr lsn)
{
	State	   *state = ctx->output_plugin_private;
	MemoryContext old;
	StringInfoData text_out;
	SluiceSchema *schema;

	if (!state->schema || !rbtxn_has_catalog_changes(txn))
		return;
	old = MemoryContextSwitchTo(state->context);
	schema = sluice_schema_read(state->publications, NULL, &state->options);
	initStringInfo(&text_out);
	for (int i = 0; i < schema->ntables; i++)
		encode_test_table(&text_out, &schema->tables[i]);
	MemoryContextSwitchTo(old);
	write_line(ctx, text_out.data);
	MemoryContextReset(state->context);
}

void
_PG_output_plugin_init(OutputPluginCallbacks *cb)
{
	cb->startup_cb = startup;
	cb->begin_cb = begin;
	cb->change_cb = change_cb;
	cb->commit_cb = commit;
}
