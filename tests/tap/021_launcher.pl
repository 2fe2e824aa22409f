# The launcher keeps a decoder and a storer running for every shard, whatever
# ends them, and lets go of shards whose slot is gone.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('launcher');

sub worker
{
	my ($kind) = @_;
	my ($code, $pid) = $node->psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'sluice $kind'");

	return $code == 0 ? $pid : '';
}

# what is stored reaches the head: both workers do their work
sub works
{
	my ($what) = @_;
	my $insert = $node->safe_psql('postgres', q{INSERT INTO t (v) VALUES ('x') RETURNING id});
	my $done = wait_for_sql($node, 'postgres',
		qq{SELECT EXISTS (SELECT FROM sluice.change_log('s') WHERE change->'new'->>'id' = '$insert')});

	ok($done, $what);
	wait_for_sql($node, 'postgres', q{SELECT state = 'streaming' AND message IS NULL FROM sluice.shard_status});
	return;
}

create_shard($node, 's');
$node->safe_psql('postgres', 'CREATE TABLE later (id int)');
$node->safe_psql('postgres', 'DROP TABLE later');
$node->safe_psql('postgres', "CALL sluice.drop_shard('s')");
$node->safe_psql('postgres', 'CREATE TABLE t (id serial PRIMARY KEY, v text)');
create_shard($node, 's');
works('a new shard works');

# ---- each worker ends ----

for my $kind (qw(decoder storer launcher))
{
	my $before = worker($kind);

	isnt($before, '', "there is a $kind");
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($before)");
	wait_for(sub { my $now = worker($kind); $now ne '' && $now ne $before }, "another $kind");
	isnt(worker($kind), $before, "the $kind is started again");
	works("and all works after the $kind");
}
# workers of the launcher that ended were not its own; it knows when they end
for my $kind (qw(storer decoder))
{
	my $before = worker($kind);

	$node->safe_psql('postgres', "SELECT pg_terminate_backend($before)");
	wait_for(sub { my $now = worker($kind); $now ne '' && $now ne $before }, "another $kind");
	works("the new launcher starts a $kind, too");
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'sluice%'}), '3',
	'there is one of each');

# ---- a crash of the server, a restart ----

my $killed = worker('storer');
kill 'KILL', $killed;
wait_for(sub { my $now = worker('storer'); $now ne '' && $now ne $killed }, 'the server is back');
works('all works after a crash');
$node->restart;
wait_for(sub { worker('decoder') ne '' }, 'a decoder after the restart');
works('all works after a restart');
$node->stop('immediate');
$node->start;
works('all works after an immediate stop');

# ---- settings of role and database do not reach workers [N22] ----

$node->safe_psql('postgres', <<'END');
CREATE ROLE someone;
ALTER DATABASE postgres SET default_transaction_read_only = on;
ALTER DATABASE postgres SET default_transaction_isolation = 'serializable';
ALTER DATABASE postgres SET search_path = 'nowhere';
ALTER DATABASE postgres SET lock_timeout = 1;
ALTER DATABASE postgres SET statement_timeout = 1;
ALTER DATABASE postgres SET idle_in_transaction_session_timeout = 1;
ALTER DATABASE postgres SET synchronous_commit = off;
ALTER DATABASE postgres SET row_security = off;
ALTER DATABASE postgres SET session_replication_role = 'origin';
ALTER DATABASE postgres SET datestyle = 'SQL, DMY';
ALTER ROLE postgres SET default_transaction_deferrable = on;
ALTER ROLE postgres SET role = 'someone';
END
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
	WHERE backend_type ~ '^sluice (decoder|storer)'},
	connstr => $node->connstr('postgres') . q{ options='-c role=none -c statement_timeout=0'});
$ENV{PGOPTIONS} = '-c role=none -c statement_timeout=0 -c lock_timeout=0 -c default_transaction_read_only=off '
  . '-c idle_in_transaction_session_timeout=0 -c search_path=public';
works('workers are not reached by ALTER DATABASE and ALTER ROLE … SET');
delete $ENV{PGOPTIONS};
$node->safe_psql('template1', 'ALTER DATABASE postgres RESET ALL; ALTER ROLE postgres RESET ALL',
	connstr => $node->connstr('template1') . q{ options='-c role=none'});
works('and nothing is left of that');

# ---- the slot goes by hand ----

$node->safe_psql('postgres', q{SELECT sluice.set_option('s', 'auto_reset', 'off')});
# the launcher must not be faster than we are
my $launcher = worker('launcher');
kill 'STOP', $launcher;
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
	WHERE backend_type = 'sluice decoder'});
$node->safe_psql('postgres', q{SELECT pg_drop_replication_slot('sluice_s_1')});
kill 'CONT', $launcher;
wait_for_sql($node, 'postgres', q{SELECT state = 'stopped' FROM sluice.shards});
like($node->safe_psql('postgres', 'SELECT message FROM sluice.shard_status'), qr/slot "sluice_s_1" does not exist any more/, 'a missing slot is told of');
wait_for_sql($node, 'postgres', q{SELECT count(*) = 0 FROM pg_stat_activity
	WHERE backend_type = 'sluice decoder'});
$node->safe_psql('postgres', "CALL sluice.drop_shard('s')");
create_shard($node, 's');
works('a shard without a slot is dropped and made again');

$node->stop;
done_testing();
