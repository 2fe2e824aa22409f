-- what create_shard refuses, and that nothing is left behind
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS sluice;
RESET client_min_messages;
CREATE SCHEMA refused;
CREATE TABLE refused.keyed (id int PRIMARY KEY, v text);
CREATE PUBLICATION refused_keyed FOR TABLE refused.keyed;

-- names
CALL sluice.create_shard(NULL);
\echo :LAST_ERROR_SQLSTATE
CALL sluice.create_shard('');
\echo :LAST_ERROR_SQLSTATE
CALL sluice.create_shard('Upper');
CALL sluice.create_shard('with-dash');
CALL sluice.create_shard('x2345678901234567890123456789012345678901');

-- arguments
CALL sluice.create_shard('refused', keyless => 'maybe');
\echo :LAST_ERROR_SQLSTATE
CALL sluice.create_shard('refused', keyless => NULL);
CALL sluice.create_shard('refused', timestamps => 'iso');
\echo :LAST_ERROR_SQLSTATE
CALL sluice.create_shard('refused', numerics => 'float');
CALL sluice.create_shard('refused', publications => ARRAY[]::text[]);
\echo :LAST_ERROR_SQLSTATE
CALL sluice.create_shard('refused', publications => ARRAY[NULL]::text[]);

-- where a procedure cannot commit
BEGIN;
CALL sluice.create_shard('refused');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
CALL sluice.drop_shard('refused');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

-- publications
CALL sluice.create_shard('refused', publications => ARRAY['nowhere']);
\echo :LAST_ERROR_SQLSTATE
CREATE PUBLICATION refused_inserts FOR TABLE refused.keyed WITH (publish = 'insert, update');
CALL sluice.create_shard('refused', publications => ARRAY['refused_keyed', 'refused_inserts']);
\echo :LAST_ERROR_SQLSTATE
DROP PUBLICATION refused_inserts;
CREATE PUBLICATION sluice_refused;
CALL sluice.create_shard('refused');
\echo :LAST_ERROR_SQLSTATE
DROP PUBLICATION sluice_refused;

-- tables without a usable replica identity, with what to choose from
CREATE TABLE refused.plain (v text);
CREATE TABLE refused."Odd ""name""" (v text, w int NOT NULL);
CREATE UNIQUE INDEX "odd index" ON refused."Odd ""name""" (w);
CREATE TABLE refused.nothing (id int PRIMARY KEY);
ALTER TABLE refused.nothing REPLICA IDENTITY NOTHING;
CREATE PUBLICATION refused_tables FOR TABLE refused.keyed, refused.plain,
	refused."Odd ""name""", refused.nothing;
CALL sluice.create_shard('refused', publications => ARRAY['refused_tables']);
\echo :LAST_ERROR_SQLSTATE
-- the statements do help
ALTER TABLE refused.plain REPLICA IDENTITY FULL;
ALTER TABLE refused."Odd ""name""" REPLICA IDENTITY USING INDEX "odd index";
CALL sluice.create_shard('refused', publications => ARRAY['refused_tables']);

-- tables that cannot be followed, with the reason
CREATE PUBLICATION refused_list FOR TABLE refused.keyed (id);
CREATE PUBLICATION refused_whole FOR TABLE refused.keyed;
CALL sluice.create_shard('refused', publications => ARRAY['refused_list', 'refused_whole']);
\echo :LAST_ERROR_SQLSTATE

-- nothing is left
SELECT name FROM sluice.shards;
SELECT nspname FROM pg_namespace WHERE nspname LIKE 'cdc%';
SELECT slot_name FROM pg_replication_slots WHERE plugin = 'sluice';
SELECT pubname FROM pg_publication WHERE pubname LIKE 'sluice%';

-- shards that are not there
CALL sluice.drop_shard('refused');
\echo :LAST_ERROR_SQLSTATE
CALL sluice.drop_shard(NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT sluice.set_option('refused', 'auto_reset', 'off');
\echo :LAST_ERROR_SQLSTATE

DROP PUBLICATION refused_list, refused_whole, refused_tables, refused_keyed;
SET client_min_messages = warning;
DROP SCHEMA refused CASCADE;
