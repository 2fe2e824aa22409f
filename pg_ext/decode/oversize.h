/*
 * oversize.h: naming a row that is too large for SQLite.
 */
#ifndef SLUICE_OVERSIZE_H
#define SLUICE_OVERSIZE_H

#include "relation.h"

/* Key and largest column of the row in the entry's values (old ones: a DELETE). */
extern char *sluice_oversize_describe(const SluiceRelation *entry, TupleDesc desc, bool old);

#endif
