/*
 * value.h: a PostgreSQL value as a SQLite value (the mapping of docs/types.md).
 *
 * One encoder for copy and stream: the same Datum gives the same bytes,
 * whatever DateStyle, TimeZone and the like say.
 *
 * Works under an ordinary and under a historic snapshot.  Locks: none kept.
 */
#ifndef SLUICE_VALUE_H
#define SLUICE_VALUE_H

#include "wire.h"

typedef struct SluiceEncodeOptions
{
	bool		timestamps_text;
	bool		numerics_double;
} SluiceEncodeOptions;

typedef struct SluiceValueEncoder SluiceValueEncoder;

/* The storage a type's column has in the replica; domains are their base type. */
extern SluiceStorage sluice_value_storage(Oid type, const SluiceEncodeOptions *options);

/* The same for what is not a domain, without a look at any catalog. */
extern SluiceStorage sluice_value_storage_of_base(Oid type, const SluiceEncodeOptions *options);

/* Looks the type up once; lives in the current memory context. */
extern SluiceValueEncoder *sluice_value_encoder(Oid type, int32 typmod,
												const SluiceEncodeOptions *options);

/*
 * Puts one value that is not NULL.  value may be toasted in any in-memory or
 * on-disk form that can be fetched; garbage goes to the current memory
 * context, which the caller resets per row.
 */
extern void sluice_value_encode(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out);

/* A name or text of the catalogs as UTF-8: itself, or palloc'd. */
extern const char *sluice_value_name(const char *name);

/* DateStyle ISO, IntervalStyle postgres, TimeZone UTC, extra_float_digits 1,
 * bytea_output hex, lc_monetary C, xmloption, search_path pg_catalog … for the
 * output functions that look at them; returns the GUC nest level to end with
 * AtEOXact_GUC(true, level). */
extern int	sluice_value_pin_settings(void);

/* The same for the life of a worker; outside a transaction. */
extern void sluice_value_pin_session(void);

#endif
