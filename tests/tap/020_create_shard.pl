# create_shard waits for older transactions: it says for whom, holds nothing
# meanwhile, and leaves nothing behind when it is broken off at that point.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('create', conf => "sluice.max_shards = 2");
$node->safe_psql('postgres', 'CREATE EXTENSION sluice; CREATE TABLE t (id int PRIMARY KEY, v text)');

# what a broken-off creation may have left, as one line
sub leftovers
{
	return $node->safe_psql('postgres', <<'END');
SELECT (SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'sluice%')
	|| ' ' || (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'cdc%')
	|| ' ' || (SELECT count(*) FROM pg_publication WHERE pubname LIKE 'sluice%')
	|| ' ' || (SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ '^sluice (decoder|storer)')
END
}

# CALL sluice.create_shard in a session of its own
sub start_create
{
	my ($shard) = @_;
	my $call = { out => '' };

	$call->{handle} = IPC::Run::start(
		[ 'psql', '-XAt', '-d', $node->connstr('postgres'), '-v', 'VERBOSITY=verbose',
			'-c', "CALL sluice.create_shard('$shard')" ],
		'<', \undef, '>&', \$call->{out});
	return $call;
}

sub says
{
	my ($call, $pattern, $what) = @_;

	wait_for(sub { $call->{handle}->pump_nb; $call->{out} =~ $pattern }, $what) or diag($call->{out});
	like($call->{out}, $pattern, $what);
	return;
}

# True: psql succeeded.
sub finish
{
	my ($call) = @_;

	return $call->{handle}->finish;
}

my $pid_of_call = q{SELECT pid FROM pg_stat_activity
	WHERE backend_type = 'client backend' AND query LIKE 'CALL sluice.create_shard%' AND state = 'active'};

# ---- a session that holds an xid ----

my $holder = psql_background($node);
$holder->query_safe("SET application_name = 'the holder'; BEGIN; INSERT INTO t VALUES (1, 'open')");
my $holder_pid = $holder->query_safe('SELECT pg_backend_pid()');

my $call = start_create('s');
says($call, qr/NOTICE:  00000: the slot waits for the transaction of process $holder_pid \(application "the holder", since 20/,
	'the session is named');
like($call->{out}, qr/pg_terminate_backend\($holder_pid\)/, 'and what ends it');
my $pid = $node->safe_psql('postgres', $pid_of_call);
is($node->safe_psql('postgres',
		"SELECT backend_xid IS NULL AND backend_xmin IS NULL FROM pg_stat_activity WHERE pid = $pid"),
	't', 'the call holds neither xid nor snapshot');
like($node->safe_psql('postgres', 'SELECT state, waits_for FROM sluice.shard_status'),
	qr/^creating\|transaction \d+ of process $holder_pid /, 'status says the same');
my ($code, $out, $err) = $node->psql('postgres', "CALL sluice.create_shard('s')");
like($err, qr/shard "s" is being created by another session/, 'a second call is refused');
($code, $out, $err) = $node->psql('postgres', "CALL sluice.drop_shard('s')");
like($err, qr/shard "s" is being created by another session/, 'and so is dropping it');

# ---- cancel ----

$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
ok(!finish($call), 'a cancelled call fails');
like($call->{out}, qr/ERROR:  57014: canceling statement due to user request/, 'as cancelled');
is(leftovers(), '0 0 0 0', 'a cancelled call leaves nothing');
is($node->safe_psql('postgres', 'SELECT count(*) FROM sluice.shards'), '0', 'no shard is listed');

# ---- the session is ended instead ----

$call = start_create('s');
says($call, qr/the slot waits for the transaction of process $holder_pid/, 'it waits again');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM ($pid_of_call) AS s");
finish($call);
wait_for_sql($node, 'postgres',
	q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type ~ '^sluice (decoder|storer)'});
wait_for_sql($node, 'postgres', q{SELECT count(*) = 0 FROM pg_replication_slots});
is(leftovers(), '0 1 1 0', 'no slot and no worker are left');
is($node->safe_psql('postgres', 'SELECT name, state FROM sluice.shards'), 's|not created', 'the rest is told of');

# ---- the holder ends: the next call clears up and succeeds ----

$call = start_create('s');
says($call, qr/removing what an interrupted creation of shard "s" left/, 'what was left is removed');
says($call, qr/the slot waits for the transaction of process $holder_pid/, 'it waits once more');
$holder->query_safe('COMMIT');
ok(finish($call), 'it succeeds once the transaction has ended') or diag($call->{out});
is($node->safe_psql('postgres', 'SELECT name, slot, state FROM sluice.shards'), 's|sluice_s_1|streaming',
	'the shard streams when the call returns');

# ---- a prepared transaction ----

$node->safe_psql('postgres', q{BEGIN; INSERT INTO t VALUES (2, 'prepared'); PREPARE TRANSACTION 'p'});
$call = start_create('p');
says($call, qr/the slot waits for a prepared transaction to end/, 'a prepared transaction is named as such');
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
ok(finish($call), 'and no longer waited for once it has ended');

# ---- limits ----

($code, $out, $err) = $node->psql('postgres', "CALL sluice.create_shard('third')");
like($err, qr/no room for another shard\s+HINT:  Raise sluice.max_shards \(now 2\)/, 'all entries are taken');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname = 'cdc_third'}), '0',
	'and nothing is left of it');

# ---- names in two databases ----

$node->safe_psql('postgres', "CALL sluice.drop_shard('p')");
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION sluice; CREATE TABLE t (id int PRIMARY KEY)');
$node->safe_psql('other', "CALL sluice.create_shard('s')");
is($node->safe_psql('other', 'SELECT slot, state FROM sluice.shards'), 'sluice_s_2|streaming',
	'the same name in another database has another slot');
is($node->safe_psql('postgres', 'SELECT slot, state FROM sluice.shards'), 'sluice_s_1|streaming',
	'and does not disturb the first');

# ---- DROP DATABASE ----

($code, $out, $err) = $node->psql('postgres', 'DROP DATABASE other WITH (FORCE)');
like($err, qr/cannot drop a database that has sluice shards\s+DETAIL:  Its shards: "s"\.\s+HINT:  Connect to the database and call sluice\.drop_shard/,
	'a database with a shard is not dropped');
$node->safe_psql('other', "CALL sluice.drop_shard('s')");
$node->safe_psql('postgres', 'DROP DATABASE other');
is($node->safe_psql('postgres', 'SELECT state FROM sluice.shards'), 'streaming', 'the other shard streams on');

$holder->quit;
$node->stop;

# ---- servers that are not ready ----

$node->append_conf('postgresql.conf', 'max_worker_processes = 2');
$node->start;
wait_for_sql($node, 'postgres', q{SELECT state = 'retrying' AND message LIKE 'no free background worker%' AND sqlstate = '53400' FROM sluice.shard_status});
is($node->safe_psql('postgres', 'SELECT state FROM sluice.shard_status'), 'retrying', 'status says that workers lack a place');
my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
like($log, qr/sluice shard "s": no free background worker/, 'and so does the log');
$node->append_conf('postgresql.conf', 'max_worker_processes = 24');
$node->restart;
wait_for_sql($node, 'postgres', q{SELECT state = 'streaming' AND message IS NULL FROM sluice.shard_status});
$node->safe_psql('postgres', "CALL sluice.drop_shard('s')");

$node->append_conf('postgresql.conf', 'wal_level = replica');
$node->restart;
($code, $out, $err) = $node->psql('postgres', "CALL sluice.create_shard('s')");
like($err, qr/sluice needs wal_level = logical\s+HINT:  Set wal_level = logical/, 'wal_level is asked for');

$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
for my $query ("CALL sluice.create_shard('s')", "CALL sluice.drop_shard('s')", 'SELECT * FROM sluice.shards',
	'SELECT * FROM sluice.shard_status', 'SELECT * FROM sluice.replica_status',
	"SELECT sluice.set_option('s', 'auto_reset', 'on')", "SELECT sluice.forget_replica('s', 'r')",
	"CALL sluice.stream('s', 'r', '00', '00', 1)", "CALL sluice.copy('s', 'r')",
	"SELECT * FROM sluice.change_log('s')")
{
	($code, $out, $err) = $node->psql('postgres', $query);
	like($err, qr/sluice is not loaded when the server starts\s+HINT:  Add the line "shared_preload_libraries = 'sluice'"/,
		"not preloaded: $query");
}

done_testing();
