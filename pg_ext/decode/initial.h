/*
 * initial.h: what a change of a table's columns does to the rows it has.
 */
#ifndef SLUICE_INITIAL_H
#define SLUICE_INITIAL_H

#include "decoder.h"

/*
 * The value that every row older than the column shows, in the current memory
 * context.  False: it is not one value, or not known without reading the rows.
 * Inside a callback, under the view of the transaction that added the column.
 */
extern bool sluice_initial_value(SluiceDecoder *decoder, const SluiceTable *table,
								 const SluiceColumn *column, SluiceValue *value);

/* A changed column's rows have the same values in a replica as before. */
extern bool sluice_initial_same_values(const SluiceColumn *from, const SluiceColumn *to);

#endif
