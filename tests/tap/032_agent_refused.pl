# What the agent does when it is not let in: it ends and says what to do, if it
# was never let in before; and a shard that has stopped is asked seldom.
use strict;
use warnings;
use SluiceTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = sluice_node('refused', conf => "listen_addresses = '127.0.0.1'");

$node->safe_psql('postgres', <<'END');
CREATE TABLE t (id int PRIMARY KEY, v text);
INSERT INTO t VALUES (1, '1');
END
create_shard($node, 's');
$node->safe_psql('postgres', <<'END');
CREATE ROLE agent LOGIN PASSWORD 'right' IN ROLE sluice_replica;
CREATE ROLE stranger LOGIN;
CREATE ROLE verifier LOGIN IN ROLE sluice_monitor, pg_read_all_data;
END
unlink $node->data_dir . '/pg_hba.conf';
$node->append_conf('pg_hba.conf', "host all agent 127.0.0.1/32 scram-sha-256\nlocal all all trust\n");
$node->reload;

delete $ENV{PGPASSWORD};
my $tcp = 'host=127.0.0.1 port=' . $node->port . ' passfile=/nonexistent user=agent dbname=postgres';

sub refused
{
	my ($what, $upstream, $pattern) = @_;
	my $agent = start_agent(node => $node, shard => 's', name => 'refused', upstream => $upstream);

	is($agent->wait_exit, 3, "$what: exit code 3");
	like(slurp_file($agent->{logfile}), $pattern, "$what: says what to do");
	return;
}

refused('no password', $tcp, qr/error: cannot connect: .*hint: The password can stand in/);
refused('a wrong password', "$tcp password=wrong", qr/28P01.*hint: The password can stand in/);
refused('no such database', $node->connstr('none'), qr/error: cannot connect: .*3D000/);
refused('no right', $node->connstr('postgres') . ' user=stranger',
	qr/42501.*hint: The role has to be a member of sluice_replica/);

# a stopped shard is not asked again and again
my $agent = start_agent(node => $node, shard => 's', name => 'follows', upstream => "$tcp password=right");
wait_for(sub { -e $agent->replica }, 'the first copy');
compare($node, $agent->replica, shard => 's');

# verify reads as an ordinary client
sub verify
{
	my ($upstream) = @_;
	my $verify = start_agent(node => $node, shard => 's', command => 'verify', replica => $agent->replica,
		upstream => $upstream);

	return ($verify->wait_exit, slurp_file($verify->{logfile}));
}
my ($code, $output) = verify("$tcp password=right");
is($code, 3, 'verify is refused the role of an agent');
like($output, qr/hint: verify reads as an ordinary client/, 'and says which rights it needs');
($code, $output) = verify($node->connstr('postgres') . ' user=verifier');
is($code, 0, 'verify with SELECT and sluice_monitor') or diag($output);

$node->safe_psql('postgres', "SELECT sluice.set_option('s', 'auto_reset', 'off')");
my $before = () = slurp_file($agent->{logfile}) =~ /following/g;
$node->safe_psql('postgres', 'ALTER TABLE t ALTER v TYPE int USING v::int');
wait_for(sub { slurp_file($agent->{logfile}) =~ /SL006/ }, 'the agent is told');
my $end = time + 4;
wait_for(sub { time > $end }, 'a few attempts');
my $after = () = slurp_file($agent->{logfile}) =~ /following/g;
is($after, $before, 'a shard that has stopped is said once');
is($agent->stop, 0, 'and the agent can be ended');

done_testing();
