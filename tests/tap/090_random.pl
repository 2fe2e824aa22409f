# Random tables of all types, random transactions, schema changes among them,
# and processes that are killed meanwhile: what was followed equals the tables,
# and what a fresh copy has.
#
# SLUICE_SEEDS: how many seeds (2), SLUICE_SEED: the first of them (1),
# SLUICE_TRANSACTIONS: for each (120).
use strict;
use warnings;
use SluiceTest;
use SluiceTest::Random;
use Test::More;

my $seeds = $ENV{SLUICE_SEEDS} // 2;
my $first = $ENV{SLUICE_SEED} // 1;
my $transactions = $ENV{SLUICE_TRANSACTIONS} // 120;
my $node = sluice_node('random', conf => "sluice.ring_size = '1MB'\nmax_slot_wal_keep_size = -1");

sub kill_something
{
	my ($db, $agent) = @_;
	my $what = int(rand(6));

	if ($what < 3)
	{
		$agent->kill9;
		$agent->restart;
	}
	elsif ($what < 5)
	{
		my $worker = $what == 3 ? 'decoder' : 'storer';
		$node->safe_psql($db, "SELECT pg_terminate_backend(${worker}_pid) FROM sluice.shard_status");
	}
	else
	{
		$node->stop('immediate');
		$node->start;
	}
	return;
}

# Only keys that are taken may stop one.
sub one_transaction
{
	my ($db, $random) = @_;
	my $sql = $random->transaction;
	my ($code, $out, $err) = $node->psql($db, $sql, on_error_stop => 1);

	return 1 if $code == 0;
	$random->undo;
	fail('no other error than a taken key') or diag("$err\n$sql") unless $err =~ /duplicate key/;
	return 0;
}

sub run_seed
{
	my ($seed) = @_;
	my $db = "seed_$seed";
	my $ddl = $seed % 2;
	my $random = SluiceTest::Random->new(seed => $seed, ddl => $ddl);
	my $failed = 0;

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, $random->setup);
	one_transaction($db, $random) for 1 .. 10;
	create_shard($node, "s$seed", db => $db, keyless => 'allow');
	my $agent = start_agent(node => $node, db => $db, shard => "s$seed", name => "a$seed", args => [ '--jobs', '2' ]);

	for my $i (1 .. $transactions)
	{
		$failed++ unless one_transaction($db, $random);
		kill_something($db, $agent) if rand(100) < 6;
	}
	cmp_ok($failed, '<', $transactions / 4, "seed $seed: most transactions are accepted");
	compare($node, $agent->{replica}, db => $db, shard => "s$seed", deadline => 60, what => "seed $seed" . ($ddl ? ' with schema changes' : '') . ': followed equals the tables')
	  or diag($node->safe_psql($db, 'SELECT state, message FROM sluice.shard_status'));
	is(replica_query($agent->{replica}, 'PRAGMA integrity_check'), 'ok', "seed $seed: the file is sound");
	my $fresh = start_agent(node => $node, db => $db, shard => "s$seed", name => "b$seed");
	wait_for(sub { -e $fresh->{replica} }, 'a fresh copy');
	compare($node, $fresh->{replica}, db => $db, shard => "s$seed", what => "seed $seed: so does a fresh copy");
	my $columns = q{SELECT m.name, c.name, c.type FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE '\_%' ESCAPE '\' ORDER BY 1, 2};
	is(replica_query($agent->{replica}, $columns), replica_query($fresh->{replica}, $columns), "seed $seed: with the same columns");
	$agent->stop;
	$fresh->stop;
	$node->safe_psql($db, "CALL sluice.drop_shard('s$seed')");
	$node->safe_psql('postgres', "DROP DATABASE $db WITH (FORCE)");
	return;
}

run_seed($_) foreach $first .. $first + $seeds - 1;
done_testing();
