/*
 * verify_moment.h: dates and times for verify, from PostgreSQL's ISO texts.
 *
 * Part of the mapping that verify_value.h speaks of.  Pure.
 */
#ifndef SLUICE_VERIFY_MOMENT_H
#define SLUICE_VERIFY_MOMENT_H

#include "wire.h"

/* date, timestamp, timestamptz (at UTC); *value may point to the field. */
extern bool sluice_verify_moment(const char *field, size_t size, SluiceValue *value);
/* time */
extern bool sluice_verify_clock(const char *field, size_t size, SluiceValue *value);

#endif
