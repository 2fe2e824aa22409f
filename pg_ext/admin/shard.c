/*
 * shard.c: CALL sluice.create_shard and sluice.drop_shard.
 *
 * create: (1) catalogs are made and committed, the state row without a slot;
 * (2) the decoder is started and makes the slot, which waits for every
 * transaction that began before; here nothing is held meanwhile, neither an
 * xid (it would wait for itself) nor a snapshot; (3) success, or everything
 * is undone in another transaction.
 *
 * In: what the shard is to be.  Out: a shard that streams; or none.
 * Runs in: client backends, outside of transaction blocks.
 * Locks: an advisory lock on the name in (1); none in (2).
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "admin.h"
#include "create.h"
#include "error.h"

PG_FUNCTION_INFO_V1(sluice_create_shard);
PG_FUNCTION_INFO_V1(sluice_drop_shard);

typedef struct CreateRequest
{
	char	   *shard;
	bool		keyless;
	SluiceState state;
} CreateRequest;

/* ---- arguments ---- */

static char *
shard_argument(FunctionCallInfo fcinfo)
{
	char	   *shard = sluice_admin_text(fcinfo, 0, "name");
	size_t		length = strlen(shard);

	if (length < 1 || length > SLUICE_SHARD_NAME_MAX ||
		strspn(shard, "abcdefghijklmnopqrstuvwxyz0123456789_") != length)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("invalid name of a shard: \"%s\"", shard),
				 errhint("It has 1 to %d lower case letters, digits and underscores.",
						 SLUICE_SHARD_NAME_MAX)));
	return shard;
}

static int
compare_names(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

/* Sorted, each once. */
static List *
publications_argument(FunctionCallInfo fcinfo)
{
	Datum	   *elements;
	bool	   *nulls;
	int			count;
	List	   *names = NIL;

	if (PG_ARGISNULL(1))
		return NIL;
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), TEXTOID, -1, false, TYPALIGN_INT,
					  &elements, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		char	   *name;
		ListCell   *cell;
		bool		known = false;

		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("publications must not contain nulls")));
		name = TextDatumGetCString(elements[i]);
		foreach(cell, names)
			known = known || strcmp(lfirst(cell), name) == 0;
		if (!known)
			names = lappend(names, name);
	}
	if (names == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("publications must not be empty"),
				 errhint("Name at least one, or pass null to publish all tables of schema public.")));
	list_sort(names, compare_names);
	return names;
}

static CreateRequest *
read_request(FunctionCallInfo fcinfo)
{
	CreateRequest *request = palloc0(sizeof(CreateRequest));
	char	   *keyless;

	request->shard = shard_argument(fcinfo);
	request->state.publications = publications_argument(fcinfo);
	keyless = sluice_admin_text(fcinfo, 2, "keyless");
	request->keyless = strcmp(keyless, "allow") == 0;
	if (!request->keyless && strcmp(keyless, "refuse") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for keyless: \"%s\"", keyless),
				 errhint("Allowed are 'refuse' and 'allow'.")));
	sluice_options_init(&request->state.options);
	sluice_options_set(&request->state.options, "timestamps",
					   sluice_admin_text(fcinfo, 3, "timestamps"));
	sluice_options_set(&request->state.options, "numerics", sluice_admin_text(fcinfo, 4, "numerics"));
	return request;
}

/* ---- create: catalogs ---- */

/* What an earlier call left that was ended before its slot was there. */
static void
clear_leftover(const char *shard)
{
	SluiceState *state = sluice_state_read(shard, NoLock, true);

	if (state == NULL)
		return;
	if (state->slot != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("shard \"%s\" already exists", shard)));
	if (sluice_stream_find(MyDatabaseId, shard) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("shard \"%s\" is being created by another session", shard)));
	ereport(NOTICE,
			(errmsg("removing what an interrupted creation of shard \"%s\" left", shard)));
	sluice_stop_drop_catalog(shard);
	CommandCounterIncrement();
}

static void
make_default_publication(CreateRequest *request)
{
	char		name[NAMEDATALEN];

	sluice_admin_default_publication(name, request->shard);
	if (SearchSysCacheExists1(PUBLICATIONNAME, CStringGetDatum(name)))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("publication \"%s\" already exists", name),
				 errhint("Drop it, or name it: publications => ARRAY['%s'].", name)));
	sluice_admin_run(psprintf("CREATE PUBLICATION %s FOR TABLES IN SCHEMA public"
							  " WITH (publish_via_partition_root = true)",
							  quote_identifier(name)));
	request->state.publications = list_make1(pstrdup(name));
	request->state.default_publication = true;
}

static void
make_catalog(CreateRequest *request)
{
	SluiceAdminStretch stretch;

	PushActiveSnapshot(GetTransactionSnapshot());
	sluice_admin_enter(&stretch);
	sluice_admin_lock_shard(request->shard);
	clear_leftover(request->shard);
	sluice_create_check_server();
	if (request->state.publications == NIL)
		make_default_publication(request);
	CommandCounterIncrement();
	sluice_create_check_publications(request->state.publications);
	sluice_create_check_tables(&request->state, request->keyless);
	sluice_store_create(request->shard);
	CommandCounterIncrement();
	sluice_state_write(request->shard, &request->state);
	sluice_admin_leave(&stretch);
	PopActiveSnapshot();
	SPI_commit();
}

/* ---- create: slot ---- */

/*
 * The session is ended while it waits, or drops: the launcher clears up what
 * has no slot, and starts the workers of what has one.
 */
static void
resume_at_exit(int code, Datum argument)
{
	LWLockReleaseAll();
	sluice_stop_resume((const char *) DatumGetPointer(argument));
}

/* Nothing of the shard is left; a second cancel does not break it off. */
static void
undo(const char *shard)
{
	SluiceAdminStretch stretch;

	SPI_rollback();
	HOLD_CANCEL_INTERRUPTS();
	sluice_stop_mark(shard);
	sluice_stop_wait(shard);
	sluice_stop_drop_slots(shard);
	PushActiveSnapshot(GetTransactionSnapshot());
	sluice_admin_enter(&stretch);
	sluice_stop_drop_catalog(shard);
	sluice_admin_leave(&stretch);
	PopActiveSnapshot();
	SPI_commit();
	RESUME_CANCEL_INTERRUPTS();
}

static void
make_slot(char *shard)
{
	MemoryContext context = CurrentMemoryContext;

	before_shmem_exit(resume_at_exit, PointerGetDatum(shard));
	PG_TRY();
	{
		sluice_create_wait(sluice_create_begin(shard));
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		undo(shard);
		cancel_before_shmem_exit(resume_at_exit, PointerGetDatum(shard));
		ReThrowError(error);
	}
	PG_END_TRY();
	cancel_before_shmem_exit(resume_at_exit, PointerGetDatum(shard));
}

Datum
sluice_create_shard(PG_FUNCTION_ARGS)
{
	CreateRequest *request;

	sluice_admin_require("create a shard");
	sluice_admin_require_nonatomic(fcinfo, "sluice.create_shard");
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");

	/* in SPI's procedure context, which outlives the commits */
	request = read_request(fcinfo);
	make_catalog(request);
	make_slot(request->shard);

	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	PG_RETURN_VOID();
}

/* ---- drop ---- */

static void
check_exists(const char *shard)
{
	SluiceStream *stream = sluice_stream_find(MyDatabaseId, shard);
	bool		creating = false;

	if (stream)
	{
		LWLockAcquire(sluice_shmem->lock, LW_SHARED);
		creating = stream->in_use && stream->create;
		LWLockRelease(sluice_shmem->lock);
	}
	if (creating)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("shard \"%s\" is being created by another session", shard),
				 errhint("Cancel that call: it removes what it has made.")));
	if (stream == NULL && sluice_state_read(shard, NoLock, true) == NULL)
		ereport(ERROR,
				(errcode(SLUICE_ERRCODE_UNKNOWN_SHARD),
				 errmsg("shard \"%s\" does not exist", shard),
				 errhint("The view sluice.shards lists the shards of this database.")));
}

static void
drop_running(char *shard)
{
	before_shmem_exit(resume_at_exit, PointerGetDatum(shard));
	PG_TRY();
	{
		sluice_stop_mark(shard);
		sluice_stop_wait(shard);
		sluice_stop_drop_slots(shard);
	}
	PG_CATCH();
	{
		cancel_before_shmem_exit(resume_at_exit, PointerGetDatum(shard));
		sluice_stop_resume(shard);
		PG_RE_THROW();
	}
	PG_END_TRY();
	cancel_before_shmem_exit(resume_at_exit, PointerGetDatum(shard));
}

static void
drop_catalog(const char *shard)
{
	SluiceAdminStretch stretch;

	PushActiveSnapshot(GetTransactionSnapshot());
	sluice_admin_enter(&stretch);
	sluice_stop_drop_catalog(shard);
	sluice_admin_leave(&stretch);
	PopActiveSnapshot();
	SPI_commit();
}

Datum
sluice_drop_shard(PG_FUNCTION_ARGS)
{
	char	   *shard;

	sluice_admin_require("drop a shard");
	sluice_admin_require_nonatomic(fcinfo, "sluice.drop_shard");
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");

	shard = shard_argument(fcinfo);
	check_exists(shard);
	/* what the check has read must not keep an xmin while workers end */
	SPI_commit();
	drop_running(shard);
	drop_catalog(shard);

	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	PG_RETURN_VOID();
}
