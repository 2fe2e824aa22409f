# The change log under load while storer, decoder and server are ended at
# random moments: every committed transaction is there once, in order.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $rounds = $ENV{SLUICE_CRASH_ROUNDS} // 6;
my $node = sluice_node('crash', conf => <<'END');
shared_preload_libraries = 'sluice, sluice_feed'
sluice.ring_size = 1MB
fsync = off
checkpoint_timeout = 30s
END
my $db = 'postgres';

# the server may be coming up again
sub sql
{
	my ($sql) = @_;
	my ($code, $output, $errors);

	wait_for(sub {
		($code, $output, $errors) = $node->psql($db, $sql);
		return $code != 2 && $errors !~ /terminating connection|server closed/;
	}, "an answer to $sql");
	die "$sql: $errors" if $code;
	return $output;
}
sub rows { return sql('SELECT coalesce(max(id), 0) FROM t'); }

$node->safe_psql($db, 'CREATE TABLE t (id bigserial PRIMARY KEY, xid xid8 DEFAULT pg_current_xact_id(), v text)');
create_shard($node, 's');
$node->safe_psql($db, q{CREATE EXTENSION sluice_feed; SELECT feed_hold('s')});

# small transactions, and now and then one larger than the ring, one rolled back
my $script = "$PostgreSQL::Test::Utils::tmp_check/crash.sql";
PostgreSQL::Test::Utils::append_to_file($script, <<'END');
\set n random(1, 100)
\set rows random(1, 5)
\if :n = 1
INSERT INTO t (v) SELECT repeat('x', 1000) FROM generate_series(1, 3000);
\elif :n < 5
BEGIN;
INSERT INTO t (v) SELECT 'rolled back' FROM generate_series(1, 50);
ROLLBACK;
\else
INSERT INTO t (v) SELECT 'small' FROM generate_series(1, :rows);
\endif
END

# goes on over crashes until it is told to end
my $stop = "$PostgreSQL::Test::Utils::tmp_check/stop";
sub load
{
	my $pgbench = "pgbench -n -c 3 -R 400 -T 1 -f '$script' '" . $node->connstr($db) . "'";

	unlink $stop;
	return IPC::Run::start([ 'bash', '-c', "until [ -e '$stop' ]; do $pgbench; done" ],
		'<', \undef, '>', '/dev/null', '2>', '/dev/null');
}
sub end_load
{
	PostgreSQL::Test::Utils::append_to_file($stop, '');
	$_[0]->finish;
	return;
}

sub kill_worker
{
	my ($signal, $type) = @_;
	my $pid = sql("SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'");

	kill $signal, $pid if $pid;
	return;
}

# rows of the log against rows of the table
sub check
{
	my ($what) = @_;

	my $marker = sql("INSERT INTO t (v) VALUES ('marker') RETURNING id");
	wait_for(sub {
		return ($node->psql($db, qq{SELECT count(*) FROM sluice.change_log('s', (SELECT "lastWatermark" FROM cdc_s."replicationState"))
			WHERE change->'new'->>'id' = '$marker'}))[1] eq '1';
	}, "$what: the last transaction is stored", 120);
	note("$what: " . sql(q{SELECT count(*) FROM t}) . ' rows');
	my $result = sql(<<'END');
CREATE TEMP TABLE l AS SELECT watermark COLLATE "C" AS watermark, pos, change->>'tag' AS tag,
	(change->'new'->>'id')::int8 AS id, change->>'xid' AS xid FROM sluice.change_log('s');
SELECT (SELECT count(*) FROM l WHERE tag = 'insert') - (SELECT count(DISTINCT id) FROM l),
	(SELECT count(*) FROM (SELECT id FROM t EXCEPT SELECT id FROM l) missing),
	(SELECT count(*) FROM (SELECT id FROM l WHERE id IS NOT NULL EXCEPT SELECT id FROM t) extra),
	(SELECT count(*) FROM l WHERE tag = 'begin') - (SELECT count(DISTINCT xid) FROM t),
	(SELECT count(*) FROM (SELECT watermark FROM l GROUP BY 1 HAVING count(*) <> max(pos) + 1) torn),
	(SELECT count(*) FROM (SELECT number - lag(number) OVER (ORDER BY number) AS step FROM cdc_s.slices) g WHERE step <> 1)
END
	is($result, '0|0|0|0|0|0', "$what: twice, missing, extra, transactions, torn, gaps");
	return;
}

my @ends = (
	[ 'storer ended', sub { kill_worker('TERM', 'sluice storer') } ],
	[ 'decoder ended', sub { kill_worker('TERM', 'sluice decoder') } ],
	[ 'storer killed', sub { kill_worker('KILL', 'sluice storer') } ],
	[ 'immediate stop', sub { $node->stop('immediate'); $node->start } ],
	[ 'fast restart', sub { $node->restart } ],
	[ 'both ended', sub { kill_worker('TERM', 'sluice decoder'); kill_worker('TERM', 'sluice storer') } ]);

for my $round (1 .. $rounds)
{
	my ($what, $end) = @{ $ends[ ($round - 1) % @ends ] };
	my $load = load();

	for (1 .. 2)
	{
		my $rows = rows() + 200 + int(rand 1000);

		wait_for(sub { return rows() > $rows }, 'some load');
		$end->();
	}
	end_load($load);
	check("round $round, $what");
}

done_testing();
