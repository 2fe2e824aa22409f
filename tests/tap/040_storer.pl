# The storer alone, fed by a test module in the decoder's place: any sizes,
# rollbacks, transactions without an end, restarts; the log has what was
# committed, once, in order, and nothing else.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('storer', conf => "shared_preload_libraries = 'sluice, sluice_feed'");

sub sql { return $node->safe_psql('postgres', $_[0]); }
sub lexi
{
	my ($n) = @_;
	my $text = '';
	do { $text = substr('0123456789abcdefghijklmnopqrstuvwxyz', $n % 36, 1) . $text; $n = int($n / 36); } while ($n);
	return substr('0123456789abcdef', length($text) - 1, 1) . $text;
}
sub stored { return is(sql("SELECT feed_stored('f', $_[0])"), 't', "stored up to $_[0]"); }
sub start_storer
{
	wait_for_sql($node, 'postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'sluice storer'");
	return sql("SELECT feed_storer('f')");
}
sub contiguous
{
	my ($what) = @_;
	is( sql('SELECT count(*) FILTER (WHERE gap <> 1), count(*) FILTER (WHERE before <> bytes_before) FROM (
		SELECT number - lag(number) OVER w AS gap, bytes_before, lag(bytes_before + length(data)) OVER w AS before
		FROM cdc_f.slices WINDOW w AS (ORDER BY number)) s'), '0|0', "$what: slices are consecutive");
	is( sql(q{SELECT count(*) FROM (SELECT watermark, count(*) n, max(pos) top, min(pos) low,
		min(change->>'tag') FILTER (WHERE pos = 0) first, bool_or(precommit = watermark) committed
		FROM cdc_f."changeLog" GROUP BY watermark) t
		WHERE n <> top + 1 OR low <> 0 OR first <> 'begin' OR NOT committed}), '0', "$what: transactions are whole");
	is( sql(q{SELECT count(*) FROM (SELECT watermark, change->>'tag' tag, max((change->'new'->>'id')::int8 % 1000000) top,
		count(*) n FROM cdc_f."changeLog" GROUP BY 1, 2) t WHERE tag = 'insert' AND n <> top + 1}), '0', "$what: rows are whole");
	return;
}

sql(q{CREATE EXTENSION sluice; CREATE EXTENSION sluice_feed; SELECT feed_create('f')});
is(sql(q{SELECT count(*) FROM cdc_f."changeLog"}), '0', 'an empty log');
is(sql(q{SELECT "lastWatermark" = '1rr' FROM cdc_f."replicationState"}), 't', 'its head is the first position');
start_storer();
is(sql("SELECT feed_start('f')"), '999', 'a generation begins there');

# small ones, large ones, one at a time and together
my $last = sql("SELECT feed('f', 1000, 1000, 3, 40)");
is($last, 10990);
stored(10990);
is(sql('SELECT count(*) < 100, bool_and(flags = 0) FROM cdc_f.slices'), 't|t', 'small transactions share slices');
is(sql(q{SELECT count(*), count(DISTINCT watermark) FROM cdc_f."changeLog"}), '5000|1000');
is(sql("SELECT (feed_entry('f')).stored"), lexi(10990), 'the entry says what is stored');
is(sql("SELECT (feed_entry('f')).stored_end"), '10995', '... and where it ends');
$last = sql("SELECT feed('f', 20000, 400, -20, 9000, 3)");
stored($last);
is(sql(q{SELECT count(DISTINCT watermark) FROM cdc_f."changeLog" WHERE watermark >= '} . lexi(20000) . q{'}), '267', 'what is rolled back is not there');
contiguous('mixed sizes');
is(sql("SELECT transactions, last FROM feed_read('f', 999, 100000)"), "1267|$last", 'a reader sees the same');
is(sql("SELECT transactions FROM feed_read('f', 999, 1)"), '1267', '... slice by slice');
is(sql("SELECT transactions BETWEEN 268 AND 268 + 60 FROM feed_read('f', 10980, 100000)"), 't', '... from the slice of a position on');

# larger than the ring
$last = sql("SELECT feed('f', 30000, 3, 3, 5000000, 2)");
stored(30020);
is(sql(q{SELECT count(DISTINCT watermark), count(*) FROM sluice.change_log('f', '} . lexi(30000) . q{')}), '2|10', 'larger than the ring');
is(sql(q{SELECT sum(length(change->'new'->>'v')) FROM sluice.change_log('f', '} . lexi(30000) . q{')}), '30000000');
contiguous('larger than the ring');
is(sql(q{SELECT count(*) FROM sluice.change_log('f', '} . lexi(30000) . "', '" . lexi(30010) . q{')}), '5', 'an upper bound');
is(sql(q{SELECT string_agg(DISTINCT watermark, ',') FROM sluice.change_log('f', '} . lexi(10970) . "', '" . lexi(10980) . q{')}),
	join(',', lexi(10970), lexi(10980)), 'both bounds within a slice');

# a backfill's transaction is stored and confirms nothing
sql("SELECT feed('f', 30020, 1, 2, 10, 0, true)");
wait_for_sql($node, 'postgres', q{SELECT (feed_entry('f')).stored}, lexi(30020) . '.' . lexi(1));
is(sql("SELECT (feed_entry('f')).stored_end"), '30025', 'a backfill confirms nothing');
is(sql(q{SELECT change->>'skipAck' FROM cdc_f."changeLog" WHERE watermark LIKE '%.%' AND pos = 0}), 'true');

# unfinished, then: a new generation; the storer ended; the server crashed
my $head = lexi(30020) . '.' . lexi(1);
my $slices = sql('SELECT count(*) FROM cdc_f.slices');
for my $end ('generation', 'storer', 'crash')
{
	sql("SELECT feed_open('f', 40000, 2000, 1000)");
	wait_for_sql($node, 'postgres', "SELECT count(*) > $slices + 60 FROM cdc_f.slices");
	is(sql('SELECT "lastWatermark" FROM cdc_f."replicationState"'), $head, "$end: an unfinished transaction is not the head");
	is(sql(q{SELECT max(watermark COLLATE "C") FROM cdc_f."changeLog"}), $head, "$end: nor seen");
	is(sql(qq{SELECT count(*) FROM sluice.change_log('f', '$head')}), '4', "$end: nor within bounds");
	is(sql("SELECT last FROM feed_read('f', 30000, 10000000)"), '30020', "$end: nor read");
	if ($end eq 'storer')
	{
		sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'sluice storer'");
		start_storer();
	}
	elsif ($end eq 'crash')
	{
		$node->stop('immediate');
		$node->start;
		start_storer();
	}
	is(sql("SELECT feed_start('f')"), '30020', "$end: a new generation behind the head");
	wait_for_sql($node, 'postgres', 'SELECT count(*) FROM cdc_f.slices', $slices);
	is(sql('SELECT count(*) FROM cdc_f.slices'), $slices, "$end: its slices are gone");
}
sql("SELECT feed('f', 30000, 3, 3, 10)");
$last = sql("SELECT feed('f', 41000, 100, 3, 1000)");
stored($last);
is(sql(q{SELECT count(*) FROM cdc_f."changeLog" WHERE watermark = '} . lexi(30000) . q{'}), '5', 'what is stored is not stored again');
contiguous('after restarts');

# ring of a predecessor: the writer is told to begin anew
my ($stdout, $stderr) = ('', '');
my $feeder = $node->background_psql('postgres', on_error_stop => 0);
$feeder->query_until(qr/go/, "\\echo go\nSELECT feed('f', 50000, 2000, 10, 2000);\n");
wait_for_sql($node, 'postgres', q{SELECT (feed_entry('f')).stored > '} . lexi(50000) . q{'});
sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'sluice storer'");
start_storer();
$feeder->quit;
$head = sql("SELECT feed_start('f')");
cmp_ok($head, '>=', 50000, 'some of it is stored');
$last = sql("SELECT feed('f', 50000, 2000, 10, 2000)");
stored($last);
contiguous('storer replaced under load');
is(sql(q{SELECT count(DISTINCT watermark) FROM cdc_f."changeLog" WHERE watermark >= '} . lexi(50000) . q{'}), '2000', 'no gap, no duplicate');

# positions
($stdout, $stderr) = ('', '');
$node->psql('postgres', "SELECT feed_read('f', 998, 1000)", stderr => \$stderr);
like($stderr, qr/does not reach back to watermark 1rq.*earliest position to start from is 1rr/s, 'too old');
is(sql("SELECT transactions FROM feed_read('f', 999999999, 1000)"), '0', 'ahead: nothing yet');

# ownership
sql("SELECT feed_set_slot('f', 'sluice_f_2')");
my $before = sql('SELECT count(*) FROM cdc_f.slices');
sql("SELECT feed('f', 900000, 1, 1, 1)");
wait_for_sql($node, 'postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'sluice storer'");
ok($node->log_contains(qr/slot "sluice_f_1" does not own .* slot "sluice_f_2" does/), 'ownership lost');
is(sql('SELECT count(*) FROM cdc_f.slices'), $before, 'and nothing stored');

sql("SELECT feed_drop('f')");
is(sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'cdc_f'"), '0', 'dropped');
sql('DROP EXTENSION sluice_feed; DROP EXTENSION sluice');

done_testing();
