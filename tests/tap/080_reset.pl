# A reset gives a shard a new slot and a new lineage: replicas serve the file
# they have, copy afresh beside it and swap. Whatever breaks it off, there is
# the old lineage or the new one, and no slot is left over.
use strict;
use warnings;
use PostgreSQL::Test::Utils;
use SluiceTest;
use Test::More;

my $node = sluice_node('reset');

sub sql { return $node->safe_psql('postgres', shift); }
sub status { my ($what) = @_; return sql("SELECT $what FROM sluice.shard_status"); }
sub lineage { return sql('SELECT replica_version FROM sluice.shards'); }
sub slots { return sql(q{SELECT string_agg(slot_name, ',' ORDER BY slot_name) FROM pg_replication_slots}); }
sub streams
{
	my ($what) = @_;

	ok(wait_for_sql($node, 'postgres', q{SELECT count(*) = 1 AND bool_and(state = 'streaming' AND message IS NULL AND storer_pid IS NOT NULL) FROM sluice.shard_status}), $what)
	  or diag(sql('SELECT * FROM sluice.shard_status'));
	return;
}

sql(<<'END');
CREATE TABLE t (id int PRIMARY KEY, v text);
INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 5000) g;
END
create_shard($node, 's');
my $agent = start_agent(node => $node, shard => 's', name => 'a');
my $file = $agent->{replica};
wait_for(sub { -e $file }, 'the first copy');
compare($node, $file, shard => 's', what => 'equal before');

# ---- CALL sluice.reset; a reader of the old file is not disturbed ----

my ($in, $out) = ('', '');
my $reader = IPC::Run::start([ 'sqlite3', '-batch', "file:$file?mode=ro" ], '<', \$in, '>', \$out);
$in .= "BEGIN;\nSELECT 'old', count(*) FROM t;\n";
$reader->pump until $out =~ /old\|\d+\n/;
my $first = lineage();
my $inode = (stat $file)[1];
sql("INSERT INTO t SELECT g, 'w' || g FROM generate_series(5001, 6000) g");
sql("CALL sluice.reset('s')");
isnt(lineage(), $first, 'another lineage');
streams('it streams when the call returns');
is(slots(), 'sluice_s_2', 'the old slot is gone, the new one has the next number');
is(status('slot'), 'sluice_s_2', 'and is the shard\'s');
is(status('resets || reset_reason'), '1CALL sluice.reset', 'counted, with the reason');
like(sql('SELECT owner FROM sluice.shards'), qr{/sluice_s_2$}, 'the owner is the new slot');
wait_for(sub { (stat $file)[1] != $inode }, 'the swap');
$in .= "SELECT 'still', count(*) FROM t;\nCOMMIT;\n";
$reader->pump until $out =~ /still\|\d+\n/;
$in .= ".quit\n";
$reader->finish;
like($out, qr/old\|(5000|6000)\nstill\|\1\n/, 'a reader of the old file reads on in it');
compare($node, $file, shard => 's', what => 'who opens it now reads the new one');
is(replica_query($file, 'SELECT replicaVersion FROM "_zero.replicationConfig"'), lineage(), 'of the new lineage');
like($agent->log, qr/another lineage/, 'the agent has been told why');

# ---- it waits for older transactions; a cancel leaves what there was ----

my $before = lineage();
my $open = psql_background($node);
$open->query_safe('BEGIN; INSERT INTO t VALUES (10000)');
my ($code, $stdout, $stderr) = $node->psql('postgres', "SET statement_timeout = '3s'; CALL sluice.reset('s')");
like($stderr, qr/NOTICE:  the slot waits for the transaction of process \d+/, 'who is waited for is named');
like($stderr, qr/canceling statement/, 'it can be cancelled');
streams('then the old lineage goes on');
is(lineage() . slots(), "${before}sluice_s_2", 'it is the same, with the same slot');

# the session is ended instead
my $caller = psql_background($node);
my $pid = $caller->query_safe('SELECT pg_backend_pid()');
$caller->query_until(qr//, "CALL sluice.reset('s');\n");
wait_for_sql($node, 'postgres', q{SELECT state = 'resetting' AND waits_for LIKE 'transaction%' FROM sluice.shard_status});
is(status('message'), 'reset: CALL sluice.reset', 'shown in the status');
($code, $stdout, $stderr) = $node->psql('postgres', "CALL sluice.reset('s')");
like($stderr, qr/is being reset by another session/, 'one at a time');
sql("SELECT pg_terminate_backend($pid)");
streams('the caller is ended: the old lineage goes on');
is(lineage() . slots(), "${before}sluice_s_2", 'it is the same, with the same slot');
eval { $caller->quit };

# the decoder is ended, or killed with the server
$caller = psql_background($node);
$caller->query_until(qr//, "CALL sluice.reset('s');\n");
wait_for_sql($node, 'postgres', q{SELECT state = 'resetting' AND waits_for LIKE 'transaction%' FROM sluice.shard_status});
sql('SELECT pg_terminate_backend(decoder_pid) FROM sluice.shard_status');
$open->query_safe('COMMIT');
$open->quit;
eval { $caller->quit };
streams('the decoder is ended: the old lineage goes on, or the new one has come');
compare($node, $file, shard => 's', what => 'equal');

# ---- kill -9 and immediate stops at any step ----

for my $round (1 .. 6)
{
	my $writer = psql_background($node);
	my $call = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "CALL sluice.reset('s')" ],
		'<', \undef, '>', \my $o, '2>', \my $e);

	sql("INSERT INTO t SELECT g, 'r' FROM generate_series(20000 + $round * 1000, 20000 + $round * 1000 + 99) g");
	Time::HiRes::usleep(10000 * $round) if $round > 1;
	if ($round % 2)
	{
		$node->stop('immediate');
		$node->start;
	}
	else
	{
		my $victim = sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'sluice decoder'});
		kill 'KILL', $victim if $victim =~ /^\d+$/;
		wait_for(sub { ($node->psql('postgres', 'SELECT 1'))[0] == 0 }, 'the server is back');
	}
	eval { $call->finish };
	eval { $writer->quit };
	streams("round $round: the shard streams");
	wait_for_sql($node, 'postgres', q{SELECT count(*) = 1 FROM pg_replication_slots});
	is(slots(), status('slot'), 'one slot is there, its own');
	compare($node, $file, shard => 's', what => 'equal');
}

# ---- mark_reset_required ----

$before = lineage();
sql("SELECT sluice.mark_reset_required('s', 'a trial')");
wait_for(sub { lineage() ne $before }, 'a marked shard resets itself');
streams('and streams');
is(status('reset_reason'), 'a trial', 'with the reason given');
is(sql('SELECT reset_required FROM sluice.shards'), 'f', 'the mark is gone');
compare($node, $file, shard => 's', what => 'equal');
sql(q{SELECT sluice.set_option('s', 'auto_reset', 'off')});
$before = lineage();
sql("BEGIN; SELECT sluice.mark_reset_required('s'); ROLLBACK");
streams('a mark that is rolled back is none');
sql("SELECT sluice.mark_reset_required('s')");
wait_for_sql($node, 'postgres', q{SELECT state = 'stopped' AND message LIKE '%CALL sluice.reset(''s'')%' FROM sluice.shard_status});
is(lineage(), $before, 'with auto_reset off it stops');
sql("CALL sluice.reset('s')");
streams('and a reset heals it');
sql(q{SELECT sluice.set_option('s', 'auto_reset', 'on')});

# ---- pause and resume ----

$before = lineage();
sql("CALL sluice.pause('s')");
is(status(q{state || coalesce(decoder_pid, 0) || coalesce(storer_pid, 0)}), 'paused00', 'paused: no worker');
is(sql('SELECT paused FROM sluice.shards'), 't', 'and so it is written');
is(sql('SELECT active FROM pg_replication_slots'), 'f', 'the slot is not active');
sql('INSERT INTO t VALUES (-1)');
$node->restart;
wait_for_sql($node, 'postgres', q{SELECT state = 'paused' FROM sluice.shard_status});
is(sql(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ 'sluice storer'}), '0', 'a restart does not wake it');
is(replica_query($file, 'SELECT count(*) FROM t WHERE id = -1'), '0', 'nothing flows');
($code, $stdout, $stderr) = $node->psql('postgres', "CALL sluice.reset('s')");
like($stderr, qr/is paused\s+HINT:  CALL sluice.resume/, 'no reset of a paused shard');
sql("CALL sluice.resume('s')");
streams('resumed');
is(lineage(), $before, 'with the lineage that it had');
compare($node, $file, shard => 's', what => 'equal');

# ---- rights, names, places ----

sql('CREATE ROLE nobody LOGIN; GRANT sluice_replica TO nobody');
for my $call ("CALL sluice.reset('s')", "CALL sluice.pause('s')", "CALL sluice.resume('s')", "SELECT sluice.mark_reset_required('s')")
{
	($code, $stdout, $stderr) = $node->psql('postgres', "SET ROLE nobody; $call");
	like($stderr, qr/permission denied/, "not for everyone: $call");
	(my $other = $call) =~ s/'s'/'x'/;
	($code, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$other");
	like($stderr, qr/SL007/, "unknown shard: $other");
	next unless $call =~ /^CALL/;
	($code, $stdout, $stderr) = $node->psql('postgres', "BEGIN; $call");
	like($stderr, qr/cannot run inside a transaction block/, "not in a block: $call");
}
streams('none of that did anything');
sql("CALL sluice.drop_shard('s')");
is(slots(), '', 'no slot is left');
$agent->stop;
$node->stop;
done_testing();
