# Schema changes that bring no rows of their own: followed in their place in
# the stream, with rows before and after them right. Those that need rows which
# the WAL does not have stop the shard, and nothing of them is seen.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('ddl');

sub sql { return $node->safe_psql('postgres', shift); }

sql(<<'END');
CREATE TABLE t (id int PRIMARY KEY, v text);
INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 1000) g;
CREATE TABLE other (id int PRIMARY KEY, ref int REFERENCES t, note varchar(10));
INSERT INTO other SELECT g, g, 'n' || g FROM generate_series(1, 100) g;
END
create_shard($node, 's');
my $agent = start_agent(node => $node, shard => 's', name => 'ddl');
my $file = $agent->{replica};
wait_for(sub { -e $file }, 'the first copy');

# Each is one step: its SQL, and what a query of the file gives afterwards.
my @steps = (
	[ 'a constant default shows in old rows',
		'ALTER TABLE t ADD COLUMN c int DEFAULT 7',
		'SELECT count(*), sum(c) FROM t', '1000|7000' ],
	[ 'default 1, then SET DEFAULT 2 in one transaction: old rows have 1',
		"BEGIN; ALTER TABLE t ADD COLUMN d text DEFAULT 'one'; ALTER TABLE t ALTER d SET DEFAULT 'two'; INSERT INTO t (id) VALUES (2001); COMMIT",
		"SELECT d, count(*) FROM t GROUP BY 1 ORDER BY 1", "one|1000\ntwo|1" ],
	[ 'a column without a value',
		'ALTER TABLE t ADD COLUMN e timestamptz, ADD COLUMN f numeric(10,2)',
		'SELECT count(*), count(e), count(f) FROM t', '1001|0|0' ],
	[ 'rows between changes of one transaction',
		"BEGIN; INSERT INTO t (id, v) VALUES (2002, 'before'); ALTER TABLE t RENAME v TO w; INSERT INTO t (id, w) VALUES (2003, 'between');
		 ALTER TABLE t ADD COLUMN g bool DEFAULT true; UPDATE t SET g = false, w = 'after' WHERE id = 2002; ALTER TABLE t DROP COLUMN e; INSERT INTO t (id, w, g) VALUES (2004, 'last', NULL); COMMIT",
		'SELECT w, g FROM t WHERE id > 2001 ORDER BY id', "after|0\nbetween|1\nlast|" ],
	[ 'a savepoint that is rolled back leaves nothing',
		'BEGIN; ALTER TABLE t ADD COLUMN kept int; SAVEPOINT a; ALTER TABLE t DROP COLUMN w; ROLLBACK TO a; COMMIT',
		"SELECT count(*) FROM pragma_table_info('t') WHERE name IN ('kept', 'w')", '2' ],
	[ 'several changes in one statement',
		"UPDATE t SET w = '' WHERE w IS NULL; ALTER TABLE t DROP COLUMN kept, ADD COLUMN h int DEFAULT 3, ALTER c SET DEFAULT 8, ALTER w SET NOT NULL",
		'SELECT sum(h) FROM t', 3 * 1004 ],
	[ 'columns that change names with each other',
		'BEGIN; ALTER TABLE t RENAME c TO x; ALTER TABLE t RENAME h TO c; ALTER TABLE t RENAME x TO h; COMMIT',
		'SELECT sum(c), sum(h) FROM t', 3 * 1004 . '|' . 7 * 1004 ],
	[ 'dropped and added again under the same name',
		"BEGIN; ALTER TABLE t DROP COLUMN c; ALTER TABLE t ADD COLUMN c text DEFAULT 'it''s'; COMMIT",
		"SELECT count(*) FROM t WHERE c = 'it''s'", '1004' ],
	[ 'a longer varchar is no new value',
		'ALTER TABLE other ALTER note TYPE varchar(20)',
		"SELECT count(*) FROM other WHERE note LIKE 'n%'", '100' ],
	[ 'a new table',
		"CREATE TABLE n (a int, b text, PRIMARY KEY (a, b)); INSERT INTO n VALUES (1, 'x'), (2, 'y')",
		'SELECT group_concat(b) FROM n', 'x,y' ],
	[ 'a table made, filled, changed and filled in one transaction',
		"BEGIN; CREATE TABLE m (id bigint PRIMARY KEY, f float8 DEFAULT 2.5); INSERT INTO m VALUES (1, 1.5); CREATE INDEX ON m (f);
		 ALTER TABLE m ADD COLUMN z timestamptz DEFAULT '2020-01-01 00:00:00+00'; INSERT INTO m VALUES (2, 0, NULL); COMMIT",
		'SELECT id, z FROM m ORDER BY id', "1|1577836800000\n2|" ],
	[ 'CREATE TABLE AS', "CREATE TABLE ctas AS SELECT 1 AS one, 'x'::text AS two UNION ALL SELECT 2, 'y'",
		'SELECT one, two FROM ctas ORDER BY 1', "1|x\n2|y" ],
	[ 'renamed there and back', 'BEGIN; ALTER TABLE n RENAME TO nn; ALTER TABLE nn RENAME TO n; COMMIT',
		'SELECT count(*) FROM n', '2' ],
	[ 'two tables that change names',
		'BEGIN; ALTER TABLE n RENAME TO tmp; ALTER TABLE m RENAME TO n; ALTER TABLE tmp RENAME TO m; COMMIT',
		"SELECT (SELECT count(*) FROM m WHERE b = 'x'), (SELECT count(*) FROM n WHERE f = 1.5)", '1|1' ],
	[ 'the place of a table taken in the transaction that moves it away',
		"BEGIN; ALTER TABLE m RENAME TO m_old; CREATE TABLE m (id int PRIMARY KEY); INSERT INTO m VALUES (77); COMMIT",
		'SELECT (SELECT id FROM m), (SELECT count(*) FROM m_old)', '77|2' ],
	[ 'a schema renamed', 'CREATE SCHEMA a; ALTER TABLE ctas SET SCHEMA a; SELECT 1',
		"SELECT count(*) FROM sqlite_master WHERE name = 'ctas'", '0' ],
	[ 'an index, and its end', 'CREATE INDEX tw ON t (w DESC); CREATE UNIQUE INDEX tw2 ON t (w, id); DROP INDEX tw2',
		"SELECT group_concat(name) FROM sqlite_master WHERE type = 'index' AND tbl_name = 't'", 'tw' ],
	[ 'an index made concurrently', 'CREATE INDEX CONCURRENTLY tc ON t (d)',
		"SELECT count(*) FROM sqlite_master WHERE name = 'tc'", '1' ],
	[ 'another primary key under the same name',
		"UPDATE t SET w = 'w' || id; ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE; ALTER TABLE t ADD CONSTRAINT t_pkey PRIMARY KEY (w); UPDATE t SET g = NULL WHERE w = 'w5'; UPDATE t SET id = 1 WHERE w = 'w6'; DELETE FROM t WHERE w = 'w7'",
		"SELECT count(*) FROM t WHERE id = 1 OR g IS NULL", '4' ],
	[ 'another replica identity', "ALTER TABLE other REPLICA IDENTITY FULL; UPDATE other SET note = 'full' WHERE id = 3; DELETE FROM other WHERE id = 4",
		"SELECT count(*), sum(note = 'full') FROM other", '99|1' ],
	[ 'a table dropped with what depends on it', 'DROP TABLE t CASCADE',
		"SELECT count(*) FROM sqlite_master WHERE name = 't'", '0' ],
	[ 'names that collide get their places in turn',
		'CREATE TABLE "T1" (id int PRIMARY KEY); CREATE TABLE t1 (id int PRIMARY KEY, "A" int, a int); INSERT INTO t1 VALUES (1, 2, 3); DROP TABLE "T1"; ALTER TABLE t1 DROP COLUMN "A"',
		'SELECT a FROM t1', '3' ],
	[ 'what has nothing to do with it',
		'CREATE TEMP TABLE x (i int); CREATE UNLOGGED TABLE u (i int); CREATE VIEW vi AS SELECT 1; VACUUM FULL other; ANALYZE; CREATE TABLE IF NOT EXISTS n (id int)',
		'SELECT count(*) FROM other', '99' ],
);

foreach my $step (@steps)
{
	my ($what, $command, $query, $expected) = @$step;

	# safe_psql would put several commands into one transaction
	foreach my $part ($command =~ /^BEGIN/ ? ($command) : split /;\s*/, $command)
	{
		$node->safe_psql('postgres', $part);
	}
	my $got = '';
	my $ok = wait_for(sub { $got = eval { replica_query($file, $query) } // 'error'; $got eq $expected }, $what, 20);
	is($got, $expected, $what);
	last unless $ok;
}
compare($node, $file, shard => 's', what => 'followed: every row and column equals');
is(replica_query($file, 'PRAGMA integrity_check'), 'ok', 'and the file is sound');
is(sql('SELECT state FROM sluice.shard_status'), 'streaming', 'and the shard goes on');

# A replica that followed has what a fresh one has.
my $fresh = start_agent(node => $node, shard => 's', name => 'fresh');
wait_for(sub { -e $fresh->{replica} }, 'a fresh copy');
my $columns = q{SELECT m.name, c.name, c.type FROM sqlite_master m, pragma_table_info(m.name) c
	WHERE m.type = 'table' AND m.name NOT LIKE '\_%' ESCAPE '\' ORDER BY 1, 2};
my $meta = q{SELECT table_name, column_name, upstream_type, is_not_null, is_enum, is_array, character_max_length
	FROM "_zero.column_metadata" ORDER BY 1, 2};
my $indexes = q{SELECT name, tbl_name, replace(sql, ' IF NOT EXISTS', '') FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite%' ORDER BY 1};
is(replica_query($file, $columns), replica_query($fresh->{replica}, $columns), 'the columns of a fresh copy');
is(replica_query($file, $meta), replica_query($fresh->{replica}, $meta), 'its metadata');
is(replica_query($file, $indexes), replica_query($fresh->{replica}, $indexes), 'its indexes');

# The schema is that of the position from which a worker starts again.
for my $round (1 .. 3)
{
	sql("ALTER TABLE other ADD COLUMN r$round int DEFAULT $round");
	sql("SELECT pg_terminate_backend(decoder_pid) FROM sluice.shard_status");
	sql("INSERT INTO other (id, r$round) VALUES (1000 + $round, 50)");
	sql("SELECT pg_terminate_backend(storer_pid) FROM sluice.shard_status") if $round == 2;
}
$node->restart('immediate');
sql("ALTER TABLE other DROP COLUMN r1; INSERT INTO other (id) VALUES (2000)");
compare($node, $file, shard => 's', what => 'workers and server end between changes: equal');

# What cannot be followed ends the lineage before anything of it is seen; here
# the shard is not to reset itself (080, 081).
sql(q{SELECT sluice.set_option('s', 'auto_reset', 'off')});
my $before = replica_query($file, 'SELECT count(*) FROM other');
sql("INSERT INTO other (id) VALUES (3000)");
wait_for(sub { replica_query($file, 'SELECT count(*) FROM other') == $before + 1 }, 'the row before');
sql("BEGIN; INSERT INTO other (id) VALUES (3001); ALTER TABLE other ALTER note TYPE text USING upper(note); INSERT INTO other (id) VALUES (3002); COMMIT");
wait_for_sql($node, 'postgres', q{SELECT state = 'stopped' AND message LIKE '%column note may have been given new values%' FROM sluice.shard_status});
like(sql('SELECT message FROM sluice.shard_status'), qr/CALL sluice\.reset\('s'\)/, 'the message says what to do');
is(replica_query($file, 'SELECT count(*) FROM other'), $before + 1, 'no row of the transaction is seen');
$agent->stop;
$fresh->stop;

done_testing();
