# The decoder: what it takes and leaves, what it confirms, what it says of low,
# and that nothing is lost or doubled whatever ends it.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('decoder', conf => <<'END');
sluice.max_shards = 2
sluice.ring_size = '1MB'
sluice.storer_timeout = '1s'
synchronous_commit = local
autovacuum = off
END

sub sql { return $node->safe_psql('postgres', $_[0]); }
sub status { return sql("SELECT $_[0] FROM sluice.shard_status"); }
sub wait_status { return wait_for_sql($node, 'postgres', "SELECT $_[0] FROM sluice.shard_status"); }

# everything flushed is decoded, stored and confirmed
sub settle { return wait_status(q{state = 'streaming' AND confirmed_lsn >= pg_current_wal_flush_lsn()}); }

sql('CREATE EXTENSION sluice');
sql('CREATE TABLE t (id bigint PRIMARY KEY, v text)');
sql('CREATE SCHEMA private; CREATE TABLE private.p (id int)');

# ---- the plugin is ours alone ----

my ($code, $out, $err) = $node->psql('postgres', "SELECT pg_create_logical_replication_slot('x', 'sluice')");
isnt($code, 0, 'nobody else makes a slot of our plugin');
($code, $out, $err) = $node->psql('postgres',
	"SELECT set_config('output_plugin_libraries', 'sluice', false) FROM pg_settings WHERE name = 'output_plugin_libraries'; SELECT pg_create_logical_replication_slot('x', 'sluice')");
like($err, qr/output plugin "sluice" works in the decoder of a shard only/, 'even where it is allowed');

sql("CALL sluice.create_shard('s')");
is(sql(q{SELECT plugin || ' ' || (confirmed_flush_lsn IS NOT NULL) || ' ' || (xmin IS NULL) FROM pg_replication_slots}),
	'sluice true true', 'the slot holds no xmin once it is made');

# ---- what is published ----

settle();
my $before = status('transactions');
sql('INSERT INTO private.p SELECT generate_series(1, 100)');
sql('BEGIN; INSERT INTO t VALUES (1); ROLLBACK');
sql('BEGIN; SAVEPOINT a; INSERT INTO t VALUES (1); ROLLBACK TO a; COMMIT');
settle();
is(status('transactions'), $before, 'what publishes nothing leaves no trace on the ring');
sql(q{BEGIN; INSERT INTO t VALUES (1, 'one'); SAVEPOINT a; INSERT INTO t VALUES (2, 'no'); ROLLBACK TO a;
	SAVEPOINT b; INSERT INTO t VALUES (3, 'three'); RELEASE b; UPDATE t SET v = 'drei' WHERE id = 3; DELETE FROM t WHERE id = 1; COMMIT});
sql(q{BEGIN; INSERT INTO t VALUES (4, 'prepared'); PREPARE TRANSACTION 'p'});
sql(q{COMMIT PREPARED 'p'});
settle();
is(sql(q{SELECT string_agg(change->>'tag' || coalesce(' ' || coalesce(change->'new'->>'id', change->'key'->>'id'), ''), ', ' ORDER BY watermark, pos) FROM sluice.change_log('s')}),
	'begin, insert 1, insert 3, update 3, delete 1, commit, begin, insert 4, commit',
	'subtransactions, and a prepared transaction at its second phase');

# ---- a quiet database holds no WAL, and our own commits start nothing ----

my $lsn = sql('INSERT INTO private.p SELECT generate_series(1, 1000); SELECT pg_switch_wal()');
sql('CHECKPOINT');
wait_status("confirmed_lsn >= '$lsn'");
wait_for(sub { sql('CHECKPOINT'); status("restart_lsn >= '$lsn'") eq 't' }, 'the slot lets go of WAL');
settle();
my $insert = sql('SELECT pg_current_wal_insert_lsn()');
# what would chase itself does so for each of these looks
settle() foreach 1 .. 20;
cmp_ok(sql("SELECT pg_current_wal_insert_lsn() - '$insert'"), '<', 500, 'an idle shard writes no WAL');

# ---- a commit record exactly at the confirmed position ----

my $session = psql_background($node);
$session->query_safe("BEGIN; INSERT INTO t VALUES (10, 'at the position'); SELECT pg_current_xact_id()");
$session->query_safe("SELECT pg_logical_emit_message(false, 'x', 'flush')");
my $position;
wait_for(sub {
		$position = sql('SELECT pg_current_wal_insert_lsn()');
		status("confirmed_lsn = '$position'") eq 't'
	}, 'the slot is confirmed up to where the commit record will be');
my $pid = status('decoder_pid');
kill 'STOP', $pid;
$session->query_safe('COMMIT');
sql("SELECT pg_terminate_backend($pid)");
kill 'CONT', $pid;
wait_status("decoder_pid <> $pid");
settle();
is(sql(q{SELECT change->>'commitLsn' FROM sluice.change_log('s') WHERE change->>'tag' = 'begin' ORDER BY watermark DESC LIMIT 1}),
	$position, 'its commit record starts there');
is(sql(q{SELECT count(*) FROM sluice.change_log('s') WHERE change->'new'->>'id' = '10'}), '1',
	'and the decoder that begins there takes it, once');

# ---- low: a commit that waits for a standby is decoded, and not yet past ----

settle();
wait_status('low = head');
my $low = status('low');
sql(q{ALTER SYSTEM SET synchronous_standby_names = 'nobody'});
$node->reload;
wait_for_sql($node, 'postgres', q{SELECT current_setting('synchronous_standby_names') = 'nobody'});
my $waiting = psql_background($node);
$waiting->query_until(qr//, "SET synchronous_commit = on; INSERT INTO t VALUES (20, 'waits');\n");
wait_for_sql($node, 'postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')});
wait_status("stored > '$low'");
sql("INSERT INTO t VALUES (21, 'does not')");
settle();
is(status('low'), $low, 'low stays before a transaction that other snapshots do not see');
is(sql('SELECT count(*) FROM t WHERE id = 20'), '0', 'as this one');
$pid = status('decoder_pid');
sql("SELECT pg_terminate_backend($pid)");
wait_status("decoder_pid <> $pid AND state = 'streaming'");
settle();
is(status('low IS NULL'), 't', 'a decoder that begins behind it does not know low');
sql('ALTER SYSTEM RESET synchronous_standby_names');
$node->reload;
wait_for_sql($node, 'postgres', 'SELECT count(*) = 1 FROM t WHERE id = 20');
ok(wait_status('low = head'), 'when it is visible, low is the head');
$waiting->quit;

# ---- one transaction, much larger than the ring; decoders end all the time ----

settle();
sql(q{INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1000, 60999) g});
for my $round (1 .. 5)
{
	$pid = status('decoder_pid');
	sql("SELECT pg_terminate_backend($pid)") if $pid ne '';
	wait_status("decoder_pid <> $pid") if $pid ne '';
}
$pid = status('storer_pid');
sql("SELECT pg_terminate_backend($pid)") if $pid ne '';
sql(q{INSERT INTO t VALUES (99999, 'behind it')});
settle();
is(sql(q{SELECT count(*) || ' ' || count(DISTINCT change->'new'->>'id') FROM sluice.change_log('s') WHERE (change->'new'->>'id')::int BETWEEN 1000 AND 60999}),
	'60000 60000', 'each row once');
is(sql(q{SELECT count(DISTINCT watermark) FROM sluice.change_log('s') WHERE (change->'new'->>'id')::int BETWEEN 1000 AND 60999}),
	'1', 'in one transaction');

# ---- a storer that gets nothing done is ended ----

my $from = -s $node->logfile;
my $storer = status('storer_pid');
kill 'STOP', $storer;
sql(q{INSERT INTO t SELECT g, repeat('y', 100) FROM generate_series(100000, 139999) g});
wait_status(q{waits_for LIKE 'room on the ring%'});
is(sql(q{SELECT (a.backend_xmin IS NULL) || ' ' || (SELECT count(*) FROM pg_locks l WHERE l.pid = a.pid AND locktype <> 'virtualxid')
	FROM pg_stat_activity a WHERE backend_type = 'sluice decoder'}), 'true 0',
	'a decoder that waits for room holds neither snapshot nor lock');
wait_for(sub { slurp($from) =~ /ending the storer/ }, 'the storer is ended');
like(slurp($from), qr/ending the storer of shard "s" \(process $storer\): it has made no progress for 1000 ms while the ring is full/,
	'a storer that gets nothing done is ended');
kill 'CONT', $storer;
wait_status("storer_pid <> $storer");
settle();
is(sql(q{SELECT count(*) || ' ' || count(DISTINCT change->'new'->>'id') FROM sluice.change_log('s') WHERE (change->'new'->>'id')::int BETWEEN 100000 AND 139999}),
	'40000 40000', 'nothing is lost or doubled');

sub slurp
{
	my ($offset) = @_;

	return PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset);
}

# ---- the slot is invalidated ----

sql(q{SELECT sluice.set_option('s', 'auto_reset', 'off')});
sql(q{ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'});
$node->reload;
$pid = status('decoder_pid');
kill 'STOP', $pid;
for (1 .. 4)
{
	sql('INSERT INTO private.p SELECT generate_series(1, 100)');
	sql('SELECT pg_switch_wal()');
}
my $checkpoint = psql_background($node);
$checkpoint->query_until(qr//, "CHECKPOINT;\n");
wait_for(sub { slurp($from) =~ /terminating process $pid to release replication slot/ }, 'the server takes the slot away');
kill 'CONT', $pid;
ok(wait_status(q{state = 'stopped' AND message LIKE '%invalidated%'}), 'an invalidated slot stops a shard that may not reset itself');
$checkpoint->quit;
sql('ALTER SYSTEM RESET max_slot_wal_keep_size');
$node->reload;
sql("CALL sluice.drop_shard('s')");

# ---- a slot that belongs to no shard is dropped ----

sql("CALL sluice.create_shard('o')");
sql(q{SET allow_system_table_mods = on; DELETE FROM pg_depend WHERE deptype = 'e' AND (
	(classid = 'pg_namespace'::regclass AND objid = 'cdc_o'::regnamespace) OR
	(classid = 'pg_class'::regclass AND objid IN (SELECT oid FROM pg_class WHERE relnamespace = 'cdc_o'::regnamespace)))});
sql('DROP SCHEMA cdc_o CASCADE');
sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type ~ '^sluice (decoder|storer)'});
ok(wait_for_sql($node, 'postgres', 'SELECT count(*) = 0 FROM pg_replication_slots'), 'an orphan is dropped after a grace');
like(slurp($from), qr/dropped replication slot "sluice_o_\d+": its shard does not exist/, 'and this is told');

$node->stop;
done_testing();
