# Our own writes reach no one: other slots of the database, publications FOR
# ALL TABLES and their subscribers; and those do not hinder ours.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('publisher', conf => "shared_preload_libraries = 'sluice, sluice_feed'");
my $subscriber = sluice_node('subscriber', conf => "shared_preload_libraries = ''");

sub sql { return $node->safe_psql('postgres', $_[0]); }

sql('CREATE TABLE t (id int PRIMARY KEY, v text)');
$subscriber->safe_psql('postgres', 'CREATE TABLE t (id int PRIMARY KEY, v text)');
sql('CREATE PUBLICATION everything FOR ALL TABLES');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '" . $node->connstr . " dbname=postgres application_name=sub' PUBLICATION everything");
$subscriber->wait_for_subscription_sync($node, 'sub');
create_shard($node, 's');
sql('CREATE EXTENSION sluice_feed');

# one with our tables from the beginning, one that reads all changes as they are
sql("SELECT pg_create_logical_replication_slot('native', 'pgoutput')");
sql("SELECT pg_create_logical_replication_slot('decoded', 'test_decoding')");

# slices of any size, the state row, replicas, the tracked schema: written and removed
sql("INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 2000) i");
sql("INSERT INTO t SELECT i, 'small' FROM generate_series(2001, 2001) i");
sql("UPDATE t SET v = 'y' WHERE id <= 10");
sql('DELETE FROM t WHERE id = 11');
sql("SELECT sluice.set_option('s', 'retention_time', '1 day'), sluice.set_option('s', 'retention_time', '2 days')");
sql("SELECT feed_hold('s')");
sql("SELECT feed_hold('s')");
sql("SELECT sluice.forget_replica('s', 'held')");
wait_for_sql($node, 'postgres', q{SELECT count(*) > 0 FROM cdc_s."changeLog" WHERE change->>'tag' = 'delete'});
my $slices = sql('SELECT count(*) FROM cdc_s.slices');
cmp_ok($slices, '>', 100, 'there are slices');

# the purge deletes although a publication FOR ALL TABLES publishes deletes
sql('DELETE FROM t WHERE id = 12');
wait_for_sql($node, 'postgres', "SELECT count(*) < 10 FROM cdc_s.slices", 't', 60);
sql("INSERT INTO t VALUES (3000, 'last')");

$node->wait_for_catchup('sub');
is($subscriber->safe_psql('postgres', 'SELECT count(*), sum(id) FROM t'), sql('SELECT count(*), sum(id) FROM t'), 'a native subscriber goes on');
$subscriber->stop;
unlike(PostgreSQL::Test::Utils::slurp_file($subscriber->logfile), qr/cdc_s|ERROR/, '... and never heard of us');

# relation messages name every table that comes: only ours to hide
my $relations = sql(q{SELECT count(*) FILTER (WHERE position('cdc_s'::bytea IN data) > 0), count(*) FILTER (WHERE get_byte(data, 0) = ascii('R'))
	FROM pg_logical_slot_get_binary_changes('native', NULL, NULL, 'proto_version', '1', 'publication_names', 'everything')});
is($relations, '0|1', 'pgoutput: only the relation that is there to see');
my $decoded = sql(q{SELECT count(*) FILTER (WHERE data ~ 'cdc_s.*(INSERT|UPDATE)'), count(*) FILTER (WHERE data LIKE 'table public.t: INSERT%')
	FROM pg_logical_slot_get_changes('decoded', NULL, NULL, 'include-xids', '0')});
is($decoded, '0|2002', 'test_decoding: none of our rows');

is(sql("SELECT count(*) FROM sluice.shard_status WHERE state = 'streaming'"), '1', 'the shard streams');
$subscriber->start;
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub DISABLE; ALTER SUBSCRIPTION sub SET (slot_name = NONE); DROP SUBSCRIPTION sub');

done_testing();
