# A shard that cannot go on, because its slot is lost or a change needs rows
# that the WAL does not have, resets itself: its replicas end up equal without
# anyone's help, serving what they have meanwhile. With auto_reset off it stops
# and says what to do.
use strict;
use warnings;
use PostgreSQL::Test::Utils;
use SluiceTest;
use Test::More;

my $node = sluice_node('trouble', conf => "autovacuum = off\nmin_wal_size = 32MB\nmax_wal_size = 64MB");

sub sql { return $node->safe_psql('postgres', shift); }
sub status { my ($what) = @_; return sql("SELECT $what FROM sluice.shard_status"); }
sub lineage { return sql('SELECT replica_version FROM sluice.shards'); }
sub slots { return sql(q{SELECT string_agg(slot_name, ',' ORDER BY slot_name) FROM pg_replication_slots}); }

# It has another lineage than before, for the reason, and one slot.
sub recovers
{
	my ($before, $reason, $what) = @_;

	ok(wait_for_sql($node, 'postgres', qq{SELECT (SELECT replica_version FROM sluice.shards) <> '$before' AND state = 'streaming'
		AND message IS NULL AND storer_pid IS NOT NULL FROM sluice.shard_status}), "$what: it recovers by itself")
	  or diag(sql('SELECT * FROM sluice.shard_status'));
	like(status('reset_reason'), $reason, "$what: the reason is told");
	wait_for_sql($node, 'postgres', q{SELECT count(*) = 1 FROM pg_replication_slots});
	is(slots(), status('slot'), "$what: one slot is there, its own");
	return;
}

sub end_decoder_and
{
	my ($do) = @_;
	my $launcher = sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'sluice launcher'});

	kill 'STOP', $launcher;
	sql(q{SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE backend_type = 'sluice decoder'});
	$do->();
	kill 'CONT', $launcher;
	return;
}

sql(<<'END');
CREATE TABLE t (id int PRIMARY KEY, v text, n int);
INSERT INTO t SELECT g, 'v' || g, g FROM generate_series(1, 2000) g;
CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
INSERT INTO p SELECT g, 'p' FROM generate_series(0, 99) g;
END
create_shard($node, 's');
my $agent = start_agent(node => $node, shard => 's', name => 'a');
my $file = $agent->{replica};
wait_for(sub { -e $file }, 'the first copy');
compare($node, $file, shard => 's', what => 'equal before');

# ---- the slot goes by hand ----

my $before = lineage();
end_decoder_and(sub { sql(sprintf q{SELECT pg_drop_replication_slot('%s')}, slots()); sql("INSERT INTO t VALUES (5000, 'lost', 1)"); });
recovers($before, qr/does not exist any more/, 'dropped by hand');
compare($node, $file, shard => 's', what => 'equal');

# ---- while the server does not look: the replica's call announces it ----

$before = lineage();
sql("CALL sluice.pause('s')");
sql(sprintf q{SELECT pg_drop_replication_slot('%s')}, slots());
sql("INSERT INTO t VALUES (5001, 'lost', 1)");
$node->restart;
is(sql('SELECT state FROM sluice.shards'), 'slot missing', 'told of');
sql("CALL sluice.resume('s')");
recovers($before, qr/does not exist any more/, 'dropped while it was paused');
compare($node, $file, shard => 's', what => 'equal');

# ---- moved on by hand ----

$before = lineage();
end_decoder_and(sub {
	sql("INSERT INTO t VALUES (5002, 'skipped', 1)");
	sql(sprintf q{SELECT pg_replication_slot_advance('%s', pg_current_wal_flush_lsn())}, slots());
});
recovers($before, qr/was moved or made anew by hand/, 'moved by hand');
compare($node, $file, shard => 's', what => 'equal');

# ---- made anew by hand, for something else ----

$before = lineage();
my $name = slots();
end_decoder_and(sub {
	sql("SELECT pg_drop_replication_slot('$name')");
	sql("INSERT INTO t VALUES (5003, 'lost', 1)");
	sql("SELECT pg_create_logical_replication_slot('$name', 'test_decoding')");
});
ok(wait_for_sql($node, 'postgres', qq{SELECT (SELECT replica_version FROM sluice.shards) <> '$before' AND state = 'streaming' FROM sluice.shard_status}),
	'a stranger under its name: it recovers');
is(sql("SELECT plugin FROM pg_replication_slots WHERE slot_name = '$name'"), 'test_decoding', 'which is left alone');
sql("SELECT pg_drop_replication_slot('$name')");
compare($node, $file, shard => 's', what => 'equal');

# ---- invalidated: WAL that it needs is removed ----

$before = lineage();
sql(q{ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'});
$node->reload;
sql("CALL sluice.pause('s')");
sql('CREATE TABLE filler (v text); ALTER TABLE filler SET (autovacuum_enabled = off)');
for (1 .. 4)
{
	sql(q{INSERT INTO t SELECT 10000 * } . ($_ + 1) . q{ + g, 'x', g FROM generate_series(1, 100) g; SELECT pg_switch_wal()});
}
sql('CHECKPOINT');
is(sql('SELECT wal_status FROM pg_replication_slots'), 'lost', 'the slot is lost');
sql("CALL sluice.resume('s')");
recovers($before, qr/was invalidated/, 'invalidated');
sql('ALTER SYSTEM RESET max_slot_wal_keep_size');
$node->reload;
compare($node, $file, shard => 's', what => 'equal');

# ---- a change that needs rows, under load; the file is readable all the time ----

sql('UPDATE t SET n = 0');
my $load = IPC::Run::start(
	[ 'pgbench', '-n', '-T', '6', '-c', '2', '-f',
		do { my $f = "$PostgreSQL::Test::Utils::log_path/load.sql"; PostgreSQL::Test::Utils::append_to_file($f,
			"\\set id random(1, 2000)\nUPDATE t SET n = n + 1 WHERE id = :id;\n"); $f },
		'-d', $node->connstr('postgres') ],
	'<', \undef, '>', \my $o, '2>', \my $e);
$before = lineage();
sql("ALTER TABLE t ALTER v TYPE text USING upper(v)");
my $reads = 0;
wait_for(sub { $reads += replica_query($file, 'SELECT count(*) FROM t') >= 2000 ? 1 : 0;
	return lineage() ne $before; }, 'a new lineage');
cmp_ok($reads, '>', 0, "the file could be read meanwhile ($reads times)");
recovers($before, qr/column v may have been given new values/, 'ALTER TYPE USING');
$before = lineage();
sql('ALTER TABLE p DETACH PARTITION p1');
recovers($before, qr/partition p1 was detached/, 'and soon another one, DETACH');
$load->finish;
compare($node, $file, shard => 's', what => 'equal, after two resets under load');
is(replica_query($file, q{SELECT count(*) FROM t WHERE v <> upper(v)}), '0', 'with the values of the change');

# ---- off: stopped, then CALL reset ----

sql(q{SELECT sluice.set_option('s', 'auto_reset', 'off')});
$before = lineage();
sql('ALTER TABLE t ALTER n TYPE text USING n::text');
wait_for_sql($node, 'postgres', q{SELECT state = 'stopped' FROM sluice.shard_status});
like(status('message'), qr/column n .*CALL sluice\.reset\('s'\)/, 'auto_reset off: it stops and says what to do');
$node->restart;
wait_for_sql($node, 'postgres', q{SELECT state = 'stopped' FROM sluice.shard_status});
is(lineage(), $before, 'nor does a restart reset it');
sql("CALL sluice.reset('s')");
compare($node, $file, shard => 's', what => 'CALL sluice.reset heals it');
end_decoder_and(sub { sql(sprintf q{SELECT pg_drop_replication_slot('%s')}, slots()); });
wait_for_sql($node, 'postgres', q{SELECT state = 'stopped' AND message LIKE '%does not exist any more%' FROM sluice.shard_status});
sql("CALL sluice.reset('s')");
compare($node, $file, shard => 's', what => 'also one without a slot');
sql(q{SELECT sluice.set_option('s', 'auto_reset', 'on')});

# ---- what fails again and again does not spin ----

my $log = -s $node->logfile;
$before = lineage();
sql('ALTER PUBLICATION sluice_s RENAME TO elsewhere');
sql("SELECT sluice.mark_reset_required('s')");
wait_for_sql($node, 'postgres', q{SELECT state = 'resetting' AND message LIKE '%not before%' FROM sluice.shard_status});
wait_for(sub { (() = PostgreSQL::Test::Utils::slurp_file($node->logfile, $log) =~ /has to be reset/g) >= 3 }, 'three tries');
my @tries = PostgreSQL::Test::Utils::slurp_file($node->logfile, $log) =~ /has to be reset/g;
cmp_ok(scalar @tries, '<=', 5, 'few tries within seconds');
is(lineage(), $before, 'none of them did harm');
is(slots(), status('slot'), 'or left a slot');
sql('ALTER PUBLICATION elsewhere RENAME TO sluice_s');
recovers($before, qr/marked|publication "sluice_s" does not exist/, 'once it can');
compare($node, $file, shard => 's', what => 'equal');

# ---- a shutdown or an ended worker resets nothing ----

$before = lineage();
sql('SELECT pg_terminate_backend(decoder_pid), pg_terminate_backend(storer_pid) FROM sluice.shard_status');
$node->restart;
$node->stop('immediate');
$node->start;
wait_for_sql($node, 'postgres', q{SELECT state = 'streaming' FROM sluice.shard_status});
is(lineage(), $before, 'no reset for what passes');
compare($node, $file, shard => 's', what => 'equal');

$agent->stop;
sql("CALL sluice.drop_shard('s')");
is(sql('SELECT count(*) FROM pg_replication_slots'), '0', 'no slot is left');
$node->stop;
done_testing();
