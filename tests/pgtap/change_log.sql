-- cdc_<shard>: tables, views, rights, membership; the log as JSON
SET client_min_messages = warning;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE every (
	id int8 PRIMARY KEY, b bool, i int4, f float8, n numeric, t text, y bytea, j json, jb jsonb, a int[], m mood);
CREATE TABLE "Odd ""name""" ("a.b" text, "select" int, PRIMARY KEY ("select", "a.b"));
CREATE TABLE whole (id int PRIMARY KEY, v text, big text);
ALTER TABLE whole REPLICA IDENTITY FULL;
ALTER TABLE whole ALTER big SET STORAGE EXTERNAL;
CREATE TABLE toasted (id int PRIMARY KEY, v text, big text);
ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL;
CALL sluice.create_shard('log');

INSERT INTO every VALUES (9007199254740993, true, -1, 0.1, 12345678901234567890.5, E'a"\\\n\t\x01\x7fé😀', '\x00ff', '{"a" : "\u0000", "n": 1e400}', '{"b":null}', '{1,NULL,3}', 'ok');
INSERT INTO every VALUES (-9223372036854775808, NULL, NULL, 'NaN', 'NaN', '', '', 'null', 'null', '{}', NULL);
INSERT INTO every VALUES (3, false, 0, '-Infinity', -7, NULL, NULL, NULL, NULL, NULL, 'sad'), (4, false, 0, '-0', 1e-130, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO "Odd ""name""" VALUES ('x', 1);
UPDATE "Odd ""name""" SET "select" = 2;
UPDATE "Odd ""name""" SET "select" = "select";
DELETE FROM "Odd ""name""";
INSERT INTO whole VALUES (1, 'a', repeat('z', 5000));
UPDATE whole SET v = 'b';
DELETE FROM whole;
INSERT INTO toasted VALUES (1, 'a', repeat('z', 5000));
UPDATE toasted SET v = 'b';
TRUNCATE whole, toasted;
BEGIN; INSERT INTO toasted VALUES (7); ROLLBACK;
INSERT INTO toasted VALUES (99);

CREATE FUNCTION wait_for_last() RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	-- asks until it is there; the deadline is the clock's
	WHILE clock_timestamp() < statement_timestamp() + interval '30 s' LOOP
		IF EXISTS (SELECT FROM sluice.change_log('log') l WHERE l.change->'new'->>'id' = '99') THEN RETURN true; END IF;
	END LOOP;
	RETURN false;
END $$;
SELECT wait_for_last() \gset
CREATE TEMP TABLE log AS SELECT *, row_number() OVER (ORDER BY watermark COLLATE "C", pos) AS row FROM cdc_log."changeLog";
CREATE FUNCTION changes(tag text, name text) RETURNS SETOF json LANGUAGE sql AS
	$$ SELECT change FROM log WHERE change->>'tag' = $1 AND ($2 IS NULL OR change->'relation'->>'name' = $2) ORDER BY row $$;

CREATE FUNCTION nth(tag text, name text, n int) RETURNS json LANGUAGE sql AS
	$$ SELECT * FROM changes(tag, name) OFFSET n LIMIT 1 $$;

SELECT plan(57);
SELECT ok(:'wait_for_last', 'everything is stored');

-- the schema
SELECT tables_are('cdc_log', ARRAY['state', 'slices', 'replicas', 'table_schema', 'tableMetadata', 'backfilling']);
SELECT views_are('cdc_log', ARRAY['changeLog', 'replicationState', 'replicationConfig']);
SELECT columns_are('cdc_log', 'changeLog', ARRAY['watermark', 'pos', 'change', 'precommit']);
SELECT columns_are('cdc_log', 'replicationState', ARRAY['lastWatermark', 'owner', 'ownerAddress', 'lock']);
SELECT columns_are('cdc_log', 'replicationConfig', ARRAY['replicaVersion', 'publications', 'resetRequired', 'lock']);
SELECT columns_are('cdc_log', 'tableMetadata', ARRAY['schema', 'table', 'metadata']);
SELECT columns_are('cdc_log', 'backfilling', ARRAY['schema', 'table', 'column', 'backfill']);
SELECT columns_are('cdc_log', 'replicas', ARRAY['name', 'durable', 'lineage', 'seen_at']);
SELECT col_type_is('cdc_log'::name, 'changeLog'::name, 'change'::name, 'json', 'change is json');
SELECT col_type_is('cdc_log'::name, 'changeLog'::name, 'pos'::name, 'bigint', 'pos is bigint');
SELECT is(string_agg(DISTINCT relreplident::text, ''), 'n', 'no table has a replica identity')
	FROM pg_class WHERE relnamespace = 'cdc_log'::regnamespace AND relkind = 'r';
SELECT is(count(*), 0::bigint, 'every table and view is a member of the extension')
	FROM pg_class c WHERE relnamespace = 'cdc_log'::regnamespace AND relkind IN ('r', 'v')
	AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e');
SELECT is(count(*), 1::bigint, 'so is the schema') FROM pg_depend
	WHERE classid = 'pg_namespace'::regclass AND objid = 'cdc_log'::regnamespace AND deptype = 'e';
SELECT is(count(*), 0::bigint, 'everything belongs to the extension''s owner')
	FROM pg_class, pg_extension e WHERE relnamespace = 'cdc_log'::regnamespace AND extname = 'sluice' AND relowner <> extowner;
SELECT is(attstorage::text, 'p', 'slices are neither compressed nor moved out') FROM pg_attribute
	WHERE attrelid = 'cdc_log.slices'::regclass AND attname = 'data';
SELECT is(pg_relation_size(reltoastrelid), 0::bigint, 'nothing was') FROM pg_class WHERE oid = 'cdc_log.slices'::regclass;

-- rights
CREATE ROLE nobody_of_log;
SELECT is(count(*), 0::bigint, 'nobody sees anything') FROM pg_class c
	WHERE relnamespace = 'cdc_log'::regnamespace AND relkind IN ('r', 'v')
	AND has_table_privilege('nobody_of_log', c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE');
SELECT is(count(*), 0::bigint, 'no role writes anything') FROM pg_class c, unnest(ARRAY['sluice_monitor', 'sluice_replica']) r
	WHERE relnamespace = 'cdc_log'::regnamespace AND relkind IN ('r', 'v')
	AND has_table_privilege(r, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE');
SET ROLE sluice_monitor;
SELECT lives_ok('SELECT * FROM cdc_log."replicationState", cdc_log."replicationConfig", cdc_log.replicas, cdc_log."tableMetadata", cdc_log.backfilling', 'sluice_monitor sees the state');
SELECT throws_ok('SELECT * FROM cdc_log."changeLog"', '42501', NULL, '... not the rows');
SELECT throws_ok('SELECT * FROM sluice.change_log(''log'')', '42501', NULL, '... by no way');
RESET ROLE;
SET ROLE sluice_replica;
SELECT ok(count(*) > 0, 'sluice_replica sees the rows') FROM cdc_log."changeLog";
RESET ROLE;
DROP ROLE nobody_of_log;

-- state
SELECT is("lastWatermark", (SELECT max(watermark COLLATE "C") FROM log), 'the head') FROM cdc_log."replicationState";
SELECT is(publications, ARRAY['sluice_log'], 'publications') FROM cdc_log."replicationConfig";
SELECT is("resetRequired", false) FROM cdc_log."replicationConfig";
SELECT ok("replicaVersion" < (SELECT min(watermark COLLATE "C") FROM log) COLLATE "C", 'the lineage is before everything') FROM cdc_log."replicationConfig";

-- transactions
SELECT is(count(*), 0::bigint, 'positions run from 0') FROM (SELECT watermark FROM log GROUP BY 1 HAVING min(pos) <> 0 OR max(pos) <> count(*) - 1) x;
SELECT is(count(*), 0::bigint, 'precommit on commits only') FROM log WHERE (precommit IS NOT NULL) <> (change->>'tag' = 'commit') OR precommit <> watermark;
SELECT is(array_agg(DISTINCT change->>'json'), ARRAY['s'], 'json columns are carried as text') FROM log WHERE change->>'tag' = 'begin';
SELECT is(count(*), 0::bigint, 'commit times are numbers') FROM log WHERE change->>'tag' = 'commit' AND (change->>'commitTimeMs')::numeric < 1e12;
SELECT is((SELECT count(*) FROM changes('begin', NULL)), (SELECT count(*) FROM changes('commit', NULL)), 'as many begins as commits');
SELECT is(count(*), 0::bigint, 'what was rolled back is not there') FROM changes('insert', 'toasted') c WHERE c->'new'->>'id' = '7';

-- relation and values
SELECT is(c->>'relation', '{"schema":"public","name":"every","rowKey":{"columns":["id"],"type":"default"},"relationOid":' || 'every'::regclass::oid || '}')
	FROM nth('insert', 'every', 0) c;
SELECT is(c->'new'->>'id', '9007199254740993', 'int8 is exact') FROM nth('insert', 'every', 0) c;
SELECT is(c->'new'->>'b', '1') FROM nth('insert', 'every', 0) c;
SELECT is(c->'new'->>'f', '0.1') FROM nth('insert', 'every', 0) c;
SELECT is(c->'new'->>'n', '12345678901234567890.5', 'numeric is exact') FROM nth('insert', 'every', 0) c;
SELECT is(c->'new'->>'t', E'a"\\\n\t\x01\x7fé😀', 'text') FROM nth('insert', 'every', 0) c;
SELECT is(c->'new'->>'y', '\x00ff', 'bytea') FROM nth('insert', 'every', 0) c;
SELECT is(c->'new'->>'j', '{"a" : "\u0000", "n": 1e400}', 'json is its own text, a NUL escape too') FROM nth('insert', 'every', 0) c;
SELECT is(c->'new'->>'a', '[1,null,3]', 'arrays are JSON text') FROM nth('insert', 'every', 0) c;
SELECT is(c->'new'->>'m', 'ok') FROM nth('insert', 'every', 0) c;
SELECT is(json_typeof(c->'new'->'b'), 'null') FROM nth('insert', 'every', 1) c;
SELECT is(c->'new'->>'jb', 'null', 'a json null is told from NULL') FROM nth('insert', 'every', 1) c;
SELECT is(c->'new'->>'f', 'NaN') FROM nth('insert', 'every', 1) c;
SELECT is(json_typeof(c->'new'->'f') || (c->'new'->>'f'), 'string-Infinity') FROM nth('insert', 'every', 2) c;
SELECT is(c->'new'->>'f', '-0') FROM nth('insert', 'every', 3) c;

-- keys, names, unchanged values
SELECT results_eq($$SELECT c->>'key', c->>'new' FROM changes('update', 'Odd "name"') c$$,
	$$VALUES ('{"select":1,"a.b":"x"}', '{"a.b":"x","select":2}'), (NULL, '{"a.b":"x","select":2}')$$, 'the old key comes when it has changed');
SELECT is(c->>'key', '{"select":2,"a.b":"x"}', 'delete by key') FROM changes('delete', 'Odd "name"') c;
SELECT is(c->'relation'->'rowKey'->>'type', 'full', 'identity full') FROM changes('update', 'whole') c;
SELECT is(c->>'key', '{"id":1}', '... goes by the table''s key') FROM changes('delete', 'whole') c;
SELECT is(c->>'new', '{"id":1,"v":"b"}', 'unchanged columns are absent') FROM changes('update', 'toasted') c;
SELECT is((SELECT string_agg(r->>'name', ' ' ORDER BY r->>'name') FROM json_array_elements(c->'relations') r), 'toasted whole', 'truncate')
	FROM changes('truncate', NULL) c;

-- bounds and errors
SELECT is(count(DISTINCT watermark), 2::bigint, 'bounds include both ends')
	FROM sluice.change_log('log', (SELECT min(watermark COLLATE "C") FROM log),
		(SELECT min(watermark COLLATE "C") FROM log WHERE watermark COLLATE "C" > (SELECT min(watermark COLLATE "C") FROM log)));
SELECT throws_ok($$SELECT sluice.change_log('log', 'x')$$, '22023', '"x" is not a watermark');
SELECT throws_ok($$SELECT sluice.change_log('none')$$, 'SL007', 'there is no shard "none" in this database');
SELECT * FROM finish();
