# A database that is not UTF8: names and values reach the file as UTF-8, by
# copy and by stream; an SQL_ASCII database gets no shard.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('encoding');

$node->safe_psql('postgres', q{CREATE DATABASE l1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0});
$node->safe_psql('postgres', q{CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0});
$node->safe_psql('ascii', 'CREATE EXTENSION sluice');
my ($code, $out, $err) = $node->psql('ascii', q{CALL sluice.create_shard('s')});
like($err, qr/a database of encoding SQL_ASCII cannot have shards/, 'SQL_ASCII is refused');

$node->safe_psql('l1', <<'END');
SET client_encoding = 'UTF8';
CREATE TYPE "münz" AS ENUM ('é');
CREATE TABLE "täble" ("naïve" text PRIMARY KEY, "größe" "münz", a text[], j jsonb, n int);
INSERT INTO "täble" VALUES ('Größe é', 'é', '{é,ü}', '{"é":1}', 1);
END
create_shard($node, 'demo', db => 'l1');
my $agent = start_agent(node => $node, shard => 'demo', db => 'l1', name => 'l1');
compare($node, $agent->replica, db => 'l1', what => 'the first copy');
$node->safe_psql('l1', <<'END');
SET client_encoding = 'UTF8';
INSERT INTO "täble" VALUES (repeat('ß', 1000), 'é', '{é,ü}', '{"é":1}', 1);
UPDATE "täble" SET n = 2;
UPDATE "täble" SET "naïve" = "naïve" || 'é' WHERE length("naïve") > 100;
DELETE FROM "täble" WHERE "naïve" = 'nothing';
END
compare($node, $agent->replica, db => 'l1', what => 'the stream');
is(replica_query($agent->replica, q{SELECT "naïve", "größe", a, j FROM "täble" ORDER BY length("naïve") LIMIT 1}),
	'Größe é|é|["é","ü"]|{"é": 1}', 'in UTF-8');
is($node->safe_psql('l1', q{SELECT encode(convert_to(min(change->'relation'->>'name'), 'UTF8'), 'hex') FROM sluice.change_log('demo')}),
	'74c3a4626c65', 'the change log shows it');

done_testing();
