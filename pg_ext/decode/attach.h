/*
 * attach.h: what a shard is when its decoder starts.
 */
#ifndef SLUICE_ATTACH_H
#define SLUICE_ATTACH_H

#include "decoder.h"

/*
 * Outside a transaction: fills in options, publications, schema, drift and
 * log_head, and takes the slot.  Ends the process if that cannot be.
 */
extern void sluice_attach(SluiceDecoder *decoder);

#endif
