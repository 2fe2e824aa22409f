/*
 * plugin.h: the output plugin "sluice" (_PG_output_plugin_init).
 */
#ifndef SLUICE_PLUGIN_H
#define SLUICE_PLUGIN_H

#include "decoder.h"

#define SLUICE_PLUGIN_NAME "sluice"

/*
 * A table that is not followed from here on, and why: in the stream, in the
 * tracked schema and in the log.  Inside a callback.
 */
extern void sluice_plugin_table_problem(SluiceDecoder *decoder, ReorderBufferTXN *txn,
										SluiceTable *table, const char *problem);

#endif
