# Row filters: what a replica has of a table are the rows for which a filter is
# true, in a copy and in the stream alike; updates that take a row over the
# border; what cannot be followed is flagged, the other tables go on.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('filters');

$node->safe_psql('postgres', <<'END');
CREATE SCHEMA s;
CREATE TABLE two (id int PRIMARY KEY, v text);
CREATE TABLE plain (id int PRIMARY KEY, v text);
CREATE TABLE listed (id int PRIMARY KEY, hidden text, shown text);
CREATE TABLE fullid (a int, b text, n numeric);
ALTER TABLE fullid REPLICA IDENTITY FULL;
CREATE TABLE fullkey (id int PRIMARY KEY, flag bool, big text, more text[]);
ALTER TABLE fullkey REPLICA IDENTITY FULL;
ALTER TABLE fullkey ALTER big SET STORAGE EXTERNAL, ALTER more SET STORAGE EXTERNAL;
CREATE TABLE bigkey (k text PRIMARY KEY, n int) WITH (toast_tuple_target = 128);
CREATE TABLE indexid (id int PRIMARY KEY, b text NOT NULL, a date NOT NULL, UNIQUE (a, b));
ALTER TABLE indexid REPLICA IDENTITY USING INDEX indexid_a_b_key;
CREATE TABLE gone (x int, id int PRIMARY KEY, y text);
ALTER TABLE gone DROP COLUMN x;
CREATE TABLE root (id int, part int, v text, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE leaf1 PARTITION OF root FOR VALUES IN (1);
CREATE TABLE mid (v text, part int NOT NULL, id int NOT NULL) PARTITION BY LIST (part);
ALTER TABLE root ATTACH PARTITION mid FOR VALUES IN (2, 3);
CREATE TABLE leaf2 (gone int, id int NOT NULL, v text, part int NOT NULL);
ALTER TABLE leaf2 DROP COLUMN gone;
ALTER TABLE mid ATTACH PARTITION leaf2 FOR VALUES IN (2);
CREATE TABLE leaf3 PARTITION OF mid FOR VALUES IN (3);
CREATE TABLE s.whole (id int PRIMARY KEY);
CREATE TABLE s.both (id int PRIMARY KEY);
CREATE TABLE none (id int PRIMARY KEY);
CREATE TABLE toastkey (id int PRIMARY KEY, big text, n int);
ALTER TABLE toastkey ALTER big SET STORAGE EXTERNAL;
CREATE TABLE fails (id int PRIMARY KEY);

INSERT INTO two SELECT i, 'v' || i FROM generate_series(1, 200) i;
INSERT INTO plain SELECT i, 'v' FROM generate_series(1, 20) i;
INSERT INTO listed SELECT i, 'secret', 'shown' FROM generate_series(1, 20) i;
INSERT INTO fullid SELECT nullif(i % 7, 0), nullif('b' || i % 5, 'b0'), i FROM generate_series(1, 100) i;
INSERT INTO fullkey SELECT i, (ARRAY[true, false, NULL])[1 + i % 3], repeat(chr(96 + i), 5000), ARRAY[repeat('m', 4000), NULL] FROM generate_series(1, 20) i;
INSERT INTO bigkey SELECT (ARRAY['in', 'out'])[1 + i % 2] || i || repeat('k', 20000), i FROM generate_series(1, 12) i;
INSERT INTO indexid SELECT i, 'b' || i, '2000-01-01'::date + i FROM generate_series(1, 100) i;
INSERT INTO gone SELECT i, 'y' FROM generate_series(1, 10) i;
INSERT INTO root SELECT i, 1 + i % 3, 'v' || i FROM generate_series(1, 300) i;
INSERT INTO s.whole SELECT generate_series(1, 10);
INSERT INTO s.both SELECT generate_series(1, 10);
INSERT INTO none SELECT generate_series(1, 10);
INSERT INTO toastkey SELECT i, repeat('t', 5000), i FROM generate_series(1, 20) i;
INSERT INTO fails SELECT generate_series(1, 10);

CREATE PUBLICATION a FOR TABLE two WHERE (id > 150), plain WHERE (id > 10), listed (id, shown) WHERE (id % 2 = 0),
	fullid WHERE (a > 3 AND b <> 'b2'), fullkey WHERE (flag), bigkey WHERE (k LIKE 'in%'),
	indexid WHERE (a > '2000-02-01' OR b IN ('b1', 'b2')), gone WHERE (id > 5),
	root WHERE (part > 1 AND id % 2 = 0), s.whole WHERE (id > 5), none WHERE (NULL),
	toastkey WHERE (id <= 10), fails WHERE (100 / id > 10)
	WITH (publish_via_partition_root = true);
CREATE PUBLICATION b FOR TABLE two WHERE (id = 5 OR id % 20 = 7), plain, none WHERE (id < 0);
CREATE PUBLICATION c FOR TABLES IN SCHEMA s, TABLE s.both WHERE (id > 5);
END

create_shard($node, 'demo', publications => "ARRAY['a', 'b', 'c']");
my $agent = start_agent(node => $node, shard => 'demo', name => 'demo');
my $copies = 0;

# the one that follows, and one that copies now
sub both
{
	my ($what) = @_;
	my $copy = start_agent(node => $node, shard => 'demo', name => 'copy' . ++$copies);

	compare($node, $agent->replica, shard => 'demo', what => $what);
	compare($node, $copy->replica, shard => 'demo', what => "$what: a copy");
	$copy->stop;
	return;
}

compare($node, $agent->replica, shard => 'demo', what => 'the first copy');
is(replica_query($agent->replica, 'SELECT count(*), min(id) FROM two'), '59|5', 'one filter or the other');
is(replica_query($agent->replica, 'SELECT count(*) FROM plain'), '20', 'unfiltered in one publication');
is(replica_query($agent->replica, 'SELECT count(*) FROM "s.both"'), '10', 'the schema beside a filter, in one publication');
is(replica_query($agent->replica, 'SELECT count(*) FROM "s.whole"'), '10', 'the schema of another publication');
is(replica_query($agent->replica, 'SELECT count(*) FROM none'), '0', 'a filter that is NULL');
is(replica_query($agent->replica, 'SELECT count(*) FROM fullkey'), '6', 'rows whose filter is NULL are not there');

$node->safe_psql('postgres', <<'END');
INSERT INTO two VALUES (300, 'in'), (0, 'out');
UPDATE two SET v = v || '!' WHERE id BETWEEN 140 AND 160;
UPDATE two SET id = id + 1000 WHERE id IN (1, 2, 3);
UPDATE two SET id = id - 2000 WHERE id IN (1001, 199);
UPDATE two SET id = 5000 + id WHERE id IN (5, 4);
UPDATE two SET id = -id, v = NULL WHERE id = 6;
DELETE FROM two WHERE id IN (10, 180, 27);
UPDATE plain SET id = id - 20 WHERE id > 15;
DELETE FROM plain WHERE id < 3;
UPDATE listed SET hidden = 'h', shown = 's' || id;
UPDATE listed SET id = id + 21 WHERE id > 15;
DELETE FROM listed WHERE id < 5;
INSERT INTO listed VALUES (100, 'a', 'b'), (101, 'a', 'b');
UPDATE gone SET id = id + 100 WHERE id IN (1, 2, 9);
UPDATE gone SET y = NULL;
UPDATE gone SET id = -id WHERE id > 8;
END
both('keys that cross the filter');

$node->safe_psql('postgres', <<'END');
UPDATE fullid SET a = 9 WHERE a IS NULL;
UPDATE fullid SET a = NULL WHERE a = 5;
UPDATE fullid SET b = NULL WHERE b = 'b3' AND n < 50;
UPDATE fullid SET b = 'b3' WHERE b IS NULL AND a = 4;
UPDATE fullid SET n = n + 1;
UPDATE fullid SET a = 1 WHERE ctid = (SELECT min(ctid) FROM fullid WHERE a = 4);
INSERT INTO fullid SELECT 4, 'b1', 7 FROM generate_series(1, 3);
DELETE FROM fullid WHERE ctid IN (SELECT ctid FROM fullid WHERE a = 4 AND b = 'b1' AND n = 7 LIMIT 1);
DELETE FROM fullid WHERE a = 6 OR b = 'b2';
UPDATE indexid SET id = -id WHERE id % 3 = 0;
UPDATE indexid SET a = a + 40 WHERE id % 7 = 0;
UPDATE indexid SET a = a - 60 WHERE id % 5 = 0;
UPDATE indexid SET b = 'b1' WHERE id IN (4, 8);
DELETE FROM indexid WHERE id % 11 = 0;
UPDATE s.both SET id = id - 20 WHERE id > 5;
UPDATE none SET id = -id WHERE id > 5;
INSERT INTO none VALUES (-100);
DELETE FROM none WHERE id IN (-6, 1);
END
both('every identity, NULLs');

$node->safe_psql('postgres', <<'END');
UPDATE fullkey SET flag = true WHERE id IN (1, 2, 4);
UPDATE fullkey SET flag = NULL WHERE id IN (3, 6);
UPDATE fullkey SET flag = NOT flag, id = id + 100 WHERE id IN (7, 9, 10, 12);
UPDATE fullkey SET more[2] = 'x' WHERE id IN (13, 15, 18);
UPDATE fullkey SET big = big || 'y', flag = NOT flag WHERE id IN (14, 16);
UPDATE bigkey SET n = -n;
UPDATE bigkey SET k = 'in' || k WHERE n IN (-1, -3);
UPDATE bigkey SET k = 'x' || k WHERE n IN (-2, -4);
DELETE FROM bigkey WHERE n IN (-5, -6);
UPDATE bigkey SET n = n * 2;
END
both('TOAST values');

$node->safe_psql('postgres', <<'END');
UPDATE root SET v = v || '!' WHERE id % 7 = 0;
UPDATE root SET id = id + 1001 WHERE id % 11 = 0;
UPDATE root SET part = 1 + part % 3 WHERE id % 13 = 0;
DELETE FROM root WHERE id % 17 = 0;
INSERT INTO root VALUES (5000, 1, 'out'), (5000, 2, 'in'), (5001, 3, 'out'), (5002, 3, 'in');
END
both('partitions under their root');
cmp_ok(replica_query($agent->replica, 'SELECT count(*) FROM root'), '>', 50, 'which has rows');

$node->safe_psql('postgres', <<'END');
BEGIN;
TRUNCATE two, plain, root;
INSERT INTO two VALUES (1, 'out'), (151, 'in'), (7, 'in');
SAVEPOINT x; UPDATE two SET id = 152 WHERE id = 1; ROLLBACK TO x;
INSERT INTO root VALUES (1, 2, 'out'), (2, 2, 'in');
UPDATE root SET id = 4 WHERE id = 1; UPDATE root SET id = 4 WHERE id = 4 AND v = 'out';
COMMIT;
BEGIN; CREATE TABLE young (id int PRIMARY KEY, v text); ALTER PUBLICATION a ADD TABLE young WHERE (id > 5);
INSERT INTO young SELECT i, 'v' FROM generate_series(1, 10) i; COMMIT;
UPDATE young SET id = 20 - id WHERE id < 4;
ALTER TABLE young RENAME id TO key;
UPDATE young SET key = key - 10;
ALTER PUBLICATION b SET TABLE two WHERE (  id = 5  OR  id%20 = 7  ), plain, none WHERE (id < 0);
INSERT INTO two VALUES (47, 'in'), (48, 'out');
END
both('truncate, a table that comes with its filter, the same filter again');
is(replica_query($agent->replica, 'SELECT group_concat(key) FROM young'), '7,8,9', 'the rows of the new table');

# what cannot be followed
$node->safe_psql('postgres', 'UPDATE toastkey SET n = -n WHERE id = 15; UPDATE toastkey SET id = id - 100 WHERE id = 3; UPDATE toastkey SET id = id + 100 WHERE id = 4');
both('a key change without TOAST values in sight');
$node->safe_psql('postgres', 'UPDATE toastkey SET id = 0 WHERE id = 15; INSERT INTO fails VALUES (0); INSERT INTO two VALUES (1000)');
ok($node->wait_for_log(qr/table public\.toastkey is not followed any more: UPDATE made a row match the row filter, and its unchanged value of column big is not in the WAL/),
	'an unchanged TOAST value that an insert would need');
ok($node->wait_for_log(qr/table public\.fails is not followed any more: its row filter fails for a row \(division by zero\)/), 'a filter that fails');
ok(wait_for(sub { replica_query($agent->replica, 'SELECT count(*) FROM two WHERE id = 1000') eq '1' }, 'the other tables go on'), 'the other tables go on');

# a changed filter
$node->safe_psql('postgres', q{SELECT sluice.set_option(name, 'auto_reset', 'off') FROM sluice.shards});
$node->safe_psql('postgres', 'ALTER PUBLICATION b SET TABLE two WHERE (id = 6), plain, none WHERE (id < 0)');
wait_for_sql($node, 'postgres', q{SELECT state = 'stopped' FROM sluice.shard_status});
like($node->safe_psql('postgres', 'SELECT message FROM sluice.shard_status'), qr/table public\.two: its row filter was changed/, 'a changed filter stops the shard');

done_testing();
