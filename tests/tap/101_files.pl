# A replica file that is damaged, cut, removed or replaced, while its agent
# runs and while it does not (LITE-02, OPS-09): noticed, copied afresh alone,
# and nothing of somebody else's is overwritten.
use strict;
use warnings;
use SluiceTest;
use Test::More;

my $node = sluice_node('files');

$node->safe_psql('postgres', q{CREATE TABLE t (id int PRIMARY KEY, n int, v text);
INSERT INTO t SELECT i, i, repeat(md5(i::text), 4) FROM generate_series(1, 5000) i});
create_shard($node, 'demo');

my $agent = start_agent(node => $node, name => 'files');
my $file = $agent->replica;

compare($node, $file, what => 'the first copy');

sub change { $node->safe_psql('postgres', 'UPDATE t SET n = n + 1'); return; }

sub overwrite
{
	my ($offset, $bytes) = @_;

	open(my $handle, '+<', $file) or die "$file: $!";
	seek($handle, $offset, 0);
	print $handle $bytes;
	close $handle;
	return;
}

my $garbage = pack('N*', map { $_ * 2654435761 % 4294967296 } 1 .. 100 * 1024);

my $second = start_agent(node => $node, name => 'second', replica => $file);
is($second->wait_exit, 4, 'OPS-09: a second agent on the file refuses');
like($second->log, qr/in use by another agent/, '... and says why');

# while the agent runs
overwrite(20 * 4096, $garbage);
change();
compare($node, $file, what => 'overwritten in the middle');
truncate($file, 10 * 4096);
change();
compare($node, $file, what => 'truncated');
unlink $file, "$file-wal", "$file-shm";
change();
compare($node, $file, what => 'removed');
like($agent->log, qr/was removed or replaced while it was followed/, '... and told');

# while it does not
$agent->stop;
truncate($file, 10 * 4096);
$agent->restart;
change();
compare($node, $file, what => 'truncated while stopped');
$agent->kill9;
unlink "$file-wal";
$agent->restart;
change();
compare($node, $file, what => 'without its -wal after a kill');
$agent->stop;
truncate($file, 0);
$agent->restart;
compare($node, $file, what => 'emptied');

# somebody else's file in its place is not touched
PostgreSQL::Test::Utils::system_or_bail('sqlite3', "$file-other", 'CREATE TABLE mine (x); INSERT INTO mine VALUES (7)');
unlink "$file-wal", "$file-shm";
rename "$file-other", $file;
is($agent->wait_exit, 4, 'the agent ends when another file takes the place');
is(replica_query($file, 'SELECT x FROM mine'), '7', '... and leaves that alone');

done_testing();
