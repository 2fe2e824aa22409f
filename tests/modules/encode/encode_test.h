/*
 * encode_test.h: what the files of the encoder's test module share.
 */
#ifndef ENCODE_TEST_H
#define ENCODE_TEST_H

#include "lib/stringinfo.h"

#include "wire.h"

/* Class and text of a value: INTEGER 5, REAL 0.1, TEXT …, BLOB hex. */
extern const char *encode_test_class(const SluiceValue *value);
extern char *encode_test_text(const SluiceValue *value);

/* One row frame as a line; raises an error if the frame is damaged. */
extern void encode_test_frame(StringInfo out, const SluiceTable *table, const char *data, Size size);

/* A table's spec as text, a line each for table, columns, indexes. */
extern void encode_test_table(StringInfo out, const SluiceTable *table);

#endif
