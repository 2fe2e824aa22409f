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

static char *
argument(FunctionCallInfo fcinfo, int i, const char *name)
{
	if (PG_ARGISNULL(i))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", name)));
	return text_to_cstring(PG_GETARG_TEXT_PP(i));
}

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
	shard = argument(fcinfo, 0, "shard");
	name = argument(fcinfo, 1, "name");
	value = argument(fcinfo, 2, "value");

	sluice_admin_enter(&stretch);
	state = sluice_state_read(shard, ShareRowExclusiveLock, false);
	refuse_fixed(name);
	sluice_options_set(&state->options, name, value);
	sluice_state_write(shard, state);
	sluice_admin_leave(&stretch);
	wake_storer(shard);
	PG_RETURN_VOID();
}
