/*
 * copy.c: CALL sluice.copy: the list of tables, or some of them, to a replica.
 *
 * In: the arguments of the call.  Out: copy_list.c or copy_table.c.
 * Runs in: a client backend.  Locks: none.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "call.h"
#include "copier.h"
#include "copyboth.h"
#include "error.h"
#include "guc.h"

PG_FUNCTION_INFO_V1(sluice_copy);

/* A copy that goes on after an interruption has what it has from this server. */
static void
check_origin(const SluiceCopier *copier, const Jsonb *options)
{
	const SluiceSenderTask *task = &copier->task;
	uint64		system;
	uint64		timeline;
	char	   *version;
	SluiceWatermark lineage;

	if ((sluice_call_option(options, "system_id", &system) && system != GetSystemIdentifier()) ||
		(sluice_call_option(options, "timeline", &timeline) && timeline != GetWALInsertionTimeLine()))
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_DIVERGED),
				 errmsg("the copy of replica \"%s\" began on another server or timeline", task->replica),
				 errhint("It has to begin anew; sluice-agent does so by itself.")));

	version = sluice_call_text_option(options, "replica_version");
	if (version != NULL && (!sluice_watermark_parse(version, &lineage) ||
							sluice_watermark_compare(lineage, task->lineage) != 0))
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_WRONG_REPLICA_VERSION),
				 errmsg("the copy of replica \"%s\" is of another lineage than shard \"%s\"",
						task->replica, task->shard),
				 errhint("It has to begin anew; sluice-agent does so by itself.")));
}

static void
copy_tables(SluiceCopier *copier, ArrayType *tables)
{
	Datum	   *oids;
	int			n;

	if (ARR_ELEMTYPE(tables) != OIDOID || array_contains_nulls(tables))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument tables of sluice.copy must not contain nulls")));
	deconstruct_array(tables, OIDOID, sizeof(Oid), true, TYPALIGN_INT, &oids, NULL, &n);
	for (int i = 0; i < n; i++)
		sluice_copy_send_table(copier, DatumGetObjectId(oids[i]));
}

static void
begin(SluiceCopier *copier)
{
	SluiceSenderTask *task = &copier->task;

	task->stream = sluice_call_find(task->shard, &copier->state, &task->generation);
	task->lineage = copier->state->replica_version;
	task->n = copier->state->n;
	task->entry = sluice_sender_claim(MyDatabaseId, task->shard, task->replica, "copy");
	SpinLockAcquire(&task->entry->mutex);
	task->entry->state = SLUICE_SENDER_COPYING;
	SpinLockRelease(&task->entry->mutex);

	copier->options.timestamps_text = copier->state->options.timestamps_text;
	copier->options.numerics_double = copier->state->options.numerics_double;
	copier->table = AllocSetContextCreate(CurrentMemoryContext, "sluice copy",
										  ALLOCSET_DEFAULT_SIZES);
	initStringInfo(&copier->ignored);
}

Datum
sluice_copy(PG_FUNCTION_ARGS)
{
	SluiceCopier copier = {0};
	ArrayType  *tables;

	sluice_shmem_require();
	sluice_copyboth_check(fcinfo, "copy");
	sluice_call_check_rights("copy");
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("arguments shard and replica of sluice.copy must not be null")));
	copier.task.shard = sluice_call_shard(PG_GETARG_TEXT_PP(0));
	copier.task.replica = sluice_call_replica(PG_GETARG_TEXT_PP(1));
	tables = PG_ARGISNULL(2) ? NULL : PG_GETARG_ARRAYTYPE_P(2);

	sluice_copyboth_begin();
	begin(&copier);
	if (!PG_ARGISNULL(3))
		check_origin(&copier, PG_GETARG_JSONB_P(3));
	if (tables != NULL && ArrayGetNItems(ARR_NDIM(tables), ARR_DIMS(tables)) > 0)
		copy_tables(&copier, tables);
	else
		sluice_copy_send_list(&copier);
	sluice_copyboth_end(sluice_effective_sender_timeout());
	sluice_sender_release(copier.task.entry);
	PG_RETURN_VOID();
}
