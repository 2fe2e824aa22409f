/*
 * create.c: making and dropping cdc_<shard>, its tables and views.
 *
 * In: a shard's name.  Out: the schema of DESIGN 4; tables and views are
 * members of the extension (pg_dump leaves them out), have REPLICA IDENTITY
 * NOTHING and no privileges but those given here.
 * Runs in: CALL sluice.create_shard and drop_shard, through SPI.
 * Locks: those of the DDL.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/rel.h"

#include "create.h"
#include "error.h"
#include "state.h"

/*
 * %1$s is the schema as an identifier, %2$s the shard as a literal.  Column
 * order is what state_columns.h, slices.h and the other users say.
 */
static const char *const create_commands[] = {
	"CREATE SCHEMA %1$s",

	"CREATE TABLE %1$s.state ("
	" owner text, owner_address text, slot text, n int8 NOT NULL,"
	" first text COLLATE \"C\" NOT NULL, replica_version text COLLATE \"C\" NOT NULL,"
	" epoch int8 NOT NULL, publications text[] NOT NULL,"
	" reset_required bool NOT NULL, reset_reason text, auto_reset bool NOT NULL,"
	" retention_ms int8 NOT NULL, retention_bytes int8 NOT NULL,"
	" timestamps_text bool NOT NULL, numerics_double bool NOT NULL,"
	" paused bool NOT NULL, default_publication bool NOT NULL,"
	" system_id int8 NOT NULL, timeline int8 NOT NULL)"
	" USING heap",

	/*
	 * A slice fills a page; nothing of it is compressed or moved out of line.
	 * Purged pages are to be usable again soon, without the lock that cutting
	 * off the table's end would take.
	 */
	"CREATE TABLE %1$s.slices ("
	" number int8 NOT NULL, first_major int8 NOT NULL, first_minor int8 NOT NULL,"
	" last_major int8 NOT NULL, last_minor int8 NOT NULL,"
	" commit_time timestamptz NOT NULL, end_lsn pg_lsn NOT NULL, xid int8 NOT NULL,"
	" bytes_before int8 NOT NULL, flags int2 NOT NULL, format int2 NOT NULL,"
	" data bytea NOT NULL, CONSTRAINT slices_pkey PRIMARY KEY (number))"
	" USING heap WITH (fillfactor = 100, vacuum_truncate = false, vacuum_index_cleanup = on,"
	" autovacuum_enabled = true, autovacuum_vacuum_threshold = 1000,"
	" autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_insert_threshold = -1,"
	" autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 2000000000)",
	"ALTER TABLE %1$s.slices ALTER data SET STORAGE PLAIN, ALTER data SET STATISTICS 0",

	"CREATE TABLE %1$s.replicas ("
	" name text COLLATE \"C\" NOT NULL, durable text COLLATE \"C\" NOT NULL,"
	" lineage text COLLATE \"C\" NOT NULL, seen_at timestamptz NOT NULL,"
	" CONSTRAINT replicas_pkey PRIMARY KEY (name))"
	" USING heap WITH (vacuum_truncate = false, autovacuum_vacuum_threshold = 200,"
	" autovacuum_vacuum_scale_factor = 0)",
	"ALTER TABLE %1$s.replicas ALTER name SET STORAGE PLAIN, ALTER durable SET STORAGE PLAIN,"
	" ALTER lineage SET STORAGE PLAIN",

	"CREATE TABLE %1$s.table_schema ("
	" watermark text COLLATE \"C\" NOT NULL, data bytea NOT NULL)"
	" USING heap WITH (vacuum_truncate = false)",
	"ALTER TABLE %1$s.table_schema ALTER data SET STORAGE EXTERNAL",

	"CREATE TABLE %1$s.\"tableMetadata\" ("
	" schema text NOT NULL, \"table\" text NOT NULL, metadata jsonb NOT NULL,"
	" CONSTRAINT \"tableMetadata_pkey\" PRIMARY KEY (schema, \"table\")) USING heap",
	"CREATE TABLE %1$s.backfilling ("
	" schema text NOT NULL, \"table\" text NOT NULL, \"column\" text NOT NULL, backfill jsonb NOT NULL,"
	" CONSTRAINT backfilling_pkey PRIMARY KEY (schema, \"table\", \"column\")) USING heap",

	"CREATE VIEW %1$s.\"changeLog\" AS"
	" SELECT watermark, pos, change, precommit FROM sluice.change_log(%2$s)",
	"CREATE VIEW %1$s.\"replicationState\" AS"
	" SELECT \"lastWatermark\", owner, \"ownerAddress\", 1 AS lock FROM sluice.replication_state(%2$s)",
	"CREATE VIEW %1$s.\"replicationConfig\" AS"
	" SELECT \"replicaVersion\", publications, \"resetRequired\", 1 AS lock FROM sluice.replication_config(%2$s)",

	/* the log shows every published row: for those who may see them anyway */
	"REVOKE ALL ON ALL TABLES IN SCHEMA %1$s FROM PUBLIC",
	"GRANT USAGE ON SCHEMA %1$s TO sluice_monitor, sluice_replica",
	"GRANT SELECT ON %1$s.\"replicationState\", %1$s.\"replicationConfig\", %1$s.\"tableMetadata\","
	" %1$s.backfilling, %1$s.replicas TO sluice_monitor",
	"GRANT SELECT ON %1$s.\"changeLog\" TO sluice_replica",
};

static const char *const tables[] = {
	"state", "slices", "replicas", "table_schema", "tableMetadata", "backfilling"
};

static const char *const views[] = {
	"changeLog", "replicationState", "replicationConfig"
};

static Oid
extension_owner(void)
{
	Oid			extension = get_extension_oid("sluice", false);
	Relation	relation = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			owner = InvalidOid;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(extension));
	scan = systable_beginscan(relation, ExtensionOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		owner = ((Form_pg_extension) GETSTRUCT(tuple))->extowner;
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	if (!OidIsValid(owner))
		elog(ERROR, "extension sluice has no owner");
	return owner;
}

typedef struct Switched
{
	Oid			user;
	int			context;
	int			guc_level;
} Switched;

/* As the owner, with every name found in pg_catalog or not at all. */
static void
switch_to_owner(Switched *switched)
{
	GetUserIdAndSecContext(&switched->user, &switched->context);
	SetUserIdAndSecContext(extension_owner(), switched->context | SECURITY_LOCAL_USERID_CHANGE);
	switched->guc_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("client_min_messages", "warning", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("default_tablespace", "", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
}

static void
switch_back(const Switched *switched)
{
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	AtEOXact_GUC(true, switched->guc_level);
	SetUserIdAndSecContext(switched->user, switched->context);
}

static void
run(const char *command)
{
	int			result = SPI_execute(command, false, 0);

	if (result < 0)
		elog(ERROR, "\"%s\" failed: %s", command, SPI_result_code_string(result));
}

static void
each_member(const char *action, const char *schema)
{
	for (int i = 0; i < lengthof(tables); i++)
		run(psprintf("ALTER EXTENSION sluice %s TABLE %s.%s", action, schema, quote_identifier(tables[i])));
	for (int i = 0; i < lengthof(views); i++)
		run(psprintf("ALTER EXTENSION sluice %s VIEW %s.%s", action, schema, quote_identifier(views[i])));
	run(psprintf("ALTER EXTENSION sluice %s SCHEMA %s", action, schema));
}

void
sluice_store_create(const char *shard)
{
	char		name[NAMEDATALEN];
	const char *schema;
	const char *literal = quote_literal_cstr(shard);
	Switched	switched;

	sluice_state_schema(name, shard);
	if (OidIsValid(get_namespace_oid(name, true)))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("the schema \"%s\" is there already", name),
				 errhint("If a shard \"%s\" exists, drop it with CALL sluice.drop_shard('%s'); otherwise choose another name.",
						 shard, shard)));
	switch_to_owner(&switched);
	schema = quote_identifier(name);
	for (int i = 0; i < lengthof(create_commands); i++)
		run(psprintf(create_commands[i], schema, literal));
	for (int i = 0; i < lengthof(tables); i++)
		run(psprintf("ALTER TABLE %s.%s REPLICA IDENTITY NOTHING", schema, quote_identifier(tables[i])));
	each_member("ADD", schema);
	switch_back(&switched);
}

void
sluice_store_drop(const char *shard)
{
	char		name[NAMEDATALEN];
	const char *schema;
	Switched	switched;

	sluice_state_schema(name, shard);
	if (!OidIsValid(get_namespace_oid(name, true)))
		return;
	switch_to_owner(&switched);
	schema = quote_identifier(name);
	each_member("DROP", schema);
	run(psprintf("DROP SCHEMA %s CASCADE", schema));
	switch_back(&switched);
}
