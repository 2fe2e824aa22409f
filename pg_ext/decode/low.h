/*
 * low.h: up to which watermark every transaction has left the ProcArray.
 *
 * A transaction is decoded when its commit record is flushed, which is before
 * new snapshots see it (it may even wait for a synchronous standby in
 * between).  A copy must know up to where its snapshot surely sees all: low.
 */
#ifndef SLUICE_LOW_H
#define SLUICE_LOW_H

#include "watermark.h"

typedef struct SluiceLow SluiceLow;

/*
 * In the current memory context.  Looks at who is running now: what decoding
 * begins behind may have been committed by one of them.
 */
extern SluiceLow *sluice_low_create(void);

/*
 * A transaction was decoded; `before` is the watermark of the one before it.
 */
extern void sluice_low_add(SluiceLow *low, TransactionId xid, SluiceWatermark before);

/* False: not known yet.  head: the last one decoded. */
extern bool sluice_low_get(SluiceLow *low, SluiceWatermark head, SluiceWatermark *result);

#endif
