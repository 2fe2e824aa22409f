# What users of this field have reported, as small reproductions: values, keys,
# names, truncates and sizes.  Each group names its cases; every table is
# compared row by row, after the copy and after the stream.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('cases');
my $db = 'postgres';
my @checks;    # what the file itself must say: [case, query, value]

# Everything a role or a database can set that changes texts, cuts statements
# off or makes them read only (VAL-12, VAL-13, COPY-06).
$node->safe_psql($db, <<'END');
ALTER DATABASE postgres SET timezone = 'Asia/Kolkata';
ALTER DATABASE postgres SET statement_timeout = '700ms';
ALTER DATABASE postgres SET lock_timeout = '300ms';
ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '200ms';
ALTER DATABASE postgres SET idle_session_timeout = '300ms';
ALTER DATABASE postgres SET default_transaction_read_only = on;
ALTER DATABASE postgres SET default_transaction_isolation = 'serializable';
ALTER DATABASE postgres SET search_path = 'hostile, pg_catalog';
ALTER ROLE postgres SET datestyle = 'SQL, DMY';
ALTER ROLE postgres SET intervalstyle = 'iso_8601';
ALTER ROLE postgres SET extra_float_digits = -3;
ALTER ROLE postgres SET bytea_output = 'escape';
ALTER ROLE postgres SET xmloption = 'document';
END
my $plain = 'SET default_transaction_read_only = off; SET transaction_read_only = off; SET statement_timeout = 0;'
  . "SET search_path = public; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = 0; SET idle_session_timeout = 0;\n";

sub run_sql
{
	my ($sql) = @_;

	# the settings are per session: a transaction of its own per statement
	return $node->safe_psql($db, $plain . "SET default_transaction_isolation = 'read committed';\n" . $sql);
}

my $big = "(SELECT string_agg(md5(i::text || %s), '') FROM generate_series(1, 4000) i)";

sub big { return sprintf $big, "'$_[0]'"; }

run_sql(<<'END');
CREATE EXTENSION sluice;
CREATE EXTENSION hstore; CREATE EXTENSION ltree; CREATE EXTENSION citext;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'ha''ppy');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN d_id AS int CHECK (VALUE > 0);
-- TOAST
CREATE TABLE toast_full (id int PRIMARY KEY, j json, n int);
ALTER TABLE toast_full ALTER j SET STORAGE EXTERNAL, REPLICA IDENTITY FULL;
CREATE TABLE toast (id int PRIMARY KEY, n int, v text);
ALTER TABLE toast ALTER v SET STORAGE EXTERNAL;
CREATE TABLE toast_only (id int PRIMARY KEY, v text);
ALTER TABLE toast_only ALTER v SET STORAGE EXTERNAL;
CREATE TABLE toast_key (k text PRIMARY KEY, v text, n int);
ALTER TABLE toast_key ALTER v SET STORAGE EXTERNAL;
-- keys
CREATE TABLE k_enum (kind mood, id int, n int, PRIMARY KEY (kind, id));
CREATE TABLE k_domain (id d_id PRIMARY KEY, n int);
CREATE TABLE k_pair (p pair PRIMARY KEY, n int);
CREATE TABLE k_inet (i inet PRIMARY KEY, n int);
CREATE TABLE k_citext (c citext PRIMARY KEY, n int);
CREATE TABLE k_mac (m macaddr PRIMARY KEY, n int);
CREATE TABLE k_numeric (n numeric PRIMARY KEY, v int);
CREATE TABLE k_float (f float8 PRIMARY KEY, v int);
CREATE TABLE k_date (d date PRIMARY KEY, v int);
CREATE TABLE k_ts (d timestamptz PRIMARY KEY, v int);
CREATE TABLE k_bool (b bool PRIMARY KEY, v int);
CREATE TABLE k_bytea (b bytea PRIMARY KEY, v int);
CREATE TABLE k_int8 (i int8 PRIMARY KEY, j jsonb, v int);
CREATE TABLE k_array (a int[] PRIMARY KEY, v int);
CREATE TABLE k_jsonb (j jsonb PRIMARY KEY, v int);
CREATE TABLE k_bpchar (c char(5) PRIMARY KEY, v int);
CREATE TABLE k_all (a int, b text, c uuid, PRIMARY KEY (c, a, b));
CREATE TABLE k_chain (id int PRIMARY KEY, n int);
CREATE TABLE k_chain2 (a int, b text, n int, PRIMARY KEY (b, a));
CREATE TABLE k_late (id int PRIMARY KEY, pos int UNIQUE DEFERRABLE INITIALLY DEFERRED, email text UNIQUE);
CREATE TABLE k_latepk (id int PRIMARY KEY DEFERRABLE, n int);
ALTER TABLE k_latepk REPLICA IDENTITY FULL;
CREATE TABLE k_ab (a int NOT NULL, b int NOT NULL, n int, UNIQUE (a, b));
ALTER TABLE k_ab REPLICA IDENTITY USING INDEX k_ab_a_b_key;
CREATE TABLE k_nullfull (a int, b text, f float8, j json);
ALTER TABLE k_nullfull REPLICA IDENTITY FULL;
-- values
CREATE TABLE v_listed (id int PRIMARY KEY, p polygon, t tsvector, x xml, i inet, c cidr, m macaddr8, r int4range, mr int4multirange,
	h hstore, l ltree, lsn pg_lsn, ci citext, iv interval, q tsquery, pt point, mo money, bi bit(3), vb varbit(5), n name, ch "char",
	tz timetz, ts timestamptz, cl regclass, ar interval[], far float4[], tza timestamptz[], ba bytea[]);
CREATE TABLE v_json (id int PRIMARY KEY, j json, b jsonb);
CREATE TABLE v_arrays (id int PRIMARY KEY, a int[], t text[], u uuid[], m mood[], p pair[], d d_id[]);
CREATE TABLE v_text (id int PRIMARY KEY, t text, vc varchar(30), c char(10), n name, b bytea);
-- truncates, generated columns, others
CREATE TABLE tr_parent (id int PRIMARY KEY);
CREATE TABLE tr_child (id int PRIMARY KEY, p int REFERENCES tr_parent);
CREATE TABLE tr_full (a int, b int);
ALTER TABLE tr_full REPLICA IDENTITY FULL;
CREATE TABLE g_identity (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int);
CREATE TABLE empty (id int PRIMARY KEY, v text);
CREATE TABLE nocolumns ();
ALTER TABLE nocolumns REPLICA IDENTITY FULL;
CREATE TABLE keyonly (id int PRIMARY KEY);
CREATE TABLE secret (id int PRIMARY KEY, who text);
ALTER TABLE secret ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE TABLE sizes (id int, part int, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW mv AS SELECT g AS i FROM generate_series(1, 10) g;
CREATE UNIQUE INDEX ON mv (i);
END

# ID-01, ID-03, ID-07, ID-09: any name
my @names = ('my table', '1st', 'naïve-Ω', 'a.b', 'q"x', "it's", 'таблица', '表' x 21, 'é' x 31, 'x' x 63, 'X' x 63, ' ', "line\nbreak", 'sqlite_sequence',
	'_zero.replicationState', '_sluice.names', '_0_version', 'rowid', '%s%n', '--', ';', '[a]', '`b`', '😀', 'null', 'ROWID', '~', 'a~1', "tab\there", '$1', '?1', ':a', '@a');
my $columns = join ', ', map { (my $n = $_) =~ s/"/""/g; "\"$n\" text" } @names;
my $create = '';
foreach my $name (@names)
{
	(my $n = $name) =~ s/"/""/g;
	$create .= "CREATE TABLE \"$n\" (\"id $n\" int PRIMARY KEY, \"oid\" int, \"_rowid_\" int, \"RowId\" int, $columns);\n" if length("id $n") < 20;
	$create .= "CREATE TABLE \"$n\" (id int PRIMARY KEY, \"oid\" int, \"_rowid_\" int, \"RowId\" int, $columns);\n" if length("id $n") >= 20;
}
run_sql($create);
# ID-08
run_sql('CREATE TABLE wide (id int PRIMARY KEY, ' . join(', ', map { "c$_ int" } 1 .. 1599) . ')');

my $tables = run_sql(q{SELECT string_agg(format('%I', relname), ', ') FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace});

sub rows
{
	my ($i) = @_;    # 0: before the start, 1: in the stream
	my $o = $i * 100;
	my $insert = join '', map {
		(my $n = $_) =~ s/"/""/g;
		"INSERT INTO \"$n\" VALUES ($o + 1, 1, 2, 3, " . join(', ', map { "'$_'" } 1 .. @names) . ");\n"
		  . "INSERT INTO \"$n\" VALUES ($o + 2), ($o + 3);\n"
	} @names;
	my $year = 2000 + $i;

	return $insert . <<"END";
INSERT INTO toast_full VALUES ($o + 1, ('"' || @{[ big(1) ]} || '"')::json, 1), ($o + 2, NULL, 2);
INSERT INTO toast VALUES ($o + 1, 1, @{[ big(2) ]}), ($o + 2, 2, NULL), ($o + 3, 3, 'small'), ($o + 4, 4, @{[ big(3) ]});
INSERT INTO toast_only VALUES ($o + 1, @{[ big(4) ]});
INSERT INTO toast_key VALUES ('k$o' || left(@{[ big(5) ]}, 2000), @{[ big(6) ]}, 1);
INSERT INTO k_enum SELECT m, $o + i, i FROM unnest(enum_range(NULL::mood)) m, generate_series(1, 5) i;
INSERT INTO k_domain VALUES ($o + 1, 1), ($o + 2, 2);
INSERT INTO k_pair VALUES (($o, 'x, "y"'), 1), (($o, NULL), 2), ((NULL, '$o'), 3);
INSERT INTO k_inet VALUES ('10.0.$i.1', 1), ('10.0.$i.0/24', 2), ('::$i', 3);
INSERT INTO k_citext VALUES ('Abc$i', 1), ('straße$i', 2), ('İ$i', 3);
INSERT INTO k_mac VALUES ('08:00:2b:01:02:0$i', 1);
INSERT INTO k_numeric VALUES ($i.20, 1), ('1e${i}00'::numeric, 2), (-0.000000000000000000${i}1, 3), (12345678901234567890.$i, 4), (0.1 + 10 * $i, 5);
INSERT INTO k_float VALUES (0.1 + $i, 1), (1e308 / ($i + 1), 2), (5e-324 * ($i + 1), 3), (-216237.00000035969 + $i, 4);
INSERT INTO k_date VALUES ('$year-01-01', 1), ('$year-01-01 BC', 2), ('4713-01-01 BC'::date + 10 * $i, 3);
INSERT INTO k_ts VALUES ('$year-01-01 00:00:00.123456+00', 1), ('1901-01-01'::timestamptz + '$i us', 2), ('294276-12-30'::timestamptz + '$i us', 3);
INSERT INTO k_bytea VALUES ('', 1), ('\\x0a0$i', 2), ('\\x00', 3) ON CONFLICT DO NOTHING;
INSERT INTO k_int8 VALUES (9007199254740993 + $i, '{"n": 9007199254740993}', 1), (-9223372036854775808 + $i, '[12345678901234567890123]', 2), (9223372036854775807 - $i, 'null', 3);
INSERT INTO k_array VALUES ('{$i,NULL}', 1), ('[0:1]={$i,2}', 2), ('{{$i}}', 4);
INSERT INTO k_jsonb VALUES ('{"b": 1, "a": $i}', 1), ('$i', 2), ('"$i"', 3);
INSERT INTO k_bpchar VALUES ('a$i', 1), ('b$i  ', 2);
INSERT INTO k_all SELECT i, 'b' || i, md5(($o + i)::text)::uuid FROM generate_series(1, 20) i;
INSERT INTO k_ab SELECT $o + i, i, i FROM generate_series(1, 20) i;
INSERT INTO k_nullfull VALUES (NULL, NULL, NULL, NULL), (NULL, NULL, NULL, NULL), ($o, '', 'NaN', '{"a":1 }'), ($o, '', '-0', '{"a":1 }');
INSERT INTO v_listed VALUES ($o + 1, '((0,0),(1,1),(2,0.1))', 'a:1 b:2', '<a>x</a>', '::1', '10/8', '08:00:2b:01:02:03:04:05', '[1,5)', '{[1,2),[5,)}', 'a=>1,b=>NULL', 'a.b.c', '1/2', 'CI',
	'1 year 2 mons -3 days 04:05:06.789', 'a & b', '(0.1,2e300)', '92233720368547758.07', '101', '', 'it''s', 'x', '23:59:59.123456+05:30', '2024-01-01 10:11:12.123456+00', 'pg_class',
	'{1 day,NULL}', '{0.1,NaN,-Infinity}', '{2024-01-01 00:00:00.000001+00,infinity}', ARRAY['\\x00'::bytea, NULL]);
INSERT INTO v_listed (id, mo, tz, ts) VALUES ($o + 2, NULL, '24:00', 'infinity'), ($o + 3, '-92233720368547758.08', '00:00-15:59', '-infinity');
INSERT INTO v_json VALUES ($o + 1, '{"a":"\\u0000"}', NULL), ($o + 2, 'null', 'null'), ($o + 3, NULL, NULL), ($o + 4, '{"n": 123456789012345678901234567890.5, "n": 1}', '{"n": 123456789012345678901234567890.5}'),
	($o + 5, ' [ 1e400, "\\ud83d\\ude00" ] ', '[1e400, "\\ud83d\\ude00"]');
INSERT INTO v_arrays VALUES ($o + 1, '[0:1]={1,2}', '{NULL,"NULL",""}', ARRAY['00000000-0000-0000-0000-000000000000'::uuid, NULL], '{sad,NULL,"ha''ppy"}', ARRAY[(1,'x')::pair, NULL, (NULL,NULL)::pair], '{1,2}'),
	($o + 2, '{{1,2},{3,4}}', '{"a\\"b","c\\\\d","e\nf"}', '{}', '{}', NULL, NULL);
INSERT INTO v_text VALUES ($o + 1, E'a\\nb\\r\\n\\\\', 'It''s', 'c', 'ends with ''', (SELECT decode(string_agg(lpad(to_hex(b), 2, '0'), ''), 'hex') FROM generate_series(0, 255) b)), ($o + 2, '', '', '', '', ''), ($o + 3, E'\\x01\\x7f', '"', ' ', '\\N', '\\x00');
INSERT INTO tr_parent SELECT $o + i FROM generate_series(1, 10) i; INSERT INTO tr_child SELECT $o + i, $o + i FROM generate_series(1, 10) i;
INSERT INTO tr_full VALUES ($o, 1), ($o, 1), (NULL, 2);
INSERT INTO g_identity (n) VALUES (1), (2);
INSERT INTO nocolumns DEFAULT VALUES; INSERT INTO nocolumns DEFAULT VALUES;
INSERT INTO keyonly SELECT $o + i FROM generate_series(1, 10) i;
INSERT INTO secret VALUES ($o + 1, 'nobody');
INSERT INTO wide (id, c1, c1599) VALUES ($o + 1, 1, 2), ($o + 2, NULL, NULL);
END
}

run_sql(rows(0) . <<'END');
INSERT INTO k_numeric VALUES ('NaN', 1), ('Infinity', 2), ('-Infinity', 3), (0, 4);
INSERT INTO k_float VALUES ('NaN', 1), ('Infinity', 2), ('-Infinity', 3), (0, 4);
INSERT INTO k_date VALUES ('infinity', 1), ('-infinity', 2);
INSERT INTO k_ts VALUES ('infinity', 1), ('-infinity', 2);
INSERT INTO k_bool VALUES (true, 1), (false, 2);
INSERT INTO k_chain SELECT i, i FROM generate_series(1000, 1, -1) i;
INSERT INTO k_chain2 SELECT i, 'x', i FROM generate_series(1000, 1, -1) i;
INSERT INTO k_late VALUES (1, 1, 'a'), (2, 2, NULL), (3, 3, 'c');
INSERT INTO k_latepk SELECT i, i FROM generate_series(1, 100) i;
END
run_sql("CREATE PUBLICATION p FOR TABLE $tables WITH (publish_via_partition_root = true)");
run_sql("CALL sluice.create_shard('demo', publications => '{p}', keyless => 'allow')");
my $agent = start_agent(node => $node, name => 'cases');
compare($node, $agent->replica, what => 'the first copy');

run_sql(rows(1));
compare($node, $agent->replica, what => 'the same rows in the stream');

run_sql(<<"END");
UPDATE toast_full SET n = n + 1;
UPDATE toast SET n = n + 1; UPDATE toast SET id = id + 1000 WHERE id = 1;
BEGIN; INSERT INTO toast VALUES (50, 1, @{[ big(7) ]}); UPDATE toast SET n = 2 WHERE id = 50; COMMIT;
BEGIN; INSERT INTO toast VALUES (51, 1, @{[ big(8) ]}); UPDATE toast SET id = 52 WHERE id = 51; UPDATE toast SET n = 9 WHERE id = 52; UPDATE toast SET id = 51 WHERE id = 52; COMMIT;
BEGIN; DELETE FROM toast WHERE id = 4; INSERT INTO toast VALUES (4, 5, 'x'); UPDATE toast SET n = 6 WHERE id = 4; COMMIT;
UPDATE toast_only SET v = v; UPDATE toast_only SET id = id + 7; UPDATE toast_key SET n = 2; UPDATE toast_key SET k = 'short' || k;
UPDATE k_enum SET n = n + 1; UPDATE k_enum SET kind = 'ok', id = id + 1000 WHERE kind = 'ha''ppy'; DELETE FROM k_enum WHERE kind = 'sad' AND id < 3;
UPDATE k_domain SET id = id + 500; DELETE FROM k_domain WHERE n = 2;
UPDATE k_pair SET n = 9; DELETE FROM k_pair WHERE n IS NOT NULL AND (p).b IS NULL;
UPDATE k_inet SET n = 9; DELETE FROM k_inet WHERE i = '10.0.0.0/24';
UPDATE k_citext SET c = upper(c) WHERE n = 1; DELETE FROM k_citext WHERE n = 3;
UPDATE k_mac SET n = 9; DELETE FROM k_mac WHERE m = '08:00:2b:01:02:00';
UPDATE k_numeric SET v = v + 10; UPDATE k_numeric SET n = n * 1.000 WHERE n < 100 AND n > 0; DELETE FROM k_numeric WHERE n IN ('NaN', '-Infinity') OR n = 0.1;
UPDATE k_float SET v = v + 10; UPDATE k_float SET f = '-0' WHERE f = 0; DELETE FROM k_float WHERE f IN ('NaN', '-Infinity', 0.1);
UPDATE k_float SET f = 0 WHERE f = 0; UPDATE k_float SET v = 77 WHERE f = 0;
UPDATE k_date SET v = v + 10; DELETE FROM k_date WHERE d = 'infinity'; UPDATE k_date SET d = d + 1 WHERE isfinite(d);
UPDATE k_ts SET v = v + 10; DELETE FROM k_ts WHERE d = '-infinity'; UPDATE k_ts SET d = d - interval '1 us' WHERE isfinite(d);
UPDATE k_bool SET v = 9; DELETE FROM k_bool WHERE b;
UPDATE k_bytea SET v = 9; DELETE FROM k_bytea WHERE b = ''; UPDATE k_int8 SET v = 9; DELETE FROM k_int8 WHERE i < 0; UPDATE k_int8 SET i = i - 1000;
UPDATE k_array SET v = 9; DELETE FROM k_array WHERE a = '{{0}}'; UPDATE k_array SET a = a || 5 WHERE a = '{1,NULL}';
UPDATE k_jsonb SET v = 9; DELETE FROM k_jsonb WHERE j = '"0"'; UPDATE k_jsonb SET j = '{"a": 1, "b": 2}' WHERE j = '{"a": 1, "b": 1}';
UPDATE k_bpchar SET v = 9; DELETE FROM k_bpchar WHERE c = 'a0'; UPDATE k_all SET b = b || a; DELETE FROM k_all WHERE a = 7;
UPDATE k_chain SET id = id + 1; UPDATE k_chain SET id = -id; UPDATE k_chain SET id = 1001 - n; UPDATE k_chain2 SET a = a + 1; UPDATE k_chain2 SET a = n - 1001;
BEGIN; UPDATE k_late SET pos = 2 WHERE id = 1; UPDATE k_late SET pos = 1 WHERE id = 2; COMMIT;
BEGIN; UPDATE k_late SET email = NULL WHERE id = 1; UPDATE k_late SET email = 'a' WHERE id = 2; COMMIT;
BEGIN; DELETE FROM k_late WHERE id = 2; INSERT INTO k_late VALUES (4, 1, 'a'); UPDATE k_late SET id = 2 WHERE id = 4; COMMIT;
UPDATE k_latepk SET id = id + 1; DELETE FROM k_latepk WHERE id = 50;
UPDATE k_ab SET a = a + 1; UPDATE k_ab SET n = -n, b = b + 1 WHERE n % 2 = 0; DELETE FROM k_ab WHERE n = 3;
DELETE FROM k_nullfull WHERE ctid = (SELECT min(ctid) FROM k_nullfull WHERE a IS NULL); UPDATE k_nullfull SET b = 'z' WHERE f = 'NaN'; DELETE FROM k_nullfull WHERE f = 0 AND a = 0;
UPDATE v_listed SET ci = 'x'; UPDATE v_json SET b = '1' WHERE id = 2; UPDATE v_arrays SET a = NULL WHERE id = 1; UPDATE v_text SET n = 'n';
UPDATE g_identity SET n = 5; UPDATE secret SET who = 'x'; UPDATE wide SET c800 = id; DELETE FROM nocolumns WHERE ctid = '(0,1)'; UPDATE keyonly SET id = -id;
REFRESH MATERIALIZED VIEW CONCURRENTLY mv;
END
run_sql(join '', map { (my $n = $_) =~ s/"/""/g; qq{UPDATE "$n" SET "RowId" = 7, "😀" = 'u'; DELETE FROM "$n" WHERE oid IS NULL AND "RowId" = 7 AND "null" IS NULL;\n} } @names);
compare($node, $agent->replica, what => 'updates, deletes, keys that change');

# TRUNC-02 to TRUNC-04
run_sql(<<'END');
BEGIN; INSERT INTO tr_child VALUES (50, 1); TRUNCATE tr_parent CASCADE; INSERT INTO tr_parent VALUES (1); INSERT INTO tr_child VALUES (50, 1); COMMIT;
TRUNCATE tr_full; INSERT INTO tr_full VALUES (1, 1); TRUNCATE keyonly; INSERT INTO keyonly VALUES (1);
BEGIN; SAVEPOINT a; TRUNCATE g_identity; ROLLBACK TO a; INSERT INTO g_identity (n) VALUES (3); COMMIT;
TRUNCATE toast_only; INSERT INTO toast_only VALUES (1, 'x');
END
compare($node, $agent->replica, what => 'truncates');

# POS-12: transactions of every size; KEY-14
run_sql(q{DO $$ BEGIN FOR n IN 1..300 LOOP INSERT INTO sizes SELECT n * 1000 + i, n FROM generate_series(1, n) i; COMMIT; END LOOP; END $$;
UPDATE sizes SET part = part});
compare($node, $agent->replica, what => 'POS-12: every size of a transaction');
# subtransactions, some of which are rolled back
run_sql(q{DO $$ BEGIN FOR n IN 1..20000 LOOP BEGIN INSERT INTO keyonly VALUES (n + 10); IF n % 3 = 0 THEN RAISE 'no'; END IF; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$});
compare($node, $agent->replica, what => '20,000 subtransactions');
is(run_sql("SELECT string_agg(DISTINCT state, ',') FROM sluice.shard_status"), 'streaming', 'the shard streams');
ok($agent->running, 'the agent runs');
is(replica_query($agent->replica, 'PRAGMA integrity_check'), 'ok', 'the file is whole');

done_testing();
