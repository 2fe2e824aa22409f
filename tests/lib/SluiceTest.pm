# SluiceTest: what TAP tests share: a server with sluice, shards, agents, the
# oracle, and waiting for conditions.
#
# Runs as an ordinary user under tests/lib/prove, which sets PATH to the
# staged server and SLUICE_ROOT to the source tree.  Nothing here sleeps for a
# guessed time: everything polls a condition with a deadline.
package SluiceTest;

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);

use SluiceTest::Agent;

our @EXPORT = qw(
  sluice_node create_shard start_agent wait_for wait_for_sql compare compare_fails
  replica_query replica_file oracle psql_background
);

our $root = $ENV{SLUICE_ROOT} // '.';
our $deadline = $ENV{SLUICE_DEADLINE} // 60;

# A started server.  Options: conf (lines), start (default 1), and what
# PostgreSQL::Test::Cluster's init takes as init => [...].
sub sluice_node
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(extra => [ '-E', 'UTF8', '--locale', 'C.UTF-8' ], @{ $options{init} // [] });
	$node->append_conf('postgresql.conf', <<"END");
wal_level = logical
max_wal_senders = 20
max_replication_slots = 20
max_worker_processes = 24
max_connections = 100
max_prepared_transactions = 10
shared_buffers = 64MB
max_wal_size = 1GB
shared_preload_libraries = 'sluice'
log_statement = none
log_error_verbosity = default
restart_after_crash = on
END
	$node->append_conf('postgresql.conf', $options{conf}) if defined $options{conf};
	$node->start if $options{start} // 1;
	return $node;
}

# CALL sluice.create_shard in a database (default postgres), with the extension
# created if need be; further arguments by name: keyless => 'allow'
sub create_shard
{
	my ($node, $shard, %arguments) = @_;
	my $db = delete $arguments{db} // 'postgres';
	my $list = join ', ', "'$shard'",
	  map { "$_ => " . ($arguments{$_} =~ /^(ARRAY|null|true|false)/i ? $arguments{$_} : "'$arguments{$_}'") }
	  sort keys %arguments;

	$node->safe_psql($db, 'CREATE EXTENSION IF NOT EXISTS sluice');
	$node->safe_psql($db, "CALL sluice.create_shard($list)");
	return;
}

# Where a replica of this name lies (a fresh directory per test).
my $directory;
sub replica_file
{
	my ($name) = @_;

	$directory //= PostgreSQL::Test::Utils::tempdir('replica');
	return "$directory/$name.db";
}

# An agent that runs.  Needs node and shard; replica (a file, default by name),
# db, name, args (further options).
sub start_agent
{
	my (%options) = @_;

	$options{name} //= 'replica';
	$options{replica} //= replica_file($options{name});
	return SluiceTest::Agent->start(%options);
}

# True as soon as the condition is; fails the test after the deadline.
sub wait_for
{
	my ($condition, $what, $limit) = @_;
	my $end = time + ($limit // $deadline);
	my $pause = 0.005;

	while (1)
	{
		return 1 if $condition->();
		last if time > $end;
		sleep $pause;
		$pause = $pause * 1.5 > 0.1 ? 0.1 : $pause * 1.5;
	}
	fail("in time: $what");
	return 0;
}

# The same for a query that is to give 't' (or another result).
sub wait_for_sql
{
	my ($node, $db, $sql, $expected, $limit) = @_;

	$expected //= 't';
	return wait_for(sub { $node->safe_psql($db, $sql) eq $expected }, $sql, $limit);
}

# The oracle's exit code and output.
sub oracle
{
	my ($node, $replica, %options) = @_;
	my @command = (
		'python3', "$root/tests/lib/oracle.py",
		'--upstream', $node->connstr($options{db} // 'postgres'),
		'--replica', $replica,
		'--deadline', $options{deadline} // $deadline);

	push @command, "--shard", $options{shard} // "demo"
	  unless grep { $_ eq "--publications" } @{ $options{args} // [] };
	push @command, @{ $options{args} // [] };
	my $output = '';
	IPC::Run::run(\@command, '<', \undef, '>&', \$output);
	return ($? >> 8, $output);
}

# A test: the file equals the published tables, within the deadline.
sub compare
{
	my ($node, $replica, %options) = @_;
	my $what = delete $options{what} // "replica equals the tables";
	my ($code, $output) = oracle($node, $replica, %options);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($code, 0, $what) or diag($output);
	return $code == 0;
}

# The reverse: the oracle finds a difference (tests of the oracle itself).
sub compare_fails
{
	my ($node, $replica, $pattern, %options) = @_;
	my ($code, $output) = oracle($node, $replica, deadline => 0, %options);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($code, 1, 'the oracle finds a difference');
	like($output, $pattern, 'and names it');
	return;
}

# Output of the sqlite3 shell, list mode, rows by newline; dies on an error.
sub replica_query
{
	my ($file, $sql) = @_;
	my ($output, $errors) = ('', '');

	IPC::Run::run([ 'sqlite3', '-batch', '-cmd', '.timeout 10000', "file:$file?mode=ro", $sql ],
		'<', \undef, '>', \$output, '2>', \$errors)
	  or die "sqlite3 on $file: $errors";
	chomp $output;
	return $output;
}

# A psql session that stays open (PostgreSQL's own background_psql).
sub psql_background
{
	my ($node, $db) = @_;

	return $node->background_psql($db // 'postgres', on_error_die => 1);
}

END
{
	my $code = $?;

	SluiceTest::Agent::end_all();
	$? = $code;
}

1;
