/*
 * drift.h: has a transaction changed what is published, or how?
 */
#ifndef SLUICE_DRIFT_H
#define SLUICE_DRIFT_H

#include "decoder.h"

/*
 * In the decoder's memory; in a transaction, with the catalogs of now, which
 * may be ahead of the stream.
 */
extern SluiceDrift *sluice_drift_create(SluiceDecoder *decoder);

/* What was read of the catalogs is no newer than this position. */
extern void sluice_drift_seen(SluiceDrift *drift, XLogRecPtr position);

/*
 * At the commit of a transaction that changed catalogs, before its COMMIT is
 * put, under its historic view.  Returns if nothing has changed for the shard.
 */
extern void sluice_drift_check(SluiceDecoder *decoder, ReorderBufferTXN *txn);

#endif
