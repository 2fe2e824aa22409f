/*
 * main.c: sub-commands, signals, exit codes.
 *
 * In: command line.  Out: an exit code (README has the table).
 * SIGTERM and SIGINT end a run: what is applied is kept, within a second.
 * Runs in: the main thread.  Locks: none.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "config.h"
#include "filelock.h"
#include "log.h"
#include "notify.h"
#include "run.h"
#include "status.h"
#include "verify.h"

/* Process life: for the signal handler only. */
static SluiceAgent *signalled;

static void
on_stop(int number)
{
	uint64_t	one = 1;

	signalled->stop = 1;
	/* never full: it is written a few times at most */
	(void) !write(signalled->wake_fd, &one, sizeof(one));
}

static void
set_signals(SluiceAgent *agent)
{
	struct sigaction action;

	signalled = agent;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_stop;
	action.sa_flags = SA_RESTART;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	/* a terminal that goes away, a socket that is closed */
	action.sa_handler = SIG_IGN;
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGPIPE, &action, NULL);
}

static SluiceOutcome
run_locked(SluiceAgent *agent, bool follow)
{
	SluiceOutcome outcome = sluice_filelock_take(agent, agent->config.replica);

	if (outcome != SLUICE_OK)
		return outcome;
	outcome = sluice_run(agent, follow);
	sluice_notify("STOPPING=1");
	sluice_filelock_release(agent);
	return outcome;
}

static SluiceOutcome
command(SluiceAgent *agent)
{
	const char *name = agent->config.command;

	if (strcmp(name, "help") == 0)
		sluice_config_help();
	else if (strcmp(name, "version") == 0)
		puts("sluice-agent " SLUICE_AGENT_VERSION);
	else if (strcmp(name, "status") == 0)
		return sluice_status_run(agent);
	else if (strcmp(name, "verify") == 0)
		return sluice_verify_run(agent);
	else
		return run_locked(agent, strcmp(name, "run") == 0);
	return SLUICE_OK;
}

int
main(int argc, char **argv)
{
	SluiceAgent agent = {.lock_fd = -1, .wake_fd = -1};
	SluiceOutcome outcome = sluice_config_read(&agent, argc, argv);

	if (outcome == SLUICE_OK)
	{
		agent.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (agent.wake_fd < 0)
		{
			perror("sluice-agent: eventfd");
			return SLUICE_EXIT_USAGE;
		}
		set_signals(&agent);
		outcome = command(&agent);
		close(agent.wake_fd);
	}
	sluice_config_release(&agent.config);
	return (int) sluice_agent_exit(outcome);
}
