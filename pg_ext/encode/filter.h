/*
 * filter.h: does a row belong to what is published of its table?
 *
 * In: values as deformed from a tuple of a table, or of a leaf whose rows come
 * under the root that the filter was written for.  Out: yes, no, or why it
 * cannot be told.
 *
 * A filter holds no references that a transaction would release: it may
 * outlive the one in which it was made.  A result that is NULL counts as no.
 */
#ifndef SLUICE_FILTER_H
#define SLUICE_FILTER_H

#include "access/tupdesc.h"
#include "nodes/bitmapset.h"

#include "spec.h"

typedef struct SluiceFilter SluiceFilter;

/*
 * For rows of `relation`.  NULL: the table has none, or *mismatch (palloc'd
 * text, else NULL) says which of its columns the relation lacks.  Lives in the
 * current memory context.
 *
 * fetch: on-disk TOAST may be fetched (copy); else such a value is one that
 * the WAL does not have (stream).
 */
extern SluiceFilter *sluice_filter_create(const SluiceTable *table, Oid relation,
										  TupleDesc desc, bool fetch, char **mismatch);

/* attnums in the relation */
extern const Bitmapset *sluice_filter_columns(const SluiceFilter *filter);

/*
 * old: NULL, or the values of the row before, from which unchanged TOAST
 * values are taken.  *problem: set (palloc'd text), and no, if it cannot be
 * told for this row; else NULL.
 */
extern bool sluice_filter_matches(SluiceFilter *filter, const Datum *values, const bool *nulls,
								  const Datum *old_values, const bool *old_nulls,
								  char **problem);

#endif
