/*
 * newslot.h: making a shard's slot.
 */
#ifndef SLUICE_NEWSLOT_H
#define SLUICE_NEWSLOT_H

#include "decoder.h"

/*
 * create_shard has written the shard's catalogs and its state (without a
 * slot); makes the slot and completes both.  If the entry names a next slot
 * (lineage.c) the shard gets that one, and an empty change log.  An ERROR leaves no slot behind.
 * Outside a transaction.
 */
extern void sluice_create_slot(SluiceDecoder *decoder);

#endif
