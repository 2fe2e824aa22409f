# The sender without an agent: what it refuses, where it starts, that it sends
# each transaction once and whole, whatever dies meanwhile.
use strict;
use warnings;
use SluiceTest;
use SluiceTest::Conversation;
use Test::More;

my $node = sluice_node('sender', conf => "sluice.ring_size = '256kB'");

$node->safe_psql('postgres', 'CREATE TABLE t (id int PRIMARY KEY, v text)');
create_shard($node, 's');
my $lineage = $node->safe_psql('postgres', 'SELECT replica_version FROM sluice.shards');

sub sql { return $node->safe_psql('postgres', shift); }

sub stream
{
	my ($watermark, %with) = @_;

	return sprintf q{CALL sluice.stream('%s', '%s', '%s', '%s', %d, options => '%s')},
	  $with{shard} // 's', $with{replica} // 'r', $watermark, $with{lineage} // $lineage,
	  $with{protocol} // 1, $with{options} // '{}';
}

# The LexiVersion of a number.
sub lexi
{
	my ($n) = @_;
	my $text = '';

	do
	{
		$text = substr('0123456789abcdefghijklmnopqrstuvwxyz', $n % 36, 1) . $text;
		$n = int($n / 36);
	} while ($n > 0);
	return substr('0123456789abcdefghijklmnopqrstuvwxyz', length($text) - 1, 1) . $text;
}

sub hex_lsn
{
	my ($high, $low) = split '/', shift;

	return hex($high) * 2**32 + hex $low;
}

# ---- where it does not work ----

my ($code, $out, $err) = $node->psql('postgres', 'BEGIN; ' . stream($lineage));
like($err, qr/must be called on its own.*transaction block/s, 'refused in a transaction block');
($code, $out, $err) = $node->psql('postgres', 'DO $$ BEGIN ' . stream($lineage) . '; END $$');
like($err, qr/must be called on its own/, 'refused in DO');

like((talk($node, stream($lineage, shard => 'nope')))[0], qr/^error SL007 /, 'unknown shard');
like((talk($node, stream($lineage, protocol => 2)))[0], qr/^error SL004 .*version 2/, 'unknown protocol version');
like((talk($node, stream($lineage, lineage => '4aaaaa')))[0], qr/^error SL001 /, 'another lineage');
like((talk($node, stream('4aaaaa')))[0], qr/^error SL002 /, 'older than the log');
like((talk($node, stream('9zzzzzzzzzz')))[0], qr/^error SL003 /, 'ahead of all WAL');
like((talk($node, stream($lineage, options => '{"system_id": "1"}')))[0], qr/^error SL003 /, 'another system');
like((talk($node, stream($lineage, options => '{"timeline": 7}')))[0], qr/^error SL003 /, 'a timeline that is none of ours');
like((talk($node, stream($lineage, options => '{"timeline": "x"}')))[0], qr/^error 22023 /, 'no number');
like((talk($node, stream('what')))[0], qr/^error 22023 .*no watermark/, 'no watermark');

sql('CREATE ROLE stranger LOGIN; CREATE ROLE reader LOGIN IN ROLE sluice_replica');
like((talk($node, stream($lineage), 'stranger'))[0], qr/^error 42501 /, 'no right');
like((talk($node, stream($lineage), 'reader', '--until', 'greeting'))[0], qr/^greeting version 1 /, 'a member may');

# ---- where it starts ----

# a replica that never goes on holds the purge
talk($node, stream($lineage, replica => 'keeper'), '--until', 'greeting');
my @marks;
for my $i (1 .. 3)
{
	sql("INSERT INTO t VALUES ($i, 'v$i')");
	wait_for_sql($node, 'postgres', 'SELECT stored = head AND head > first FROM sluice.shard_status');
	push @marks, sql('SELECT head FROM sluice.shard_status');
}
my @all = SluiceTest::Conversation::commits(talk($node, stream($lineage), '--until', "commit $marks[2]"));
is_deeply(\@all, \@marks, 'from the start: all, in order');
for my $i (0 .. 1)
{
	my @rest = SluiceTest::Conversation::commits(
		talk($node, stream($marks[$i]), '--until', "commit $marks[2]"));
	is_deeply(\@rest, [ @marks[ $i + 1 .. 2 ] ], "behind the transaction before: exactly the later ones ($i)");
}

# A commit record that starts exactly at the position that was decoded: the
# position stands for what starts before it, and is resumed from as the
# watermark of the position before.
my $hit = 0;
for my $try (1 .. 5)
{
	my $writer = psql_background($node);
	$writer->query_safe("BEGIN; INSERT INTO t VALUES (10 + $try, 'open $try')");
	wait_for_sql($node, 'postgres', 'SELECT decoded_lsn = pg_current_wal_insert_lsn() FROM sluice.shard_status');
	my $decoded = sql(q{SELECT decoded_lsn - '0/0' FROM sluice.shard_status});
	$writer->query_safe('COMMIT');
	$writer->quit;
	my @lines = talk($node, stream(lexi($decoded - 1)), '--until', 'commit');
	my ($commit) = SluiceTest::Conversation::commits(@lines);
	ok((grep { /'open $try'/ } @lines), "resumed from a bare position: the commit behind it is sent ($commit)");
	$hit ||= $commit eq lexi($decoded);
	last if $hit;
}
ok($hit, 'a commit record started exactly at the decoded position');

# ---- one name, two connections ----

my $first = SluiceTest::Conversation->open($node, stream($lineage, replica => 'twin'));
$first->wait_line(qr/^greeting/);
my $second = SluiceTest::Conversation->open($node, stream($lineage, replica => 'twin'));
$second->wait_line(qr/^greeting/);
$first->wait_line(qr/^error SL005 /);
$second->close;
pass('the later connection of a name wins');

# ---- behind the ring, and back on it ----

my $follower = SluiceTest::Conversation->open($node, stream($lineage, replica => 'slow'), '--acks');
$follower->wait_line(qr/^keepalive/);
$follower->signal('STOP');
sql("INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(100, 9999) g");
sql("INSERT INTO t SELECT g, repeat('y', 2000000) FROM generate_series(10000, 10001) g");
for my $i (10100 .. 10120)
{
	sql("INSERT INTO t VALUES ($i, repeat('z', 30000))");
}
wait_for_sql($node, 'postgres', 'SELECT stored = head FROM sluice.shard_status');
$follower->signal('CONT');
my $head = sql('SELECT head FROM sluice.shard_status');
$follower->wait_line(qr/^commit $head/);
sql("INSERT INTO t VALUES (20000, 'live again')");
$follower->wait_line(qr/'live again'/);
wait_for_sql($node, 'postgres', q{SELECT state = 'streaming' FROM sluice.replica_status WHERE replica = 'slow'});
my $logged = sql(q{SELECT string_agg(precommit, ' ' ORDER BY watermark) FROM cdc_s."changeLog" WHERE precommit IS NOT NULL});
is(join(' ', SluiceTest::Conversation::commits($follower->lines)), $logged,
	'a client that had stopped gets each transaction once, in order, those larger than the ring too');
is(scalar(SluiceTest::Conversation::rows($follower->lines)), sql('SELECT count(*) FROM t') + 0,
	'and each row once');

# ---- what dies under it ----

for my $victim (qw(decoder storer decoder))
{
	my $pid = sql("SELECT ${victim}_pid FROM sluice.shard_status");

	for my $i (1 .. 5)
	{
		sql("INSERT INTO t SELECT (SELECT max(id) FROM t) + g, 'after' FROM generate_series(1, 700) g");
		sql("SELECT pg_terminate_backend($pid)") if $i == 3;
	}
	wait_for_sql($node, 'postgres', "SELECT ${victim}_pid IS DISTINCT FROM $pid AND state = 'streaming' AND stored = head FROM sluice.shard_status");
}
$head = sql('SELECT head FROM sluice.shard_status');
$follower->wait_line(qr/^commit $head/);
$logged = sql(q{SELECT string_agg(precommit, ' ' ORDER BY watermark) FROM cdc_s."changeLog" WHERE precommit IS NOT NULL});
is(join(' ', SluiceTest::Conversation::commits($follower->lines)), $logged,
	'workers that die leave neither a gap nor a repetition');
$follower->close;

# ---- a server that does nothing ----

# After a restart decoding begins behind the last transaction; who has that is
# on the ring, and is told of positions ahead of it.
$node->restart;
my $resting = SluiceTest::Conversation->open($node, stream($head, replica => 'resting'));
wait_for_sql($node, 'postgres', q{SELECT state = 'streaming' FROM sluice.replica_status WHERE replica = 'resting'});
sql('SELECT pg_logical_emit_message(false, $$other$$, $$wal$$)');
my $position = sql('SELECT pg_switch_wal()');
wait_for(sub { grep { /^keepalive .* decoded (\S+) / && hex $1 >= hex_lsn($position) } $resting->lines }, 'its keepalives have the decoded position');
$resting->close;
my ($first_new) = SluiceTest::Conversation::commits($resting->lines);
ok(!defined $first_new, 'and it gets nothing twice');

# ---- the shard's end, and that of the server ----

$resting = SluiceTest::Conversation->open($node, stream($head, replica => 'resting'), '--then', q{SELECT 'alive'});
$resting->wait_line(qr/^keepalive/);
$node->stop('smart');
$resting->wait_line(qr/^end CALL/);
pass('a smart shutdown ends the conversation in order');
$resting->close;
$node->start;

# ---- a client that gives no sign of life ----

sql(q{ALTER SYSTEM SET sluice.sender_timeout = '500ms'});
$node->reload;
my $silent = SluiceTest::Conversation->open($node, stream($head, replica => 'silent'));
$silent->wait_line(qr/^keepalive/);
my $since = time;
wait_for(sub { time > $since + 2 }, 'four timeouts have gone by');
ok(!(grep { /^error/ } $silent->lines), 'a client that answers keepalives stays');
$silent->signal('STOP');
wait_for_sql($node, 'postgres', q{SELECT pid IS NULL FROM sluice.replica_status WHERE replica = 'silent'});
like(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/replica "silent" has given no sign of life for 500 ms/, 'one that has stopped is given up');
$silent->signal('CONT');
$silent->close;
sql('ALTER SYSTEM RESET sluice.sender_timeout');
$node->reload;

# ---- nothing is held while it waits ----

my $idle = SluiceTest::Conversation->open($node, stream($head, replica => 'idle'));
$idle->wait_line(qr/^keepalive/);
wait_for_sql($node, 'postgres', q{SELECT count(*) = 1 AND bool_and(backend_xmin IS NULL AND backend_xid IS NULL)
	FROM pg_stat_activity WHERE query LIKE '%''idle''%' AND query LIKE 'CALL%'});
pass('an idle sender holds no snapshot');
$idle->close;

done_testing();
