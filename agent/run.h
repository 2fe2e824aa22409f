/*
 * run.h: the life of a replica: copy when there is no usable file, follow,
 * copy afresh and swap when the stream says so.
 *
 * Needs of copy.c:
 *   SluiceOutcome sluice_copy_run(SluiceAgent *agent, const char *path);
 * builds (or goes on with) the file at `path` until all tables of the list are
 * copied and have the index of their key: stage CATCHING_UP, position at the
 * lowest low.  The file is closed again.  run.c then streams it past every
 * high, creates the other indexes, catches up, and swaps it in.
 */
#ifndef SLUICE_RUN_H
#define SLUICE_RUN_H

#include "agent.h"

/* follow = false: `sync`, ends when caught up. */
extern SluiceOutcome sluice_run(SluiceAgent *agent, bool follow);

#endif
