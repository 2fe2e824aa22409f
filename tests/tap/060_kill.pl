# kill -9 of every process of the path, at moments that nobody chose, under
# load: afterwards the file is equal.
use strict;
use warnings;
use SluiceTest;
use Test::More;
use Time::HiRes qw(time sleep);

my $seconds = $ENV{SLUICE_KILL_SECONDS} // 40;
my $node = sluice_node('kill', conf => "sluice.ring_size = '256kB'\nmax_wal_size = 200MB\n");
my $file = replica_file('kill');
my %options = (db => 'shop', shard => 'demo');

$node->safe_psql('postgres', 'CREATE DATABASE shop');
$node->psql('shop', PostgreSQL::Test::Utils::slurp_file("$SluiceTest::root/demo/shop.sql"), on_error_die => 1);
create_shard($node, 'demo', db => 'shop');
my $agent = start_agent(node => $node, replica => $file, %options);

# pids of what runs for the shard; 0 rows while something is being restarted
my %victims = (
	agent => sub { return $agent->pid; },
	sender => sub { return pid_of('SELECT pid FROM sluice.replica_status WHERE pid IS NOT NULL LIMIT 1'); },
	decoder => sub { return pid_of('SELECT decoder_pid FROM sluice.shard_status'); },
	storer => sub { return pid_of('SELECT storer_pid FROM sluice.shard_status'); });

sub pid_of
{
	my ($sql) = @_;
	my ($code, $output) = $node->psql('shop', $sql);

	return $code == 0 ? $output : '';
}

my $log = "$PostgreSQL::Test::Utils::log_path/060_kill_pgbench.log";
sub start_load
{
	my @command = ('pgbench', '-n', '-c', 4, '-T', $seconds, '-R', 400,
		map { ('-f', "$SluiceTest::root/demo/load/$_") } ('order.sql@4', 'browse.sql@4', 'edit.sql@2', 'cancel.sql@1'));

	return IPC::Run::start([ @command, $node->connstr('shop') ], '<', \undef, '>', $log, '2>', $log);
}

# SIGKILL of a server process makes PostgreSQL restart as a whole; SIGTERM ends
# only that one. Both have to be survived: most kills are SIGTERM, some -9.
my $load = start_load();
my $end = time + $seconds;
my $kills = 0;
my %killed;
my @names = sort keys %victims;
srand($ENV{SLUICE_SEED} // 15);
while (time < $end)
{
	my $name = $names[ rand @names ];
	my $pid = $victims{$name}->();

	if ($pid)
	{
		my $signal = $name eq 'agent' || rand() < 0.15 ? 'KILL' : 'TERM';

		kill $signal, $pid;
		$killed{"$name $signal"}++;
		$kills++;
		if ($name eq 'agent')
		{
			$agent->wait_exit;
			$agent->spawn;
		}
		elsif ($signal eq 'KILL')
		{
			# pgbench has lost its connections
			wait_for(sub { $node->psql('shop', 'SELECT 1') == 0 }, 'the server is back');
			$load->finish;
			$load = start_load();
		}
	}
	# the moment is part of what is random
	sleep 0.2 + rand 1;
}
$load->kill_kill(grace => 0);
note join ', ', map { "$_: $killed{$_}" } sort keys %killed;
cmp_ok($kills, '>', $seconds / 4, "$kills kills");
cmp_ok($node->safe_psql('shop', 'SELECT count(*) FROM page_views'), '>', 16500 + 30 * $seconds, 'there was a load');

wait_for(sub { -e $file }, 'the file is there');
compare($node, $file, %options, what => 'equal after all kills', deadline => 120);
ok($agent->running, 'the agent runs');
$agent->stop;
wait_for_sql($node, 'shop', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name LIKE '%replica%' AND backend_type = 'client backend'});
is($node->safe_psql('shop', 'SELECT count(*) FROM pg_replication_slots'), 1, 'one slot');

# the change log has every number once
is($node->safe_psql('shop', 'SELECT count(*) = max(number) - min(number) + 1 FROM cdc_demo.slices'), 't',
	'no slice is missing');

done_testing();
