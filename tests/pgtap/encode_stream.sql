-- Rows and the catalog reader under a historic snapshot: a plugin of the test
-- module prints what logical decoding gives to the product's encoder.
\set QUIET on
\pset fieldsep '\n'
SET client_min_messages = warning;
\ir ../modules/encode/functions.sql
SELECT set_config('output_plugin_libraries', 'sluice_encode_test', false)
	FROM pg_settings WHERE name = 'output_plugin_libraries' \g /dev/null
SELECT no_plan();
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (id int PRIMARY KEY, n int, v text, a text[]);
ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
CREATE TABLE fullid (a int, b text);
ALTER TABLE fullid REPLICA IDENTITY FULL;
CREATE TABLE fullkey (id int PRIMARY KEY, n numeric, b text);
ALTER TABLE fullkey REPLICA IDENTITY FULL;
CREATE TABLE indexid (id int PRIMARY KEY, b text NOT NULL, a int NOT NULL, UNIQUE (a, b));
ALTER TABLE indexid REPLICA IDENTITY USING INDEX indexid_a_b_key;
CREATE TABLE textkey (id text PRIMARY KEY, n int);
ALTER TABLE textkey ALTER id SET STORAGE EXTERNAL;
CREATE TABLE root (id int, part int, v text, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE leaf1 PARTITION OF root FOR VALUES IN (1);
CREATE TABLE leaf2 (gone int, v text, part int NOT NULL, id int NOT NULL);
ALTER TABLE leaf2 DROP COLUMN gone;
ALTER TABLE root ATTACH PARTITION leaf2 FOR VALUES IN (2);
CREATE TABLE vals (id int PRIMARY KEY, m mood, ms mood[], r numrange, ts timestamptz, nm numeric, j jsonb, d money);
CREATE PUBLICATION p FOR ALL TABLES WITH (publish_via_partition_root = true);
CREATE FUNCTION changes(schema bool DEFAULT false, publication text DEFAULT 'p') RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(data, E'\n'), '') FROM pg_logical_slot_get_changes('encode_stream', NULL, NULL,
		VARIADIC ARRAY['publications', publication] || CASE WHEN schema THEN '{schema,on}' ELSE '{}'::text[] END) $$;
SELECT pg_create_logical_replication_slot('encode_stream', 'sluice_encode_test') \g /dev/null

INSERT INTO t VALUES (1, 1, 'a', '{x,NULL}'), (2, NULL, NULL, NULL);
UPDATE t SET n = 2 WHERE id = 1;
UPDATE t SET id = 3 WHERE id = 1;
DELETE FROM t WHERE id = 2;
SELECT is(changes(), $$I t new(INTEGER 1, INTEGER 1, TEXT a, TEXT ["x",null])
I t new(INTEGER 2, NULL, NULL, NULL)
U t new(INTEGER 1, INTEGER 2, TEXT a, TEXT ["x",null])
U t key(INTEGER 1) new(INTEGER 3, INTEGER 2, TEXT a, TEXT ["x",null])
D t key(INTEGER 2)$$, 'a primary key');

SELECT string_agg(md5(i::text), '') AS big FROM generate_series(1, 1000) i \gset
INSERT INTO t VALUES (10, 1, :'big', ARRAY[:'big', :'big']);
UPDATE t SET n = 2 WHERE id = 10;
UPDATE t SET id = 11 WHERE id = 10;
UPDATE t SET v = 'small' WHERE id = 11;
UPDATE t SET a = '{}' WHERE id = 11;
SELECT is(changes(), $$I t new(INTEGER 10, INTEGER 1, TEXT 32000 bytes, TEXT 64007 bytes)
U t new(INTEGER 10, INTEGER 2, UNCHANGED, UNCHANGED)
U t key(INTEGER 10) new(INTEGER 11, INTEGER 2, UNCHANGED, UNCHANGED)
U t new(INTEGER 11, INTEGER 2, TEXT small, UNCHANGED)
U t new(INTEGER 11, INTEGER 2, TEXT small, TEXT [])$$, 'unchanged TOAST values');

INSERT INTO fullid VALUES (1, :'big'), (NULL, 'x'), (NULL, 'x');
UPDATE fullid SET a = 2 WHERE a = 1;
DELETE FROM fullid WHERE ctid = (SELECT min(ctid) FROM fullid WHERE b = 'x');
SELECT is(changes(), $$I fullid new(INTEGER 1, TEXT 32000 bytes)
I fullid new(NULL, TEXT x)
I fullid new(NULL, TEXT x)
U fullid old(INTEGER 1, TEXT 32000 bytes) new(INTEGER 2, UNCHANGED)
D fullid old(NULL, TEXT x)$$, 'FULL without a key: the whole old row');

INSERT INTO fullkey VALUES (1, 1.0, :'big');
UPDATE fullkey SET n = 2;
UPDATE fullkey SET id = 2;
DELETE FROM fullkey;
SELECT is(changes(), $$I fullkey new(INTEGER 1, INTEGER 1, TEXT 32000 bytes)
U fullkey new(INTEGER 1, INTEGER 2, UNCHANGED)
U fullkey key(INTEGER 1) new(INTEGER 2, INTEGER 2, UNCHANGED)
D fullkey key(INTEGER 2)$$, 'FULL with a key: the key, if it changed');

INSERT INTO indexid VALUES (1, 'b', 2);
UPDATE indexid SET id = 5;
UPDATE indexid SET a = 3;
DELETE FROM indexid;
SELECT is(changes(), $$I indexid new(INTEGER 1, TEXT b, INTEGER 2)
U indexid new(INTEGER 5, TEXT b, INTEGER 2)
U indexid key(INTEGER 2, TEXT b) new(INTEGER 5, TEXT b, INTEGER 3)
D indexid key(INTEGER 3, TEXT b)$$, 'an index: in its order of columns');

SELECT left(:'big', 2500) AS key \gset
INSERT INTO textkey VALUES (:'key', 1);
UPDATE textkey SET n = 2;
DELETE FROM textkey;
SELECT is(changes(), $$I textkey new(TEXT 2500 bytes, INTEGER 1)
U textkey key(TEXT 2500 bytes) new(UNCHANGED, INTEGER 2)
D textkey key(TEXT 2500 bytes)$$, 'a TOASTed key comes with its value');

INSERT INTO root VALUES (1, 1, 'x'), (2, 2, 'y');
UPDATE root SET v = 'z' WHERE id = 2;
UPDATE root SET id = 3 WHERE id = 2;
UPDATE root SET part = 2 WHERE id = 1;
DELETE FROM root WHERE id = 3;
SELECT is(changes(), $$I root new(INTEGER 1, INTEGER 1, TEXT x)
I root new(INTEGER 2, INTEGER 2, TEXT y)
U root new(INTEGER 2, INTEGER 2, TEXT z)
U root key(INTEGER 2, INTEGER 2) new(INTEGER 3, INTEGER 2, TEXT z)
D root key(INTEGER 1, INTEGER 1)
I root new(INTEGER 1, INTEGER 2, TEXT x)
D root key(INTEGER 3, INTEGER 2)$$, 'leaves with another order of columns, under their root');

SET TimeZone = 'Asia/Kolkata';
SET DateStyle = 'German';
INSERT INTO vals VALUES (1, 'sad', '{ok}', '[1.0,2)', '2001-02-03 04:05:06.5+00', 1.50, '{"a":1}', 1);
ALTER TYPE mood RENAME VALUE 'sad' TO 'glad';
SELECT is(changes(), $$I vals new(INTEGER 1, TEXT sad, TEXT ["ok"], TEXT [1.0,2), INTEGER 981173106500, REAL 1.5, TEXT {"a": 1}, TEXT $1.00)$$, 'values, and the label of the moment');
RESET TimeZone;
RESET DateStyle;

-- definitions that change between and within transactions
CREATE TABLE moving (id int PRIMARY KEY, a int);
INSERT INTO moving VALUES (1, 1);
ALTER TABLE moving ADD COLUMN b int DEFAULT 7;
UPDATE moving SET a = 2;
BEGIN;
INSERT INTO moving VALUES (2, 2, 2);
ALTER TABLE moving DROP COLUMN a;
ALTER TABLE moving ADD COLUMN c text DEFAULT 'x', ALTER b TYPE text USING b || '!';
INSERT INTO moving VALUES (3, 'three');
UPDATE moving SET id = 4 WHERE id = 1;
COMMIT;
ALTER TABLE moving RENAME TO moved;
DROP TABLE moved;
SELECT is(changes(), $$I moving new(INTEGER 1, INTEGER 1)
U moving new(INTEGER 1, INTEGER 2, INTEGER 7)
I moving new(INTEGER 2, INTEGER 2, INTEGER 2)
I moving new(INTEGER 3, TEXT three, TEXT x)
U moving key(INTEGER 1) new(INTEGER 4, TEXT 7!, TEXT x)$$, 'rows by the definition of their place');

-- composites that change: each row in the form of its place
CREATE TYPE pair AS (a int, b text);
CREATE TABLE comp (id int PRIMARY KEY, p pair, ps pair[]);
INSERT INTO comp VALUES (1, (1, 'x'), ARRAY[(1, 'x')::pair]);
ALTER TYPE pair ADD ATTRIBUTE c bool;
INSERT INTO comp VALUES (2, (1, 'x', true), ARRAY[(1, 'x', true)::pair]);
ALTER TYPE pair RENAME ATTRIBUTE b TO d;
ALTER TYPE pair DROP ATTRIBUTE a;
INSERT INTO comp VALUES (3, ('x', true), ARRAY[('x', NULL)::pair]);
UPDATE comp SET id = 4 WHERE id = 1;
DROP TABLE comp;
DROP TYPE pair;
SELECT is(changes(), $$I comp new(INTEGER 1, TEXT (1,x), TEXT [{"a":1,"b":"x"}])
I comp new(INTEGER 2, TEXT (1,x,t), TEXT [{"a":1,"b":"x","c":true}])
I comp new(INTEGER 3, TEXT (x,t), TEXT [{"d":"x","c":null}])
U comp key(INTEGER 1) new(INTEGER 4, TEXT (x,), TEXT [{"d":"x","c":null}])$$, 'composites in the form of their place');

-- the schema as of a commit, read long after
CREATE PUBLICATION later FOR TABLE t (id, n);
ALTER TABLE t ALTER n SET DEFAULT 5;
CREATE INDEX t_n ON t (n);
ALTER TABLE t RENAME TO t_later;
DROP TABLE fullid, fullkey;
DROP TYPE mood CASCADE;
SELECT matches(changes(true, 'later'), '(.*)public.t identity d key id
  1 id int4 i not_null
  2 n int4 i
  index t_pkey \(id\) unique primary identity
\s*public.t identity d key id
  1 id int4 i not_null
  2 n int4 i default 5
  index t_pkey \(id\) unique primary identity
\s*public.t identity d key id
  1 id int4 i not_null
  2 n int4 i default 5
  index t_pkey \(id\) unique primary identity
  index t_n \(n\)
\s*public.t_later identity d key id
', 'the schema as it was at each commit');

-- catalog values that are TOASTed
DO $$ BEGIN EXECUTE format('CREATE TABLE long (id int PRIMARY KEY, v text DEFAULT %L)', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 3000) i)); END $$;
ALTER PUBLICATION later ADD TABLE long (id, v) WHERE (id <> ALL ('{1,2,3}'));
SELECT is(regexp_replace(substring(changes(true, 'later') FROM 'filter \(id <> ALL \(.*default ''[0-9a-f]+''::text'),
	'^.*default ', '') = pg_get_expr(adbin, adrelid), true, 'a TOASTed default') FROM pg_attrdef WHERE adrelid = 'long'::regclass;
SELECT pg_drop_replication_slot('encode_stream') \g /dev/null
SELECT * FROM finish();
