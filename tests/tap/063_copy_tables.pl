# The first copy's list of tables: thousands of them, and tables that are
# dropped, renamed, moved or made between the list and their turn; a copy at a
# position where no stored transaction is.
use strict;
use warnings;
use SluiceTest;
use Test::More;
use Time::HiRes qw(time);

my $node = sluice_node('copytables');

sub sql { return $node->safe_psql('postgres', $_[0]); }

# ---- a position behind the last stored transaction ----

sql(q{CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.t(i int);
	CREATE TABLE waits(id int PRIMARY KEY, v text); INSERT INTO waits SELECT i, 'w' FROM generate_series(1, 20000) i;
	CREATE TABLE dropped(id int PRIMARY KEY, v text); INSERT INTO dropped SELECT i, 'd' FROM generate_series(1, 100) i;
	CREATE TABLE renamed(id int PRIMARY KEY, v text); INSERT INTO renamed SELECT i, 'r' FROM generate_series(1, 90) i;
	CREATE TABLE other(id int PRIMARY KEY, v text); INSERT INTO other SELECT i, 'o' FROM generate_series(1, 80) i;
	ANALYZE});
create_shard($node, 'demo');
sql('INSERT INTO elsewhere.t VALUES (1)') foreach 1 .. 20;
wait_for_sql($node, 'postgres', 'SELECT decoded_lsn >= pg_current_wal_flush_lsn() FROM sluice.shard_status');
is(sql('SELECT stored = first FROM sluice.shard_status'), 't', 'nothing is stored yet');
my $early = start_agent(node => $node, shard => 'demo', name => 'early');
$early->wait_log(qr/is ready/);
compare($node, $early->replica, what => 'copied at a position that nothing was stored at');
sql('INSERT INTO elsewhere.t VALUES (2)') foreach 1 .. 20;
$early->restart;
sql(q{INSERT INTO waits VALUES (0, 'first stored')});
compare($node, $early->replica, what => '... and followed from one');
is(() = $early->log =~ /copying shard/g, 1, '... without another copy');
$early->stop;

# ---- tables that change between the list and their turn ----

my $lock = psql_background($node);
$lock->query_safe('BEGIN; LOCK TABLE waits IN ACCESS EXCLUSIVE MODE');
my $agent = start_agent(node => $node, shard => 'demo', name => 'list', args => [ '--log-level', 'debug' ]);
wait_for_sql($node, 'postgres', q{SELECT count(*) = 1 FROM sluice.replica_status WHERE waits_for LIKE 'a lock on the table%'});
sql(q{INSERT INTO dropped VALUES (1000, 'after the list'); UPDATE dropped SET v = 'x' WHERE id < 10});
sql('DROP TABLE dropped');
sql(q{ALTER TABLE other RENAME TO third; ALTER TABLE renamed RENAME TO other; INSERT INTO other VALUES (1000, 'renamed')});
sql(q{CREATE TABLE made(id int PRIMARY KEY, v text); INSERT INTO made VALUES (1, 'made')});
$lock->query_safe('COMMIT');
$agent->wait_log(qr/is ready/);
like($agent->log, qr/table "public"\."dropped" is gone/, 'a dropped table is noticed');
compare($node, $agent->replica, what => 'tables dropped, renamed and made meanwhile');
is(replica_query($agent->replica, q{SELECT count(*) FROM "_sluice.tables" WHERE problem IS NOT NULL}), '0', 'no note of the dropped one is left');
$agent->stop;
$lock->quit;
sql(q{CALL sluice.drop_shard('demo')});

# ---- thousands ----

sql(q{CREATE SCHEMA many});
sql(qq{DO \$\$ BEGIN FOR i IN $_ * 500 + 1 .. $_ * 500 + 500 LOOP
	EXECUTE format('CREATE TABLE many.t%s(id int PRIMARY KEY, v text)', i);
	EXECUTE format('INSERT INTO many.t%s SELECT g, ''v'' FROM generate_series(1, %s) g', i, i % 5);
	END LOOP; END \$\$}) foreach 0 .. 5;
sql('CREATE PUBLICATION many FOR TABLES IN SCHEMA many');
create_shard($node, 'many', publications => "ARRAY['many']");
my $began = time;
my $many = start_agent(node => $node, shard => 'many', name => 'many', args => [ '--jobs', '3' ]);
$many->wait_log(qr/is ready/, 120);
my $took = time - $began;
cmp_ok($took, '<', 60, sprintf('3,000 tables in %.1f s', $took));
is(replica_query($many->replica, 'SELECT count(*), sum(copied) FROM "_sluice.tables"'), '3000|3000', 'all are there');
my $output = '';
IPC::Run::run([ "$SluiceTest::root/sluice-agent", 'verify', '--upstream', $node->connstr('postgres'),
	'--shard', 'many', '--replica', $many->replica ], '<', \undef, '>&', \$output);
is($output, "3000 tables, 6000 rows: equal\n", 'and equal');
$many->stop;

$node->stop;
done_testing();
