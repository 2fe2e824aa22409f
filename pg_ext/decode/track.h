/*
 * track.h: the tracked schema moves on.
 *
 * At a transaction's commit everything that its own invalidation messages
 * touch is read again; before that, while its rows come, only tables that the
 * transaction itself changed are, because its view of everything else may be
 * older than the stream.  Differences go into the stream and into the tracked
 * schema at once.
 */
#ifndef SLUICE_TRACK_H
#define SLUICE_TRACK_H

#include "decoder.h"
#include "watch.h"

/* At the commit, after drift.c has found nothing that cannot be followed. */
extern void sluice_track_commit(SluiceDecoder *decoder, ReorderBufferTXN *txn,
								const SluiceTouched *touched);

/*
 * A row of a relation comes whose entry has to be made anew.  True: the tracked
 * schema has changed.
 */
extern bool sluice_track_row(SluiceDecoder *decoder, ReorderBufferTXN *txn, Oid relid);

#endif
