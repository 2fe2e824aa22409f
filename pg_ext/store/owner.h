/*
 * owner.h: who may write a shard's change log.
 *
 * Runs in: storer, inside the transaction that is to store.
 * Locks: SHARE on state, until that transaction ends.
 */
#ifndef SLUICE_OWNER_H
#define SLUICE_OWNER_H

#include "state.h"

/*
 * The state, if this stream's slot owns the log; otherwise the worker ends for
 * good with a message, and nothing of its transaction is stored.  NULL: the
 * shard is still being made.
 */
extern SluiceState *sluice_owner_check(SluiceStream *stream);

#endif
