# Purge keeps what a known replica still needs, what a copy may begin with and
# the newest transaction, and frees the rest; retention goes before replicas.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('purge', conf => <<'END');
shared_preload_libraries = 'sluice, sluice_feed'
autovacuum_naptime = 1s
END

sub sql { return $node->safe_psql('postgres', $_[0]); }
sub error_of
{
	my $stderr = '';
	$node->psql('postgres', $_[0], stderr => \$stderr);
	return $stderr;
}

sql('CREATE EXTENSION sluice; CREATE EXTENSION sluice_feed');
my @shards = qw(needed unplaced free big size age);
for my $shard (@shards)
{
	sql("SELECT feed_create('$shard')");
	sql("SELECT feed_storer('$shard')");
	sql("SELECT feed_start('$shard')");
}

# 100 slices and more each; every transaction is 4 kB, so a slice has one
sql("SELECT feed('$_', 1000, 150, 4, 1000), feed_stored('$_', 2490)") for qw(needed unplaced free age);
sql("SELECT feed_save_replica('needed', 'r1', 1500), feed_save_replica('needed', 'r2', 2000), feed_set_low('needed', 2490)");
sql("SELECT feed_save_replica('unplaced', 'r1', 2490)");
sql("SELECT feed_set_low('free', 2490)");

# the newest one has many slices
sql("SELECT feed('big', 1000, 10, 1, 10), feed('big', 2000, 1, 1000, 1000), feed_stored('big', 2000), feed_set_low('big', 2000)");

# a replica that stays away
sql("SELECT feed_save_replica('size', 'away', 1005), feed_save_replica('size', 'there', 999999), feed_set_retention('size', 7 * 86400000::int8, 16 * 1024 * 1024)");
sql("SELECT feed('size', 1000, 1000, 30, 1000), feed_stored('size', 10990), feed_set_low('size', 1000)");
sql("SELECT feed('size', 11000, 10, 30, 1000), feed_stored('size', 11090)");
wait_for_sql($node, 'postgres', 'SELECT sum(length(data)) < 17 * 1024 * 1024 FROM cdc_size.slices');
is(sql('SELECT sum(length(data)) > 15 * 1024 * 1024 FROM cdc_size.slices'), 't', 'retention_size is kept');
is(sql("SELECT string_agg(name, ' ') FROM cdc_size.replicas"), 'there', 'who needs more is given up');
ok($node->log_contains(qr/change log of shard "size" is not kept for replica "away" any more/), '... and that is told');
like(error_of("SELECT feed_read('size', 1005, 1000)"), qr/does not reach back/, '... and found out');

sql("SELECT feed_save_replica('age', 'away', 1005), feed_set_low('age', 1000), feed_set_retention('age', 1, 1073741824)");

# by then all that may go is gone
wait_for_sql($node, 'postgres', "SELECT count(*) = 1 FROM cdc_$_.slices", 't', 60) for qw(free age);
is(sql("SELECT min(last_major) FROM cdc_free.slices"), '2490', 'nobody needs more than the newest');
is(sql("SELECT min(last_major) FROM cdc_age.slices"), '2490', 'retention_time is kept');
is(sql("SELECT transactions FROM feed_read('free', 2490, 1000)"), '0', 'the newest is a valid position');
wait_for_sql($node, 'postgres', 'SELECT min(first_major) = 1500 FROM cdc_needed.slices');
is(sql("SELECT transactions FROM feed_read('needed', 1500, 1000)"), '99', 'the replica that is behind most goes on');
like(error_of("SELECT feed_read('needed', 1490, 1000)"), qr/does not reach back/, 'before it nothing is left');
is(sql("SELECT (feed_entry('needed')).first = (SELECT watermark FROM cdc_needed.\"changeLog\" WHERE pos = 0 ORDER BY watermark COLLATE \"C\" LIMIT 1)"), 't', 'the entry says so');
wait_for_sql($node, 'postgres', 'SELECT count(*) FILTER (WHERE first_major = 1000) = 0 FROM cdc_big.slices');
is(sql('SELECT count(*) > 100 AND min(first_major) = 2000 AND min(number) = 2 FROM cdc_big.slices'), 't', 'the newest stays whole');
is(sql("SELECT transactions FROM feed_read('big', 2000, 1000)"), '0', 'and is a position');
is(sql('SELECT count(*) FROM cdc_unplaced.slices'), '150', 'without low nothing goes');

# a replica moves on, another is forgotten
sql("SELECT feed_save_replica('needed', 'r1', 2400)");
sql("SELECT sluice.forget_replica('needed', 'r2')");
like(error_of("SELECT sluice.forget_replica('needed', 'r2')"), qr/knows no replica "r2"/, 'forgotten once');
sql("SELECT feed('needed', 2500, 1, 1, 1)");
wait_for_sql($node, 'postgres', 'SELECT min(first_major) = 2400 FROM cdc_needed.slices');
is(sql("SELECT transactions FROM feed_read('needed', 2400, 1000)"), '10', 'what it needs is there');

# what is freed is used again
sql("SELECT feed_set_low('size', 99999999)");
my $from = 20000;
my @pages;
for my $round (1 .. 12)
{
	sql("SELECT feed('size', $from, 200, 30, 1000), feed_stored('size', $from + 1990)");
	$from += 2000;
	# what is above retention_size is gone, then the space is given back: autovacuum's
	# own moment depends on the machine
	wait_for_sql($node, 'postgres', 'SELECT sum(length(data)) <= 17 * 1024 * 1024 FROM cdc_size.slices', 't', 120);
	sql('VACUUM cdc_size.slices');
	push @pages, sql("SELECT pg_relation_size('cdc_size.slices') / 8192");
}
note("pages: @pages");
cmp_ok($pages[11], '<', $pages[5] * 1.25, 'the table does not grow for ever');
is(sql("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation::regclass::text LIKE 'cdc_%'"), '0');

done_testing();
