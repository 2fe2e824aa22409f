# SluiceTest::Conversation: the protocol spoken without an agent, through
# tests/tools/conversation.
#
# talk: a whole conversation, its lines.  open, lines, wait_line, signal, close:
# one that stays open.  followed, commits, rows: what the lines amount to.
package SluiceTest::Conversation;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run ();
use PostgreSQL::Test::Utils ();
use SluiceTest ();
use Test::More;

our @EXPORT = qw(talk);

sub program { return "$SluiceTest::root/build/tools/conversation"; }

# The lines of a conversation; options of the program behind the call.
sub talk
{
	my ($node, $call, @options) = @_;
	my $user = '';
	my $output = '';

	$user = ' user=' . shift @options if @options && $options[0] !~ /^-/;
	IPC::Run::run([ program(), @options, $node->connstr('postgres') . $user, $call ],
		'<', \undef, '>&', \$output, IPC::Run::timeout($SluiceTest::deadline));
	return split /\n/, $output;
}

# Its output goes to a file: whoever does not look must not stop it.
sub open
{
	my ($class, $node, $call, @options) = @_;
	my $self = bless {}, $class;
	my $file = PostgreSQL::Test::Utils::tempdir_short() . '/talk';

	$self->{file} = $file;
	$self->{run} = IPC::Run::start([ program(), @options, $node->connstr('postgres'), $call ],
		'<', \undef, '>', $file, '2>&1');
	return $self;
}

sub lines
{
	my ($self) = @_;

	return split /\n/, PostgreSQL::Test::Utils::slurp_file($self->{file});
}

# Polls until a line matches; fails the test after the deadline.
sub wait_line
{
	my ($self, $pattern) = @_;
	my $found;

	SluiceTest::wait_for(sub { ($found) = grep { /$pattern/ } $self->lines; defined $found },
		"a line like $pattern") or diag(join("\n", map { substr $_, 0, 200 } (reverse((reverse $self->lines)[0 .. 30]))));
	return $found;
}

sub signal
{
	my ($self, $signal) = @_;

	$self->{run}->signal($signal);
	return;
}

sub close
{
	my ($self) = @_;

	$self->{run}->kill_kill(grace => 1);
	return;
}

# What a client has that obeys resets: watermarks of commits and lines of rows
# in the order in which they came.  Dies if a transaction is not whole.
sub followed
{
	my (@lines) = @_;
	my ($open, @rows, @commits, @all);

	foreach my $line (@lines)
	{
		if ($line =~ /^begin (\S+)/)
		{
			die "begin inside a transaction: $line" if defined $open;
			$open = $1;
			@rows = ();
		}
		elsif ($line =~ /^(reset|frame A )/)
		{
			$open = undef;
		}
		elsif ($line =~ /^(insert|update|delete|truncate) /)
		{
			die "a row outside a transaction: $line" unless defined $open;
			push @rows, $line;
		}
		elsif ($line =~ /^commit (\S+)/)
		{
			die "commit of another transaction: $line" unless defined $open && $open eq $1;
			push @commits, $1;
			push @all, @rows;
			$open = undef;
		}
	}
	return (\@commits, \@all);
}

sub commits
{
	my ($commits) = followed(@_);
	return @$commits;
}

sub rows
{
	my (undef, $rows) = followed(@_);
	return @$rows;
}

1;
