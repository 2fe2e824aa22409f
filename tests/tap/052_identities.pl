# Tables of every replica identity, shape and publication through the whole
# path: keys that change, equal rows without a key, partitions of another
# order of columns under their root or by themselves, generated columns,
# column lists, names that differ in case only.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('identities');

$node->safe_psql('postgres', <<'END');
CREATE SCHEMA s;
CREATE TABLE fullid (a int, b text);
ALTER TABLE fullid REPLICA IDENTITY FULL;
INSERT INTO fullid VALUES (1, 'x'), (1, 'x'), (NULL, NULL), (NULL, NULL), (2, repeat('y', 100));
CREATE TABLE fullkey (id int PRIMARY KEY, f float8, b text);
ALTER TABLE fullkey REPLICA IDENTITY FULL;
ALTER TABLE fullkey ALTER b SET STORAGE EXTERNAL;
CREATE TABLE indexid (id int PRIMARY KEY, b text NOT NULL, a int NOT NULL, UNIQUE (a, b));
ALTER TABLE indexid REPLICA IDENTITY USING INDEX indexid_a_b_key;
CREATE TABLE gen (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a * 2) STORED, i int GENERATED ALWAYS AS IDENTITY);
CREATE TABLE gone (x int, id int PRIMARY KEY, y text, v text DEFAULT 'd');
INSERT INTO gone VALUES (1, 1, 'old');
ALTER TABLE gone DROP COLUMN x, DROP COLUMN y, ADD COLUMN z int DEFAULT 7;
CREATE TABLE root (id int, part int, v text, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE leaf1 PARTITION OF root FOR VALUES IN (1);
CREATE TABLE mid (v text, part int NOT NULL, id int NOT NULL) PARTITION BY LIST (part);
ALTER TABLE root ATTACH PARTITION mid FOR VALUES IN (2, 3);
CREATE TABLE leaf2 (gone int, id int NOT NULL, v text, part int NOT NULL);
ALTER TABLE leaf2 DROP COLUMN gone;
ALTER TABLE mid ATTACH PARTITION leaf2 FOR VALUES IN (2);
CREATE TABLE leaf3 PARTITION OF mid FOR VALUES IN (3);
CREATE TABLE parent (a int PRIMARY KEY);
CREATE TABLE child (b int, PRIMARY KEY (a)) INHERITS (parent);
CREATE TABLE late (id int PRIMARY KEY, pos int UNIQUE DEFERRABLE INITIALLY DEFERRED, email text UNIQUE);
CREATE TABLE "Case" (id int PRIMARY KEY, "V" int, v int);
CREATE TABLE "case" (id int PRIMARY KEY, "a.b" text, "select" text, "Ω""x" text, _0_version int, rowid text);
CREATE TABLE s."case" (id int PRIMARY KEY);
CREATE TABLE sqlite_stat1 (id int PRIMARY KEY);
CREATE TABLE listed (id int PRIMARY KEY, a int, hidden text, b text);
CREATE TABLE chain (id int PRIMARY KEY, n int);
INSERT INTO chain SELECT i, i FROM generate_series(1, 1000) i;
INSERT INTO root SELECT i, 1 + i % 3, 'v' || i FROM generate_series(1, 300) i;
INSERT INTO parent VALUES (1); INSERT INTO child VALUES (1, 2);
INSERT INTO late VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, NULL);
INSERT INTO "Case" VALUES (1, 2, 3); INSERT INTO "case" VALUES (1, 'x', 'y', 'z', 5, 'r');
INSERT INTO listed VALUES (1, 2, 'secret', 'shown');
INSERT INTO gen (id, a) VALUES (1, 5);
INSERT INTO fullkey VALUES (1, 0, repeat('z', 10000));
INSERT INTO indexid VALUES (1, 'b', 2);
CREATE PUBLICATION p FOR TABLE fullid, fullkey, indexid, gen, gone, root, parent, late, "Case", "case", s."case", sqlite_stat1, listed (id, b), chain
	WITH (publish_via_partition_root = true);
CREATE PUBLICATION leaves FOR TABLE root;
CREATE PUBLICATION twice FOR TABLE listed (b, id);
END

create_shard($node, 'demo', publications => "ARRAY['p', 'twice']");
create_shard($node, 'parts', publications => "ARRAY['leaves']");
my $agent = start_agent(node => $node, shard => 'demo', name => 'demo');
my $parts = start_agent(node => $node, shard => 'parts', name => 'parts');

sub both
{
	my ($what) = @_;

	compare($node, $agent->replica, shard => 'demo', what => $what);
	compare($node, $parts->replica, shard => 'parts', what => "$what: partitions by themselves");
	return;
}

both('the first copy');
is(replica_query($agent->replica, "SELECT group_concat(name) FROM (SELECT name FROM pragma_table_info('listed') ORDER BY cid)"),
	'id,b,_0_version', 'a column list');

$node->safe_psql('postgres', <<'END');
INSERT INTO fullid VALUES (1, 'x'), (3, NULL);
UPDATE fullid SET b = 'new' WHERE a = 2;
UPDATE fullid SET a = 9 WHERE ctid = (SELECT min(ctid) FROM fullid WHERE a = 1);
DELETE FROM fullid WHERE ctid = (SELECT min(ctid) FROM fullid WHERE a IS NULL);
UPDATE fullkey SET f = '-0';
UPDATE fullkey SET id = 2;
INSERT INTO fullkey VALUES (3, 'NaN', NULL);
DELETE FROM fullkey WHERE id = 3;
UPDATE indexid SET id = 5;
UPDATE indexid SET a = 3;
INSERT INTO indexid VALUES (6, 'c', 3);
DELETE FROM indexid WHERE b = 'b';
UPDATE gen SET a = 6;
INSERT INTO gone (id) VALUES (2);
UPDATE gone SET v = 'w' WHERE id = 1;
UPDATE root SET v = v || '!' WHERE id % 7 = 0;
UPDATE root SET id = id + 1000 WHERE id % 11 = 0;
UPDATE root SET part = 1 + part % 3 WHERE id % 13 = 0;
DELETE FROM root WHERE id % 17 = 0;
INSERT INTO child VALUES (7, 8);
UPDATE parent SET a = a + 100;
BEGIN; UPDATE late SET pos = 2 WHERE id = 1; UPDATE late SET pos = 1 WHERE id = 2; COMMIT;
BEGIN; UPDATE late SET email = NULL WHERE id = 1; UPDATE late SET email = 'a' WHERE id = 2; COMMIT;
UPDATE "Case" SET v = 4, "V" = 5; INSERT INTO s."case" VALUES (1); INSERT INTO sqlite_stat1 VALUES (4);
UPDATE "case" SET "a.b" = 'q', "Ω""x" = NULL, _0_version = 6, rowid = 's';
UPDATE listed SET hidden = 'other'; UPDATE listed SET b = 'c'; INSERT INTO listed VALUES (5);
DELETE FROM listed WHERE id = 1;
END
both('every kind of change');

$node->safe_psql('postgres', <<'END');
BEGIN;
INSERT INTO chain VALUES (5000, 1);
SAVEPOINT a; INSERT INTO chain VALUES (5001, 1); ROLLBACK TO a;
SAVEPOINT b; UPDATE chain SET n = -n WHERE id < 100; RELEASE b;
TRUNCATE s."case", sqlite_stat1;
INSERT INTO sqlite_stat1 VALUES (4), (5);
DELETE FROM chain WHERE id BETWEEN 200 AND 300;
INSERT INTO chain SELECT i, 7 FROM generate_series(200, 250) i;
COMMIT;
END
both('subtransactions, truncates');
$node->safe_psql('postgres', 'BEGIN; ALTER TABLE chain DROP CONSTRAINT chain_pkey; ROLLBACK; UPDATE chain SET n = n');
both('an update that changes nothing');
is($node->safe_psql('postgres', q{SELECT string_agg(shard || ' ' || state, ', ' ORDER BY shard) FROM sluice.shard_status}),
	'demo streaming, parts streaming', 'both shards stream');

done_testing();
