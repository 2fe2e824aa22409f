/*
 * lineage.h: a shard that is to be reset gets a new slot and a new lineage.
 */
#ifndef SLUICE_LINEAGE_H
#define SLUICE_LINEAGE_H

#include "decoder.h"

/*
 * At the decoder's start: returns if nobody wishes a reset.  Else it is done
 * and the process ends; the launcher starts another for the new slot.
 */
extern void sluice_lineage_attend(SluiceDecoder *decoder);

#endif
