/*
 * drift.h: has a transaction changed what is published, or how?
 */
#ifndef SLUICE_DRIFT_H
#define SLUICE_DRIFT_H

#include "decoder.h"
#include "watch.h"

/*
 * In the decoder's memory; in a transaction, with the catalogs of now, which
 * may be ahead of the stream.
 */
extern SluiceDrift *sluice_drift_create(SluiceDecoder *decoder);

/* What was read of the catalogs is no newer than this position. */
extern void sluice_drift_seen(SluiceDrift *drift, XLogRecPtr position);

/* The tracked schema is another one. */
extern void sluice_drift_schema_changed(SluiceDecoder *decoder);

/* What the transaction's own messages touch; kept until the next transaction. */
extern const SluiceTouched *sluice_drift_touched(SluiceDecoder *decoder, ReorderBufferTXN *txn);

/* Was the relation made by the transaction? */
extern bool sluice_drift_created_by(Oid relid, const ReorderBufferTXN *txn);

/*
 * At the commit of a transaction that changed catalogs, before its COMMIT is
 * put, under its historic view: stops the shard, or moves the tracked schema on.
 */
extern void sluice_drift_check(SluiceDecoder *decoder, ReorderBufferTXN *txn);

#endif
