/*
 * slot.h: the logical slot of a stream: taken, confirmed, dropped.
 */
#ifndef SLUICE_SLOT_H
#define SLUICE_SLOT_H

#include "decoder.h"

/* Takes the slot, or stops the shard if it is gone, lost or another's. */
extern void sluice_slot_take(SluiceDecoder *decoder);

/*
 * Confirms what is stored: everything up to `decoded` if all that is on the
 * ring is in the log, else what the storer has reached.
 */
extern void sluice_slot_confirm(SluiceDecoder *decoder, XLogRecPtr decoded);

/* The slot belongs to no shard: it is dropped, and the process ends. */
extern void sluice_slot_drop_orphan(SluiceDecoder *decoder, const char *why) SLUICE_NORETURN;

#endif
