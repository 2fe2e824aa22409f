/*
 * call.h: what CALL sluice.stream and CALL sluice.copy have in common: whose
 * call it is, which shard it is about, what the client says of itself.
 */
#ifndef SLUICE_CALL_H
#define SLUICE_CALL_H

#include "utils/jsonb.h"

#include "compat.h"
#include "shmem.h"
#include "state.h"

/* ERROR (insufficient_privilege) unless the session's user is in sluice_replica. */
extern void sluice_call_check_rights(const char *procedure);

/* ERROR SL001; detail may be NULL. */
extern void sluice_call_other_lineage(const char *replica, const char *shard,
									  const char *detail) SLUICE_NORETURN;
/* ERROR SL006 */
extern void sluice_call_paused(const char *shard) SLUICE_NORETURN;

/* A name of 1 to SLUICE_REPLICA_NAME_MAX bytes, in the current context. */
extern char *sluice_call_replica(const text *name);
extern char *sluice_call_shard(const text *name);

/* False: not given.  ERROR (invalid_parameter_value) if it is no 64-bit number. */
extern bool sluice_call_option(const Jsonb *options, const char *name, uint64 *value);
/* NULL: not given, or no string. */
extern char *sluice_call_text_option(const Jsonb *options, const char *name);

/*
 * The shard's stream and its state, read in a short transaction; in the
 * current context.  ERROR SL007 if there is none, SL006 while it is made or
 * has lost its slot.
 */
extern SluiceStream *sluice_call_find(const char *shard, SluiceState **state, uint64 *generation);

#endif
