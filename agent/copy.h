/*
 * copy.h: the first copy of a replica.
 *
 * In: CALL sluice.copy, over --jobs connections.  Out: a file with all tables
 * of the list, each with the index of its key and with the place of its
 * snapshot (low, S, high) noted; stage CATCHING_UP, position at the lowest
 * low.  run.c follows the stream from there and swaps the file in.
 *
 * A file that an earlier run left half done is gone on with: tables that are
 * complete stay, one that is not is emptied and copied again.
 *
 * Runs in the thread that calls it; the only writer of the file.
 */
#ifndef SLUICE_COPY_H
#define SLUICE_COPY_H

#include "agent.h"

extern SluiceOutcome sluice_copy_run(SluiceAgent *agent, const char *path);

#endif
