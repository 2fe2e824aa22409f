-- reset, pause and resume: what they leave, and whom they refuse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS sluice;
RESET client_min_messages;
CREATE TABLE public.again (id int PRIMARY KEY, v text);
CALL sluice.create_shard('again', timestamps => 'text');
SELECT sluice.set_option('again', 'retention_time', '1 day');
SELECT replica_version AS first FROM sluice.shards WHERE name = 'again' \gset
CALL sluice.reset('again');
SELECT slot, state, publications, replica_version > :'first' AS later, auto_reset, retention_time, timestamps,
	reset_required, paused FROM sluice.shards WHERE name = 'again';
SELECT resets, reset_at <= now() AS at, reset_reason FROM sluice.shard_status WHERE shard = 'again';
SELECT count(*) FROM sluice.change_log('again');
SELECT "replicaVersion" = "lastWatermark" AS same FROM cdc_again."replicationConfig", cdc_again."replicationState";
SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE 'sluice_again%';
-- refused
CALL sluice.reset(NULL);
\echo :LAST_ERROR_SQLSTATE
CALL sluice.reset('none');
\echo :LAST_ERROR_SQLSTATE
BEGIN;
CALL sluice.reset('again');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
CALL sluice.pause('none');
\echo :LAST_ERROR_SQLSTATE
SELECT sluice.mark_reset_required('none');
\echo :LAST_ERROR_SQLSTATE
-- paused
CALL sluice.pause('again');
CALL sluice.pause('again');
SELECT state, paused FROM sluice.shards WHERE name = 'again';
SELECT active FROM pg_replication_slots WHERE slot_name LIKE 'sluice_again%';
CALL sluice.reset('again');
\echo :LAST_ERROR_SQLSTATE
CALL sluice.resume('again');
CALL sluice.resume('again');
SELECT paused FROM sluice.shards WHERE name = 'again';
CALL sluice.reset('again');
SELECT slot, state FROM sluice.shards WHERE name = 'again';
CALL sluice.drop_shard('again');
SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'sluice_again%';
DROP TABLE public.again;
