/*
 * purge.h: what the change log need not keep any more goes, in small steps.
 *
 * Runs in: storer, inside a transaction of its own.
 */
#ifndef SLUICE_PURGE_H
#define SLUICE_PURGE_H

#include "state.h"

typedef struct SluicePurge
{
	int			removed;		/* slices */
	bool		more;			/* the step's limit was reached */
	bool		young;			/* what comes next is only too young */
	bool		minimal;		/* nothing but the newest transaction is left */
	SluiceWatermark first;		/* positions from here on can be started from */
} SluicePurge;

extern void sluice_purge_step(SluiceStream *stream, const SluiceState *state, int limit,
							  SluicePurge *purge);

#endif
