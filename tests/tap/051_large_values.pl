# Large values through copy and stream: TOAST values of many MB, unchanged ones,
# arrays of 30,000 elements, larger than the ring; memory of the workers.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('large');
my @array_types = qw(text uuid date int8 float8 json m);

$node->safe_psql('postgres', <<'END');
CREATE TYPE m AS (c text, a int);
CREATE TABLE big (id int PRIMARY KEY, n int, b bytea, t text);
ALTER TABLE big ALTER b SET STORAGE EXTERNAL;
CREATE TABLE ms (id int PRIMARY KEY, ms m[], n int);
INSERT INTO ms VALUES (1, NULL, 1), (2, '{}', 1), (3, (SELECT array_agg(ROW(i || 'x', i)::m) FROM generate_series(1, 50000) i), 1);
INSERT INTO big SELECT 1, 1, decode(repeat('00ff10', 8000000), 'hex'), NULL;
INSERT INTO big SELECT 2, 1, NULL, repeat('compressible naïve ', 300000);
END
$node->safe_psql('postgres', "CREATE TABLE a_$_ (id int PRIMARY KEY, a ${_}[], n int)") foreach @array_types;
my %element = (text => "i || 'x'", uuid => "md5(i::text)::uuid", date => "date '2000-01-01' + i", int8 => 'i * 1000000007::int8',
	float8 => 'i / 7.0', json => "('{\"a\": ' || i || '}')::json", m => "ROW(i || 'y', i)::m");
my $arrays = join '', map { "INSERT INTO a_$_ SELECT %d, array_agg($element{$_}), 1 FROM generate_series(1, 30000) i;" } @array_types;

$node->safe_psql('postgres', sprintf $arrays, (1) x @array_types);
create_shard($node, 'demo');
my $agent = start_agent(node => $node, shard => 'demo', name => 'first');
compare($node, $agent->replica, what => 'the first copy');

$node->safe_psql('postgres', sprintf $arrays, (2) x @array_types);
$node->safe_psql('postgres', 'INSERT INTO ms SELECT id + 10, ms, n FROM ms; INSERT INTO big SELECT id + 10, n, b, t FROM big');
compare($node, $agent->replica, what => 'the stream: inserts');
is(replica_query($agent->replica, 'SELECT count(*) FROM big a JOIN big b ON b.id = a.id + 10 WHERE a.b IS b.b AND a.t IS b.t'), 2,
	'copy and stream give the same');

$node->safe_psql('postgres', join '', map { "UPDATE a_$_ SET n = 2; UPDATE a_$_ SET id = id + 100 WHERE id = 2;" } @array_types);
$node->safe_psql('postgres', 'UPDATE ms SET n = 2; UPDATE big SET n = 2; UPDATE big SET id = 100 WHERE id = 11; UPDATE big SET t = \'small\' WHERE id = 2');
compare($node, $agent->replica, what => 'the stream: unchanged values are kept');
$node->safe_psql('postgres', 'DELETE FROM big WHERE id IN (1, 100)');
compare($node, $agent->replica, what => 'the stream: deletes');
is($node->safe_psql('postgres', 'SELECT state FROM sluice.shard_status'), 'streaming', 'the shard streams');

done_testing();
