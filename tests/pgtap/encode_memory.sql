-- Memory of the encoder: flat over many rows, and a small multiple of a large value.
\set QUIET on
\pset fieldsep '\n'
SET client_min_messages = warning;
\ir ../modules/encode/functions.sql
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE pair AS (a int, b text);
CREATE TABLE mixed (id int PRIMARY KEY, n numeric, t text, ts timestamptz, m mood, a text[], p pair, ps pair[], j jsonb, r int4range, f float4, v varbit);
INSERT INTO mixed SELECT i, i / 7.0, repeat('x', i % 300), now() + i * interval '1 s', CASE WHEN i % 2 = 0 THEN 'sad' ELSE 'ok' END::mood,
	ARRAY[i::text, NULL], (i, 'x')::pair, ARRAY[(i, 'y')::pair], jsonb_build_object('a', i), int4range(i, i + 5), random(), B'10101' FROM generate_series(1, 100000) i;
CREATE TABLE large (id int PRIMARY KEY, b bytea, t text, a text[]);
ALTER TABLE large ALTER b SET STORAGE EXTERNAL;
INSERT INTO large SELECT 1, decode(repeat('00ff', 10000000), 'hex'), NULL, NULL;
INSERT INTO large SELECT 2, NULL, repeat('compressible ', 1500000), NULL;
INSERT INTO large SELECT 3, NULL, NULL, array_agg(repeat('x', 1000)) FROM generate_series(1, 20000);
CREATE PUBLICATION p FOR ALL TABLES;
SELECT plan(5);
SELECT is(rows, 100000::int8, '100,000 rows') FROM encode_scan('mixed', '{p}');
SELECT cmp_ok(memory, '<', 300000::int8, 'memory of 100,000 rows') FROM encode_scan('mixed', '{p}');
SELECT is(rows, 3::int8, 'large values of 20 MB'), cmp_ok(memory, '<', 20000000 * 4::int8, 'memory of large values')
	FROM (SELECT sum(rows)::int8 AS rows, max(memory) AS memory FROM encode_scan('large', '{p}')) s;
SELECT cmp_ok(bytes, '>', 59000000::int8, 'all their bytes') FROM encode_scan('large', '{p}');
SELECT * FROM finish();
