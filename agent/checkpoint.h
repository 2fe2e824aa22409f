/*
 * checkpoint.h: a thread that checkpoints the replica and makes its commits
 * durable, so that the writer never waits for a disk.
 *
 * The writer tells each commit (noted), and asks what is durable.  Around each
 * of its SQLite transactions it calls enter and leave: only when a -wal has
 * grown far and the writer never pauses does the thread hold it back there,
 * for the short rest of a checkpoint, so that the -wal can start anew.
 */
#ifndef SLUICE_CHECKPOINT_H
#define SLUICE_CHECKPOINT_H

#include "replica.h"

typedef struct SluiceCheckpoint SluiceCheckpoint;

/* NULL: logged.  The replica's position must be read already. */
extern SluiceCheckpoint *sluice_checkpoint_start(SluiceReplica *replica);
extern void sluice_checkpoint_stop(SluiceCheckpoint *checkpoint);

extern void sluice_checkpoint_enter(SluiceCheckpoint *checkpoint);
extern void sluice_checkpoint_leave(SluiceCheckpoint *checkpoint);

/* After a commit: its position and the pages of the -wal. */
extern void sluice_checkpoint_noted(SluiceCheckpoint *checkpoint, const SluicePosition *position,
									int pages);

extern SluicePosition sluice_checkpoint_durable(SluiceCheckpoint *checkpoint);

/*
 * The path does not name the open file any more: what is committed into it is
 * seen by nobody, and nothing of it is durable.
 */
extern bool sluice_checkpoint_moved(sqlite3 *db);

#endif
