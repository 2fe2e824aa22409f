/*
 * option.c: sluice.set_option.
 *
 * In: an option's name and value.  Out: the state row; the storer is woken to
 * take it up.
 * Runs in: client backends, in the caller's transaction.
 * Locks: the state table's, SHARE ROW EXCLUSIVE until the transaction ends.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "admin.h"

PG_FUNCTION_INFO_V1(sluice_set_option);

/* Rows that replicas hold were encoded by these. */
static void
refuse_fixed(const char *name)
{
	if (strcmp(name, "timestamps") == 0 || strcmp(name, "numerics") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("option \"%s\" can only be given when the shard is created", name),
				 errhint("Drop the shard and create it again with %s => '...'.", name)));
}

static void
wake_storer(const char *shard)
{
	SluiceStream *stream = sluice_stream_find(MyDatabaseId, shard);

	if (stream == NULL)
		return;
	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	if (stream->storer_latch)
		SetLatch(stream->storer_latch);
	LWLockRelease(sluice_shmem->lock);
}

Datum
sluice_set_option(PG_FUNCTION_ARGS)
{
	SluiceAdminStretch stretch;
	SluiceState *state;
	char	   *shard;
	char	   *name;
	char	   *value;

	sluice_admin_require("set an option of a shard");
	shard = sluice_admin_text(fcinfo, 0, "shard");
	name = sluice_admin_text(fcinfo, 1, "name");
	value = sluice_admin_text(fcinfo, 2, "value");

	sluice_admin_enter(&stretch);
	state = sluice_state_read(shard, ShareRowExclusiveLock, false);
	refuse_fixed(name);
	sluice_options_set(&state->options, name, value);
	sluice_state_write(shard, state);
	sluice_admin_leave(&stretch);
	wake_storer(shard);
	PG_RETURN_VOID();
}
