-- Every line of docs/types.md, and boundary values: what the encoder makes of
-- a value, against expectations written by hand.
\set QUIET on
\pset fieldsep '\n'
SET client_min_messages = warning;
\ir ../modules/encode/functions.sql
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS ltree;
CREATE TYPE mood AS ENUM ('sad', 'it''s "ok"');
CREATE DOMAIN upc AS text;
CREATE DOMAIN price AS numeric(10,2);
CREATE DOMAIN prices AS numeric[];
CREATE TYPE pair AS (a int, b text);
CREATE TYPE deep AS (p pair, m mood, n numeric[], d timestamptz);
BEGIN;
SELECT no_plan();

CREATE FUNCTION pg_temp.e(actual text, expected text, what text DEFAULT NULL) RETURNS text
	LANGUAGE sql AS $$ SELECT is(actual, expected, left(coalesce(what, expected), 100)) $$;

-- boolean, integers, oid
SELECT pg_temp.e(enc(true), 'INTEGER 1'), pg_temp.e(enc(false), 'INTEGER 0');
SELECT pg_temp.e(enc((-32768)::int2), 'INTEGER -32768'), pg_temp.e(enc(32767::int2), 'INTEGER 32767');
SELECT pg_temp.e(enc((-2147483648)::int4), 'INTEGER -2147483648'), pg_temp.e(enc(2147483647), 'INTEGER 2147483647');
SELECT pg_temp.e(enc(9007199254740993), 'INTEGER 9007199254740993'),
	pg_temp.e(enc((-9223372036854775808)::int8), 'INTEGER -9223372036854775808'),
	pg_temp.e(enc(9223372036854775807), 'INTEGER 9223372036854775807');
SELECT pg_temp.e(enc(4294967295::oid), 'INTEGER 4294967295'), pg_temp.e(enc(0::oid), 'INTEGER 0');

-- float8: to the bit
SELECT pg_temp.e(enc('-216237.00000035969'::float8), 'REAL -216237.0000003597'),
	pg_temp.e(enc('1e308'::float8), 'REAL 1e+308'), pg_temp.e(enc('5e-324'::float8), 'REAL 5e-324'),
	pg_temp.e(enc('-0'::float8), 'REAL -0'), pg_temp.e(enc('NaN'::float8), 'TEXT NaN'),
	pg_temp.e(enc('Infinity'::float8), 'REAL Infinity'), pg_temp.e(enc('-Infinity'::float8), 'REAL -Infinity'),
	pg_temp.e(enc(1::float8), 'REAL 1'), pg_temp.e(enc(0.1::float8), 'REAL 0.1');
-- float4: the shortest decimal, as a double
SELECT pg_temp.e(enc('0.1'::float4), 'REAL 0.1'), pg_temp.e(enc('-0'::float4), 'REAL -0'),
	pg_temp.e(enc('3.4028235e38'::float4), 'REAL 3.4028235e+38'),
	pg_temp.e(enc('1e-45'::float4), 'REAL 1e-45'), pg_temp.e(enc('1.17549435e-38'::float4), 'REAL 1.1754944e-38'),
	pg_temp.e(enc('16777216'::float4), 'REAL 16777216'), pg_temp.e(enc('123456792'::float4), 'REAL 123456790'),
	pg_temp.e(enc('NaN'::float4), 'TEXT NaN'), pg_temp.e(enc('-Infinity'::float4), 'REAL -Infinity'),
	pg_temp.e(enc('7'::float4), 'REAL 7'), pg_temp.e(enc('-1.5e10'::float4), 'REAL -15000001000', 'a float4 on the edge: as PostgreSQL prints it');
SELECT is((SELECT count(*) FROM (SELECT (random() * 10 ^ (random() * 76 - 38))::float4 f
	FROM generate_series(1, 20000)) s, encode_value(f) e WHERE e.value::float8 <> f::text::float8), 0::int8,
	'float4 is the double of its shortest text');

-- numeric: INTEGER, REAL or exact TEXT, by value
SELECT pg_temp.e(enc(v::numeric), r, 'numeric ' || v) FROM (VALUES
	('0', 'INTEGER 0'), ('0.000', 'INTEGER 0'), ('-0', 'INTEGER 0'), ('1', 'INTEGER 1'), ('-1', 'INTEGER -1'),
	('1.50', 'REAL 1.5'), ('1.00', 'INTEGER 1'), ('10000', 'INTEGER 10000'), ('9999', 'INTEGER 9999'),
	('0.1', 'REAL 0.1'), ('-0.1', 'REAL -0.1'), ('0.0001', 'REAL 0.0001'), ('0.00001', 'REAL 1e-05'),
	('9223372036854775807', 'INTEGER 9223372036854775807'),
	('9223372036854775808', 'TEXT 9223372036854775808'),
	('-9223372036854775808', 'INTEGER -9223372036854775808'),
	('-9223372036854775809', 'TEXT -9223372036854775809'),
	('9229999999999999999', 'TEXT 9229999999999999999'),
	('100000000000000000000', 'REAL 1e+20'), ('1e30', 'REAL 1e+30'), ('1e22', 'REAL 1e+22'), ('1e23', 'REAL 9.999999999999999e+22'),
	('12345678901234567890.123456789', 'TEXT 12345678901234567890.123456789'),
	('1e-130', 'REAL 1e-130'), ('123456789012345.6', 'REAL 123456789012345.6'),
	('0.30000000000000004', 'REAL 0.30000000000000004'), ('0.30000000000000001', 'TEXT 0.30000000000000001'),
	('0.3000000000000000', 'REAL 0.3'), ('1.23456789012345678', 'TEXT 1.23456789012345678'),
	('9007199254740993.5', 'TEXT 9007199254740993.5'), ('9007199254740991.5', 'TEXT 9007199254740991.5'),
	('1e308', 'REAL 1e+308'), ('1.7976931348623157e308', 'REAL 1.7976931348623157e+308'),
	('5e-324', 'REAL 5e-324'), ('3e-324', 'TEXT 0.' || repeat('0', 323) || '3'),
	('1e309', 'TEXT 1' || repeat('0', 309)), ('1e-400', 'TEXT 0.' || repeat('0', 399) || '1'),
	('1000000.0001000', 'REAL 1000000.0001'), ('-12345.678', 'REAL -12345.678'),
	('NaN', 'TEXT NaN'), ('Infinity', 'REAL Infinity'), ('-Infinity', 'REAL -Infinity')) t(v, r);
SELECT pg_temp.e(enc((repeat('123456789', 55) || '01234.' || repeat('987654321', 44) || '0000')::numeric),
	'TEXT ' || repeat('123456789', 55) || '01234.' || repeat('987654321', 44), 'numeric of 900 digits'),
	pg_temp.e(enc('NaN'::numeric(10,2)), 'TEXT NaN'),
	pg_temp.e(enc((repeat('9', 131072) || '.' || repeat('0', 16382) || '1')::numeric),
	'TEXT ' || repeat('9', 131072) || '.' || repeat('0', 16382) || '1', 'the longest numeric');
-- against another rule: a double that prints the same digits
SELECT is((SELECT string_agg(n || ' -> ' || e.class || ' ' || e.value, E'\n')
	FROM (SELECT (CASE WHEN i % 2 = 0 THEN -1 ELSE 1 END) * round((random()::numeric * 10::numeric ^ (i % 40)), i % 23) n
		FROM generate_series(1, 20000) i) s, encode_value(n) e
	WHERE CASE WHEN n = trunc(n) AND n BETWEEN -9223372036854775808 AND 9223372036854775807
			THEN e.class <> 'INTEGER' OR e.value::numeric <> n
		WHEN n::text::float8::text::numeric = n OR length(trim('0' FROM translate(n::text, '-.', ''))) <= 15
			THEN e.class <> 'REAL' OR e.value::float8 <> n::text::float8
		WHEN length(trim('0' FROM translate(n::text, '-.', ''))) > 17
			THEN e.class <> 'TEXT' OR e.value <> trim_scale(n)::text
		ELSE e.class = 'TEXT' AND e.value::numeric <> n OR e.class = 'REAL' AND e.value::float8 <> n::text::float8 END), NULL,
	'20,000 numerics');
-- numerics => 'double'
SELECT pg_temp.e(enc(v::numeric, false, true), r, 'double ' || v) FROM (VALUES
	('0', 'REAL 0'), ('5', 'REAL 5'), ('12345678901234567890.123456789', 'REAL 1.2345678901234567e+19'),
	('1e400', 'REAL Infinity'), ('1e-400', 'REAL 0'), ('0.1', 'REAL 0.1'), ('NaN', 'TEXT NaN'),
	('-9223372036854775809', 'REAL -9.223372036854776e+18'), ('-Infinity', 'REAL -Infinity')) t(v, r);

-- texts
SELECT pg_temp.e(enc(E'a\nb\r\n\\'::text), E'TEXT a\nb\r\n\\'), pg_temp.e(enc(''::text), 'TEXT '),
	pg_temp.e(enc('null'::text), 'TEXT null'), pg_temp.e(enc('It''s'''::varchar), 'TEXT It''s'''),
	pg_temp.e(enc('ab'::char(5)), 'TEXT ab   '), pg_temp.e(enc('x'::name), 'TEXT x'),
	pg_temp.e(enc(repeat('ü', 31)::name), 'TEXT ' || repeat('ü', 31)), pg_temp.e(enc('naïve Ω 🐘'::text), 'TEXT naïve Ω 🐘'),
	pg_temp.e(enc('c'::"char"), 'TEXT c'), pg_temp.e(enc(''::"char"), 'TEXT '), pg_temp.e(enc((-61)::"char"), E'TEXT \\303');
SELECT pg_temp.e(enc('MiXed'::citext), 'TEXT MiXed'), pg_temp.e(enc('a=>1, b=>NULL'::hstore), 'TEXT "a"=>"1", "b"=>NULL'),
	pg_temp.e(enc('Top.A'::ltree), 'TEXT Top.A');
SELECT pg_temp.e(enc(repeat('x', 3000000)), 'TEXT ' || repeat('x', 3000000), 'a compressed text');
SELECT pg_temp.e(enc('\x'::bytea), 'BLOB '), pg_temp.e(enc('\x00ff10'::bytea), 'BLOB 00ff10');
SELECT pg_temp.e(enc(decode(string_agg(lpad(to_hex(i), 2, '0'), '' ORDER BY i), 'hex')),
		'BLOB ' || string_agg(lpad(to_hex(i), 2, '0'), '' ORDER BY i), 'bytea of every byte')
	FROM generate_series(0, 255) i;
SELECT pg_temp.e(enc('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid), 'TEXT a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'),
	pg_temp.e(enc('00000000-0000-0000-0000-0000000000ff'::uuid), 'TEXT 00000000-0000-0000-0000-0000000000ff');

-- dates and times
SELECT pg_temp.e(enc(v::date), r, 'date ' || v) FROM (VALUES
	('1970-01-01', 'INTEGER 0'), ('2000-01-01', 'INTEGER 946684800000'), ('1969-12-31', 'INTEGER -86400000'),
	('0044-03-15 BC', 'INTEGER -63517824000000'), ('4713-01-01 BC', 'INTEGER -210863520000000'),
	('5874897-12-31', 'INTEGER 185331706992000000'), ('infinity', 'REAL Infinity'), ('-infinity', 'REAL -Infinity')) t(v, r);
SELECT pg_temp.e(enc(v::timestamp), r, 'timestamp ' || v) FROM (VALUES
	('1970-01-01', 'INTEGER 0'), ('2001-02-03 04:05:06', 'INTEGER 981173106000'),
	('2001-02-03 04:05:06.789', 'INTEGER 981173106789'), ('2001-02-03 04:05:06.789012', 'REAL 981173106789.012'),
	('1969-12-31 23:59:59.999999', 'REAL -0.001'), ('1901-01-01', 'INTEGER -2177452800000'),
	('2248-01-01 00:00:00.000001', 'REAL 8772796800000.001'), ('9999-12-31 23:59:59.999999', 'TEXT 9999-12-31 23:59:59.999999'),
	('294276-12-31', 'INTEGER 9224317929600000' ), ('4713-11-24 00:00:00.000001 BC', 'TEXT 4713-11-24 00:00:00.000001 BC'),
	('0044-03-15 12:00 BC', 'INTEGER -63517780800000'), ('9999-12-31 23:59:59.5', 'INTEGER 253402300799500'),
	('9999-12-31 23:59:59.0005', 'REAL 253402300799000.5'),
	('infinity', 'REAL Infinity'), ('-infinity', 'REAL -Infinity')) t(v, r);
SELECT pg_temp.e(enc('2001-02-03 04:05:06.789012+05:30'::timestamptz), 'REAL 981153306789.012'),
	pg_temp.e(enc('9999-12-31 23:59:59.999999+00'::timestamptz), 'TEXT 9999-12-31 23:59:59.999999+00'),
	pg_temp.e(enc('infinity'::timestamptz), 'REAL Infinity');
SELECT is((SELECT count(*) FROM (SELECT timestamp '1691-06-01' + i * interval '80 days 17:23:45.678901' t
	FROM generate_series(1, 2500) i) s, encode_value(t) e
	WHERE e.class = 'TEXT' OR round(e.value::numeric * 1000) <> extract(epoch FROM t) * 1000000), 0::int8,
	'the microseconds of 1691 to 2239 come back');
SELECT pg_temp.e(enc(v::time), r, 'time ' || v) FROM (VALUES
	('00:00', 'INTEGER 0'), ('24:00', 'INTEGER 86400000'), ('12:34:56.789', 'INTEGER 45296789'),
	('12:34:56.789012', 'REAL 45296789.012'), ('23:59:59.999999', 'REAL 86399999.999')) t(v, r);
SELECT pg_temp.e(enc('23:59:59.123456+05:30'::timetz), 'TEXT 23:59:59.123456+05:30'),
	pg_temp.e(enc('24:00-08'::timetz), 'TEXT 24:00:00-08'), pg_temp.e(enc('00:00:00+15:59:59'::timetz), 'TEXT 00:00:00+15:59:59');
-- timestamps => 'text'
SELECT pg_temp.e(enc('0044-03-15 BC'::date, true), 'TEXT 0044-03-15 BC'), pg_temp.e(enc('-infinity'::date, true), 'TEXT -infinity'),
	pg_temp.e(enc('2001-02-03 04:05:06.7'::timestamp, true), 'TEXT 2001-02-03 04:05:06.7'),
	pg_temp.e(enc('2001-02-03 04:05:06+05:30'::timestamptz, true), 'TEXT 2001-02-02 22:35:06+00'),
	pg_temp.e(enc('infinity'::timestamptz, true), 'TEXT infinity'), pg_temp.e(enc('24:00'::time, true), 'TEXT 24:00:00');

-- json
SELECT pg_temp.e(enc('{"a":  1, "a":"\u0000"}'::json), 'TEXT {"a":  1, "a":"\u0000"}'),
	pg_temp.e(enc('null'::jsonb), 'TEXT null'), pg_temp.e(enc('{"b":1,"a":[true,null,"é"]}'::jsonb), 'TEXT {"a": [true, null, "é"], "b": 1}'),
	pg_temp.e(enc('{"n": 123456789012345678901234567890.5}'::jsonb), 'TEXT {"n": 123456789012345678901234567890.5}'),
	pg_temp.e(enc('{"n": 123456789012345678901234567890.5}'::json), 'TEXT {"n": 123456789012345678901234567890.5}'),
	pg_temp.e(enc('9007199254740993'::jsonb), 'TEXT 9007199254740993'), pg_temp.e(enc('"x"'::jsonb), 'TEXT "x"');

-- enums, domains
SELECT pg_temp.e(enc('sad'::mood), 'TEXT sad'), pg_temp.e(enc('it''s "ok"'::mood), 'TEXT it''s "ok"'),
	pg_temp.e(enc('01234'::upc), 'TEXT 01234'), pg_temp.e(enc('1.50'::price), 'REAL 1.5'), pg_temp.e(enc('{1.50,NULL}'::prices), 'TEXT [1.50,null]');

-- arrays
SELECT pg_temp.e(enc('{1,2,NULL}'::int[]), 'TEXT [1,2,null]'), pg_temp.e(enc('{}'::int[]), 'TEXT []'),
	pg_temp.e(enc('{{1,2},{3,4}}'::int[]), 'TEXT [[1,2],[3,4]]'), pg_temp.e(enc('[0:1]={1,2}'::int[]), 'TEXT [0:1]={1,2}'),
	pg_temp.e(enc('[1:1][-1:0]={{1,2}}'::int[]), 'TEXT [1:1][-1:0]={{1,2}}'),
	pg_temp.e(enc('{NULL,"NULL","a\"b","c\\d",""}'::text[]), 'TEXT [null,"NULL","a\"b","c\\d",""]'),
	pg_temp.e(enc(ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, NULL]), 'TEXT ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",null]'),
	pg_temp.e(enc('{t,f,NULL}'::bool[]), 'TEXT [true,false,null]'), pg_temp.e(enc('{9007199254740993}'::int8[]), 'TEXT [9007199254740993]'),
	pg_temp.e(enc('{1.50,NaN,Infinity,1e30}'::numeric[]), 'TEXT [1.50,"NaN","Infinity",1000000000000000000000000000000]'),
	pg_temp.e(enc('{0.1,NaN,-Infinity,1e-7}'::float4[]), 'TEXT [0.1,"NaN","-Infinity",1e-07]'),
	pg_temp.e(enc('{0.1,1e300,-0}'::float8[]), 'TEXT [0.1,1e+300,-0]'),
	pg_temp.e(enc('{2001-02-03,infinity}'::date[]), 'TEXT ["2001-02-03","infinity"]'),
	pg_temp.e(enc('{2001-02-03 04:05:06.5+05:30}'::timestamptz[]), 'TEXT ["2001-02-02T22:35:06.5+00:00"]'),
	pg_temp.e(enc('{2001-02-03 04:05:06}'::timestamp[]), 'TEXT ["2001-02-03T04:05:06"]'),
	pg_temp.e(enc(ARRAY['{"a":  1}'::json, NULL, 'null']), 'TEXT [{"a":  1},null,null]'),
	pg_temp.e(enc(ARRAY['{"a":  1}'::jsonb]), 'TEXT [{"a": 1}]'), pg_temp.e(enc(ARRAY['\x00ff'::bytea]), 'TEXT ["\\x00ff"]'),
	pg_temp.e(enc('{sad,NULL}'::mood[]), 'TEXT ["sad",null]'), pg_temp.e(enc(ARRAY['a=>1'::hstore]), 'TEXT ["\"a\"=>\"1\""]'),
	pg_temp.e(enc(ARRAY[(1,'x"y')::pair, (NULL,NULL)::pair, NULL]), 'TEXT [{"a":1,"b":"x\"y"},{"a":null,"b":null},null]'),
	pg_temp.e(enc(ARRAY[((1,'x'),'sad','{1.0}','2001-02-03 04:05:06+00')::deep]),
		'TEXT [{"p":{"a":1,"b":"x"},"m":"sad","n":[1.0],"d":"2001-02-03T04:05:06+00:00"}]'),
	pg_temp.e(enc(ARRAY[(NULL,NULL,'[0:0]={1}',NULL)::deep]), 'TEXT [{"p":null,"m":null,"n":"[0:0]={1}","d":null}]'),
	pg_temp.e(enc(ARRAY['MiXed'::citext]), 'TEXT ["MiXed"]'), pg_temp.e(enc('{"[1,5)",empty}'::int4range[]), 'TEXT ["[1,5)","empty"]'),
	pg_temp.e(enc(ARRAY[interval '1 day 02:00']), 'TEXT ["1 day 02:00:00"]');
-- what to_json says, over many values
SET TimeZone = 'UTC';
SELECT is(value, to_json(v)::text, 'as to_json') FROM (SELECT array_agg(chr(i) || E'\t\x01\x1f' || i) FROM generate_series(1, 3000) i) t(v), encode_value(v);
SELECT is(value, to_json(v)::text, 'as to_json') FROM (SELECT array_agg(random() * 10 ^ (random() * 600 - 300)) FROM generate_series(1, 3000) i) t(v), encode_value(v);
SELECT is(value, to_json(v)::text, 'as to_json') FROM (SELECT array_agg(ROW(i, i || 'x')::pair) FROM generate_series(1, 3000) i) t(v), encode_value(v);
SELECT is(value, to_json(v)::text, 'as to_json') FROM (SELECT array_agg(ARRAY[[i, NULL], [3, 4]]) FROM generate_series(1, 3000) i) t(v), encode_value(v);
RESET TimeZone;

-- composites, ranges, all else: text
SELECT pg_temp.e(enc((1,'a b')::pair), 'TEXT (1,"a b")'), pg_temp.e(enc('[2001-01-01,2001-02-01)'::daterange), 'TEXT [2001-01-01,2001-02-01)'),
	pg_temp.e(enc('{[1,2),[5,9)}'::int4multirange), 'TEXT {[1,2),[5,9)}'), pg_temp.e(enc('empty'::int4range), 'TEXT empty'),
	pg_temp.e(enc(B'101'), 'TEXT 101'), pg_temp.e(enc(''::varbit), 'TEXT '), pg_temp.e(enc('-1234.56'::money), 'TEXT -$1,234.56'),
	pg_temp.e(enc('92233720368547758.07'::money), 'TEXT $92,233,720,368,547,758.07'),
	pg_temp.e(enc('10.0.0.0/8'::inet), 'TEXT 10.0.0.0/8'), pg_temp.e(enc('10.0.0.1'::inet), 'TEXT 10.0.0.1'), pg_temp.e(enc('10.0.0.0/8'::cidr), 'TEXT 10.0.0.0/8'),
	pg_temp.e(enc('08-00-2b-01-02-03'::macaddr), 'TEXT 08:00:2b:01:02:03'), pg_temp.e(enc('08002b0102030405'::macaddr8), 'TEXT 08:00:2b:01:02:03:04:05'),
	pg_temp.e(enc('1 year 2 mons -3 days 04:05:06.789'::interval), 'TEXT 1 year 2 mons -3 days +04:05:06.789'),
	pg_temp.e(enc('(1.5,2)'::point), 'TEXT (1.5,2)'), pg_temp.e(enc('((0,0),(1,0.1))'::polygon), 'TEXT ((0,0),(1,0.1))'),
	pg_temp.e(enc('a:1 b'::tsvector), 'TEXT ''a'':1 ''b'''), pg_temp.e(enc('a & b'::tsquery), 'TEXT ''a'' & ''b'''),
	pg_temp.e(enc('<a>x</a>'::xml), 'TEXT <a>x</a>'), pg_temp.e(enc('16/B374D848'::pg_lsn), 'TEXT 16/B374D848'),
	pg_temp.e(enc('1 2'::int2vector), 'TEXT 1 2'), pg_temp.e(enc('pg_class'::regclass), 'TEXT pg_class'), pg_temp.e(enc('7'::xid8), 'TEXT 7'),
	pg_temp.e(enc('$.a'::jsonpath), 'TEXT $."a"'), pg_temp.e(enc('(0,1)'::tid), 'TEXT (0,1)');

-- settings that change how PostgreSQL prints make no difference
CREATE FUNCTION pg_temp.all_values() RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws('|', enc(timestamptz '2001-02-03 04:05:06.123456+00'), enc(timestamp '2001-02-03 04:05:06'), enc(date '2001-02-03'),
		enc(timestamptz '9999-12-31 23:59:59.999999+00'), enc(timetz '01:02:03+05'), enc(interval '1 mon 2 days 03:04:05.6'), enc(0.1::float8),
		enc(0.1::float4), enc('\x00ff'::bytea), enc(1.5::money), enc(point(0.1, 1.0/3)), enc(ARRAY[timestamptz '2001-02-03 04:05:06+00']),
		enc(ARRAY[interval '1 mon']), enc(ARRAY['\x00ff'::bytea]), enc(tstzrange('2001-02-03 04:05:06+00', NULL)), enc(ROW(1, 'sad')::public.pair),
		enc('public.pair'::regtype), enc('sad'::public.mood), enc(ARRAY[1.0/3]::float8[]),
		enc(timestamptz '2001-02-03 04:05:06+00', true), enc(date '2001-02-03', true), enc(xml '<a/>')) $$;
CREATE TEMP TABLE plain AS SELECT pg_temp.all_values() v;
SELECT matches(v, 'REAL 981173106123.456.*TEXT 1 mon 2 days 03:04:05.6.*BLOB 00ff.*TEXT \(0.1,0.3333333333333333\)', 'values') FROM plain;
SET DateStyle = 'SQL, DMY';
SET IntervalStyle = 'iso_8601';
SET TimeZone = 'Asia/Kolkata';
SET extra_float_digits = -5;
SET bytea_output = 'escape';
SET lc_monetary = 'C.UTF-8';
SET xmlbinary = hex;
SET quote_all_identifiers = on;
SET search_path = public, pg_catalog;
SELECT is(pg_temp.all_values(), v, 'settings make no difference') FROM plain;
SELECT is(current_setting('DateStyle') || current_setting('TimeZone') || current_setting('extra_float_digits'),
	'SQL, DMYAsia/Kolkata-5', 'and are as they were');
RESET ALL;

-- storage of columns
SELECT is(string_agg(t::regtype || ' ' || encode_storage(t::regtype)::text, ', ' ORDER BY n), 'boolean i, smallint i, integer i, bigint i, oid i, real a, double precision a, numeric a, date a, time without time zone a, timestamp without time zone a, timestamp with time zone a, bytea b, time with time zone t, text t, json t, uuid t, integer[] t, price a, upc t, mood t', 'storage')
	FROM unnest(ARRAY['bool','int2','int4','int8','oid','float4','float8','numeric','date','time','timestamp','timestamptz','bytea','timetz','text','json','uuid','int4[]','price','upc','mood']) WITH ORDINALITY u(t, n);
SELECT * FROM finish();
ROLLBACK;
