# The status views while replicas come and go, the rights that they and the
# agents need, and a smart shutdown, which waits for no replica.
use strict;
use warnings;
use SluiceTest;
use Test::More;
use Time::HiRes qw(time);

my $node = sluice_node('status');
$node->safe_psql('postgres', 'CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, $$one$$)');
create_shard($node, 'demo');
$node->safe_psql('postgres', <<'END');
CREATE ROLE agent LOGIN IN ROLE sluice_replica;
CREATE ROLE watcher LOGIN IN ROLE sluice_monitor;
END

# status as a monitor sees it
sub status
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql, connstr => $node->connstr('postgres') . ' user=watcher');
}

sub wait_for_status
{
	my ($sql, $expected) = @_;

	my $last;

	return wait_for(sub { ($last = status($sql)) eq $expected }, "$sql: $expected") || (diag("last: $last"), 0)[1];
}

# ---- a replica comes: its role may stream, and no more ----

my $agent = start_agent(node => $node, name => 'one', upstream => $node->connstr('postgres') . ' user=agent');
# it connects anew once its first copy is complete
ok(wait_for_status(q{SELECT shard, replica, state, mode, pid IS NOT NULL, connected_at <= now(), waits_for IS NULL
	FROM sluice.replica_status}, 'demo|one|streaming|serving|t|t|t'), 'a connected replica is shown');
compare($node, $agent->replica, what => 'an agent with the role sluice_replica follows');
like(($node->psql('postgres', 'SELECT * FROM t', connstr => $node->connstr('postgres') . ' user=agent'))[2],
	qr/permission denied for table t/, 'the role cannot read the table itself');

# ---- positions and lags; a replica may be past the last transaction: it knows what was decoded ----

$node->safe_psql('postgres', q{INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(2, 2000) AS i});
wait_for_status(q{SELECT r.applied COLLATE "C" >= s.head AND r.durable COLLATE "C" >= s.head AND s.stored = s.head
	FROM sluice.replica_status r, sluice.shard_status s}, 't');
is(status(q{SELECT applied IS NOT NULL AND durable IS NOT NULL, sent_lag_bytes, applied_lag_bytes, durable_lag_bytes,
	applied_lag = '0', bytes_sent > 200000, reply_time BETWEEN connected_at AND now() FROM sluice.replica_status}),
	't|0|0|0|t|t|t', 'a replica that has everything lags by nothing');
is(status(q{SELECT replicas, head = stored, decode_lag = '0', store_lag_bytes, store_lag = '0',
	last_commit_time <= now(), transactions >= 1, changes >= 1999, bytes > 200000, stored_transactions >= 1,
	stored_bytes > 200000 FROM sluice.shard_status}), '1|t|t|0|t|t|t|t|t|t|t', 'and so does the change log');

# a replica that does not apply lags, in bytes and in time
$agent->signal('STOP');
$node->safe_psql('postgres', q{UPDATE t SET v = 'stopped' WHERE id <= 10});
wait_for_status(q{SELECT applied_lag_bytes > 0 AND durable_lag_bytes > 0 AND applied_lag > '0' FROM sluice.replica_status}, 't');
is(status(q{SELECT applied COLLATE "C" < sent FROM sluice.replica_status}), 't', 'a stopped replica lags');
is(status(q{SELECT state, store_lag_bytes FROM sluice.shard_status}), 'streaming|0', 'the shard does not');
$agent->signal('CONT');
wait_for_status(q{SELECT applied_lag_bytes = 0 AND applied_lag = '0' FROM sluice.replica_status}, 't');

# ---- the slot moves on while nothing of ours changes (SLOT-01, SLOT-02) ----

$node->safe_psql('postgres', 'CREATE DATABASE busy');
for my $db (qw(postgres busy))
{
	$node->safe_psql($db, 'CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.t AS SELECT generate_series(1, 50000)');
	my $lsn = $node->safe_psql($db, 'SELECT pg_current_wal_flush_lsn()');
	ok(wait_for_status("SELECT confirmed_lsn >= '$lsn' FROM sluice.shard_status", 't'),
		"the slot passes what is written elsewhere (database $db)");
}

# ---- it goes ----

is($agent->stop, 0, 'the agent ends');
wait_for_status(q{SELECT replica, state, pid IS NULL, durable IS NOT NULL, seen_at <= now(), applied IS NULL
	FROM sluice.replica_status}, 'one|disconnected|t|t|t|t');
is(status(q{SELECT replicas FROM sluice.shard_status}), '0', 'no connection is counted');
$node->safe_psql('postgres', q{DELETE FROM t WHERE id > 100});
wait_for_status(q{SELECT durable_lag_bytes > 0 FROM sluice.replica_status}, 't');
ok(1, 'an absent replica lags');
$node->safe_psql('postgres', q{SELECT sluice.forget_replica('demo', 'one')});
is(status('SELECT count(*) FROM sluice.replica_status'), '0', 'a forgotten one is not shown');

# ---- a failure is shown, and no longer once it is over ----

$node->safe_psql('postgres', q{SELECT pg_terminate_backend(decoder_pid) FROM sluice.shard_status});
wait_for_status(q{SELECT state, message IS NULL FROM sluice.shard_status}, 'streaming|t');
ok(1, 'a decoder that was ended is over it');

# ---- smart shutdown ----

$agent->restart;
wait_for_status(q{SELECT state FROM sluice.replica_status}, 'streaming');
my $start = time;
$node->stop('smart');
cmp_ok(time - $start, '<', 10, 'a smart shutdown does not wait for replicas');
ok($agent->running, 'the agent waits for the server');
$node->start;
wait_for_status(q{SELECT state FROM sluice.replica_status}, 'streaming');
compare($node, $agent->replica, what => 'and follows when it is back');

# ---- the shard goes under a connected replica ----

$start = time;
$node->safe_psql('postgres', q{CALL sluice.drop_shard('demo')});
cmp_ok(time - $start, '<', 10, 'a shard is dropped under its replica');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_replication_slots}), '0', 'with its slot');
ok($agent->running, 'the agent serves what it has');
$agent->stop;

$node->stop;
done_testing();
