/*
 * replica_setup.c: our own tables in a replica file, and its pragmas.
 *
 * In: an open connection.  Out: a file with the tables of reference "_zero."
 * (names and columns are what other readers of such files know) and ours,
 * "_sluice.".
 * Runs in: the thread that owns the replica.  Locks: SQLite's.
 */
#include <string.h>

#include "log.h"
#include "replica_setup.h"

#define ONE_ROW "lock INTEGER PRIMARY KEY DEFAULT 1 CHECK (lock = 1)"

static const char create_zero[] =
	"CREATE TABLE \"_zero.versionHistory\"(dataVersion INTEGER NOT NULL,"
	" schemaVersion INTEGER NOT NULL, minSafeVersion INTEGER NOT NULL, " ONE_ROW ");"
	"CREATE TABLE \"_zero.replicationConfig\"(replicaVersion TEXT NOT NULL,"
	" publications TEXT NOT NULL, initialSyncContext TEXT NOT NULL DEFAULT '{}', " ONE_ROW ");"
	"CREATE TABLE \"_zero.replicationState\"(stateVersion TEXT NOT NULL,"
	" writeTimeMs INTEGER NOT NULL, " ONE_ROW ");"
	"CREATE TABLE \"_zero.runtimeEvents\"(event TEXT PRIMARY KEY ON CONFLICT REPLACE,"
	" timestamp TEXT NOT NULL DEFAULT (current_timestamp));"
	"CREATE TABLE \"_zero.column_metadata\"(table_name TEXT NOT NULL, column_name TEXT NOT NULL,"
	" upstream_type TEXT NOT NULL, is_not_null INTEGER NOT NULL, is_enum INTEGER NOT NULL,"
	" is_array INTEGER NOT NULL, character_max_length INTEGER, backfill TEXT,"
	" PRIMARY KEY(table_name, column_name));"
	"CREATE TABLE \"_zero.tableMetadata\"(\"schema\" TEXT NOT NULL, \"table\" TEXT NOT NULL,"
	" minRowVersion TEXT NOT NULL DEFAULT '00', upstreamMetadata TEXT, metadata TEXT,"
	" PRIMARY KEY(\"schema\", \"table\"));"
	"CREATE TABLE \"_zero.backfilling\"(\"schema\" TEXT NOT NULL, \"table\" TEXT NOT NULL,"
	" \"column\" TEXT NOT NULL, backfill TEXT, PRIMARY KEY(\"schema\", \"table\", \"column\"));"
	"INSERT INTO \"_zero.versionHistory\"(dataVersion, schemaVersion, minSafeVersion)"
	" VALUES(17, 17, 1);";

static const char create_sluice[] =
	"CREATE TABLE \"_sluice.versionHistory\"(dataVersion INTEGER NOT NULL,"
	" schemaVersion INTEGER NOT NULL, minSafeVersion INTEGER NOT NULL, " ONE_ROW ") STRICT;"
	"CREATE TABLE \"_sluice.state\"(shard TEXT, systemId INTEGER, timeline INTEGER,"
	" timestamps INTEGER, numerics INTEGER, stage TEXT NOT NULL, listLow TEXT, listHigh INTEGER,"
	" listSnapshot BLOB, rowLog INTEGER NOT NULL DEFAULT 0, " ONE_ROW ") STRICT;"
	"CREATE TABLE \"_sluice.position\"(xid INTEGER NOT NULL, commitTime INTEGER NOT NULL,"
	" seen INTEGER NOT NULL, " ONE_ROW ") STRICT;"
	"CREATE TABLE \"_sluice.tables\"(oid INTEGER PRIMARY KEY, name TEXT NOT NULL,"
	" spec BLOB NOT NULL, fingerprint INTEGER NOT NULL, copied INTEGER NOT NULL, low TEXT,"
	" high INTEGER, snapshot BLOB, problem TEXT, integerKey INTEGER NOT NULL) STRICT;"
	"CREATE TABLE \"_sluice.names\"(kind TEXT NOT NULL, oid INTEGER NOT NULL,"
	" attnum INTEGER NOT NULL, \"schema\" TEXT NOT NULL, name TEXT NOT NULL,"
	" sqliteName TEXT NOT NULL, PRIMARY KEY(kind, oid, attnum)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE \"_sluice.rowLog\"(lastVersion TEXT NOT NULL, chunk INTEGER NOT NULL,"
	" writeTimeMs INTEGER NOT NULL, ops TEXT NOT NULL,"
	" PRIMARY KEY(lastVersion, chunk)) STRICT, WITHOUT ROWID;"
	"INSERT INTO \"_sluice.versionHistory\"(dataVersion, schemaVersion, minSafeVersion)"
	" VALUES(1, 1, 1);"
	"INSERT INTO \"_sluice.state\"(stage) VALUES('empty');"
	"INSERT INTO \"_sluice.position\"(xid, commitTime, seen) VALUES(0, 0, 0);";

/*
 * A row of _sluice.rowLog holds the changes of one or many transactions as a
 * JSON array of runs (rowlog.c): one append where the reference has one upsert
 * a row.  _sluice.changes unfolds it; a reader that wants what is newer than X
 * says lastVersion > X too, which reaches the key.  _zero.changeLog2 is the
 * reference's form: of a key only the last change; its table-wide entries have
 * pos -1.
 */
static const char create_views[] =
	"CREATE VIEW \"_sluice.changes\"(stateVersion, pos, \"table\", rowKey, op, lastVersion) AS"
	" SELECT coalesce(r.value ->> 0, k.value ->> 0),"
	" CASE WHEN r.value ->> 3 IN ('t', 'r') THEN -1"
	" ELSE coalesce((r.value ->> 1) + k.key, k.value ->> 1) END,"
	" r.value ->> 2,"
	" CASE WHEN r.value ->> 3 IN ('t', 'r') THEN r.value ->> 0"
	" WHEN json_type(r.value, '$[4]') = 'object'"
	" THEN json_object((SELECT key FROM json_each(r.value, '$[4]')),"
	" CASE WHEN r.value ->> 0 IS NULL THEN k.value ->> 2 ELSE k.value END)"
	" WHEN r.value ->> 0 IS NULL THEN k.value -> 2"
	" ELSE k.value END,"
	" r.value ->> 3, l.lastVersion"
	" FROM \"_sluice.rowLog\" l, json_each(l.ops) r,"
	" json_each(CASE json_type(r.value, '$[4]') WHEN 'object'"
	" THEN (SELECT value FROM json_each(r.value, '$[4]')) ELSE r.value -> 4 END) k;"
	"CREATE VIEW \"_zero.changeLog2\"(stateVersion, pos, \"table\", rowKey, op,"
	" backfillingColumnVersions) AS"
	" SELECT stateVersion, pos, \"table\", rowKey, op, '{}' FROM"
	" (SELECT *, row_number() OVER (PARTITION BY \"table\", rowKey"
	" ORDER BY stateVersion DESC, pos DESC) AS nth FROM \"_sluice.changes\") WHERE nth = 1;";

SluiceOutcome
sluice_replica_pragmas(SluiceReplica *replica, bool load)
{
	static const char always[] =
		"PRAGMA cache_size = -24576;"
		"PRAGMA secure_delete = OFF;"
		"PRAGMA foreign_keys = OFF;"
		"PRAGMA temp_store = FILE;"
		"PRAGMA trusted_schema = OFF;";
	static const char following[] =
		"PRAGMA journal_mode = WAL;"
		"PRAGMA synchronous = NORMAL;"
		"PRAGMA wal_autocheckpoint = 0;"
		"PRAGMA journal_size_limit = 67108864;";
	static const char loading[] =
		"PRAGMA journal_mode = TRUNCATE;"
		"PRAGMA synchronous = FULL;";
	SluiceOutcome outcome = sluice_replica_exec(replica, always, "set up the connection");

	if (outcome != SLUICE_OK)
		return outcome;
	return sluice_replica_exec(replica, load ? loading : following, "set up the connection");
}

SluiceOutcome
sluice_replica_setup(SluiceReplica *replica)
{
	SluiceOutcome outcome = sluice_replica_begin(replica);

	if (outcome == SLUICE_OK)
		outcome = sluice_replica_exec(replica, create_zero, "create the tables \"_zero.*\"");
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_exec(replica, create_sluice, "create the tables \"_sluice.*\"");
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_exec(replica, create_views, "create the row log's views");
	if (outcome == SLUICE_OK)
		outcome = sluice_replica_commit(replica, NULL);
	if (outcome != SLUICE_OK)
		sluice_replica_rollback(replica);
	return outcome;
}

/* One integer; *found false if there is no row (or no such table, with quiet). */
static SluiceOutcome
integer_of(SluiceReplica *replica, const char *sql, int64_t *value, bool *found)
{
	sqlite3_stmt *statement;
	int			rc;

	*found = false;
	rc = sqlite3_prepare_v2(replica->db, sql, -1, &statement, NULL);
	if (rc == SQLITE_OK)
	{
		rc = sqlite3_step(statement);
		if (rc == SQLITE_ROW)
		{
			*value = sqlite3_column_int64(statement, 0);
			*found = true;
		}
		if (rc == SQLITE_ROW || rc == SQLITE_DONE)
			rc = SQLITE_OK;
		sqlite3_finalize(statement);
	}
	if (rc != SQLITE_OK)
		return sluice_replica_failure(replica, rc, "read the file");
	return SLUICE_OK;
}

SluiceOutcome
sluice_replica_check(SluiceReplica *replica)
{
	int64_t		n = 0;
	bool		found;
	SluiceOutcome outcome;

	outcome = integer_of(replica, "SELECT count(*) FROM sqlite_schema", &n, &found);
	if (outcome != SLUICE_OK)
		return outcome;
	if (n == 0)
		return SLUICE_COPY_AFRESH;
	outcome = integer_of(replica, "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"
						 " AND name IN ('_sluice.versionHistory', '_sluice.state',"
						 " '_sluice.position', '_sluice.tables', '_sluice.names',"
						 " '_zero.replicationState', '_zero.replicationConfig')", &n, &found);
	if (outcome != SLUICE_OK)
		return outcome;
	if (n != 7)
	{
		sluice_log(SLUICE_ERROR, "file \"%s\" is not a replica made by sluice-agent; "
				   "hint: Give --replica another path, or move the file away.", replica->path);
		return SLUICE_UNUSABLE;
	}
	outcome = integer_of(replica, "SELECT minSafeVersion FROM \"_sluice.versionHistory\"", &n,
						 &found);
	if (outcome == SLUICE_OK && found && n > SLUICE_FILE_VERSION)
	{
		sluice_log(SLUICE_ERROR, "replica \"%s\" has format %lld, this program knows up to %d; "
				   "hint: Upgrade sluice-agent.", replica->path, (long long) n,
				   SLUICE_FILE_VERSION);
		return SLUICE_UNUSABLE;
	}
	return outcome;
}
