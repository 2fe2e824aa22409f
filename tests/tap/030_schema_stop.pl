# A change of the published schema that needs rows which the WAL does not have
# stops the shard, before the transaction that made it is in the change log,
# and says what changed; changes that do not matter to a replica stop nothing.
# Those that are followed: 070_ddl.pl.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('schema', conf => "sluice.max_shards = 2\nautovacuum = off");
$node->safe_psql('postgres', 'CREATE EXTENSION sluice');

sub setup
{
	$node->psql('postgres', $_)
	  foreach ("CALL sluice.drop_shard('d')",
		'DROP SCHEMA IF EXISTS other, public CASCADE; CREATE SCHEMA public',
		'DROP PUBLICATION IF EXISTS other');
	$node->safe_psql('postgres', <<'END');
CREATE TYPE mood AS ENUM ('a', 'b');
CREATE TYPE comp AS (x int, y mood);
CREATE TABLE t (id int PRIMARY KEY, a text, m mood, c comp, n numeric(10,2));
CREATE INDEX t_a ON t (a);
CREATE TABLE tp (id int PRIMARY KEY, k int, v text) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF tp FOR VALUES FROM (0) TO (100);
INSERT INTO t VALUES (1, 'x', 'a', ROW(1, 'a'), 1);
INSERT INTO tp VALUES (1, 1, 'x');
END
	$node->safe_psql('postgres', "CALL sluice.create_shard('d')");
	$node->safe_psql('postgres', "SELECT sluice.set_option('d', 'auto_reset', 'off')");
	$node->safe_psql('postgres', "INSERT INTO t VALUES (2, 'y', 'b', NULL, 2)");
	return;
}

my $status = q{SELECT state || '|' || coalesce(message, '') || '|' || coalesce(sqlstate, '')
	FROM sluice.shard_status WHERE state = 'stopped'
	OR (state = 'streaming' AND confirmed_lsn >= pg_current_wal_flush_lsn())};

# statements: run one by one
sub run_and_wait
{
	my ($final, @statements) = @_;
	my $is = '';

	setup();
	$node->safe_psql('postgres', $_) foreach @statements;
	wait_for(sub { $is = $node->safe_psql('postgres', $status); $is =~ /^$final/ }, "$final after $statements[0]")
	  or diag("it is: $is");
	return $is;
}

sub stops
{
	my ($pattern, @statements) = @_;
	my $is = run_and_wait('stopped', @statements);

	like($is, qr/^stopped\|.*$pattern.*CALL sluice\.reset\('d'\).*\|SL006$/, "stops: $statements[-1]");
	# what came before is stored; nothing of what the change came with
	wait_for_sql($node, 'postgres', q{SELECT count(*) = 1 FROM sluice.change_log('d') WHERE change->>'tag' = 'commit'});
	is($node->safe_psql('postgres', q{SELECT string_agg(change->'new'->>'id', ',') FROM sluice.change_log('d') WHERE change->>'tag' = 'insert'}),
		'2', 'and the log ends before it');
	return;
}

sub goes_on
{
	my (@statements) = @_;

	like(run_and_wait('streaming', @statements), qr/^streaming\|\|/, "goes on: $statements[-1]");
	return;
}

# ---- tables and columns ----
stops('column n may have been given new values', 'ALTER TABLE t ALTER n TYPE text');
stops('table public.t: ', 'BEGIN; ALTER TABLE t ALTER n TYPE text; INSERT INTO t (id) VALUES (5); COMMIT');
goes_on(q{ALTER TABLE t ALTER a SET DEFAULT 'q'});

# ---- schemas, publications, types ----
stops('publication "sluice_d" does not exist', 'DROP PUBLICATION sluice_d');
stops('table public.p1 was created or is published now', 'ALTER PUBLICATION sluice_d SET (publish_via_partition_root = false)');
# its type is written anew, as if it had been made: its old rows are missing all the same
stops('table public.q was created or is published now', 'CREATE SCHEMA other; CREATE TABLE other.q (id int PRIMARY KEY)',
	'INSERT INTO other.q VALUES (1)', 'ALTER TABLE other.q SET SCHEMA public');
stops('column z was added, and its values in old rows are not in the WAL', 'ALTER TABLE t ADD z float8 DEFAULT random()');
stops('a label of an enum type was renamed', q{ALTER TYPE mood RENAME VALUE 'a' TO 'aa'});
stops('composite type comp was changed', 'ALTER TYPE comp ADD ATTRIBUTE z int');
goes_on(q{ALTER TYPE mood ADD VALUE 'c'});
goes_on('CREATE PUBLICATION other FOR TABLE t');
goes_on('CREATE SCHEMA other', 'CREATE TABLE other.q (id int)', 'INSERT INTO other.q VALUES (1)', 'DROP TABLE other.q');

# ---- what looks like a change of catalogs ----
goes_on('CREATE TEMP TABLE x (id int); INSERT INTO x VALUES (1); DROP TABLE x');
goes_on('ANALYZE', 'VACUUM FULL t', 'CLUSTER t USING t_pkey', 'REINDEX TABLE t', 'TRUNCATE t', 'TRUNCATE t, tp');
goes_on('BEGIN; ALTER TABLE t ADD z int; ROLLBACK',
	'BEGIN; SAVEPOINT a; ALTER TABLE t ADD z int; ROLLBACK TO a; INSERT INTO t VALUES (9); COMMIT');

# ---- partitions: rows that come and go without WAL of their own ----
goes_on('CREATE TABLE p2 PARTITION OF tp FOR VALUES FROM (100) TO (200)', q{INSERT INTO tp VALUES (150, 1, 'a')});
goes_on(q{BEGIN; CREATE TABLE p2 PARTITION OF tp FOR VALUES FROM (100) TO (200); INSERT INTO tp VALUES (150, 1, 'a'); COMMIT});
stops('partition with OID \d+ was detached or dropped', 'DROP TABLE p1');
stops('partition p1 was detached or dropped', 'ALTER TABLE tp DETACH PARTITION p1');
stops('partition p1 was detached or dropped', 'ALTER TABLE tp DETACH PARTITION p1 CONCURRENTLY');
stops('partition p1 of table public.tp was truncated', 'TRUNCATE p1');
my $new = q{CREATE SCHEMA other; CREATE TABLE other.p (id int PRIMARY KEY, k int, v text); INSERT INTO other.p VALUES (150, 1, 'q')};
my $attach = 'ALTER TABLE tp ATTACH PARTITION other.p FOR VALUES FROM (100) TO (200)';
stops('partition p was attached', $new, $attach);
stops('partition p was attached', "BEGIN; $new; $attach; COMMIT");

# ---- the stop outlives the decoder ----
stops('column n may have been given new values', 'ALTER TABLE t ALTER n TYPE text');
$node->restart;
wait_for_sql($node, 'postgres', q{SELECT state = 'stopped' AND message LIKE '%column n may have been given%' FROM sluice.shard_status});
is($node->safe_psql('postgres', q{SELECT state FROM sluice.shard_status}), 'stopped', 'after a restart it stops at the same place');

$node->stop;
done_testing();
