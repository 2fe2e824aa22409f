# SluiceTest::Agent: one sluice-agent process of a test.
#
# start, then pid, running, log, stop (SIGTERM), kill9, pause and go_on
# (SIGSTOP, SIGCONT), wait_exit.  What is still running when the test ends is
# killed, by pid.
package SluiceTest::Agent;

use strict;
use warnings;
use POSIX ':sys_wait_h';
use Time::HiRes qw(time sleep);

my %alive;
my $count = 0;

sub start
{
	my ($class, %options) = @_;
	my $node = $options{node};
	my $number = ++$count;
	my $self = bless {
		%options,
		logfile => "$PostgreSQL::Test::Utils::log_path/"
		  . PostgreSQL::Test::Utils::basename($0, '.pl') . "_agent_$number.log",
	}, $class;
	my @command = ($ENV{SLUICE_AGENT} // "$SluiceTest::root/sluice-agent", $options{command} // 'run');

	push @command, '--upstream', $options{upstream} // $node->connstr($options{db} // 'postgres');
	push @command, '--shard', $options{shard} // 'demo', '--replica', $options{replica};
	push @command, '--name', $options{name} if defined $options{name};
	push @command, @{ $options{args} // [] };
	$self->{command} = \@command;
	# what an earlier run of the test left is not this agent's
	unlink $self->{logfile};
	$self->spawn;
	return $self;
}

sub spawn
{
	my ($self) = @_;
	my $pid = fork // die "fork: $!";

	if ($pid == 0)
	{
		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>>', $self->{logfile});
		open(STDERR, '>&', \*STDOUT);
		exec { $self->{command}[0] } @{ $self->{command} }
		  or POSIX::_exit(127);
	}
	$self->{pid} = $pid;
	delete $self->{exit};
	$alive{$pid} = 1;
	return;
}

# The same command again, after it ended.
sub restart
{
	my ($self) = @_;

	$self->stop if $self->running;
	$self->spawn;
	return;
}

sub pid { return $_[0]{pid}; }
sub replica { return $_[0]{replica}; }

sub running
{
	my ($self) = @_;

	return 0 if defined $self->{exit};
	if (waitpid($self->{pid}, WNOHANG) == $self->{pid})
	{
		$self->{exit} = $?;
		delete $alive{ $self->{pid} };
		return 0;
	}
	return 1;
}

# The exit code (128 + signal if it was killed), or undef after the deadline.
sub wait_exit
{
	my ($self, $limit) = @_;
	my $end = time + ($limit // $SluiceTest::deadline);

	while ($self->running)
	{
		return undef if time > $end;
		sleep 0.01;
	}
	return ($self->{exit} & 127) ? 128 + ($self->{exit} & 127) : $self->{exit} >> 8;
}

sub signal
{
	my ($self, $signal) = @_;

	kill $signal, $self->{pid} if $self->running;
	return;
}

sub stop
{
	my ($self, $limit) = @_;

	$self->signal('TERM');
	return $self->wait_exit($limit);
}

sub kill9
{
	my ($self) = @_;

	$self->signal('KILL');
	return $self->wait_exit;
}

sub pause { $_[0]->signal('STOP'); return; }
sub go_on { $_[0]->signal('CONT'); return; }

sub log
{
	my ($self) = @_;

	return -e $self->{logfile} ? PostgreSQL::Test::Utils::slurp_file($self->{logfile}) : '';
}

# Waits until its log matches; a test failure after the deadline.
sub wait_log
{
	my ($self, $pattern, $limit) = @_;

	return SluiceTest::wait_for(sub { $self->log =~ $pattern }, "agent's log matches $pattern", $limit);
}

sub end_all
{
	foreach my $pid (keys %alive)
	{
		kill 'KILL', $pid;
		waitpid $pid, 0;
	}
	%alive = ();
	return;
}

1;
