/*
 * diff.h: what is different between two states of the published schema.
 */
#ifndef SLUICE_DIFF_H
#define SLUICE_DIFF_H

#include "spec.h"

/*
 * The first difference that a replica would have to follow, in words (palloc'd);
 * NULL: none.  A table that is not followed (problem) does not count, nor do
 * defaults.  from or to may be NULL: not published.
 */
extern char *sluice_diff_table(const SluiceTable *from, const SluiceTable *to);

extern bool sluice_diff_same_filter(const SluiceTable *from, const SluiceTable *to);

/* Flags and columns; the name does not count. */
extern bool sluice_diff_same_index(const SluiceIndex *from, const SluiceIndex *to);

#endif
