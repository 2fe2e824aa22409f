# A first copy that is interrupted: killed at any moment, told to stop, started
# again after a restart of the machine; a fresh copy beside a served file.
# Nothing half done is ever served, and what is complete is not copied again.
use strict;
use warnings;
use IPC::Run;
use SluiceTest;
use Test::More;
use Time::HiRes qw(time);

my $node = sluice_node('copykill');

sub sql { return $node->safe_psql('postgres', $_[0]); }

sub status
{
	my ($file) = @_;
	my $output = '';
	IPC::Run::run([ "$SluiceTest::root/sluice-agent", 'status', '--replica', $file ], '<', \undef, '>', \$output, '2>', \my $errors);
	return $output;
}

sql(q{
	CREATE TABLE large(id int PRIMARY KEY, v text);
	INSERT INTO large SELECT i, repeat('l', i % 100) FROM generate_series(1, 300000) i;
	CREATE TABLE pairs(a text, b int, v text, PRIMARY KEY (a, b));
	INSERT INTO pairs SELECT 'p' || i % 100, i, repeat('m', i % 100) FROM generate_series(1, 100000) i;
	CREATE INDEX ON pairs (v);
	DO $$ BEGIN FOR i IN 1 .. 60 LOOP
		EXECUTE format('CREATE TABLE small%s(id int PRIMARY KEY, v text)', i);
		EXECUTE format('INSERT INTO small%s SELECT g, ''s'' FROM generate_series(1, 100) g', i);
	END LOOP; END $$;
	ANALYZE});
create_shard($node, 'demo');

# ---- killed at any moment ----

my $writes = psql_background($node);
my $agent = start_agent(node => $node, shard => 'demo', name => 'killed', args => [ '--log-level', 'debug', '--jobs', '2' ]);
my $file = $agent->replica;
my ($kills, $served) = (0, 0);
srand(7);
for my $round (1 .. 25)
{
	my $moment = time + 0.02 + rand(0.5);
	wait_for(sub { time >= $moment || -e $file }, 'the moment of the kill');
	last if -e $file;
	$writes->query_safe("UPDATE large SET v = 'round $round' WHERE id % 5000 = $round; DELETE FROM pairs WHERE b = $round;"
		. "UPDATE small$round SET v = '$round'; INSERT INTO small2 VALUES (1000 + $round, 'new')");
	$agent->kill9;
	$kills++;
	$served++ if -e $file && status($file) !~ /state:     ready/;
	$agent->restart;
}
$agent->wait_log(qr/is ready/);
cmp_ok($kills, '>', 3, "it was killed during the copy ($kills times)");
is($served, 0, 'nothing half done was there to be read');
like($agent->log, qr/going on with the copy: \d+ tables are complete/, 'it went on with what was complete');
compare($node, $file);
my %copied;
my $log = $agent->log;
$copied{$1}++ while $log =~ /copied "(\w+)", \d+ rows/g;
is(scalar(keys %copied), 62, 'every table was copied');
is(replica_query($file, 'PRAGMA integrity_check'), 'ok', 'the file is whole');
is(replica_query($file, q{SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'pairs'}), '2', 'all indexes are there');
$agent->stop;

# ---- told to stop, and a restart of the machine ----

my $told = start_agent(node => $node, shard => 'demo', name => 'told', args => [ '--log-level', 'debug' ]);
my $copy = $told->replica . '-copy';
$told->wait_log(qr/copied "large"/);
my $before = time;
is($told->stop, 0, 'told to stop, it ends well');
cmp_ok(time - $before, '<', 1.5, '... at once');
ok(!-e $told->replica, '... with nothing to be served');
like(status($told->replica), qr/first copy: [1-9]\d* tables are complete or begun, \d+ to go/, 'status tells how far it is');
is(replica_query($copy, 'SELECT boot FROM "_sluice.copyRun"'), 'synced', 'what it has is on the disk');
$told->restart;
$told->wait_log(qr/is ready/);
is(() = $told->log =~ /copied "large"/g, 1, 'what was complete was not copied again');
compare($node, $told->replica, what => 'equal after the stop');
$told->stop;

my $restarted = start_agent(node => $node, shard => 'demo', name => 'restarted', args => [ '--log-level', 'debug' ]);
$copy = $restarted->replica . '-copy';
$restarted->wait_log(qr/copied "large"/);
wait_for(sub { replica_query($copy, 'SELECT count(*) FROM "_sluice.tables" WHERE copied') > 0 }, 'a table is complete');
$restarted->kill9;
IPC::Run::run([ 'sqlite3', $copy, q{UPDATE "_sluice.copyRun" SET boot = 'another run of the system'} ]) or die;
$restarted->restart;
$restarted->wait_log(qr/the machine was restarted while .* a new copy is begun/);
$restarted->wait_log(qr/is ready/);
is(() = $restarted->log =~ /copied "large"/g, 2, 'after a restart of the machine it begins anew');
compare($node, $restarted->replica, what => 'equal after the restart');
$restarted->stop;

# ---- a server that stops and starts, a lineage that ends ----

my $last = start_agent(node => $node, shard => 'demo', name => 'last', args => [ '--log-level', 'debug' ]);
$last->wait_log(qr/copied "large"/);
$node->stop('immediate');
$node->start;
$last->wait_log(qr/is ready/);
is(() = $last->log =~ /copied "large"/g, 1, 'a crash of the server costs the tables under way');
compare($node, $last->replica, what => 'equal after a crash of the server');

# a reader keeps the old file, whole, while the new one takes its place
my ($in, $out) = ('', '');
my $reader = IPC::Run::start([ 'sqlite3', '-batch', 'file:' . $last->replica . '?mode=ro' ], '<', \$in, '>', \$out);
$in .= "BEGIN; SELECT 'rows ' || count(*) FROM large;\n";
IPC::Run::pump($reader) until $out =~ /rows (\d+)/;
my ($rows) = $out =~ /rows (\d+)/;
$writes->quit;
sql('DELETE FROM large WHERE id > 100');
wait_for(sub { replica_query($last->replica, 'SELECT count(*) FROM large') eq '100' }, 'the deletion arrives');
my $inode = (stat $last->replica)[1];
sql(q{CALL sluice.drop_shard('demo')});
create_shard($node, 'demo');
wait_for(sub { (stat $last->replica)[1] != $inode }, 'a new file takes its place');
wait_for(sub { scalar(() = $last->log =~ /is ready/g) == 2 }, 'it is ready');
is(replica_query($last->replica, 'SELECT count(*) FROM large'), '100', 'the new file has the new rows');
compare($node, $last->replica, what => 'equal after a fresh copy');
$in .= "SELECT 'again ' || count(*) FROM large; COMMIT; PRAGMA integrity_check;\n";
IPC::Run::pump($reader) until $out =~ /ok$/m || $out =~ /malformed|error/i;
like($out, qr/again $rows\b/, 'a reader of the old file still sees what it saw');
$in .= ".quit\n";
IPC::Run::finish($reader);
$last->stop;

# ---- two at once, and a place that cannot be written ----

my $one = start_agent(node => $node, shard => 'demo', name => 'one', args => [ '--log-level', 'debug' ]);
$one->wait_log(qr/copying shard/);
my $two = start_agent(node => $node, shard => 'demo', name => 'two', replica => $one->replica);
is($two->wait_exit, 4, 'a second agent refuses a file that is being copied');
$one->wait_log(qr/is ready/);
compare($node, $one->replica, what => 'equal beside a second agent');
$one->stop;
my $nowhere = start_agent(node => $node, shard => 'demo', name => 'nowhere', replica => '/proc/nowhere/file.db');
is($nowhere->wait_exit, 4, 'a place that cannot be written');

$node->stop;
done_testing();
