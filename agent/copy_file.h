/*
 * copy_file.h: the file of a first copy while it is being loaded.
 *
 * It is written with a rollback journal (which costs next to nothing for pages
 * that are new) and without syncs: a killed agent loses nothing that was
 * committed, a power cut may void all of it.  So the file says in which run of
 * the operating system it was last written; in any other it starts anew.  What
 * a clean stop or the end leaves is synced and good everywhere.
 *
 * One thread.
 */
#ifndef SLUICE_COPY_FILE_H
#define SLUICE_COPY_FILE_H

#include "replica.h"

/* Opens or makes it; what cannot be gone on with is removed first. */
extern SluiceOutcome sluice_copy_file_open(SluiceAgent *agent, const char *path,
										   SluiceReplica **replica);

/*
 * From here on commits are not synced.  Called before the list is stored and
 * when an earlier run's copy is gone on with.
 */
extern SluiceOutcome sluice_copy_file_begin(SluiceReplica *replica);

/* Outside of a transaction: what is committed is made good everywhere. */
extern SluiceOutcome sluice_copy_file_sync(SluiceReplica *replica);

/* All tables are copied: position and stage, synced. */
extern SluiceOutcome sluice_copy_file_complete(SluiceReplica *replica,
											   const SluicePosition *position);

#endif
