# Partitions published by themselves and inheritance children, with filters of
# their own; a publication that begins to leave out kinds of changes.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('parts');

$node->safe_psql('postgres', <<'END');
CREATE TABLE root (id int, part int, v text, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE leaf1 PARTITION OF root FOR VALUES IN (1);
CREATE TABLE leaf2 (v text, part int NOT NULL, id int NOT NULL);
ALTER TABLE root ATTACH PARTITION leaf2 FOR VALUES IN (2);
CREATE TABLE leaf3 PARTITION OF root FOR VALUES IN (3);
CREATE TABLE parent (a int PRIMARY KEY, v text);
CREATE TABLE child (b int, PRIMARY KEY (a)) INHERITS (parent);
CREATE TABLE alone (id int PRIMARY KEY, v text);
INSERT INTO root SELECT i, 1 + i % 3, 'v' || i FROM generate_series(1, 90) i;
INSERT INTO parent SELECT i, 'p' FROM generate_series(1, 10) i;
INSERT INTO child SELECT i, 'c', i FROM generate_series(11, 20) i;
INSERT INTO alone SELECT i, 'v' FROM generate_series(1, 10) i;
CREATE PUBLICATION parts FOR TABLE leaf1 WHERE (id > 40), leaf2 WHERE (id % 2 = 0), parent WHERE (a % 2 = 0);
CREATE PUBLICATION one FOR TABLE alone;
CREATE PUBLICATION every FOR TABLE root;
END

create_shard($node, 'some', publications => "ARRAY['parts', 'one']");
create_shard($node, 'every', publications => "ARRAY['parts', 'every']");
my $some = start_agent(node => $node, shard => 'some', name => 'some');
my $every = start_agent(node => $node, shard => 'every', name => 'every');

sub both
{
	my ($what) = @_;

	compare($node, $some->replica, shard => 'some', what => $what);
	compare($node, $every->replica, shard => 'every', what => "$what: partitions of an unfiltered root");
	return;
}

both('the first copy');
is(replica_query($some->replica, 'SELECT (SELECT count(*) FROM leaf1), (SELECT count(*) FROM leaf2), (SELECT count(*) FROM parent), (SELECT count(*) FROM child)'),
	'17|15|5|5', 'each by its filter');
is(replica_query($every->replica, 'SELECT (SELECT count(*) FROM leaf1), (SELECT count(*) FROM leaf2), (SELECT count(*) FROM leaf3)'),
	'30|30|30', 'a root without a filter publishes all rows of its partitions');

$node->safe_psql('postgres', <<'END');
UPDATE root SET v = v || '!' WHERE id % 7 = 0;
UPDATE root SET id = id + 101 WHERE id % 11 = 0;
UPDATE root SET id = id + 1000 WHERE part = 1 AND id < 30;
UPDATE root SET id = -id WHERE part = 1 AND id BETWEEN 50 AND 70;
UPDATE root SET part = 1 + part % 3 WHERE id % 13 = 0;
DELETE FROM root WHERE id % 17 = 0;
INSERT INTO root SELECT i, 1 + i % 3, 'new' FROM generate_series(200, 220) i;
UPDATE parent SET a = a + 101 WHERE a % 3 = 0;
UPDATE parent SET v = v || a;
DELETE FROM parent WHERE a % 5 = 0;
INSERT INTO child VALUES (300, 'c', 1), (301, 'c', 1);
UPDATE ONLY parent SET a = a + 1000 WHERE a < 5;
END
both('rows that come, go and change their partition');
$node->safe_psql('postgres', 'TRUNCATE leaf2; TRUNCATE ONLY parent; INSERT INTO root VALUES (1, 2), (2, 2); INSERT INTO parent VALUES (1), (2)');
both('truncated');

$node->safe_psql('postgres', q{ALTER PUBLICATION one SET (publish = 'insert'); INSERT INTO alone VALUES (11, 'v')});
ok($node->wait_for_log(qr/table public\.alone is not followed any more: publication one does not publish update/),
	'a publication that leaves out a kind of change flags its table');
$node->safe_psql('postgres', 'INSERT INTO root VALUES (5000, 1)');
ok(wait_for(sub { replica_query($some->replica, 'SELECT count(*) FROM leaf1 WHERE id = 5000') eq '1' }, 'the others go on'), 'the others go on');
is(replica_query($some->replica, 'SELECT count(*) FROM alone'), '10', 'and it keeps the rows that it had');

done_testing();
