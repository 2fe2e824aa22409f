/*
 * filtered.h: what a row filter makes of a change.
 */
#ifndef SLUICE_FILTERED_H
#define SLUICE_FILTERED_H

#include "replication/reorderbuffer.h"

#include "relation.h"

/*
 * For a table with a filter, once the entry's values hold the change (old:
 * there is an old row).  False: nothing is to be sent; *problem, if not NULL,
 * says why the table cannot be followed any more.  True: it is to be sent as
 * *action, which may be another than it was.
 */
extern bool sluice_filtered_change(SluiceRelation *entry, TupleDesc desc, bool old,
								   enum ReorderBufferChangeType *action, char **problem);

#endif
