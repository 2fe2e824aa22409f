# Values of every type through the first copy and through the stream: the file
# equals the tables by the oracle, and both ways give the same bytes, whatever
# settings the database and the role have.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('values');
my %samples = (
	bool => [qw(true false)],
	int2 => [ -32768, 32767, 0 ],
	int4 => [ -2147483648, 2147483647 ],
	int8 => [ '-9223372036854775808', '9223372036854775807', '9007199254740993' ],
	oid => [ 0, 4294967295 ],
	float4 => [qw(0.1 -0 NaN Infinity -Infinity 1e-45 3.4028235e38 16777217 123456792 -1.5e10)],
	float8 => [qw(0.1 -0 NaN Infinity -Infinity 5e-324 1.7976931348623157e308 -216237.00000035969 1)],
	numeric => [qw(0 1.50 1.00 NaN Infinity -Infinity 9223372036854775807 9223372036854775808 -9223372036854775808 1e23 0.1
		12345678901234567890.123456789 1e-130 0.30000000000000004 0.30000000000000001 1e400 -0.00001 100000000000000000000),
		('9' x 500) . '.' . ('1' x 400) ],
	'numeric(10,2)' => [ 'NaN', '1.5', '-99999999.99' ],
	text => [ '', 'null', 'NULL', "a\nb\r\n\\\t", "It's'", '"q"', 'naïve Ω 🐘', "\x{1}", 'x' x 5000 ],
	'varchar(20)' => [ '', 'ends with \'' ],
	'char(10)' => [ 'ab', '' ],
	name => [ 'n' x 63, 'Ω' ],
	'"char"' => [ 'c', '' ],
	bytea => [ '\x', '\x00ff', '\x' . join('', map { sprintf '%02x', $_ } 0 .. 255) ],
	uuid => ['A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'],
	date => [qw(2001-02-03 1969-12-31 infinity -infinity 5874897-12-31), '0044-03-15 BC', '4713-01-01 BC' ],
	timestamp => [ '2001-02-03 04:05:06.789012', '1901-01-01', 'infinity', '-infinity', '294276-12-31 23:59:59.999999',
		'0044-03-15 12:00 BC', '1969-12-31 23:59:59.999999', '2248-09-26 15:10:22.208001', '9999-12-31 23:59:59.999' ],
	timestamptz => [ '2001-02-03 04:05:06.789012+05:30', '1901-01-01+00', 'infinity', '-infinity', '9999-12-31 23:59:59.999999+00',
		'4714-11-24 00:00:00.000001+00 BC' ],
	time => [qw(00:00 24:00 23:59:59.999999 12:34:56.789)],
	timetz => [qw(23:59:59.123456+05:30 24:00+00 00:00-08)],
	interval => [ '1 year 2 mons -3 days 04:05:06.789', '0', '-00:00:01' ],
	json => [ '{"a":  1, "a":"\u0000"}', 'null', '{"n": 123456789012345678901234567890.5}', '"x"', '9007199254740993' ],
	jsonb => [ 'null', '{"b":1, "a":[true,null,"é"]}', '{"n": 123456789012345678901234567890.5}', '""' ],
	xml => ['<a b="c">x</a>'],
	money => [ '-1234.56', '92233720368547758.07', '-92233720368547758.08' ],
	'bit(3)' => ['101'],
	'varbit(5)' => [ '101', '' ],
	inet => [ '10.0.0.1', '10.0.0.0/8', '::1' ],
	cidr => ['10.0.0.0/8'],
	macaddr => ['08:00:2b:01:02:03'],
	macaddr8 => ['08:00:2b:01:02:03:04:05'],
	point => ['(1.5,0.1)'],
	polygon => ['((0,0),(1,0.1))'],
	box => ['(1,1),(0,0)'],
	circle => ['<(0,0),1.5>'],
	tsvector => ["'a':1 'b'"],
	tsquery => ["'a' & 'b'"],
	pg_lsn => ['16/B374D848'],
	xid8 => [7],
	int2vector => ['1 2'],
	int4range => [ '[1,5)', 'empty' ],
	numrange => ['[1.50,)'],
	tstzrange => ['["2001-02-03 04:05:06+00",)'],
	int4multirange => ['{[1,2),[5,9)}'],
	mood => [ 'sad', 'it\'s "ok"' ],
	upc => [ '01234', '1e5' ],
	price => ['1.50'],
	pair => [ '(1,"a b")', '(,)' ],
	citext => ['MiXed'],
	hstore => ['"a"=>"1", "b"=>NULL'],
	ltree => ['Top.A'],
	'int4[]' => [ '{1,2,NULL}', '{}', '{{1,2},{3,4}}', '[0:1]={1,2}', '{' . join(',', 1 .. 20000) . '}' ],
	'text[]' => [ '{NULL,"NULL","a\"b","c\\\\d","",null}', "{\"a\nb\"}" ],
	'bool[]' => ['{t,f,NULL}'],
	'int8[]' => ['{9007199254740993}'],
	'numeric[]' => ['{1.50,NaN,Infinity,1e30}'],
	'float4[]' => ['{0.1,NaN,-Infinity,1e-7}'],
	'float8[]' => ['{0.1,1e300,-0}'],
	'date[]' => ['{2001-02-03,infinity}'],
	'timestamptz[]' => ['{"2001-02-03 04:05:06.5+05:30"}'],
	'timestamp[]' => ['{"2001-02-03 04:05:06","0044-03-15 12:00:00 BC"}'],
	'uuid[]' => ['{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,NULL}'],
	'json[]' => ['{"{\"a\":  1}",NULL,"null"}'],
	'jsonb[]' => ['{"{\"a\": 1}"}'],
	'bytea[]' => ['{"\\\\x00ff"}'],
	'interval[]' => ['{"1 day 02:00:00"}'],
	'mood[]' => ['{sad,NULL}'],
	'pair[]' => [ '{"(1,\"x\")",NULL,"(,)"}' ],
	'citext[]' => ['{MiXed}'],
	prices => ['{1.50,NULL}'],
);
my @types = sort keys %samples;

sub quoted
{
	my ($text) = @_;

	$text =~ s/'/''/g;
	return "'$text'";
}

# a column a type, c0 …; as many rows as the type with most samples has
my ($column, %column_of) = (0);
$column_of{$_} = 'c' . $column++ foreach @types;
my $rows = 0;
foreach my $type (@types)
{
	$rows = @{ $samples{$type} } if @{ $samples{$type} } > $rows;
}

sub inserts
{
	my ($table, $first) = @_;
	my $sql = "SET standard_conforming_strings = on;\n";

	foreach my $row (0 .. $rows)
	{
		my @values = map {
			my $sample = $samples{$_}[$row];
			defined $sample ? quoted($sample) . "::$_" : 'NULL'
		} @types;
		$sql .= "INSERT INTO $table VALUES (" . join(', ', $first + $row, @values) . ");\n";
	}
	return $sql;
}

$node->safe_psql('postgres', <<'END');
CREATE EXTENSION citext;
CREATE EXTENSION hstore;
CREATE EXTENSION ltree;
CREATE TYPE mood AS ENUM ('sad', 'it''s "ok"');
CREATE DOMAIN upc AS text;
CREATE DOMAIN price AS numeric(10,2);
CREATE DOMAIN prices AS numeric[];
CREATE TYPE pair AS (a int, b text);
ALTER DATABASE postgres SET timezone = 'Asia/Kolkata';
ALTER DATABASE postgres SET datestyle = 'SQL, DMY';
ALTER DATABASE postgres SET intervalstyle = 'iso_8601';
ALTER DATABASE postgres SET extra_float_digits = -3;
ALTER DATABASE postgres SET bytea_output = 'escape';
ALTER DATABASE postgres SET quote_all_identifiers = on;
ALTER DATABASE postgres SET xmlbinary = hex;
END
$node->safe_psql('postgres', 'CREATE TABLE v (id int PRIMARY KEY, ' . join(', ', map { "$column_of{$_} $_" } @types) . ')');
$node->safe_psql('postgres', inserts('v', 1));

# a key of every type that can be one
my @keys = grep { !/^(json|xml|point|polygon|box|circle|json\[\]|int2vector|tsquery|tsvector)$/ } @types;
$node->safe_psql('postgres', join '', map {
	my $type = $_;
	"CREATE TABLE k_$column_of{$type} (k $type PRIMARY KEY, n int);" . join '',
	  map { length > 2000 ? '' : "INSERT INTO k_$column_of{$type} VALUES (" . quoted($_) . ', 1);' } @{ $samples{$type} }
} @keys);

create_shard($node, 'demo');
my $agent = start_agent(node => $node, shard => 'demo', name => 'first');
compare($node, $agent->replica, what => 'the first copy');

$node->safe_psql('postgres', inserts('v', 1001));
compare($node, $agent->replica, what => 'the stream: inserts');
my @different = grep {
	replica_query($agent->replica, "SELECT count(*) FROM v a JOIN v b ON b.id = a.id + 1000"
		. " WHERE typeof(a.$column_of{$_}) <> typeof(b.$column_of{$_}) OR quote(a.$column_of{$_}) <> quote(b.$column_of{$_})") ne '0'
} @types;
is("@different", '', 'copy and stream give the same bytes');
is(replica_query($agent->replica, 'SELECT count(*) FROM v a JOIN v b ON b.id = a.id + 1000'), $rows + 1, 'of all rows');

# updates that touch one column, TOAST values unchanged; keys that change; deletes by every key
$node->safe_psql('postgres', "UPDATE v SET $column_of{int2} = 5 WHERE id % 2 = 0; UPDATE v SET id = id + 5000 WHERE id > 1000");
compare($node, $agent->replica, what => 'the stream: updates');
$node->safe_psql('postgres', join '', map { "UPDATE k_$column_of{$_} SET n = 2;" } @keys);
compare($node, $agent->replica, what => 'the stream: updates by every type of key');
$node->safe_psql('postgres', join('', map { "DELETE FROM k_$column_of{$_} WHERE ctid = (SELECT min(ctid) FROM k_$column_of{$_});" } @keys));
compare($node, $agent->replica, what => 'the stream: deletes by every type of key');
my $second = start_agent(node => $node, shard => 'demo', name => 'second');
compare($node, $second->replica, what => 'a copy of the result');

# the options, in a shard of their own
$node->safe_psql('postgres', 'CREATE PUBLICATION just_v FOR TABLE v');
create_shard($node, 'plain', publications => "ARRAY['just_v']", timestamps => 'text', numerics => 'double');
my $plain = start_agent(node => $node, shard => 'plain', name => 'plain');
compare($node, $plain->replica, shard => 'plain', what => 'timestamps as text, numerics as doubles: copy');
$node->safe_psql('postgres', inserts('v', 20001));
compare($node, $plain->replica, shard => 'plain', what => 'timestamps as text, numerics as doubles: stream');
is(replica_query($plain->replica, "SELECT group_concat(t) FROM (SELECT DISTINCT typeof($column_of{$_}) t FROM v ORDER BY t)"),
	{ numeric => 'null,real,text', timestamptz => 'null,text', date => 'null,text' }->{$_}, "storage of $_")
  foreach qw(numeric timestamptz date);

done_testing();
