/*
 * call.c: see call.h.
 *
 * In: arguments of the procedures.  Out: checked values; errors with hints.
 * Runs in: client backends.  Locks: none kept.
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "call.h"
#include "copyboth.h"
#include "error.h"

#define ROLE "sluice_replica"

void
sluice_call_check_rights(const char *procedure)
{
	Oid			role = get_role_oid(ROLE, true);

	if (superuser() || (OidIsValid(role) && has_privs_of_role(GetUserId(), role)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for procedure sluice.%s", procedure),
			 errhint("GRANT " ROLE " TO %s; its members see every published row.",
					 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

char *
sluice_call_replica(const text *name)
{
	char	   *replica = text_to_cstring(name);

	if (replica[0] == '\0' || strlen(replica) > SLUICE_REPLICA_NAME_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a replica's name has 1 to %d bytes", SLUICE_REPLICA_NAME_MAX)));
	return replica;
}

char *
sluice_call_shard(const text *name)
{
	char	   *shard = text_to_cstring(name);

	if (shard[0] == '\0' || strlen(shard) > SLUICE_SHARD_NAME_MAX ||
		strspn(shard, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(shard))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid shard name \"%s\"", shard),
				 errhint("A shard's name has 1 to %d of the characters a to z, 0 to 9 and _.",
						 SLUICE_SHARD_NAME_MAX)));
	return shard;
}

static bool
find_option(const Jsonb *options, const char *name, JsonbValue *value)
{
	return JB_ROOT_IS_OBJECT(options) &&
		getKeyJsonValueFromContainer(unconstify(JsonbContainer *, &options->root), name,
									 (int) strlen(name), value) != NULL;
}

char *
sluice_call_text_option(const Jsonb *options, const char *name)
{
	JsonbValue	found;

	if (!find_option(options, name, &found) || found.type != jbvString)
		return NULL;
	return pnstrdup(found.val.string.val, found.val.string.len);
}

bool
sluice_call_option(const Jsonb *options, const char *name, uint64 *value)
{
	JsonbValue	found;
	char	   *digits = sluice_call_text_option(options, name);
	char	   *end;

	if (!find_option(options, name, &found) || found.type == jbvNull)
		return false;
	if (found.type == jbvNumeric)
		digits = DatumGetCString(DirectFunctionCall1(numeric_out,
													 NumericGetDatum(found.val.numeric)));
	if (digits != NULL && digits[0] >= '0' && digits[0] <= '9')
	{
		errno = 0;
		*value = strtou64(digits, &end, 10);
		if (errno == 0 && *end == '\0')
			return true;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("option \"%s\" is no number", name)));
	return false;
}

void
sluice_call_other_lineage(const char *replica, const char *shard, const char *detail)
{
	ereport(ERROR,
			(errcode(SLUICE_ERRCODE_WRONG_REPLICA_VERSION),
			 errmsg("replica \"%s\" is of another lineage than shard \"%s\"", replica, shard),
			 detail ? errdetail_internal("%s", detail) : errdetail("The shard was reset."),
			 errhint("It has to be copied afresh; sluice-agent does so by itself.")));
}

void
sluice_call_paused(const char *shard)
{
	ereport(ERROR,
			(errcode(SLUICE_ERRCODE_SHARD_STOPPED),
			 errmsg("shard \"%s\" is paused", shard),
			 errhint("CALL sluice.resume('%s') lets it go on.", shard)));
}

/*
 * The slot was lost while no launcher looked: with an entry for it the
 * launcher finds that out, and the shard is reset if it may be.
 */
static void
announce(const char *shard, const SluiceState *state)
{
	if (sluice_stream_claim(MyDatabaseId, shard, state->n, state->slot, false) != NULL)
		sluice_shmem_wake_launcher();
}

SluiceStream *
sluice_call_find(const char *shard, SluiceState **state, uint64 *generation)
{
	MemoryContext caller = CurrentMemoryContext;
	SluiceStream *stream;

	sluice_copyboth_begin_transaction(true);
	MemoryContextSwitchTo(caller);
	*state = sluice_state_read(shard, NoLock, true);
	sluice_copyboth_commit_transaction();

	if (*state == NULL)
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_UNKNOWN_SHARD),
				 errmsg("there is no shard \"%s\" in database \"%s\"", shard,
						get_database_name(MyDatabaseId)),
				 errhint("CALL sluice.create_shard('%s') makes one; the view sluice.shards shows those there are.",
						 shard)));
	if ((*state)->slot == NULL || (*state)->replica_version.major == 0)
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_SHARD_STOPPED),
				 errmsg("shard \"%s\" is still being created", shard)));
	if ((*state)->paused)
		sluice_call_paused(shard);
	stream = sluice_stream_find_slot((*state)->slot);
	if (stream == NULL)
	{
		announce(shard, *state);
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_SHARD_STOPPED),
				 errmsg("replication slot \"%s\" of shard \"%s\" is not being decoded",
						(*state)->slot, shard),
				 errhint("If the slot is gone the shard will be reset, or says in sluice.shard_status what to do.")));
	}
	*generation = stream->generation;
	return stream;
}
