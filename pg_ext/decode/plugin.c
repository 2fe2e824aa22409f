/*
 * plugin.c: the callbacks of logical decoding: committed transactions as
 * frames on the ring.
 *
 * A transaction's BEGIN is put when its first published change comes, so that
 * transactions without one leave no trace.  Frames go to the ring one by one:
 * memory does not grow with the transaction.  What the catalogs of the
 * transaction mean for the shard is looked at before its COMMIT is put.
 *
 * In: changes from the reorder buffer, in commit order.  Out: frames.
 * Runs in: decoder only, which the start-up callback checks; in a transaction
 * that is always rolled back, under a historic snapshot.
 * Locks: none held while the ring is full.
 *
 * States: begun or not, per transaction.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "fmgr.h"
#include "replication/origin.h"
#include "replication/output_plugin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "compat.h"
#include "drift.h"
#include "filtered.h"
#include "oversize.h"
#include "plugin.h"
#include "relation.h"

#define UNIX_EPOCH_OFFSET \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)
/* A frame buffer above it is given back after the row. */
#define FRAME_KEPT (1024 * 1024)

extern PGDLLEXPORT void _PG_output_plugin_init(OutputPluginCallbacks *callbacks);

static inline SluiceDecoder *
decoder_of(LogicalDecodingContext *ctx)
{
	return ctx->output_plugin_private;
}

/* ---- frames ---- */

/* The running transaction is not older than 2^31 transactions. */
static uint64
full_xid(TransactionId xid)
{
	FullTransactionId next = ReadNextFullTransactionId();
	uint32		epoch = EpochFromFullTransactionId(next);

	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return U64FromFullTransactionId(FullTransactionIdFromEpochAndXid(epoch, xid));
}

static inline SluiceWatermark
watermark_of(const ReorderBufferTXN *txn)
{
	SluiceWatermark watermark = {txn->final_lsn, 0};

	return watermark;
}

/* The frame buffer, with a BEGIN in it if this is the first change. */
SluiceBuffer *
sluice_plugin_open_frames(SluiceDecoder *decoder, ReorderBufferTXN *txn)
{
	sluice_buffer_reset(&decoder->frame);
	if (!decoder->begun)
	{
		SluiceBegin begin = {
			.watermark = watermark_of(txn),
			.xid = full_xid(txn->xid),
			.commit_time = txn->xact_time.commit_time + UNIX_EPOCH_OFFSET
		};

		sluice_wire_begin(&decoder->frame, &begin);
	}
	return &decoder->frame;
}

void
sluice_plugin_put_frames(SluiceDecoder *decoder)
{
	sluice_decoder_emit(decoder);
	decoder->begun = true;
	decoder->changes++;
	if (decoder->frame.capacity > FRAME_KEPT)
	{
		sluice_buffer_release(&decoder->frame);
		sluice_decoder_open_frame(decoder);
	}
}

void
sluice_plugin_put_problem(SluiceDecoder *decoder, ReorderBufferTXN *txn, const SluiceTable *table,
						  const char *problem)
{
	SluiceTableProblem message = {.table_oid = table->oid, .problem = problem};

	sluice_wire_table_problem(sluice_plugin_open_frames(decoder, txn), &message);
	sluice_plugin_put_frames(decoder);
	decoder->schema_changed = true;
	ereport(LOG,
			(errmsg("sluice shard \"%s\": table %s is not followed any more: %s",
					decoder->stream->shard,
					quote_qualified_identifier(table->schema, table->name), problem),
			 errhint("Replicas keep the rows that they have; the other tables go on.")));
}

void
sluice_plugin_table_problem(SluiceDecoder *decoder, ReorderBufferTXN *txn, SluiceTable *table,
							const char *problem)
{
	sluice_plugin_put_problem(decoder, txn, table, problem);
	table->problem = MemoryContextStrdup(decoder->schema_context, problem);
}

/* ---- rows ---- */

/* An old row that no replica could find. */
static void
no_key(SluiceDecoder *decoder, ReorderBufferTXN *txn, SluiceTable *table, const char *command)
{
	sluice_plugin_table_problem(decoder, txn, table,
								psprintf("%s of a row without a usable replica identity: give it a primary key or another replica identity, and make the shard anew",
										 command));
}

static void
deform(SluiceRelation *entry, ReorderBufferChange *change, TupleDesc desc)
{
	HeapTuple	new_tuple = sluice_change_new(change);
	HeapTuple	old_tuple = sluice_change_old(change);

	if (new_tuple != NULL)
		heap_deform_tuple(new_tuple, desc, entry->values, entry->nulls);
	if (old_tuple != NULL)
		heap_deform_tuple(old_tuple, desc, entry->old_values, entry->old_nulls);
}

/* False: the row is too large; nothing was put. */
static bool
encode_change(SluiceRelation *entry, enum ReorderBufferChangeType action, bool old,
			  SluiceBuffer *out)
{
	switch (action)
	{
		case REORDER_BUFFER_CHANGE_INSERT:
			return sluice_row_insert(entry->encoder, entry->values, entry->nulls, false, out);
		case REORDER_BUFFER_CHANGE_UPDATE:
			return sluice_row_update(entry->encoder,
									 old ? entry->old_values : NULL,
									 old ? entry->old_nulls : NULL,
									 entry->full, entry->values, entry->nulls, out);
		case REORDER_BUFFER_CHANGE_DELETE:
			return sluice_row_delete(entry->encoder, entry->old_values, entry->old_nulls,
									 entry->full, out);
		default:
			elog(ERROR, "unexpected change %d of a row", (int) action);
	}
	return false;
}

static void
publish_row(SluiceDecoder *decoder, ReorderBufferTXN *txn, Relation relation,
			SluiceRelation *entry, ReorderBufferChange *change)
{
	TupleDesc	desc = RelationGetDescr(relation);
	enum ReorderBufferChangeType action = change->action;
	bool		old = sluice_change_old(change) != NULL;
	char	   *problem = NULL;
	SluiceBuffer *out;

	if (action == REORDER_BUFFER_CHANGE_UPDATE && (!entry->has_key || (entry->full && !old)))
	{
		no_key(decoder, txn, entry->table, "UPDATE");
		return;
	}
	if (action == REORDER_BUFFER_CHANGE_DELETE && (!entry->has_key || !old))
	{
		no_key(decoder, txn, entry->table, "DELETE");
		return;
	}

	deform(entry, change, desc);
	if (entry->filter != NULL && !sluice_filtered_change(entry, desc, old, &action, &problem))
	{
		if (problem != NULL)
			sluice_plugin_table_problem(decoder, txn, entry->table, problem);
		return;
	}

	out = sluice_plugin_open_frames(decoder, txn);
	if (encode_change(entry, action, old, out))
		sluice_plugin_put_frames(decoder);
	else
		sluice_plugin_table_problem(decoder, txn, entry->table,
									sluice_oversize_describe(entry, desc, action ==
															 REORDER_BUFFER_CHANGE_DELETE));
}

/* ---- callbacks ---- */

static void
startup(LogicalDecodingContext *ctx, OutputPluginOptions *options, bool is_init)
{
	SluiceDecoder *decoder = sluice_decoder_current();

	if (decoder == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("output plugin \"%s\" works in the decoder of a shard only",
						SLUICE_PLUGIN_NAME),
				 errhint("Shards are made by CALL sluice.create_shard(…) and read by sluice-agent. For a slot of your own, use pgoutput or test_decoding.")));
	ctx->output_plugin_private = decoder;
	options->output_type = OUTPUT_PLUGIN_BINARY_OUTPUT;
	options->receive_rewrites = false;
}

static void
begin_txn(LogicalDecodingContext *ctx, ReorderBufferTXN *txn)
{
	SluiceDecoder *decoder = decoder_of(ctx);

	MemoryContextReset(decoder->txn);
	decoder->begun = false;
	decoder->skipped = NIL;
	decoder->touched = NULL;
	decoder->schema_changed = false;
}

/* Rows of a table that may turn out to be a partition later on. */
static void
note_skipped(SluiceDecoder *decoder, ReorderBufferTXN *txn, Oid relid)
{
	MemoryContext old;

	if (!rbtxn_has_catalog_changes(txn) || relid < FirstNormalObjectId)
		return;
	old = MemoryContextSwitchTo(decoder->txn);
	decoder->skipped = list_append_unique_oid(decoder->skipped, relid);
	MemoryContextSwitchTo(old);
}

static void
change_row(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, Relation relation,
	   ReorderBufferChange *row)
{
	SluiceDecoder *decoder = decoder_of(ctx);
	SluiceRelation *entry = sluice_relation_get(decoder, txn, relation);
	MemoryContext old;

	if (entry->table == NULL)
	{
		note_skipped(decoder, txn, RelationGetRelid(relation));
		return;
	}
	if (entry->table->problem != NULL)
		return;

	old = MemoryContextSwitchTo(decoder->change);
	publish_row(decoder, txn, relation, entry, row);
	MemoryContextSwitchTo(old);
	MemoryContextReset(decoder->change);
}

/* Is a relation of the list the root, or between the root and the leaf? */
static bool
truncated_with_root(int nrelations, Relation relations[], Oid root)
{
	for (int i = 0; i < nrelations; i++)
	{
		if (RelationGetRelid(relations[i]) == root)
			return true;
	}
	return false;
}

static void
truncate_tables(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, int nrelations,
		 Relation relations[], ReorderBufferChange *row)
{
	SluiceDecoder *decoder = decoder_of(ctx);
	MemoryContext old = MemoryContextSwitchTo(decoder->change);
	uint32	   *oids = palloc(nrelations * sizeof(uint32));
	SluiceTruncate message = {.ntables = 0,.table_oids = oids};

	for (int i = 0; i < nrelations; i++)
	{
		Oid			relid = RelationGetRelid(relations[i]);
		Oid			root = sluice_schema_publish_as(decoder->schema, relid);
		const SluiceTable *table = OidIsValid(root) ?
			sluice_schema_find(decoder->schema, root) : NULL;

		if (table == NULL || table->problem != NULL)
			continue;
		if (root == relid)
			oids[message.ntables++] = relid;
		else if (!truncated_with_root(nrelations, relations, root))
			sluice_decoder_stop(decoder, "partition %s of table %s was truncated",
								quote_identifier(RelationGetRelationName(relations[i])),
								quote_qualified_identifier(table->schema, table->name));
	}
	if (message.ntables > 0)
	{
		sluice_wire_truncate(sluice_plugin_open_frames(decoder, txn), &message);
		sluice_plugin_put_frames(decoder);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(decoder->change);
}

void
sluice_plugin_put_commit(SluiceDecoder *decoder)
{
	sluice_buffer_reset(&decoder->frame);
	sluice_wire_commit(&decoder->frame, &decoder->commit);
	sluice_decoder_emit(decoder);
	sluice_ring_mark(decoder->ring, decoder->commit.watermark);
	sluice_low_add(decoder->low, decoder->commit_xid, decoder->head);
	decoder->head = decoder->commit.watermark;
	decoder->head_time = decoder->commit_time;
	decoder->on_ring++;
}

/*
 * If the tracked schema has changed, it has to be stored before anyone can see
 * the COMMIT: that cannot be done in a callback (decoder.c does it).
 */
static void
commit_txn(LogicalDecodingContext *ctx, ReorderBufferTXN *txn, XLogRecPtr commit_lsn)
{
	SluiceDecoder *decoder = decoder_of(ctx);
	MemoryContext old = MemoryContextSwitchTo(decoder->txn);

	if (rbtxn_has_catalog_changes(txn))
		sluice_drift_check(decoder, txn);
	if (decoder->begun)
	{
		decoder->commit.watermark = watermark_of(txn);
		decoder->commit.end_lsn = txn->end_lsn;
		decoder->commit_xid = txn->xid;
		decoder->commit_time = txn->xact_time.commit_time;
		if (decoder->schema_changed)
			decoder->commit_waits = true;
		else
			sluice_plugin_put_commit(decoder);
	}
	decoder->begun = false;
	MemoryContextSwitchTo(old);
}

/* Our own writes are marked; they are never published. */
static bool
filter_by_origin(LogicalDecodingContext *ctx, RepOriginId origin)
{
	return origin == DoNotReplicateId;
}

void
_PG_output_plugin_init(OutputPluginCallbacks *callbacks)
{
	callbacks->startup_cb = startup;
	callbacks->begin_cb = begin_txn;
	callbacks->change_cb = change_row;
	callbacks->truncate_cb = truncate_tables;
	callbacks->commit_cb = commit_txn;
	callbacks->filter_by_origin_cb = filter_by_origin;
}
