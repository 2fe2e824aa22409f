-- The catalog reader: what is published, keys, indexes, defaults, problems.
\set QUIET on
\pset fieldsep '\n'
SET client_min_messages = warning;
\ir ../modules/encode/functions.sql
CREATE SCHEMA s;
CREATE SCHEMA cdc_users_own;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN short AS varchar(12) NOT NULL;
CREATE DOMAIN moods AS mood[];
CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 7, v varchar(10) NOT NULL DEFAULT 'x', "select" text,
	gone int, m mood DEFAULT 'ok', ms moods, ss short[], d short DEFAULT 'a', num numeric(10,2) DEFAULT 1.50,
	arr int[] DEFAULT ARRAY[]::int[], now timestamptz DEFAULT now(), seq serial, b bool DEFAULT (NOT true),
	big int8 DEFAULT 1, nul varchar DEFAULT NULL::varchar, c char(3), g int GENERATED ALWAYS AS (n * 2) STORED,
	neg int DEFAULT -5, ts timestamptz DEFAULT '2001-02-03 04:05:06+05:30', u uuid, by bytea, f float4);
ALTER TABLE t DROP COLUMN gone;
CREATE UNIQUE INDEX t_two ON t (n DESC, v) INCLUDE (b);
CREATE INDEX t_hash ON t USING hash (v);
CREATE INDEX t_partial ON t (n) WHERE n > 5;
CREATE INDEX t_expression ON t (lower(v));
CREATE INDEX t_gin ON t USING gin (arr);
CREATE INDEX t_desc ON t (v DESC NULLS LAST, n);
ALTER TABLE t ADD CONSTRAINT t_late UNIQUE (seq) DEFERRABLE;
ALTER TABLE t ADD CONSTRAINT t_nulls UNIQUE NULLS NOT DISTINCT (big);
ALTER TABLE t RENAME COLUMN v TO w;
CREATE TABLE keyless (a int, b text);
CREATE TABLE fullid (a int NOT NULL, b int NOT NULL, c int NOT NULL, UNIQUE (a, b), UNIQUE (c) DEFERRABLE);
ALTER TABLE fullid REPLICA IDENTITY FULL;
CREATE TABLE fullbest (a int, b int NOT NULL, c int NOT NULL, PRIMARY KEY (b, c), UNIQUE (a));
CREATE UNIQUE INDEX fullbest_c ON fullbest (c);
ALTER TABLE fullbest REPLICA IDENTITY FULL;
CREATE TABLE indexid (id int PRIMARY KEY, b int NOT NULL, a int NOT NULL);
CREATE UNIQUE INDEX indexid_i ON indexid (a, b);
ALTER TABLE indexid REPLICA IDENTITY USING INDEX indexid_i;
CREATE TABLE latepk (id int PRIMARY KEY DEFERRABLE);
CREATE TABLE nothing (id int PRIMARY KEY);
ALTER TABLE nothing REPLICA IDENTITY NOTHING;
CREATE UNLOGGED TABLE quick (id int PRIMARY KEY);
CREATE TEMP TABLE passing (id int PRIMARY KEY);
CREATE TABLE s.t (id int PRIMARY KEY);
CREATE TABLE cdc_users_own.t (id int PRIMARY KEY);
CREATE TABLE empty ();
CREATE TABLE listed (id int PRIMARY KEY, a int, b int);
CREATE TABLE filtered (id int PRIMARY KEY);
CREATE TABLE numkey (id numeric(5) PRIMARY KEY, x numeric UNIQUE, y int UNIQUE);
CREATE VIEW v AS SELECT 1 AS one;
CREATE MATERIALIZED VIEW mv AS SELECT 1 AS one;
BEGIN;
SELECT no_plan();
CREATE FUNCTION pg_temp.tables(VARIADIC publications text[]) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(m[1], ' ' ORDER BY m[1]), '')
	FROM regexp_matches(public.encode_schema(publications), '^(\S+) identity', 'gn') m $$;
-- one table's text without its columns
CREATE FUNCTION pg_temp.brief(r regclass, VARIADIC publications text[]) RETURNS text LANGUAGE sql AS $$
	SELECT rtrim(regexp_replace(public.encode_table(r, publications), '^  \d+ .*\n', '', 'gn'), E'\n') $$;

CREATE PUBLICATION everything FOR ALL TABLES;
CREATE PUBLICATION public_only FOR TABLES IN SCHEMA public;
CREATE PUBLICATION some_of FOR TABLE t, s.t;
CREATE PUBLICATION none;
SELECT is(pg_temp.tables('everything'), 'cdc_users_own.t public.empty public.filtered public.fullbest public.fullid public.indexid public.keyless public.latepk public.listed public.nothing public.numkey public.t s.t',
	'FOR ALL TABLES, without ours, system, temporary and unlogged ones');
SELECT is(pg_temp.tables('public_only'), 'public.empty public.filtered public.fullbest public.fullid public.indexid public.keyless public.latepk public.listed public.nothing public.numkey public.t', 'a schema');
SELECT is(pg_temp.tables('some_of'), 'public.t s.t', 'a list'), is(pg_temp.tables('none'), '', 'an empty one'),
	is(pg_temp.tables('none', 'some_of', 'public_only'), 'public.empty public.filtered public.fullbest public.fullid public.indexid public.keyless public.latepk public.listed public.nothing public.numkey public.t s.t', 'several');
SELECT throws_ok($$SELECT encode_schema('{some_of,missing}')$$, '42704', 'publication "missing" does not exist');
SELECT is(encode_table('mv', '{everything}'), NULL, 'a materialized view'), is(encode_table('pg_class', '{everything}'), NULL, 'a catalog'),
	is(encode_table('quick', '{everything}'), NULL, 'an unlogged table'), is(encode_table('keyless', '{some_of}'), NULL, 'not in the list');

SELECT is(encode_table('t', '{some_of}'), $$public.t identity d key id
  1 id int4 i not_null
  2 n int4 i default 7
  3 w varchar t not_null max 10 default 'x'::character varying
  4 select text t
  6 m mood t enum default 'ok'::mood
  7 ms moods t array
  8 ss short[] t array
  9 d short t max 12 default 'a'::character varying
  10 num numeric a default 1.50
  11 arr int4[] t array default ARRAY[]::integer[]
  12 now timestamptz a
  13 seq int4 i not_null
  14 b bool i
  15 big int8 i default 1
  16 nul varchar t
  17 c bpchar t max 3
  18 g int4 i generated
  19 neg int4 i default '-5'::integer
  20 ts timestamptz a default '2001-02-02 22:35:06+00'::timestamp with time zone
  21 u uuid t
  22 by bytea b
  23 f float4 a
  index t_pkey (id) unique primary identity
  index t_two (n desc, w) unique
  index t_hash (w)
  index t_desc (w desc, n)
  index t_late (seq) unique deferrable
  index t_nulls (big) unique nulls_equal
$$, 'a table in full');
SELECT is(pg_temp.brief('keyless', 'everything'), 'public.keyless identity d'), is(pg_temp.brief('nothing', 'everything'), E'public.nothing identity n\n  index nothing_pkey (id) unique primary'),
	is(pg_temp.brief('fullid', 'everything'), E'public.fullid identity f key a b\n  index fullid_a_b_key (a, b) unique\n  index fullid_c_key (c) unique deferrable'),
	is(pg_temp.brief('fullbest', 'everything'), E'public.fullbest identity f key c\n  index fullbest_pkey (b, c) unique primary\n  index fullbest_a_key (a) unique\n  index fullbest_c (c) unique'),
	is(pg_temp.brief('indexid', 'everything'), E'public.indexid identity i key a b\n  index indexid_pkey (id) unique primary\n  index indexid_i (a, b) unique identity'),
	is(pg_temp.brief('latepk', 'everything'), E'public.latepk identity d\n  index latepk_pkey (id) unique primary deferrable'),
	is(pg_temp.brief('empty', 'everything'), E'public.empty identity d');
DROP INDEX indexid_i;
SELECT is(pg_temp.brief('indexid', 'everything'), E'public.indexid identity i\n  index indexid_pkey (id) unique primary', 'the identity''s index is gone');
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_two'::regclass;
SELECT unalike(encode_table('t', '{some_of}'), '%t_two%', 'an index that is not valid');

-- what cannot be followed
CREATE PUBLICATION inserts FOR TABLE t WITH (publish = 'insert, delete, truncate');
CREATE PUBLICATION updates FOR TABLE t WITH (publish = 'update');
CREATE PUBLICATION filter FOR TABLE filtered WHERE (id > 5);
CREATE TABLE rooted (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE rooted_leaf PARTITION OF rooted FOR VALUES FROM (0) TO (10);
CREATE PUBLICATION filter_root FOR TABLE rooted WHERE (id > 5) WITH (publish_via_partition_root = true);
CREATE PUBLICATION filter_leaf FOR TABLE rooted_leaf WHERE (id < 5);
CREATE PUBLICATION filter_too FOR TABLE filtered WHERE (id < 3);
CREATE PUBLICATION filter_same FOR TABLE filtered WHERE (   id > 5);
CREATE PUBLICATION filter_insert FOR TABLE filtered WHERE (id < 3) WITH (publish = 'insert');
CREATE PUBLICATION filter_schema FOR TABLES IN SCHEMA public, TABLE filtered WHERE (id > 5);
CREATE PUBLICATION unfiltered_insert FOR TABLE filtered WITH (publish = 'insert');
CREATE PUBLICATION unfiltered_truncate FOR TABLE filtered WITH (publish = 'truncate');
CREATE PUBLICATION unfiltered FOR TABLE filtered;
CREATE PUBLICATION unfiltered_but FOR TABLE filtered WITH (publish = 'insert, update, delete');
CREATE PUBLICATION list_a FOR TABLE listed (id, a);
CREATE PUBLICATION list_b FOR TABLE listed (id, b), t (id, n, w, "select", m, ms, ss, d, num, arr, now, seq, b, big, nul, c, neg, ts, u, by, f);
CREATE PUBLICATION list_a2 FOR TABLE listed (a, id);
CREATE PUBLICATION list_all FOR TABLE listed (id, a, b);
CREATE PUBLICATION list_nokey FOR TABLE listed (a);
SELECT alike(pg_temp.brief('t', 'inserts'), '%  problem publication inserts does not publish update: ALTER PUBLICATION inserts SET (publish = %'),
	unalike(pg_temp.brief('t', 'inserts', 'updates'), '%problem%', 'together they publish all'),
	is(pg_temp.brief('filtered', 'filter'), E'public.filtered identity d key id\n  filter (id > 5)\n  index filtered_pkey (id) unique primary identity', 'a row filter'),
	alike(pg_temp.brief('filtered', 'filter', 'filter_too', 'filter'), E'%\n  filter ((id > 5) OR (id < 3))\n%', 'two of them: one or the other'),
	is(pg_temp.brief('filtered', 'filter_too', 'filter'), pg_temp.brief('filtered', 'filter', 'filter_too'), 'in whatever order'),
	alike(pg_temp.brief('filtered', 'filter', 'filter_same'), E'%\n  filter (id > 5)\n%', 'the same one twice'),
	unalike(pg_temp.brief('filtered', 'filter', 'public_only'), '%  filter%', 'none by FOR TABLES IN SCHEMA'),
	unalike(pg_temp.brief('filtered', 'filter_schema'), '%  filter%', 'nor where the same publication has the table too'),
	alike(pg_temp.brief('filtered', 'filter', 'filter_insert'), '%  problem its publications filter insert other rows than update: %'),
	alike(pg_temp.brief('filtered', 'filter', 'unfiltered_insert'), '%  problem its publications filter insert other rows than update: %'),
	alike(pg_temp.brief('filtered', 'filter', 'unfiltered_truncate'), E'%\n  filter (id > 5)\n%', 'one that publishes truncate only'),
	unalike(pg_temp.brief('filtered', 'filter', 'unfiltered'), '%  filter%', 'all rows in one are all'),
	alike(pg_temp.brief('rooted', 'filter_root'), E'public.rooted identity d partitioned key id\n  filter (id > 5)\n%', 'of a root'),
	is(pg_temp.brief('rooted_leaf', 'filter_root', 'filter_leaf'), NULL, 'whose partitions'' filters do not count'),
	alike(pg_temp.brief('rooted_leaf', 'filter_leaf'), E'public.rooted_leaf identity d key id\n  filter (id < 5)\n%', 'of a partition by itself'),
	unalike(pg_temp.brief('filtered', 'filter', 'unfiltered'), '%problem%', 'unfiltered in one is unfiltered'),
	unalike(pg_temp.brief('filtered', 'filter', 'everything'), '%problem%', 'also by FOR ALL TABLES'),
	unalike(pg_temp.brief('filtered', 'filter', 'unfiltered_but'), '%problem%', 'a filter does not count for truncate'),
	alike(pg_temp.brief('listed', 'list_a', 'list_b'), '%  problem its publications have different column lists for it: %'),
	alike(pg_temp.brief('listed', 'list_a', 'everything'), '%  problem its publications have different column lists for it: %'),
	unalike(pg_temp.brief('listed', 'list_a', 'list_a2'), '%problem%', 'the same list twice'),
	unalike(pg_temp.brief('listed', 'list_all', 'everything'), '%problem%', 'a list of all'),
	unalike(pg_temp.brief('t', 'list_b', 'everything'), '%problem%', 'a list of all but generated columns'),
	alike(pg_temp.brief('listed', 'list_nokey'), '%  problem its column list leaves out columns of its replica identity: %');
SELECT is(encode_table('listed', '{list_a}'), $$public.listed identity d key id
  1 id int4 i not_null
  2 a int4 i
  index listed_pkey (id) unique primary identity
$$, 'a column list');
SELECT alike(encode_schema('{everything}', true), '%public.numkey identity d key id
  problem its key has a numeric column, which would not stay unique as a double: %
  index numkey_pkey (id) primary identity
  index numkey_x_key (x)
  index numkey_y_key (y) unique%', 'numerics as doubles'),
	unalike(encode_table('numkey', '{everything}'), '%problem%', 'numerics as they are');

-- partitions
CREATE TABLE root (id int NOT NULL, part int NOT NULL, v text, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE leaf1 PARTITION OF root FOR VALUES IN (1);
CREATE TABLE mid PARTITION OF root FOR VALUES IN (2, 3) PARTITION BY LIST (part);
CREATE TABLE leaf2 (extra int, v text, part int NOT NULL, id int NOT NULL);
ALTER TABLE leaf2 DROP COLUMN extra;
ALTER TABLE mid ATTACH PARTITION leaf2 FOR VALUES IN (2);
CREATE TABLE parent (a int PRIMARY KEY);
CREATE TABLE child (b int, PRIMARY KEY (a)) INHERITS (parent);
CREATE PUBLICATION via_root FOR TABLE root WITH (publish_via_partition_root = true);
CREATE PUBLICATION via_leaf FOR TABLE root;
CREATE PUBLICATION mid_root FOR TABLE mid WITH (publish_via_partition_root = true);
CREATE PUBLICATION one_leaf FOR TABLE leaf2;
CREATE PUBLICATION all_root FOR ALL TABLES WITH (publish_via_partition_root = true);
CREATE PUBLICATION heirs FOR TABLE parent;
CREATE PUBLICATION no_heirs FOR TABLE ONLY parent;
CREATE PUBLICATION s_root FOR TABLES IN SCHEMA public WITH (publish_via_partition_root = true);
SELECT is(pg_temp.tables('via_root'), 'public.root'), is(pg_temp.tables('via_leaf'), 'public.leaf1 public.leaf2'),
	is(pg_temp.tables('mid_root'), 'public.mid'), is(pg_temp.tables('one_leaf'), 'public.leaf2'),
	is(pg_temp.tables('mid_root', 'via_root'), 'public.root', 'the topmost root wins'), is(pg_temp.tables('mid_root', 'via_leaf'), 'public.leaf1 public.mid'),
	is(pg_temp.tables('one_leaf', 'via_root'), 'public.root'), is(pg_temp.tables('heirs'), 'public.child public.parent'), is(pg_temp.tables('no_heirs'), 'public.parent'),
	alike(pg_temp.tables('all_root'), '%public.root%'), unalike(pg_temp.tables('all_root'), '%leaf%'), unalike(pg_temp.tables('s_root'), '%leaf%');
SELECT is(encode_publish_as('leaf2', '{via_root}')::text, 'root'), is(encode_publish_as('leaf2', '{via_leaf}')::text, 'leaf2'), is(encode_publish_as('leaf2', '{mid_root,via_leaf}')::text, 'mid'),
	is(encode_publish_as('leaf1', '{mid_root,via_leaf}')::text, 'leaf1'), is(encode_publish_as('root', '{via_root}')::text, 'root'), is(encode_publish_as('mid', '{via_root}')::text, 'root'),
	is(encode_publish_as('leaf1', '{mid_root}')::text, NULL), is(encode_publish_as('t', '{some_of}')::text, 't');
SELECT is(pg_temp.brief('root', 'via_root'), E'public.root identity d partitioned key id part\n  index root_pkey (id, part) unique primary identity');
SELECT is(encode_table('leaf1', '{via_root}'), NULL, 'a leaf under its root is no table of its own');
ALTER TABLE leaf1 REPLICA IDENTITY FULL;
SELECT unalike(pg_temp.brief('root', 'via_root'), '%problem%', 'a leaf with FULL serves any key');
ALTER TABLE leaf1 REPLICA IDENTITY NOTHING;
SELECT unalike(pg_temp.brief('root', 'via_root'), '%problem%', 'a leaf without has no updates');
CREATE UNIQUE INDEX leaf1_v ON leaf1 (part);
ALTER TABLE leaf1 REPLICA IDENTITY USING INDEX leaf1_v;
SELECT alike(pg_temp.brief('root', 'via_root'), '%  problem the replica identity of its partition leaf1 does not cover the key of the root: %');
ALTER TABLE leaf1 REPLICA IDENTITY DEFAULT;
CREATE UNLOGGED TABLE leaf3 PARTITION OF mid FOR VALUES IN (3);
SELECT alike(pg_temp.brief('root', 'via_root'), '%  problem its partition leaf3 is an unlogged table, whose changes are not in the WAL: %'),
	unalike(pg_temp.tables('via_leaf'), '%leaf3%');
SELECT * FROM finish();
ROLLBACK;
