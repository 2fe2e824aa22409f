/*
 * filelock.h: one agent per replica file.
 *
 * The lock is on "<file>-lock", because a lock on the database file itself
 * would meet SQLite's.  The lock file also remembers whether the database was
 * left with a -wal that must not be missing when it is opened again.
 */
#ifndef SLUICE_FILELOCK_H
#define SLUICE_FILELOCK_H

#include "agent.h"

/* SLUICE_UNUSABLE: another agent has it, named by its pid; or no rights. */
extern SluiceOutcome sluice_filelock_take(SluiceAgent *agent, const char *path);
extern void sluice_filelock_release(SluiceAgent *agent);

/*
 * Notes whether the file (as it is now, by inode) needs its -wal.  Does
 * nothing without the lock, so for files beside the replica.
 */
extern void sluice_filelock_note(SluiceAgent *agent, const char *path, bool needs_wal);

/* True if it was noted to need a -wal and that is gone. */
extern bool sluice_filelock_wal_lost(SluiceAgent *agent, const char *path);

#endif
