/*
 * evolve.h: differences between the tracked schema and a newer state of it, as
 * messages of the stream.
 *
 * Order: indexes dropped; tables dropped; then, table by table, renamed,
 * columns dropped, changed, added, key and identity changed; tables created;
 * indexes created.  (The reference tells of the key before the columns; here a
 * key names columns, so they come first.)  Every message carries the table as
 * it is after that message, so that a reader can act on one at a time.
 */
#ifndef SLUICE_EVOLVE_H
#define SLUICE_EVOLVE_H

#include "decoder.h"

/* One table, before and after; NULL: it was not, or is not, published. */
typedef struct SluiceEvolution
{
	const SluiceTable *from;
	const SluiceTable *to;
	bool		complete;		/* from is NULL: the stream has all its rows */
} SluiceEvolution;

/* True if there is a difference that concerns a replica. */
extern bool sluice_evolution_differs(const SluiceEvolution *evolution);

/*
 * Puts the messages of a list of SluiceEvolution.  Ends the shard if one of
 * them needs rows that the stream does not have.  Inside a callback.
 */
extern void sluice_evolve(SluiceDecoder *decoder, ReorderBufferTXN *txn, List *evolutions);

#endif
