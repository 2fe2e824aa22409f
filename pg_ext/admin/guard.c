/*
 * guard.c: refuses DROP EXTENSION and DROP DATABASE while shards exist.
 *
 * A slot cannot be dropped in a transaction, so neither command can take it
 * along; without this guard the first would leave a slot behind that holds WAL
 * for ever, and the second would only say that a slot is active.
 *
 * In: drops of any object.  Out: an ERROR, or nothing.
 * Runs in: client backends.  Locks: ReplicationSlotControlLock, shared.
 */
#include "postgres.h"

#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "replication/slot.h"

#include "guard.h"
#include "shmem.h"

static object_access_hook_type access_next = NULL;

/* "a, b" of the shards that have a slot in the database; NULL: none. */
static char *
shards_of(Oid dboid)
{
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		char		shard[SLUICE_SHARD_NAME_MAX + 1];
		uint32		n;
		bool		ours;

		LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
		ours = slot->in_use && slot->data.database == dboid &&
			strcmp(NameStr(slot->data.plugin), "sluice") == 0 &&
			sluice_slot_name_parse(NameStr(slot->data.name), shard, &n);
		LWLockRelease(ReplicationSlotControlLock);
		if (ours)
			appendStringInfo(&names, "%s\"%s\"", names.len > 0 ? ", " : "", shard);
	}
	return names.len > 0 ? names.data : NULL;
}

static void
check_drop_extension(Oid extension)
{
	char	   *shards;

	if (extension != get_extension_oid("sluice", true))
		return;
	shards = shards_of(MyDatabaseId);
	if (shards)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("cannot drop extension \"sluice\" while it has shards"),
				 errdetail("Shards of this database: %s.", shards),
				 errhint("Call sluice.drop_shard for each of them first.")));
}

static void
check_drop_database(Oid database)
{
	char	   *shards = shards_of(database);

	if (shards)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("cannot drop a database that has sluice shards"),
				 errdetail("Its shards: %s.", shards),
				 errhint("Connect to the database and call sluice.drop_shard for each of them first.")));
}

static void
on_access(ObjectAccessType access, Oid class, Oid object, int subid, void *argument)
{
	if (access_next)
		access_next(access, class, object, subid, argument);
	if (access != OAT_DROP || subid != 0)
		return;
	if (class == ExtensionRelationId)
		check_drop_extension(object);
	else if (class == DatabaseRelationId)
		check_drop_database(object);
}

void
sluice_guard_install(void)
{
	access_next = object_access_hook;
	object_access_hook = on_access;
}
