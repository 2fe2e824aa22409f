/*
 * rebuild.h: a table of the file made anew, where ALTER TABLE cannot do it.
 */
#ifndef SLUICE_REBUILD_H
#define SLUICE_REBUILD_H

#include "replica.h"

/*
 * With the form of `spec`: the columns that it shares with the old one keep
 * their values.  The pointer to the table is void afterwards.
 */
extern SluiceOutcome sluice_rebuild_table(SluiceReplica *replica, SluiceReplicaTable *table,
										  const SluiceTable *spec);

#endif
