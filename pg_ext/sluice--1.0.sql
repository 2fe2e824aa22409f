/* pg_ext/sluice--1.0.sql: the SQL surface, documented in docs/sql.md */
\echo Use "CREATE EXTENSION sluice" to load this file. \quit

/*
 * Roles are of the whole cluster and may be there from another database.
 * sluice_replica: what an agent needs. sluice_monitor: status, no data.
 */
DO $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'sluice_replica') THEN
		CREATE ROLE sluice_replica NOLOGIN;
	END IF;
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'sluice_monitor') THEN
		CREATE ROLE sluice_monitor NOLOGIN;
	END IF;
END
$$;

/*
 * Procedures commit, so they can have neither SECURITY DEFINER nor SET: with
 * either they would run in an atomic context.  The C code checks rights and
 * pins what it needs around each transaction.
 */

CREATE PROCEDURE sluice.create_shard(
	name text,
	publications text[] DEFAULT NULL,
	keyless text DEFAULT 'refuse',
	timestamps text DEFAULT 'epoch_ms',
	numerics text DEFAULT 'exact')
LANGUAGE C AS 'MODULE_PATHNAME', 'sluice_create_shard';

COMMENT ON PROCEDURE sluice.create_shard(text, text[], text, text, text) IS
	'makes a shard: a slot, a change log and the workers that feed it';

CREATE PROCEDURE sluice.drop_shard(name text)
LANGUAGE C AS 'MODULE_PATHNAME', 'sluice_drop_shard';

COMMENT ON PROCEDURE sluice.drop_shard(text) IS
	'removes a shard with its slot, its change log and its default publication';

CREATE PROCEDURE sluice.reset(shard text)
LANGUAGE C AS 'MODULE_PATHNAME', 'sluice_reset';

COMMENT ON PROCEDURE sluice.reset(text) IS
	'makes a shard anew from its tables: new slot, empty change log; replicas copy afresh';

CREATE PROCEDURE sluice.pause(shard text)
LANGUAGE C AS 'MODULE_PATHNAME', 'sluice_pause';

COMMENT ON PROCEDURE sluice.pause(text) IS
	'ends a shard''s workers until sluice.resume; its slot keeps WAL meanwhile';

CREATE PROCEDURE sluice.resume(shard text)
LANGUAGE C AS 'MODULE_PATHNAME', 'sluice_resume';

COMMENT ON PROCEDURE sluice.resume(text) IS 'a paused shard goes on';

CREATE PROCEDURE sluice.stream(
	shard text,
	replica text,
	watermark text,
	replica_version text,
	protocol int,
	mode text DEFAULT 'serving',
	initial boolean DEFAULT false,
	options jsonb DEFAULT '{}')
LANGUAGE C AS 'MODULE_PATHNAME', 'sluice_stream';

COMMENT ON PROCEDURE sluice.stream(text, text, text, text, int, text, boolean, jsonb) IS
	'called by sluice-agent: streams changes behind the watermark (docs/protocol.md)';

CREATE PROCEDURE sluice.copy(
	shard text,
	replica text,
	tables oid[] DEFAULT NULL,
	options jsonb DEFAULT '{}')
LANGUAGE C AS 'MODULE_PATHNAME', 'sluice_copy';

COMMENT ON PROCEDURE sluice.copy(text, text, oid[], jsonb) IS
	'called by sluice-agent: copies tables for one replica (docs/protocol.md)';

CREATE FUNCTION sluice.set_option(shard text, name text, value text)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sluice_set_option';

COMMENT ON FUNCTION sluice.set_option(text, text, text) IS
	'changes auto_reset, retention_time or retention_size of a shard';

CREATE FUNCTION sluice.mark_reset_required(shard text, reason text DEFAULT NULL)
RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sluice_mark_reset_required';

COMMENT ON FUNCTION sluice.mark_reset_required(text, text) IS
	'the shard is reset (auto_reset on) or stops until it is';

CREATE FUNCTION sluice.forget_replica(shard text, name text)
RETURNS void
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sluice_forget_replica';

COMMENT ON FUNCTION sluice.forget_replica(text, text) IS
	'the change log is no longer kept for this replica';

CREATE FUNCTION sluice.change_log(
	shard text,
	from_watermark text DEFAULT NULL,
	to_watermark text DEFAULT NULL,
	OUT watermark text,
	OUT pos int8,
	OUT change json,
	OUT precommit text)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sluice_change_log';

COMMENT ON FUNCTION sluice.change_log(text, text, text) IS
	'transactions of the change log as JSON, from and to included';

/* What the views "replicationState" and "replicationConfig" of a change log show. */
CREATE FUNCTION sluice.replication_state(
	shard text,
	OUT "lastWatermark" text,
	OUT owner text,
	OUT "ownerAddress" text)
RETURNS record
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sluice_replication_state';

CREATE FUNCTION sluice.replication_config(
	shard text,
	OUT "replicaVersion" text,
	OUT publications text[],
	OUT "resetRequired" boolean)
RETURNS record
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sluice_replication_config';

CREATE FUNCTION sluice.list_shards(
	OUT name text,
	OUT publications text[],
	OUT slot text,
	OUT owner text,
	OUT owner_address text,
	OUT state text,
	OUT replica_version text,
	OUT auto_reset boolean,
	OUT retention_time interval,
	OUT retention_size int8,
	OUT timestamps text,
	OUT numerics text,
	OUT reset_required boolean,
	OUT reset_reason text,
	OUT paused boolean)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 8 AS 'MODULE_PATHNAME', 'sluice_list_shards';

CREATE VIEW sluice.shards AS SELECT * FROM sluice.list_shards();

COMMENT ON VIEW sluice.shards IS 'shards of this database and their options';

CREATE FUNCTION sluice.get_shard_status(
	OUT shard text,
	OUT slot text,
	OUT state text,
	OUT state_since timestamptz,
	OUT waits_for text,
	OUT message text,
	OUT sqlstate text,
	OUT decoder_pid int,
	OUT storer_pid int,
	OUT replicas int,
	OUT first text,
	OUT head text,
	OUT stored text,
	OUT low text,
	OUT flushed_lsn pg_lsn,
	OUT decoded_lsn pg_lsn,
	OUT confirmed_lsn pg_lsn,
	OUT restart_lsn pg_lsn,
	OUT decode_lag_bytes int8,
	OUT decode_lag interval,
	OUT store_lag_bytes int8,
	OUT store_lag interval,
	OUT retained_bytes int8,
	OUT last_commit_time timestamptz,
	OUT transactions int8,
	OUT changes int8,
	OUT bytes int8,
	OUT stored_transactions int8,
	OUT stored_bytes int8,
	OUT resets int8,
	OUT reset_at timestamptz,
	OUT reset_reason text)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 8 AS 'MODULE_PATHNAME', 'sluice_get_shard_status';

CREATE VIEW sluice.shard_status AS SELECT * FROM sluice.get_shard_status();

COMMENT ON VIEW sluice.shard_status IS 'how far each shard of this database is, and what it waits for';

CREATE FUNCTION sluice.get_replica_status(
	OUT shard text,
	OUT replica text,
	OUT pid int,
	OUT state text,
	OUT mode text,
	OUT sent text,
	OUT applied text,
	OUT durable text,
	OUT sent_lag_bytes int8,
	OUT applied_lag_bytes int8,
	OUT durable_lag_bytes int8,
	OUT applied_lag interval,
	OUT bytes_sent int8,
	OUT waits_for text,
	OUT connected_at timestamptz,
	OUT reply_time timestamptz,
	OUT seen_at timestamptz)
RETURNS SETOF record
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 16 AS 'MODULE_PATHNAME', 'sluice_get_replica_status';

CREATE VIEW sluice.replica_status AS SELECT * FROM sluice.get_replica_status();

COMMENT ON VIEW sluice.replica_status IS 'every known replica of this database''s shards, connected or not';

/* ---- rights: nobody's but the owner's, then by role ---- */

REVOKE ALL ON SCHEMA sluice FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA sluice FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA sluice FROM PUBLIC;

GRANT USAGE ON SCHEMA sluice TO sluice_replica, sluice_monitor;

GRANT EXECUTE ON PROCEDURE sluice.stream(text, text, text, text, int, text, boolean, jsonb)
	TO sluice_replica;
GRANT EXECUTE ON PROCEDURE sluice.copy(text, text, oid[], jsonb) TO sluice_replica;

GRANT SELECT ON sluice.shards, sluice.shard_status, sluice.replica_status TO sluice_monitor;
GRANT EXECUTE ON FUNCTION sluice.list_shards(), sluice.get_shard_status(),
	sluice.get_replica_status() TO sluice_monitor;
GRANT EXECUTE ON FUNCTION sluice.replication_state(text), sluice.replication_config(text)
	TO sluice_monitor;
GRANT EXECUTE ON FUNCTION sluice.change_log(text, text, text) TO sluice_replica;
