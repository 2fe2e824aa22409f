/*
 * compat.c: see compat.h.
 */
#include "postgres.h"

#include "catalog/index.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "replication/message.h"
#include "replication/walsender_private.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/relcache.h"
#include "utils/timeout.h"
#include "utils/wait_event.h"

#include "compat.h"

static void (*request_ours) (void);
static shmem_request_hook_type request_next = NULL;

static void
request(void)
{
	if (request_next)
		request_next();
	request_ours();
}

void
sluice_hook_shmem_request(void (*function) (void))
{
	request_ours = function;
	request_next = shmem_request_hook;
	shmem_request_hook = request;
}

void
sluice_reserve_settings(const char *prefix)
{
	MarkGUCPrefixReserved(prefix);
}

#if PG_VERSION_NUM >= 170000

uint32
sluice_wait_event(SluiceWait wait)
{
	static const char *const names[SLUICE_WAIT_COUNT] = {
		"SluiceLauncher", "SluiceWal", "SluiceRingSpace",
		"SluiceRingData", "SluiceClient", "SluiceProgress"
	};
	static uint32 events[SLUICE_WAIT_COUNT];

	/* 0 is no event of the extension class */
	if (events[wait] == 0)
		events[wait] = WaitEventExtensionNew(names[wait]);
	return events[wait];
}

#else

uint32
sluice_wait_event(SluiceWait wait)
{
	return PG_WAIT_EXTENSION;
}

#endif

bool
sluice_slot_invalidated(const ReplicationSlot *slot)
{
#if PG_VERSION_NUM >= 160000
	return slot->data.invalidated != RS_INVAL_NONE;
#else
	return !XLogRecPtrIsInvalid(slot->data.invalidated_at);
#endif
}

void
sluice_slot_cleanup(void)
{
#if PG_VERSION_NUM >= 170000
	ReplicationSlotCleanup(false);
#else
	ReplicationSlotCleanup();
#endif
}

/* ---- decoding ---- */

void
sluice_check_decoding(void)
{
	CheckLogicalDecodingRequirements();
}

void
sluice_slot_create(const char *name)
{
#if PG_VERSION_NUM >= 170000
	ReplicationSlotCreate(name, true, RS_EPHEMERAL, false, true, false);
#else
	ReplicationSlotCreate(name, true, RS_EPHEMERAL, false);
#endif
}

void
sluice_slot_acquire(const char *name)
{
#if PG_VERSION_NUM >= 180000
	ReplicationSlotAcquire(name, true, true);
#else
	ReplicationSlotAcquire(name, true);
#endif
}

LogicalDecodingContext *
sluice_create_init_context(const char *plugin, XLogReaderRoutine *routine)
{
	return CreateInitDecodingContext(plugin, NIL, true, InvalidXLogRecPtr, routine,
									 NULL, NULL, NULL);
}

#if PG_VERSION_NUM >= 170000
#define CHANGE_TUPLE(field) (change->data.tp.field)
#else
#define CHANGE_TUPLE(field) \
	(change->data.tp.field ? &change->data.tp.field->tuple : NULL)
#endif

HeapTuple
sluice_change_new(const ReorderBufferChange *change)
{
	return CHANGE_TUPLE(newtuple);
}

HeapTuple
sluice_change_old(const ReorderBufferChange *change)
{
	return CHANGE_TUPLE(oldtuple);
}

void
sluice_flush_wait_prepare(void)
{
#if PG_VERSION_NUM >= 160000
	ConditionVariablePrepareToSleep(&WalSndCtl->wal_flush_cv);
#endif
}

void
sluice_flush_wait_cancel(void)
{
#if PG_VERSION_NUM >= 160000
	ConditionVariableCancelSleep();
#endif
}

bool
sluice_backend_info(int pid, SluiceBackendInfo *info)
{
	int			count;

	/* the local copy of the status array is otherwise kept until the
	 * transaction ends */
	pgstat_clear_backend_activity_snapshot();
	count = pgstat_fetch_stat_numbackends();
	for (int i = 1; i <= count; i++)
	{
#if PG_VERSION_NUM >= 160000
		LocalPgBackendStatus *local = pgstat_get_local_beentry_by_index(i);
#else
		LocalPgBackendStatus *local = pgstat_fetch_stat_local_beentry(i);
#endif
		PgBackendStatus *status = local ? &local->backendStatus : NULL;

		if (status == NULL || status->st_procpid != pid)
			continue;
		strlcpy(info->application, status->st_appname ? status->st_appname : "",
				sizeof(info->application));
		strlcpy(info->activity, status->st_activity_raw ? status->st_activity_raw : "",
				sizeof(info->activity));
		info->xact_start = status->st_xact_start_timestamp;
		return true;
	}
	return false;
}

void
sluice_disable_transaction_timeout(void)
{
#if PG_VERSION_NUM >= 170000
	disable_timeout(TRANSACTION_TIMEOUT, false);
#endif
}

XLogRecPtr
sluice_log_message(const char *prefix, const char *message, Size size)
{
#if PG_VERSION_NUM >= 170000
	return LogLogicalMessage(prefix, message, size, false, false);
#else
	return LogLogicalMessage(prefix, message, size, false);
#endif
}

void
sluice_relation_empty(Relation relation)
{
	Oid			relid = RelationGetRelid(relation);
	ReindexParams params = {0};

#if PG_VERSION_NUM >= 160000
	RelationSetNewRelfilenumber(relation, relation->rd_rel->relpersistence);
#else
	RelationSetNewRelfilenode(relation, relation->rd_rel->relpersistence);
#endif
#if PG_VERSION_NUM >= 170000
	(void) reindex_relation(NULL, relid, REINDEX_REL_PROCESS_TOAST, &params);
#else
	(void) reindex_relation(relid, REINDEX_REL_PROCESS_TOAST, &params);
#endif
}
