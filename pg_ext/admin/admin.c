/*
 * admin.c: rights, user switch and names for the administrative functions.
 *
 * In: the session's user.  Out: stretches with superuser's rights.
 * Runs in: client backends.
 * Locks: an advisory transaction lock per shard name.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"

#include "admin.h"

#define ADVISORY_CLASS 0x534c5543

static Oid
extension_owner(void)
{
	Oid			extension = get_extension_oid("sluice", false);
	Relation	relation = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			owner = BOOTSTRAP_SUPERUSERID;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(extension));
	scan = systable_beginscan(relation, ExtensionOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		owner = ((Form_pg_extension) GETSTRUCT(tuple))->extowner;
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return owner;
}

void
sluice_admin_require(const char *what)
{
	sluice_shmem_require();
	if (superuser() || has_privs_of_role(GetUserId(), extension_owner()))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to %s", what),
			 errhint("Only a superuser or the owner of extension \"sluice\" may do that.")));
}

void
sluice_admin_require_nonatomic(FunctionCallInfo fcinfo, const char *procedure)
{
	if (fcinfo->context && IsA(fcinfo->context, CallContext) &&
		!castNode(CallContext, fcinfo->context)->atomic)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
			 errmsg("%s cannot run inside a transaction block or a function", procedure),
			 errhint("Send CALL %s(...) as a statement of its own.", procedure)));
}

char *
sluice_admin_text(FunctionCallInfo fcinfo, int i, const char *name)
{
	if (PG_ARGISNULL(i))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", name)));
	return text_to_cstring(PG_GETARG_TEXT_PP(i));
}

static void
set_local(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_SUSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

void
sluice_admin_enter(SluiceAdminStretch *stretch)
{
	GetUserIdAndSecContext(&stretch->user, &stretch->context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   stretch->context | SECURITY_LOCAL_USERID_CHANGE);
	stretch->guc_level = NewGUCNestLevel();
	set_local("search_path", "pg_catalog, pg_temp");
	set_local("row_security", "off");
	set_local("default_tablespace", "");
	set_local("default_table_access_method", "heap");
}

void
sluice_admin_leave(const SluiceAdminStretch *stretch)
{
	AtEOXact_GUC(false, stretch->guc_level);
	SetUserIdAndSecContext(stretch->user, stretch->context);
}

void
sluice_admin_run(const char *command)
{
	int			result = SPI_execute(command, false, 0);

	if (result < 0)
		elog(ERROR, "\"%s\" failed: %s", command, SPI_result_code_string(result));
}

static const char shards_query[] =
"SELECT pg_catalog.substr(n.nspname::pg_catalog.text, 5) COLLATE \"C\""
" FROM pg_catalog.pg_depend d"
" JOIN pg_catalog.pg_class c ON c.oid = d.objid AND c.relname = 'state' AND c.relkind = 'r'"
" JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND pg_catalog.starts_with(n.nspname::pg_catalog.text, 'cdc_')"
" JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid AND e.extname = 'sluice'"
" WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objsubid = 0"
" AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.deptype = 'e'"
" ORDER BY 1";

List *
sluice_admin_shards(void)
{
	MemoryContext caller = CurrentMemoryContext;
	List	   *names = NIL;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute(shards_query, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "cannot list shards");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		char	   *name = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1);
		MemoryContext old = MemoryContextSwitchTo(caller);

		names = lappend(names, pstrdup(name));
		MemoryContextSwitchTo(old);
	}
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	return names;
}

void
sluice_admin_default_publication(char *name, const char *shard)
{
	snprintf(name, NAMEDATALEN, "sluice_%s", shard);
}

void
sluice_admin_lock_shard(const char *shard)
{
	LOCKTAG		tag;
	uint32		hash = hash_bytes((const unsigned char *) shard, strlen(shard));

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, ADVISORY_CLASS, hash, 2);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}
