# The first copy of a replica while its tables are written to: transactions
# left open across it, tables truncated before their turn, writers all along,
# lost connections; each row is in the file exactly once.
use strict;
use warnings;
use IPC::Run;
use SluiceTest;
use Test::More;

my $node = sluice_node('copy');

sub sql { return $node->safe_psql('postgres', $_[0]); }

sub table_count
{
	my ($agent, $table) = @_;
	return replica_query($agent->replica, "SELECT count(*) FROM $table");
}

sub verify
{
	my ($agent, $what) = @_;
	my $output = '';
	IPC::Run::run([ "$SluiceTest::root/sluice-agent", 'verify', '--upstream', $node->connstr('postgres'),
		'--shard', $agent->{shard}, '--replica', $agent->replica ], '<', \undef, '>&', \$output);
	my $code = $? >> 8;
	is($code, 0, "verify: $what") or diag($output);
	return $output;
}

# Tables of several shapes; "waits" is locked, so that the copy waits for it:
# by then those before it are copied, those behind it are not.
sql(q{
	CREATE TABLE before(id int PRIMARY KEY, v text, n numeric);
	INSERT INTO before SELECT i, 'row ' || i, i / 8.0 FROM generate_series(1, 30000) i;
	CREATE TABLE waits(id int PRIMARY KEY, v text);
	INSERT INTO waits SELECT i, 'w' FROM generate_series(1, 10000) i;
	CREATE TABLE truncated(id int PRIMARY KEY, v text);
	INSERT INTO truncated SELECT i, 'old' FROM generate_series(1, 500) i;
	CREATE TABLE behind(a text, b date, v jsonb, PRIMARY KEY (a, b));
	INSERT INTO behind SELECT 'k' || i, '2024-01-01'::date + i, jsonb_build_object('i', i) FROM generate_series(1, 300) i;
	CREATE TABLE empty(id uuid PRIMARY KEY, v float8);
	CREATE TABLE vacuumed(id int PRIMARY KEY, v text);
	INSERT INTO vacuumed SELECT i, 'x' FROM generate_series(1, 200) i;
	DELETE FROM vacuumed WHERE id % 2 = 0;
	CREATE TABLE hot(id int PRIMARY KEY, n int NOT NULL, v text);
	INSERT INTO hot SELECT i, 0, repeat('h', i % 200) FROM generate_series(1, 100000) i;
	CREATE TABLE warm(id int PRIMARY KEY, n int NOT NULL, v text);
	INSERT INTO warm SELECT i, 0, repeat('w', i % 200) FROM generate_series(1, 100000) i;
	CREATE PUBLICATION busy FOR TABLE hot, warm, before, empty;
	ANALYZE});
create_shard($node, 'demo');

# ---- transactions open across the copy, and what happens in between ----

my $open = psql_background($node);
$open->query_safe(q{BEGIN; INSERT INTO before VALUES (100001, 'open', 1); UPDATE before SET v = 'open' WHERE id = 7;
	INSERT INTO behind VALUES ('open', '2030-01-01', '{}'); DELETE FROM truncated WHERE id = 3;
	INSERT INTO empty VALUES ('00000000-0000-0000-0000-000000000001', 'NaN'); SAVEPOINT a; DELETE FROM before WHERE id = 8});
my $middle = psql_background($node);
$middle->query_safe(q{BEGIN; INSERT INTO before VALUES (100002, 'middle', 2); DELETE FROM before WHERE id = 9;
	INSERT INTO behind VALUES ('middle', '2030-01-01', '{}')});
my $undone = psql_background($node);
$undone->query_safe(q{BEGIN; INSERT INTO before VALUES (100003, 'undone', 3); DELETE FROM behind; DELETE FROM empty});
my $lock = psql_background($node);
$lock->query_safe('BEGIN; LOCK TABLE waits IN ACCESS EXCLUSIVE MODE');

my $agent = start_agent(node => $node, shard => 'demo', name => 'first', args => [ '--progress', '--log-level', 'debug' ]);
wait_for_sql($node, 'postgres', q{SELECT count(*) = 1 FROM sluice.replica_status WHERE waits_for LIKE 'a lock on the table%'});
ok(!-e $agent->replica, 'nothing is served yet');
ok($agent->wait_log(qr/copied "before", 30000 rows/), 'the tables before the locked one are copied');
unlike($agent->log, qr/copied "behind"/, '... those behind it are not');

$middle->query_safe('COMMIT');
$undone->query_safe('ROLLBACK');
sql(q{UPDATE before SET v = 'after its copy' WHERE id BETWEEN 10 AND 20; DELETE FROM before WHERE id = 21;
	INSERT INTO before VALUES (100004, 'after its copy', 4); UPDATE before SET id = 100021 WHERE id = 22});
sql(q{UPDATE behind SET v = '{"before": "its copy"}' WHERE a < 'k2'; DELETE FROM behind WHERE a = 'k3'});
sql(q{BEGIN; INSERT INTO behind VALUES ('both', '2030-01-02', '1'); INSERT INTO before VALUES (100005, 'both', 5); COMMIT});
$open->query_safe('ROLLBACK TO a; DELETE FROM before WHERE id = 31; DELETE FROM truncated WHERE id = 4; COMMIT; BEGIN');
$open->query_safe(q{INSERT INTO behind VALUES ('open again', '2030-01-01', '{}'); UPDATE before SET v = 'open again' WHERE id = 12});
sql(q{TRUNCATE truncated; INSERT INTO truncated SELECT i, 'new' FROM generate_series(1, 50) i});
sql(q{VACUUM FULL vacuumed});
$lock->query_safe(q{INSERT INTO waits VALUES (10001, 'by who held the lock'); TRUNCATE empty; COMMIT});
$agent->wait_log(qr/is ready/);
$open->query_safe('COMMIT');
compare($node, $agent->replica);
verify($agent, 'transactions open across the copy');
is(table_count($agent, 'truncated'), 50, 'a table truncated before its turn');
is(replica_query($agent->replica, 'SELECT count(*), group_concat(v) FROM before WHERE id IN (7, 12, 100001, 100003)'),
	'3|open,open again,open', 'rows of the open transactions');
is(replica_query($agent->replica, q{SELECT count(DISTINCT "_0_version") FROM before WHERE id < 5}), '1', 'copied rows have one version');
$_->quit foreach $open, $middle, $undone, $lock;

my $indexes = replica_query($agent->replica, q{SELECT group_concat(name) FROM (SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name IN ('before', 'behind') ORDER BY 1)});
like($indexes, qr/behind_pkey/, 'the key of several columns has its index');
unlike($indexes, qr/before_pkey/, 'an integer key needs none');
is(replica_query($agent->replica, 'PRAGMA integrity_check'), 'ok', 'the file is whole');
is(replica_query($agent->replica, q{SELECT count(*) FROM sqlite_schema WHERE name IN ('_sluice.copy', '_sluice.copyRun')}), '0', 'notes of the copy are gone');
ok(!-e $agent->replica . '-copy', '... and its file');
is($agent->stop, 0, 'it ends when told');

# ---- writers all along, several connections, one of them lost ----

create_shard($node, 'busy', publications => "ARRAY['busy']");
my $script = PostgreSQL::Test::Utils::tempdir('script') . '/writes.sql';
PostgreSQL::Test::Utils::append_to_file($script, <<'END');
\set a random(1, 100000)
\set b random(1, 100000)
\set c random(100001, 110000)
BEGIN;
UPDATE hot SET n = n + 1 WHERE id = :a;
UPDATE warm SET n = n + 1, v = v || 'x' WHERE id = :a;
DELETE FROM hot WHERE id = :b;
SAVEPOINT s;
INSERT INTO hot VALUES (:b, -1, 'again') ON CONFLICT DO NOTHING;
ROLLBACK TO s;
INSERT INTO hot VALUES (:c, 1, 'new') ON CONFLICT (id) DO UPDATE SET n = hot.n + 1;
INSERT INTO warm VALUES (:c, 1, 'new') ON CONFLICT (id) DO UPDATE SET n = warm.n + 1;
COMMIT;
END
my $output = '';
my $writers = IPC::Run::start([ 'pgbench', '-n', '-c', '4', '-T', '600', '-f', $script, $node->connstr('postgres') ],
	'<', \undef, '>&', \$output);
wait_for_sql($node, 'postgres', 'SELECT sum(n) > 100 FROM hot');
my $busy = start_agent(node => $node, shard => 'busy', name => 'busy', args => [ '--jobs', '3', '--log-level', 'debug' ]);
wait_for_sql($node, 'postgres', q{SELECT count(*) > 0 FROM (SELECT pg_terminate_backend(pid) FROM sluice.replica_status
	WHERE shard = 'busy' AND mode = 'copy' AND bytes_sent > 1000000) s});
$busy->wait_log(qr/is ready/);
wait_for_sql($node, 'postgres', 'SELECT sum(n) > 3000 FROM hot');
verify($busy, 'while writers go on');
$writers->signal('TERM');
IPC::Run::finish($writers);
compare($node, $busy->replica, shard => 'busy', what => 'equal after writers all along');
my ($tables) = $busy->log =~ /copied (\d+) tables/;
is($tables, 4, 'every table was copied');
is(() = $busy->log =~ /copied "hot"/g, 1, '... and completed once');
$busy->stop;

# ---- a table whose rows verify must find to differ ----

my $file = $agent->replica;
$agent->restart;
$agent->wait_log(qr/following.*following/s);
sql('INSERT INTO before VALUES (200000, NULL, NULL)');
wait_for(sub { table_count($agent, 'before') eq sql('SELECT count(*) FROM before') }, 'the row arrives');
foreach my $case (
	[ 'UPDATE before SET v = v || 1 WHERE id = 40', qr/before: 1 difference\n    id=40: column "v" differs/ ],
	[ 'UPDATE before SET v = substr(v, 1, length(v) - 1) WHERE id = 40; DELETE FROM before WHERE id = 41', qr/id=41: the file lacks the row/ ],
	[ q{INSERT INTO before SELECT 41, v, n, "_0_version" FROM before WHERE id = 42}, qr/id=41: column/ ],
	[ q{UPDATE before SET id = -5 WHERE id = 41}, qr/before: 2 differences.*id=-5: the server lacks the row/s ],
	[ q{UPDATE before SET n = CAST(n AS TEXT) WHERE id = 50}, qr/id=50: column "n" differs/ ])
{
	my ($change, $pattern) = @$case;
	my $found = '';
	replica_write($file, $change);
	IPC::Run::run([ "$SluiceTest::root/sluice-agent", 'verify', '--upstream', $node->connstr('postgres'),
		'--shard', 'demo', '--replica', $file ], '<', \undef, '>&', \$found);
	is($? >> 8, 1, "verify finds: $change");
	like($found, $pattern, '... and names it');
}
$agent->stop;

sub replica_write
{
	my ($name, $sql) = @_;
	IPC::Run::run([ 'sqlite3', '-batch', '-cmd', '.timeout 10000', $name, $sql ]) or die "sqlite3 on $name";
	return;
}

$node->stop;
done_testing();
