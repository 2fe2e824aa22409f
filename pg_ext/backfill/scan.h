/*
 * scan.h: the rows of a table under a snapshot, as INSERT frames.
 *
 * Runs in: copiers, backfill workers.  The caller holds the locks, taken
 * before the snapshot, and has pinned the settings of output functions
 * (sluice_value_pin_settings).
 */
#ifndef SLUICE_SCAN_H
#define SLUICE_SCAN_H

#include "nodes/pg_list.h"
#include "utils/snapshot.h"

#include "value.h"

/*
 * What is to be locked before the snapshot: the relation and all partitions
 * below it, by the catalogs of the moment.  Takes no lock itself.
 */
extern List *sluice_scan_candidates(Oid relid);

/*
 * The relations that hold the table's rows, as the snapshot has it: itself,
 * or the leaves of a root.
 */
extern List *sluice_scan_relations(const SluiceTable *table, Snapshot snapshot);

/*
 * Size in bytes, TOAST included; *rows is what statistics say, -1 if they say
 * nothing.  Waits for no lock: of a locked table the statistics' size is told.
 */
extern int64 sluice_scan_estimate(List *relations, int64 *rows);

/*
 * emit() is given some 64 kB of whole frames at a time and empties the buffer.
 * Returns the number of rows.  A row that no replica can hold ends the scan
 * with a TABLE_PROBLEM frame that names it.
 */
extern uint64 sluice_scan_table(const SluiceTable *table, List *relations, Snapshot snapshot,
								const SluiceEncodeOptions *options,
								void (*emit) (void *argument, SluiceBuffer *frames),
								void *argument);

#endif
