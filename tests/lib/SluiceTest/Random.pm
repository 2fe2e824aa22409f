# SluiceTest::Random: tables, rows and changes at random, the same for the same
# seed.  Everything is SQL text; what PostgreSQL refuses (a key that is taken, a
# column that is gone) is a transaction that never was.
#
# new(seed => N, ddl => 0|1, prefix => 'r'), setup, transaction, undo, tables.
package SluiceTest::Random;

use strict;
use warnings;
use Storable 'dclone';

my $big = q{(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 120))};

# type => [ SQL expressions for a value … ]
my %types = (
	int2 => [ '(random() * 60000 - 30000)::int2', q{'-32768'::int2} ],
	int4 => [ '(random() * 1000)::int4', '-2147483648' ],
	int8 => [ '(random() * 1e15)::int8', '9007199254740993', '(-9223372036854775808)' ],
	numeric => [ '(random() * 1e6)::numeric', q{'NaN'}, q{'-Infinity'}, '12345678901234567890.123456789', '1e-130', '0.10', '-7' ],
	'numeric(12,3)' => [ '(random() * 1e6)::numeric(12,3)', '0.5' ],
	float4 => [ '(random() * 100)::float4', '0.1', q{'Infinity'}, q{'NaN'}, '1e-40' ],
	float8 => [ 'random()', q{'-0'}, '5e-324', q{'-Infinity'}, '-216237.00000035969' ],
	bool => [ 'random() < 0.5' ],
	text => [ 'md5(random()::text)', q{''}, q{E'a\nb\\t''"x'}, q{'Ω≈ç√∫ 漢字'}, q{'null'}, $big, $big ],
	'varchar(20)' => [ q{left(md5(random()::text), 20)}, q{''} ],
	'char(6)' => [ q{left(md5(random()::text), (random() * 6)::int)} ],
	name => [ q{left(md5(random()::text), 30)} ],
	'"char"' => [ q{'q'} ],
	bytea => [ q{decode(md5(random()::text), 'hex')}, q{''}, q{'\x00ff'}, "convert_to($big, 'UTF8')" ],
	uuid => [ 'gen_random_uuid()' ],
	date => [ q{date '2000-01-01' + (random() * 20000 - 10000)::int}, q{'infinity'}, q{'0044-03-15 BC'}, q{'5874897-12-31'} ],
	timestamp => [ q{timestamp '2020-01-01' + random() * interval '9 years'}, q{'-infinity'}, q{'294276-12-31 23:59:59.999999'}, q{'1901-01-01'} ],
	timestamptz => [ q{timestamptz '2020-01-01' + random() * interval '9 years'}, q{'infinity'}, q{'0044-03-15 12:00:00 BC'} ],
	time => [ q{time '00:00' + random() * interval '23 hours'}, q{'24:00'} ],
	timetz => [ q{'23:59:59.123456+05:30'}, q{'24:00-03'} ],
	interval => [ q{random() * interval '100 days'}, q{'1 year 2 mons -3 days'} ],
	json => [ q{json_build_object('a', random(), 'b', md5(random()::text))}, q{'{"a" : "\u0000"}'}, q{'null'}, q{' [1,  2]'} ],
	jsonb => [ q{jsonb_build_object('a', random(), 'l', jsonb_build_array(1, null, 'x'))}, q{'null'}, q{'123456789012345678901234567890.5'} ],
	'int4[]' => [ q{array[1, null, (random() * 10)::int]}, q{'{}'}, q{'{{1,2},{3,4}}'}, q{'[0:1]={7,8}'} ],
	'text[]' => [ q{array[md5(random()::text), null, 'NULL', '"']}, "array[$big]" ],
	'numeric[]' => [ q{array[1.50, 'NaN', 'Infinity']} ],
	inet => [ q{'10.0.0.1/32'}, q{'::1'} ],
	int4range => [ q{int4range(1, 1 + (random() * 100)::int)}, q{'empty'} ],
	'bit(8)' => [ q{B'10110001'} ],
	mood => [ q{'sad'}, q{'happy'}, q{'it''s "odd"'} ],
	'mood[]' => [ q{array['sad', null]::mood[]} ],
	posint => [ '1 + (random() * 1000)::int' ],
	pair => [ q{row((random() * 9)::int, md5(random()::text))::pair} ],
	point => [ 'point(random(), 1)' ],
	money => [ q{'12.34'} ],
);
my @names = sort keys %types;
my @key_types = qw(int4 int8 text uuid date numeric timestamptz mood inet);

sub new
{
	my ($class, %options) = @_;
	my $self = bless { prefix => 'r', ddl => 0, number => 0, tables => {}, %options }, $class;

	srand($self->{seed});
	return $self;
}

sub pick { my (@from) = @_; return $from[ int(rand(@from)) ]; }
sub chance { my ($percent) = @_; return rand(100) < $percent; }

sub value
{
	my ($type, $never_null) = @_;

	return 'NULL' if !$never_null && chance(15);
	return '(' . pick(@{ $types{$type} }) . ")::$type";
}

sub setup
{
	my ($self) = @_;
	my $sql = <<'END';
CREATE TYPE mood AS ENUM ('sad', 'happy', 'it''s "odd"');
CREATE DOMAIN posint AS int CHECK (value > 0);
CREATE TYPE pair AS (a int, b text);
END

	$sql .= $self->create_table . ";\n" for 1 .. 4 + int(rand(4));
	return $sql;
}

# A table of one of the kinds of key, remembered.
sub create_table
{
	my ($self) = @_;
	my $name = $self->{prefix} . ++$self->{number};
	my $kind = pick(qw(int int composite text other full keyless unique fullkeyless));
	my %columns;
	my @lines;
	my @key;
	my $after = '';

	$name = qq{"$name it's"} if chance(15);
	if ($kind eq 'int')
	{
		@key = ('id');
		%columns = (id => pick(qw(int4 int8)));
	}
	elsif ($kind eq 'composite')
	{
		@key = ('ka', 'kb');
		%columns = (ka => pick(@key_types), kb => pick(@key_types));
	}
	elsif ($kind ne 'keyless' && $kind ne 'fullkeyless')
	{
		@key = ('k');
		%columns = (k => $kind eq 'text' ? 'text' : pick(@key_types));
	}
	for my $i (1 .. 2 + int(rand(7)))
	{
		$columns{ chance(10) ? qq{"C $i"} : "c$i" } = pick(@names);
	}
	@lines = map { my $c = $_; "$c $columns{$c}" . ((grep { $_ eq $c } @key) ? ' NOT NULL' : '') } sort keys %columns;
	push @lines, 'PRIMARY KEY (' . join(', ', @key) . ')' if @key && $kind ne 'unique';
	$after .= "; CREATE UNIQUE INDEX ON $name (" . join(', ', @key) . ')' if $kind eq 'unique';
	if ($kind eq 'unique')
	{
		(my $index = "$name" =~ s/"//gr) .= '_u';
		$after = "; ALTER TABLE $name ADD CONSTRAINT \"$index\" UNIQUE (k); ALTER TABLE $name REPLICA IDENTITY USING INDEX \"$index\"";
	}
	$after .= "; ALTER TABLE $name REPLICA IDENTITY FULL" if $kind =~ /^full/;
	$self->{tables}{$name} = { columns => \%columns, key => \@key, kind => $kind };
	return "CREATE TABLE $name (" . join(', ', @lines) . ")$after";
}

sub tables { my ($self) = @_; return sort keys %{ $self->{tables} }; }

sub insert
{
	my ($self, $name) = @_;
	my $table = $self->{tables}{$name};
	my @columns = sort keys %{ $table->{columns} };
	my $rows = chance(10) ? 200 : 1 + int(rand(8));
	my @values = map {
		my $c = $_;
		my $key = grep { $_ eq $c } @{ $table->{key} };
		!$key ? value($table->{columns}{$c})
		  : $table->{columns}{$c} =~ /^int/ ? '(random() * 3000)::int'
		  # an index takes no value of a third of a page
		  : $table->{columns}{$c} eq 'text' ? pick('md5(random()::text)', q{''}, q{E'a\nb'})
		  : value($table->{columns}{$c}, 1);
	} @columns;

	return "INSERT INTO $name (" . join(', ', @columns) . ') SELECT ' . join(', ', @values)
	  . " FROM generate_series(1, $rows)" . (@{ $table->{key} } ? ' ON CONFLICT DO NOTHING' : '');
}

# Some rows, by place: it works for every kind of table.
sub some_rows
{
	my ($name) = @_;
	my $n = chance(10) ? 300 : 1 + int(rand(5));

	return "ctid IN (SELECT ctid FROM $name ORDER BY random() LIMIT $n)";
}

sub change
{
	my ($self, $name) = @_;
	my $table = $self->{tables}{$name};
	my @columns = sort keys %{ $table->{columns} };
	my @plain = grep { my $c = $_; !grep { $_ eq $c } @{ $table->{key} } } @columns;

	return $self->insert($name) if $table->{kind} eq 'keyless' || chance(45);
	return "TRUNCATE $name" if chance(2);
	return "DELETE FROM $name WHERE " . some_rows($name) if chance(20);
	if (chance(15) && $table->{kind} eq 'int')
	{
		my $by = pick(-1, 1, 5000);
		return "UPDATE $name SET id = id + $by" . (chance(50) ? ' WHERE ' . some_rows($name) : '');
	}
	return $self->insert($name) unless @plain;
	my $c = pick(@plain);
	my $set = chance(10) ? $c : value($table->{columns}{$c});
	return "UPDATE $name SET $c = $set WHERE " . some_rows($name);
}

# A schema change that brings no rows of its own.
sub schema_change
{
	my ($self) = @_;
	my $name = pick($self->tables);
	my $table = $self->{tables}{$name};
	my @plain = grep { my $c = $_; !grep { $_ eq $c } @{ $table->{key} } } sort keys %{ $table->{columns} };
	my $what = pick(qw(add add default drop rename retable index create droptable));

	if ($what eq 'add' || $what eq 'default')
	{
		my $type = pick(qw(int4 text numeric timestamptz bool float8 uuid));
		my %constant = (int4 => '7', text => q{'it''s'}, numeric => '1.50', timestamptz => q{'2020-01-01 00:00:00.5+00'},
			bool => 'true', float8 => q{'-0'}, uuid => q{'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'});
		my $c = 'n' . ++$self->{number};

		$table->{columns}{$c} = $type;
		return "ALTER TABLE $name ADD COLUMN $c $type" . ($what eq 'add' ? '' : " DEFAULT $constant{$type}");
	}
	if ($what eq 'drop' && @plain > 1)
	{
		my $c = pick(@plain);
		delete $table->{columns}{$c};
		return "ALTER TABLE $name DROP COLUMN $c";
	}
	if ($what eq 'rename' && @plain)
	{
		my $c = pick(@plain);
		my $to = 'x' . ++$self->{number};
		$table->{columns}{$to} = delete $table->{columns}{$c};
		return "ALTER TABLE $name RENAME COLUMN $c TO $to";
	}
	if ($what eq 'retable')
	{
		my $to = $self->{prefix} . 't' . ++$self->{number};
		$self->{tables}{$to} = delete $self->{tables}{$name};
		return "ALTER TABLE $name RENAME TO $to";
	}
	if ($what eq 'index' && @plain)
	{
		my ($c) = grep { $table->{columns}{$_} =~ /^(int[248]|uuid|date|bool|float8|numeric|timestamp)$/ } @plain;
		return "CREATE INDEX ON $name ($c)" if defined $c;
	}
	if ($what eq 'droptable' && scalar($self->tables) > 3)
	{
		delete $self->{tables}{$name};
		return "DROP TABLE $name";
	}
	return $self->create_table;
}

# One transaction; the tables are remembered as it leaves them.
sub transaction
{
	my ($self) = @_;
	my @sql = ('BEGIN');

	$self->{before} = dclone($self->{tables});
	my $n = chance(10) ? 30 : 1 + int(rand(5));

	for my $i (1 .. $n)
	{
		push @sql, $self->schema_change if $self->{ddl} && chance(12);
		my $change = $self->change(pick($self->tables));

		if (chance(10))
		{
			push @sql, 'SAVEPOINT s', $change, chance(50) ? 'ROLLBACK TO s' : 'RELEASE s';
		}
		else
		{
			push @sql, $change;
		}
	}
	push @sql, 'COMMIT';
	return join(";\n", @sql) . ";\n";
}

# The server has refused it: a key was taken.
sub undo { my ($self) = @_; $self->{tables} = $self->{before}; return; }

1;
