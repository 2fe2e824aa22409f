/*
 * create_check.c: what must hold before a shard is made.
 *
 * In: the server's settings, publications, published tables.  Out: an ERROR
 * that says what to do, WARNINGs, or nothing.
 * Runs in: CALL sluice.create_shard.  Locks: none kept.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_publication.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "replication/slot.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

#include "admin.h"
#include "schema.h"

#define TABLES_NAMED 20			/* of thousands, in one message */

void
sluice_create_check_server(void)
{
	int			used = 0;

	if (wal_level < WAL_LEVEL_LOGICAL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sluice needs wal_level = logical"),
				 errhint("Set wal_level = logical in postgresql.conf and restart the server.")));
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a shard cannot be made while the server is in recovery")));

	if (GetDatabaseEncoding() == PG_SQL_ASCII)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a database of encoding SQL_ASCII cannot have shards"),
				 errdetail("Nothing says what its texts mean; replicas hold UTF-8."),
				 errhint("Move the data to a database of another encoding.")));

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
		if (ReplicationSlotCtl->replication_slots[i].in_use)
			used++;
	LWLockRelease(ReplicationSlotControlLock);
	if (used >= max_replication_slots)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("all replication slots are in use"),
				 errhint("Drop one, or raise max_replication_slots (now %d) and restart the server.",
						 max_replication_slots)));
}

/* ---- publications ---- */

static void
check_publication(const char *name)
{
	HeapTuple	tuple = SearchSysCache1(PUBLICATIONNAME, CStringGetDatum(name));
	Form_pg_publication form;
	bool		complete;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("publication \"%s\" does not exist", name),
				 errhint("Create it first, or leave publications away: then all tables of schema public are published.")));
	form = (Form_pg_publication) GETSTRUCT(tuple);
	complete = form->pubinsert && form->pubupdate && form->pubdelete && form->pubtruncate;
	ReleaseSysCache(tuple);
	if (!complete)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("publication \"%s\" leaves out some kinds of changes", name),
				 errhint("ALTER PUBLICATION %s SET (publish = 'insert, update, delete, truncate');",
						 quote_identifier(name))));
}

/* All publications of the database that are FOR ALL TABLES, of char *. */
static List *
all_tables_publications(void)
{
	Relation	relation = table_open(PublicationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;
	List	   *names = NIL;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_publication form = (Form_pg_publication) GETSTRUCT(tuple);

		if (form->puballtables)
			names = lappend(names, pstrdup(NameStr(form->pubname)));
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return names;
}

void
sluice_create_check_publications(List *publications)
{
	ListCell   *cell;

	foreach(cell, publications)
		check_publication(lfirst(cell));

	foreach(cell, all_tables_publications())
		ereport(WARNING,
				(errmsg("publication \"%s\" is FOR ALL TABLES and so names the change log's own tables",
						(char *) lfirst(cell)),
				 errdetail("Sluice never publishes them, and their rows reach no subscriber."),
				 errhint("An ordinary subscription to it fails at REFRESH PUBLICATION, which looks for these "
						 "tables; publish schemas or tables by name for it.")));
}

/* ---- tables ---- */

typedef struct Report
{
	StringInfoData text;
	int			count;
} Report;

static void
report_line(Report *report, const char *line)
{
	if (report->count++ < TABLES_NAMED)
		appendStringInfo(&report->text, "%s%s", report->text.len > 0 ? "\n" : "", line);
}

static const char *
report_text(Report *report)
{
	if (report->count > TABLES_NAMED)
		appendStringInfo(&report->text, "\nand %d more", report->count - TABLES_NAMED);
	return report->text.data;
}

/* The unique index that may best be made the replica identity; NULL: none. */
static char *
usable_index(const SluiceTable *table, bool *primary)
{
	Relation	relation = RelationIdGetRelation(table->oid);
	char	   *found = NULL;
	ListCell   *cell;

	*primary = false;
	if (!RelationIsValid(relation))
		return NULL;
	foreach(cell, RelationGetIndexList(relation))
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
		Form_pg_index form;
		bool		usable;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_index) GETSTRUCT(tuple);
		usable = form->indisunique && form->indimmediate && form->indisvalid &&
			heap_attisnull(tuple, Anum_pg_index_indpred, NULL);
		for (int i = 0; usable && i < form->indnkeyatts; i++)
		{
			AttrNumber	attnum = form->indkey.values[i];

			usable = attnum > 0 &&
				TupleDescAttr(RelationGetDescr(relation), attnum - 1)->attnotnull;
		}
		if (usable && (found == NULL || form->indisprimary))
		{
			found = get_rel_name(lfirst_oid(cell));
			*primary = form->indisprimary;
		}
		ReleaseSysCache(tuple);
	}
	RelationClose(relation);
	return found;
}

static char *
remedy(const SluiceTable *table)
{
	char	   *name = quote_qualified_identifier(table->schema, table->name);
	bool		primary;
	char	   *index = usable_index(table, &primary);

	if (primary)
		return psprintf("ALTER TABLE %s REPLICA IDENTITY DEFAULT;", name);
	if (index)
		return psprintf("ALTER TABLE %s REPLICA IDENTITY USING INDEX %s;", name,
						quote_identifier(index));
	return psprintf("ALTER TABLE %s ADD PRIMARY KEY (...);  or  ALTER TABLE %s REPLICA IDENTITY FULL;",
					name, name);
}

/* PostgreSQL refuses UPDATE and DELETE on such a table once it is published. */
static bool
lacks_identity(const SluiceTable *table)
{
	return table->nkey == 0 && table->identity != REPLICA_IDENTITY_FULL;
}

static void
refuse_problems(const SluiceSchema *schema)
{
	Report		report = {.count = 0};

	initStringInfo(&report.text);
	for (uint32 i = 0; i < schema->ntables; i++)
	{
		const SluiceTable *table = &schema->tables[i];

		if (table->problem)
			report_line(&report, psprintf("%s: %s",
										  quote_qualified_identifier(table->schema, table->name),
										  table->problem));
	}
	if (report.count > 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg_plural("%d published table cannot be followed",
							   "%d published tables cannot be followed",
							   report.count, report.count),
				 errdetail_internal("%s", report_text(&report)),
				 errhint("Change them as said, or leave them out of the publication.")));
}

static void
refuse_keyless(const SluiceSchema *schema)
{
	Report		tables = {.count = 0};
	Report		remedies = {.count = 0};

	initStringInfo(&tables.text);
	initStringInfo(&remedies.text);
	for (uint32 i = 0; i < schema->ntables; i++)
	{
		const SluiceTable *table = &schema->tables[i];

		if (!lacks_identity(table))
			continue;
		report_line(&tables, quote_qualified_identifier(table->schema, table->name));
		report_line(&remedies, remedy(table));
	}
	if (tables.count > 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg_plural("%d published table has no usable replica identity",
							   "%d published tables have no usable replica identity",
							   tables.count, tables.count),
				 errdetail("Once they are published, UPDATE and DELETE on them fail:\n%s",
						   report_text(&tables)),
				 errhint("Choose for each:\n%s\nor pass keyless => 'allow' if they only see INSERT and TRUNCATE.",
						 report_text(&remedies))));
}

void
sluice_create_check_tables(const SluiceState *state, bool keyless)
{
	SluiceEncodeOptions options = {
		.timestamps_text = state->options.timestamps_text,
		.numerics_double = state->options.numerics_double
	};
	SluiceSchema *schema = sluice_schema_read(state->publications, NULL, &options);

	refuse_problems(schema);
	if (!keyless)
		refuse_keyless(schema);
	if (schema->ntables == 0)
		ereport(NOTICE,
				(errmsg("no table is published yet"),
				 errdetail("Tables appear in the replicas once the shard's publications name them.")));
}
