-- a shard from its creation to its end
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS sluice;
RESET client_min_messages;
CREATE TABLE public.life (id int PRIMARY KEY, v text);

-- the name alone must do
CALL sluice.create_shard('life');
\x on
SELECT name, publications, slot, state, replica_version ~ '^[0-9a-z]+$' AS replica_version,
	auto_reset, retention_time, retention_size, timestamps, numerics,
	reset_required, reset_reason, paused FROM sluice.shards;
\x off
SELECT pubname, pubviaroot, nspname
	FROM pg_publication JOIN pg_publication_namespace ON pnpubid = pg_publication.oid
	JOIN pg_namespace ON pnnspid = pg_namespace.oid WHERE pubname = 'sluice_life';
SELECT plugin, slot_type, database = current_database() AS here, active, temporary
	FROM pg_replication_slots WHERE slot_name = 'sluice_life_1';
SELECT backend_type, count(*) FROM pg_stat_activity
	WHERE backend_type LIKE 'sluice%' GROUP BY 1 ORDER BY 1;

-- twice is refused, and so is what needs it not to be there
CALL sluice.create_shard('life');
\echo :LAST_ERROR_SQLSTATE
DROP EXTENSION sluice;
\echo :LAST_ERROR_SQLSTATE
DROP EXTENSION sluice CASCADE;
DROP SCHEMA cdc_life CASCADE;
DROP TABLE cdc_life.slices;

-- a second shard of the same tables
CALL sluice.create_shard('life_1', publications => ARRAY['sluice_life', 'sluice_life'],
	timestamps => 'text', numerics => 'double');
SELECT name, publications, slot, state, timestamps, numerics FROM sluice.shards ORDER BY name;

-- options
SELECT sluice.set_option('life', 'retention_time', '36 hours');
SELECT sluice.set_option('life', 'retention_size', '2 GB');
SELECT sluice.set_option('life', 'auto_reset', 'off');
SELECT auto_reset, retention_time, retention_size FROM sluice.shards WHERE name = 'life';
SELECT sluice.set_option('life', 'retention_time', '1 second');
\echo :LAST_ERROR_SQLSTATE
SELECT sluice.set_option('life', 'retention_size', '1 kB');
SELECT sluice.set_option('life', 'retention_size', 'much');
SELECT sluice.set_option('life', 'auto_reset', 'perhaps');
SELECT sluice.set_option('life', 'colour', 'blue');
\echo :LAST_ERROR_SQLSTATE
SELECT sluice.set_option('life', 'timestamps', 'text');
\echo :LAST_ERROR_SQLSTATE
SELECT sluice.set_option('life', 'auto_reset', NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT auto_reset, retention_time, retention_size, timestamps FROM sluice.shards WHERE name = 'life';
-- it is the transaction's
BEGIN;
SELECT sluice.set_option('life', 'auto_reset', 'on');
ROLLBACK;
SELECT auto_reset FROM sluice.shards WHERE name = 'life';

-- status: nothing negative, nothing missing
SELECT shard, slot, state, message, sqlstate, decoder_pid IS NOT NULL AS decoder,
	storer_pid IS NOT NULL AS storer, replicas, first IS NOT NULL AS first,
	decoded_lsn <= flushed_lsn AS decoded, restart_lsn <= flushed_lsn AS restart,
	decode_lag_bytes >= 0 AND store_lag_bytes >= 0 AND retained_bytes >= 0 AS bytes,
	decode_lag >= '0' AND store_lag >= '0' AS times
	FROM sluice.shard_status ORDER BY shard;
SELECT * FROM sluice.replica_status;

-- the end; the default publication stays while another shard has it
CALL sluice.drop_shard('life');
SELECT name, publications, slot FROM sluice.shards;
SELECT pubname FROM pg_publication WHERE pubname LIKE 'sluice%';
DROP PUBLICATION sluice_life;
CALL sluice.drop_shard('life_1');
SELECT name FROM sluice.shards;
SELECT nspname FROM pg_namespace WHERE nspname LIKE 'cdc%';
SELECT slot_name FROM pg_replication_slots WHERE plugin = 'sluice';
SELECT pubname FROM pg_publication WHERE pubname LIKE 'sluice%';
SELECT count(*) FROM pg_stat_activity
	WHERE backend_type LIKE 'sluice%' AND backend_type <> 'sluice launcher';

-- and again, under the same name, on a fresh extension each time
DROP EXTENSION sluice;
CREATE EXTENSION sluice;
CALL sluice.create_shard('life');
CALL sluice.drop_shard('life');
DROP EXTENSION sluice;
CREATE EXTENSION sluice;
CALL sluice.create_shard('life');
SELECT name, slot, state FROM sluice.shards;
CALL sluice.drop_shard('life');

DROP TABLE public.life;
