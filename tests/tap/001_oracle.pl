# The oracle itself: says equal of a file made by hand, and names what differs
# when one thing is changed. Without it no other test would mean much.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('oracle', conf => "shared_preload_libraries = ''");
my $file = replica_file('hand');

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (id int PRIMARY KEY, b bool, f float8, n numeric, c char(4), at timestamptz, y bytea,
	a int[], j jsonb, x text);
INSERT INTO t VALUES
	(1, true, 1, 1.50, 'ab', '2024-01-02 03:04:05.678901+00', '\x00ff', '{1,null}', '{"b":1,"a":[]}', E'tab\there\\'),
	(2, NULL, '-0', 'NaN', NULL, 'infinity', '', '[0:0]={7}', 'null', '');
CREATE TABLE "Keyless" (v text);
INSERT INTO "Keyless" VALUES ('twice'), ('twice'), (NULL);
CREATE TABLE "keyless" (v text);
CREATE SCHEMA s;
CREATE TABLE s.filtered (id int PRIMARY KEY, hidden text);
INSERT INTO s.filtered VALUES (1, 'a'), (-1, 'b');
CREATE TABLE not_published (id int);
CREATE PUBLICATION p FOR TABLE t, "Keyless", "keyless", s.filtered (id) WHERE (id > 0);
END
my $oid = $node->safe_psql('postgres', q{SELECT to_hex('"keyless"'::regclass::oid::int8)});

sub sqlite
{
	my ($sql) = @_;
	my $output = '';

	IPC::Run::run([ 'sqlite3', '-batch', '-bail', $file ], '<', \$sql, '>&', \$output) or die $output;
	return;
}

sqlite(<<"END");
CREATE TABLE t (id INTEGER PRIMARY KEY, b INTEGER, f ANY, n ANY, c TEXT, at ANY, y BLOB, a TEXT, j TEXT, x TEXT,
	_0_version TEXT NOT NULL DEFAULT '00') STRICT;
INSERT INTO t (id, b, f, n, c, at, y, a, j, x) VALUES
	(1, 1, 1.0, 1.5, 'ab  ', 1704164645678.901, x'00ff', '[1,null]', '{"a": [], "b": 1}', 'tab' || char(9) || 'here\\'),
	(2, NULL, -0.0, 'NaN', NULL, 9e999, x'', '[0:0]={7}', 'null', '');
CREATE TABLE "Keyless" (v TEXT, _0_version TEXT NOT NULL DEFAULT '00') STRICT;
INSERT INTO "Keyless" (v) VALUES (NULL), ('twice'), ('twice');
CREATE TABLE "keyless~$oid" (v TEXT, _0_version TEXT NOT NULL DEFAULT '00') STRICT;
CREATE TABLE "s.filtered" (id INTEGER PRIMARY KEY, _0_version TEXT NOT NULL DEFAULT '00') STRICT;
INSERT INTO "s.filtered" (id) VALUES (1);
CREATE TABLE "_sluice.own" (x TEXT);
END

my %options = (args => [ '--publications', 'p' ], deadline => 0);
compare($node, $file, %options, what => 'a file made by hand is equal');

# one change, what the oracle says of it, and the change back
foreach my $case (
	[ 'UPDATE t SET f = 1 WHERE id = 1', qr/key \(1,\) column f: expected float 1\.0, found int 1/, 'UPDATE t SET f = 1.0 WHERE id = 1' ],
	[ 'UPDATE t SET f = 0.0 WHERE id = 2', qr/column f: expected float -0\.0, found float 0\.0/, 'UPDATE t SET f = -0.0 WHERE id = 2' ],
	[ "UPDATE t SET c = 'ab' WHERE id = 1", qr/column c/, "UPDATE t SET c = 'ab  ' WHERE id = 1" ],
	[ "UPDATE t SET x = NULL WHERE id = 2", qr/column x: expected str '', found NoneType/, "UPDATE t SET x = '' WHERE id = 2" ],
	[ 'UPDATE t SET id = 3 WHERE id = 2', qr/missing: \(int 2.*not upstream: \(int 3/s, 'UPDATE t SET id = 2 WHERE id = 3' ],
	[ q{DELETE FROM "Keyless" WHERE rowid = 2}, qr/missing: \(str 'twice'\)/, q{INSERT INTO "Keyless" (v) VALUES ('twice')} ],
	[ q{INSERT INTO "s.filtered" (id) VALUES (-1)}, qr/not upstream: \(int -1\)/, q{DELETE FROM "s.filtered" WHERE id < 0} ],
	[ 'CREATE TABLE surplus (x TEXT)', qr/table surplus: not published/, 'DROP TABLE surplus' ],
	[ 'ALTER TABLE t RENAME COLUMN x TO z', qr/columns missing \['x'\], not upstream \['z'\]/, 'ALTER TABLE t RENAME COLUMN z TO x' ],
	[ qq{ALTER TABLE "keyless~$oid" RENAME TO gone}, qr/table keyless~$oid: missing/, qq{ALTER TABLE gone RENAME TO "keyless~$oid"} ])
{
	my ($change, $says, $back) = @$case;

	sqlite("$change;");
	compare_fails($node, $file, $says, %options);
	sqlite("$back;");
}
compare($node, $file, %options, what => 'equal again after all of them');

compare_fails($node, replica_file('absent'), qr/no file/, %options);

done_testing();
