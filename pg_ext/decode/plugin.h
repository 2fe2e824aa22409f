/*
 * plugin.h: the output plugin "sluice" (_PG_output_plugin_init).
 */
#ifndef SLUICE_PLUGIN_H
#define SLUICE_PLUGIN_H

#include "decoder.h"

#define SLUICE_PLUGIN_NAME "sluice"

/*
 * The frame buffer, with a BEGIN in it if this is the transaction's first
 * frame; what was put behind it goes to the ring.  Inside a callback.
 */
extern SluiceBuffer *sluice_plugin_open_frames(SluiceDecoder *decoder, ReorderBufferTXN *txn);
extern void sluice_plugin_put_frames(SluiceDecoder *decoder);

/* The COMMIT of a transaction that waited for its schema to be stored. */
extern void sluice_plugin_put_commit(SluiceDecoder *decoder);

/* Tells of a table that is not followed from here on; the tracked schema is the caller's. */
extern void sluice_plugin_put_problem(SluiceDecoder *decoder, ReorderBufferTXN *txn,
									  const SluiceTable *table, const char *problem);

/*
 * A table that is not followed from here on, and why: in the stream, in the
 * tracked schema and in the log.  Inside a callback.
 */
extern void sluice_plugin_table_problem(SluiceDecoder *decoder, ReorderBufferTXN *txn,
										SluiceTable *table, const char *problem);

#endif
