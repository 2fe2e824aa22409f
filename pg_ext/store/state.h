/*
 * state.h: cdc_<shard>.state, the one row that says what a shard is and who
 * owns its change log.
 *
 * The row is written at heap level (delete and insert, not decoded by any
 * slot) and guarded by a lock on the table, taken before the row is read
 * under a new snapshot: SHARE to check, SHARE ROW EXCLUSIVE to change.  This
 * lock comes before any other of the change log's.
 *
 * All functions want an open transaction, run with the caller's rights (who
 * calls has switched user) and allocate in the current memory context.
 */
#ifndef SLUICE_STATE_H
#define SLUICE_STATE_H

#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "utils/snapshot.h"

#include "shmem.h"

typedef struct SluiceOptions
{
	bool		auto_reset;		/* on */
	int64		retention_ms;	/* retention_time, 7 days */
	int64		retention_bytes;	/* retention_size, 10 GB */
	bool		timestamps_text;	/* timestamps => 'text' */
	bool		numerics_double;	/* numerics => 'double' */
} SluiceOptions;

typedef struct SluiceState
{
	char	   *owner;
	char	   *owner_address;
	char	   *slot;			/* the owning one */
	uint32		n;
	SluiceWatermark first;
	SluiceWatermark replica_version;	/* consistent point - 1; minor 0 */
	uint64		epoch;			/* of backfill minors */
	List	   *publications;	/* of char *, sorted */
	bool		reset_required;
	char	   *reset_reason;	/* NULL: none */
	SluiceOptions options;
	bool		paused;
	bool		default_publication;	/* made by create_shard, dropped with the shard */
	uint64		system_id;
	uint32		timeline;
} SluiceState;

/* "cdc_<shard>" of NAMEDATALEN */
extern void sluice_state_schema(char *schema, const char *shard);

/*
 * Reads the row; lockmode NoLock, ShareLock or ShareRowExclusiveLock is kept
 * until the transaction ends.  Missing shard: NULL if missing_ok, else ERROR
 * (SL007).  Missing row: ERROR.
 */
extern SluiceState *sluice_state_read(const char *shard, LOCKMODE lockmode, bool missing_ok);

/* As that snapshot shows it, without a lock; missing: ERROR. */
extern SluiceState *sluice_state_read_at(const char *shard, Snapshot snapshot);

/* Writes the row anew; the caller holds ShareRowExclusiveLock. */
extern void sluice_state_write(const char *shard, const SluiceState *state);

/*
 * Sets one option from its text; ERROR (invalid_parameter_value, with what is
 * allowed) for names or values that do not exist.
 */
extern void sluice_options_set(SluiceOptions *options, const char *name, const char *value);
extern void sluice_options_init(SluiceOptions *options);

#endif
