/*
 * names.h: PostgreSQL's names to SQLite's.
 *
 * public.x is x, any other schema.x is "schema.x".  Names that collide in
 * SQLite (ASCII case, "a.b" against schema a) or are reserved there
 * (sqlite_…, _zero.…, _sluice.…, the column _0_version) are mapped without
 * regard to history: the lowest id (OID or attnum) keeps the plain name, the
 * others get "~" and their id in hex.
 *
 * In: the whole set of what shares a name space.  Out: names in the
 * allocator's memory.  Pure.
 */
#ifndef SLUICE_NAMES_H
#define SLUICE_NAMES_H

#include "buffer.h"
#include "spec.h"

typedef struct SluiceName
{
	uint32_t	id;				/* OID of a table or index, attnum of a column */
	const char *plain;			/* name before mapping */
	const char *name;			/* out */
} SluiceName;

/* x of public, else schema.x */
extern char *sluice_names_plain(const char *schema, const char *name,
								const SluiceAllocator *allocator);

/*
 * Tables among themselves; columns of one table (with column = true).  Sorts
 * names by id.
 */
extern void sluice_names_assign(SluiceName *names, size_t count, bool column,
								const SluiceAllocator *allocator);

/*
 * Indexes: tables never give way to an index, so those are assigned first and
 * given here as `taken`.
 */
extern void sluice_names_assign_beside(SluiceName *names, size_t count,
									   const SluiceName *taken, size_t ntaken,
									   const SluiceAllocator *allocator);

/* "name" with quotes doubled, behind what the buffer has (no zero). */
extern void sluice_names_quote(SluiceBuffer *out, const char *name);

#endif
