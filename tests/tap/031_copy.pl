# The copier without an agent: the place of each table's snapshot in the
# stream, under everything that can happen between list and table.
use strict;
use warnings;
use SluiceTest;
use SluiceTest::Conversation;
use Test::More;

my $node = sluice_node('copy');
my %oid;

sub sql { return $node->safe_psql('postgres', shift); }

sub copy
{
	my ($tables, %with) = @_;
	my $list = defined $tables ? "'{$tables}'" : 'NULL';

	return sprintf q{CALL sluice.copy('s', '%s', %s, '%s')}, $with{replica} // 'r', $list,
	  $with{options} // '{}';
}

# What a conversation's lines say of a table: snapshot, low, high, rows.
sub parse
{
	my (@lines) = @_;
	my %copy = (rows => [ grep { /^insert/ } @lines ]);

	foreach my $line (@lines)
	{
		if ($line =~ /(?:header|list) .*snapshot (\d+):(\d+):(\S*) low (\S+) high (\S+)/)
		{
			@copy{qw(xmin xmax low high)} = ($1, $2, $4, hex $5);
			$copy{open} = { map { $_ => 1 } split /,/, $3 };
		}
		$copy{finished} = $1 if $line =~ /^finished \d+ rows (\d+)/;
	}
	return \%copy;
}

sub visible
{
	my ($copy, $xid) = @_;

	return $xid < $copy->{xmin} || ($xid < $copy->{xmax} && !$copy->{open}{$xid});
}

my $lineage;
sub stream
{
	my ($from, %with) = @_;

	return sprintf q{CALL sluice.stream('s', '%s', '%s', '%s', 1)}, $with{replica} // 'r', $from, $lineage;
}

$node->safe_psql('postgres', <<'END');
CREATE TABLE plain (id int PRIMARY KEY, v text);
INSERT INTO plain SELECT g, 'v' || g FROM generate_series(1, 1000) g;
CREATE TABLE empty (id int PRIMARY KEY);
CREATE TABLE big (id int PRIMARY KEY, v text);
ALTER TABLE big ALTER v SET STORAGE PLAIN;
INSERT INTO big SELECT g, repeat('b', 2000) FROM generate_series(1, 10000) g;
CREATE TABLE part (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (100);
CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (100) TO (200) PARTITION BY RANGE (id);
CREATE TABLE part21 PARTITION OF part2 FOR VALUES FROM (100) TO (150);
INSERT INTO part SELECT g, 'p' FROM generate_series(1, 120) g;
CREATE TABLE secret (id int PRIMARY KEY);
INSERT INTO secret VALUES (1), (2);
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE secret FORCE ROW LEVEL SECURITY;
CREATE TABLE rewritten (id int PRIMARY KEY, v text);
INSERT INTO rewritten VALUES (1, 'one'), (2, 'two');
CREATE TABLE emptied (id int PRIMARY KEY);
INSERT INTO emptied VALUES (1), (2), (3);
CREATE SCHEMA other;
CREATE TABLE other.unpublished (id int PRIMARY KEY);
CREATE TABLE other.dropped (id int PRIMARY KEY);
CREATE ROLE reader LOGIN;
ALTER ROLE reader SET statement_timeout = '1s';
ALTER ROLE reader SET lock_timeout = '10ms';
ALTER ROLE reader SET default_transaction_isolation = 'serializable';
ALTER ROLE reader SET default_transaction_read_only = on;
END
create_shard($node, 's');
sql('GRANT sluice_replica TO reader');
$lineage = sql('SELECT replica_version FROM sluice.shards');
$oid{$_} = sql("SELECT '$_'::regclass::oid") foreach qw(plain empty big part secret rewritten emptied other.unpublished other.dropped);
sql('ANALYZE plain');

# ---- the list ----

my @lines = talk($node, copy(undef));
like($lines[0], qr/^list snapshot \d+:\d+:\S* low \S+ high [0-9A-F]+ tables 7$/, 'the list names the published tables');
ok((grep { /^table $oid{plain} public\.plain rows 1000 bytes \d{5} problem -$/ } @lines), 'with estimates');
ok((grep { /^table $oid{part} public\.part rows -1 bytes \d+ problem -$/ } @lines), 'partitions under their root, statistics unknown');
ok(!(grep { /unpublished/ } @lines), 'and no other');
is($lines[-1], 'end CALL', 'and the call ends');
is(sql(q{SELECT durable FROM sluice.replica_status WHERE replica = 'r'}), parse(@lines)->{low},
	'the replica is known at the low of the list, which holds the purge');

# ---- rows ----

@lines = talk($node, copy("$oid{plain},$oid{empty},$oid{part},$oid{secret}"), 'reader', '--then', 'SELECT 42');
is(scalar(grep { /^insert $oid{plain} old 0: (\d+) 'v\g1'$/ } @lines), 1000, 'all rows with their values');
ok((grep { /^finished $oid{plain} rows 1000$/ } @lines), 'counted');
ok((grep { /^finished $oid{empty} rows 0$/ } @lines), 'an empty table');
ok((grep { /^finished $oid{part} rows 120$/ } @lines), 'a root has the rows of all its leaves, under its own OID');
ok((grep { /^finished $oid{secret} rows 2$/ } @lines), 'row security hides nothing from a member of sluice_replica, nor does it need SELECT');
is_deeply([ map { /^(?:header|finished) (\d+)/ } grep { /^(?:header|finished)/ } @lines ],
	[ map { ($_, $_) } @oid{qw(plain empty part secret)} ], 'in the order asked for');
is($lines[-1], 'then 42', 'the session is usable afterwards');
is((talk($node, copy($oid{empty}), '--extended', '--then', 'SELECT 43'))[-1], 'then 43', 'so it is after the extended protocol');

like((talk($node, copy($oid{plain}, options => '{"system_id": "1"}')))[0], qr/^error SL003 /, 'goes on only on the same server');
like((talk($node, copy($oid{plain}, options => '{"timeline": 2}')))[0], qr/^error SL003 /, 'and timeline');
like((talk($node, copy($oid{plain}, options => '{"replica_version": "4aaaaa"}')))[0], qr/^error SL001 /, 'and lineage');
@lines = talk($node, copy($oid{empty}, options => sprintf '{"system_id": "%s", "timeline": 1, "replica_version": "%s", "new": []}',
		sql('SELECT system_identifier FROM pg_control_system()'), $lineage));
is($lines[-1], 'end CALL', 'as it was told there; unknown options do not matter');

# ---- gone ----

my $other = psql_background($node);
$other->query_safe('BEGIN; DROP TABLE other.dropped');
my $talk = SluiceTest::Conversation->open($node, copy("$oid{'other.unpublished'},999999,$oid{'other.dropped'},$oid{empty}"));
$talk->wait_line(qr/^alive/);
$other->query_safe('COMMIT');
$other->quit;
$talk->wait_line(qr/^(end CALL|error)/);
is_deeply([ map { /^gone (\d+)/ } $talk->lines ], [ $oid{'other.unpublished'}, 999999, $oid{'other.dropped'} ],
	'tables that are not published or have been dropped, now or while they are waited for, are told as gone');
ok((grep { /^finished $oid{empty}/ } $talk->lines), 'and the others come');
$talk->close;

# ---- open transactions: not waited for ----

my $writer = psql_background($node);
my $xid = $writer->query_safe(q{BEGIN; INSERT INTO plain VALUES (2001, 'open'); SELECT pg_current_xact_id()});
sql(q{INSERT INTO plain VALUES (2000, 'before')});
my $copy = parse(talk($node, copy($oid{plain})));
ok(!visible($copy, $xid), 'a transaction that is open is not in the snapshot, and the snapshot says so');
is($copy->{finished}, 1001, 'nor are its rows, and nobody waited');
$writer->query_safe('COMMIT');
$writer->quit;
@lines = talk($node, stream($copy->{low}), '--until', "'open'");
like((grep { /^begin/ } @lines)[-1], qr/ xid $xid$/, 'it comes behind low in the stream, under its xid');

# ---- emptied between list and table ----

$other = psql_background($node);
$xid = $other->query_safe('BEGIN; TRUNCATE emptied; SELECT pg_current_xact_id()');
$talk = SluiceTest::Conversation->open($node, copy($oid{emptied}));
wait_for_sql($node, 'postgres', qq{SELECT waits_for LIKE 'a lock on the table%$oid{emptied}' FROM sluice.replica_status WHERE mode = 'copy'});
$talk->wait_line(qr/^alive/);
is(sql('SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND query LIKE $$CALL sluice.copy%$$'), 0,
	'a copier that waits for a lock holds no snapshot');
$other->query_safe('COMMIT');
$other->quit;
$talk->wait_line(qr/^(end CALL|error)/);
$copy = parse($talk->lines);
ok(visible($copy, $xid), 'the TRUNCATE is in the snapshot');
is($copy->{finished}, 0, 'and no row is');
$talk->close;

# ---- a committed transaction that others do not see yet ----

is(sql('SELECT state FROM sluice.shards'), 'streaming', 'the shard goes on');
sql(q{ALTER SYSTEM SET synchronous_standby_names = 'nobody'});
$node->reload;
my $waiter = psql_background($node);
$waiter->query_until(qr/begun/, "\\echo begun\nINSERT INTO plain VALUES (3000, 'waits');\n");
wait_for_sql($node, 'postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'});
$xid = sql(q{SELECT backend_xid FROM pg_stat_activity WHERE wait_event = 'SyncRep'});
@lines = talk($node, stream($copy->{low}), '--until', "'waits'");
ok((grep { /'waits'/ } @lines), 'a commit that waits for a standby is in the stream, and no standby is needed for that');
my ($commit) = map { /^begin (\S+) xid $xid$/ } @lines;
$copy = parse(talk($node, copy($oid{plain})));
ok(!visible($copy, $xid), 'it is not in the snapshot');
cmp_ok($copy->{low}, 'lt', $commit, 'and behind low');

# A decoder that starts does not decode it again, so it cannot tell that it is
# missing but by waiting for it.
my $pid = sql('SELECT decoder_pid FROM sluice.shard_status');
sql("SELECT pg_terminate_backend($pid)");
wait_for_sql($node, 'postgres', "SELECT decoder_pid <> $pid AND state = 'streaming' FROM sluice.shard_status");
$talk = SluiceTest::Conversation->open($node, copy($oid{plain}));
wait_for_sql($node, 'postgres', q{SELECT waits_for LIKE 'the decoder%' FROM sluice.replica_status WHERE mode = 'copy'});
$talk->wait_line(qr/^alive/);
ok(!(grep { /^header/ } $talk->lines), 'behind a restart of the decoder, no snapshot is taken that may lack it unseen');
sql(q{ALTER SYSTEM RESET synchronous_standby_names});
$node->reload;
$talk->wait_line(qr/^end CALL/);
ok((grep { /'waits'/ } $talk->lines) || parse($talk->lines)->{low} lt $commit, 'it comes once it is over');
$talk->close;
$waiter->quit;

# ---- WAL that ends at a page boundary ----

# The size of a record of a logical message of n bytes is n plus a constant.
sub insert_at { return sql(q{SELECT pg_current_wal_insert_lsn() - '0/0'}) + 0; }
sub pad_to
{
	my ($target) = @_;    # of a page: where the next record is to begin

	return sql(<<"END");
DO \$\$
DECLARE at bigint; room bigint; cost bigint := 0; before bigint;
BEGIN
	FOR try IN 1 .. 50 LOOP
		before := pg_current_wal_insert_lsn() - '0/0';
		PERFORM pg_logical_emit_message(false, 'pad', repeat('x', 1000));
		at := pg_current_wal_insert_lsn() - '0/0';
		EXIT WHEN at / 8192 = before / 8192;
	END LOOP;
	cost := at - before - 1000;
	room := (8192 - at % 8192) + $target;
	IF room > cost + 300 THEN
		PERFORM pg_logical_emit_message(false, 'pad', repeat('x', (room - cost)::int));
	END IF;
END \$\$;
SELECT pg_current_wal_insert_lsn() - '0/0'
END
}

# a whole record fits the end of a page exactly: the next one begins behind the
# header of the page that follows
my $hits = 0;
for my $try (1 .. 20)
{
	my $at = pad_to(0);
	next if $at % 8192 != 24;
	$copy = parse(talk($node, copy($oid{empty})));
	$hits++ if $copy->{high} > $at && $copy->{high} < $at + 200;
	wait_for_sql($node, 'postgres', "SELECT decoded_lsn - '0/0' >= $copy->{high} FROM sluice.shard_status");
	last if $hits == 3;
}
cmp_ok($hits, '>', 0, "the insert position was a page's beginning, the copy went on and high was passed ($hits)");

# high itself at the end of a page
my $at = pad_to(-400);
my $size = parse(talk($node, copy($oid{empty})))->{high} - $at;
$hits = 0;
for my $try (1 .. 30)
{
	pad_to(-$size);
	$copy = parse(talk($node, copy($oid{empty})));
	wait_for_sql($node, 'postgres', "SELECT decoded_lsn - '0/0' >= $copy->{high} FROM sluice.shard_status");
	last if $hits += $copy->{high} % 8192 == 0;
}
cmp_ok($hits, '>', 0, 'high was the end of a page, and was passed');

# ---- slow, cancelled, lost, stopped ----

$talk = SluiceTest::Conversation->open($node, copy($oid{big}), '--slow', 20);
$talk->wait_line(qr/^header/);
$talk->wait_line(qr/^end CALL/);
ok((grep { /^finished $oid{big} rows 10000$/ } $talk->lines), 'a slow client gets everything');
$talk->close;

sub copier { return sql(q{SELECT pid FROM sluice.replica_status WHERE mode = 'copy'}); }
sub none_left
{
	my ($how) = @_;

	wait_for_sql($node, 'postgres', q{SELECT count(*) = 0 FROM sluice.replica_status WHERE mode = 'copy'});
	wait_for_sql($node, 'postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND query LIKE 'CALL sluice.copy%'});
	is(sql("SELECT count(*) FROM pg_locks WHERE relation = $oid{big} AND pid <> pg_backend_pid()"), 0, "$how: nothing is left of it");
	return;
}

$talk = SluiceTest::Conversation->open($node, copy($oid{big}), '--slow', 50, '--then', 'SELECT 44');
$talk->wait_line(qr/^header/);
sql('SELECT pg_cancel_backend(' . copier() . ')');
$talk->wait_line(qr/^error 57014 /);
$talk->wait_line(qr/^then 44/);
none_left('cancelled');
$talk->close;

$talk = SluiceTest::Conversation->open($node, copy($oid{big}), '--slow', 50);
$talk->wait_line(qr/^header/);
$talk->signal('KILL');
none_left('client killed');
$talk->close;

sql(q{ALTER SYSTEM SET sluice.sender_timeout = '500ms'});
$node->reload;
$talk = SluiceTest::Conversation->open($node, copy($oid{big}), '--slow', 20);
$talk->wait_line(qr/^header/);
$talk->signal('STOP');
none_left('client stopped for longer than it may');
like(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/has taken nothing of its copy for 1000 ms/, 'the log says why');
$talk->signal('CONT');
$talk->close;
sql(q{ALTER SYSTEM RESET sluice.sender_timeout});
$node->reload;

# the end of the server does not wait for clients that do not read
my $copying = SluiceTest::Conversation->open($node, copy($oid{big}), '--slow', 20);
my $streaming = SluiceTest::Conversation->open($node, stream($copy->{low}, replica => 'stopped'));
$_->wait_line(qr/^(header|greeting)/) foreach $copying, $streaming;
$_->signal('STOP') foreach $copying, $streaming;
sql('UPDATE big SET v = v');
wait_for_sql($node, 'postgres', 'SELECT stored = head FROM sluice.shard_status');
$node->stop('fast');
pass('a fast shutdown succeeds');
$_->signal('CONT') foreach $copying, $streaming;
$_->close foreach $copying, $streaming;

# ---- rewritten between list and table, a partition emptied ----

# The decoder stands still, so that the change does not stop the shard yet; it
# is waited for, but not for ever.
$node->start;
wait_for_sql($node, 'postgres', q{SELECT state = 'streaming' FROM sluice.shard_status});
wait_for(sub { (talk($node, copy($oid{empty})))[-1] eq 'end CALL' }, 'the decoder publishes low');
my $decoder = sql('SELECT decoder_pid FROM sluice.shard_status');
kill 'STOP', $decoder;
$other = psql_background($node);
$xid = $other->query_safe('BEGIN; ALTER TABLE rewritten ALTER v TYPE text USING upper(v); TRUNCATE part21; SELECT pg_current_xact_id()');
$talk = SluiceTest::Conversation->open($node, copy("$oid{rewritten},$oid{part}"));
$talk->wait_line(qr/^alive/);
$other->query_safe('COMMIT');
$talk->wait_line(qr/^header $oid{rewritten}/);
$copy = parse($talk->lines);
ok(visible($copy, $xid), 'the rewriting change is in the snapshot');
$talk->wait_line(qr/^(end CALL|error)/);
ok((grep { /^insert $oid{rewritten} old 0: 1 'ONE'/ } $talk->lines) && (grep { /^finished $oid{rewritten} rows 2$/ } $talk->lines),
	'and so are its rows');
ok((grep { /^finished $oid{part} rows 99$/ } $talk->lines), 'a leaf emptied meanwhile has no rows');
$talk->close;

# who waits by trying holds nothing that others wait for
$other->query_safe('BEGIN; LOCK TABLE ONLY part21 IN ACCESS EXCLUSIVE MODE');
$talk = SluiceTest::Conversation->open($node, copy($oid{part}));
wait_for_sql($node, 'postgres', q{SELECT waits_for LIKE 'a lock on the table%' FROM sluice.replica_status WHERE mode = 'copy'});
$other->query_safe("SET lock_timeout = '5s'; LOCK TABLE part IN ACCESS EXCLUSIVE MODE; COMMIT");
$other->quit;
$talk->wait_line(qr/^(end CALL|error)/);
ok((grep { /^finished $oid{part} rows 99$/ } $talk->lines), 'a root and its leaves are locked together or not at all');
$talk->close;
kill 'CONT', $decoder;

done_testing();
