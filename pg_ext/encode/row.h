/*
 * row.h: tuples as row frames, by a table's spec.
 *
 * In: values as deformed from a heap tuple of a relation, in its physical
 * column order.  Out: INSERT, UPDATE and DELETE frames in a buffer.
 */
#ifndef SLUICE_ROW_H
#define SLUICE_ROW_H

#include "access/tupdesc.h"

#include "value.h"

typedef struct SluiceRowEncoder SluiceRowEncoder;

/*
 * For rows of `relation` (a table, or a leaf whose rows are published under
 * the root `table`: columns are then matched by name).  Returns NULL and
 * *mismatch (palloc'd text) if the relation's columns are not those of the
 * spec.  Lives in the current memory context, keeps the pointer to table.
 */
extern SluiceRowEncoder *sluice_row_encoder(const SluiceTable *table, Oid relation,
											TupleDesc desc,
											const SluiceEncodeOptions *options, char **mismatch);

/*
 * fetch: on-disk TOAST pointers are fetched (copy) instead of sent as
 * UNCHANGED (stream).  Values: arrays of desc->natts.
 *
 * They return false, with nothing put, if the row is above SLUICE_ROW_MAX.
 */
extern bool sluice_row_insert(SluiceRowEncoder *encoder, const Datum *values, const bool *nulls,
							  bool fetch, SluiceBuffer *out);

/*
 * old: NULL, or the old tuple's values (full: all columns, else the key only).
 * ERROR if no replica could find the old row: the caller flags a table that
 * has neither key nor full before it comes to that.
 */
extern bool sluice_row_update(SluiceRowEncoder *encoder, const Datum *old,
							  const bool *old_nulls, bool full, const Datum *values,
							  const bool *nulls, SluiceBuffer *out);
extern bool sluice_row_delete(SluiceRowEncoder *encoder, const Datum *old,
							  const bool *old_nulls, bool full, SluiceBuffer *out);

#endif
