# The whole path with everyday tables: a first copy, changes of every kind,
# restarts of the agent and of the server, and a shard dropped.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('follow');
my $file = replica_file('follow');

$node->safe_psql('postgres', 'CREATE DATABASE shop');
$node->psql('shop', PostgreSQL::Test::Utils::slurp_file("$SluiceTest::root/demo/shop.sql"), on_error_die => 1);
create_shard($node, 'demo', db => 'shop');
is($node->safe_psql('shop', 'SELECT name, slot, state FROM sluice.shards'),
	'demo|sluice_demo_1|streaming', 'create_shard alone does');

my %options = (db => 'shop', shard => 'demo');
my $agent = start_agent(node => $node, replica => $file, %options);
wait_for(sub { -e $file }, 'the file appears');
compare($node, $file, %options, what => 'a first copy is equal');
is(replica_query($file, 'SELECT count(*) FROM products'), 3000, 'and has the rows');
is(replica_query($file, 'PRAGMA journal_mode'), 'wal', 'readers and the writer do not wait for each other');

# changes of every kind
my $before = replica_query($file, 'SELECT stateVersion FROM "_zero.replicationState"');
$node->safe_psql('shop', <<'END');
INSERT INTO customers (email, name, tags) VALUES ('new@example.org', 'New', '{"a,b",NULL}');
UPDATE customers SET name = 'Renamed' WHERE id <= 100;
UPDATE products SET price = price + 1 WHERE length(description) > 1000;
UPDATE addresses SET kind = 'work' WHERE kind = 'home' AND customer_id % 4 = 1;
DELETE FROM page_views WHERE id % 3 = 0;
BEGIN; SAVEPOINT a; DELETE FROM customers WHERE id > 9990 AND NOT EXISTS (SELECT FROM orders o WHERE o.customer_id = customers.id);
ROLLBACK TO a; UPDATE stock SET on_hand = 0 WHERE sku < 'SKU-000100'; SAVEPOINT b; INSERT INTO heartbeats (id) VALUES (1); COMMIT;
BEGIN; DELETE FROM payments; ROLLBACK;
TRUNCATE payments;
INSERT INTO payments (order_id, amount) SELECT id, total FROM orders LIMIT 10;
END
compare($node, $file, %options, what => 'changes of every kind arrive');
cmp_ok(replica_query($file, 'SELECT stateVersion FROM "_zero.replicationState"'), 'gt', $before, 'the position has moved');
is(replica_query($file, q{SELECT count(*) FROM products WHERE length(description) > 1000}), 300,
	'unchanged TOAST values are kept');
is(replica_query($file, q{SELECT count(*) FROM customers WHERE _0_version > (SELECT stateVersion FROM "_zero.replicationState")}),
	0, 'no row is newer than the file');

# a load with the agent away for a part of it
my @load = map { ('-f', "$SluiceTest::root/demo/load/$_") } ('order.sql@4', 'browse.sql@4', 'edit.sql@2', 'cancel.sql@1');
sub load
{
	my ($transactions) = @_;
	$node->command_ok([ 'pgbench', '-n', '-c', 4, '-t', $transactions, @load, 'shop' ], 'a load');
	return;
}
load(200);
is($agent->stop, 0, 'SIGTERM ends the agent with code 0');
load(200);
$agent->restart;
load(200);
compare($node, $file, %options, what => 'equal after a load, the agent away for a part of it');

# the server goes away
$node->restart;
load(100);
compare($node, $file, %options, what => 'equal after a restart of the server');
$node->stop('immediate');
$node->start;
load(100);
compare($node, $file, %options, what => 'equal after a crash of the server');
ok($agent->running, 'the agent survived both');

# the slot moves on while nothing published changes
my $lsn = $node->safe_psql('shop', 'CREATE SCHEMA other; CREATE TABLE other.noise AS SELECT generate_series(1, 1000); SELECT pg_switch_wal(); CHECKPOINT; SELECT pg_current_wal_flush_lsn()');
$lsn =~ s/.*\n//s;
wait_for_sql($node, 'shop', "SELECT confirmed_flush_lsn >= '$lsn' FROM pg_replication_slots WHERE slot_name = 'sluice_demo_1'");
pass('the slot moves on while nothing published changes');

# two agents on one file
my $second = start_agent(node => $node, replica => $file, %options, name => 'second');
is($second->wait_exit, 4, 'a second agent on the same file ends with code 4');
ok($agent->running, 'and does not disturb the first');

# a second replica from the change log and the ring
my $late = start_agent(node => $node, name => 'late', %options);
load(100);
wait_for(sub { -e $late->replica }, 'the second file appears');
compare($node, $late->replica, %options, what => 'a second replica is equal');
compare($node, $file, %options, what => 'the first still is');
is($node->safe_psql('shop', 'SELECT count(*) FROM sluice.replica_status WHERE pid IS NOT NULL'), 2, 'both are seen');

$late->stop;
$agent->stop;
$node->safe_psql('shop', q{CALL sluice.drop_shard('demo')});
is($node->safe_psql('shop', q{SELECT count(*) FROM pg_replication_slots}), 0, 'no slot is left');
is($node->safe_psql('shop', q{SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'cdc%'}), 0, 'no change log is left');
$node->safe_psql('shop', 'DROP EXTENSION sluice');

done_testing();
