/*
 * scan.h: the rows of a table under a snapshot, as INSERT frames.
 *
 * Runs in: copiers, backfill workers.  The caller holds the table's lock
 * (leaves of a root are locked here) and has pinned the settings of output
 * functions (sluice_value_pin_settings).
 */
#ifndef SLUICE_SCAN_H
#define SLUICE_SCAN_H

#include "nodes/pg_list.h"
#include "utils/snapshot.h"

#include "value.h"

/*
 * The relations that hold the table's rows (itself, or the leaves of a
 * partitioned one), locked ACCESS SHARE until the transaction ends.
 */
extern List *sluice_scan_relations(const SluiceTable *table);

/* Size in bytes; *rows is what statistics say, -1 if they say nothing. */
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
