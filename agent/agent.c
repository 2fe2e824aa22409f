/*
 * agent.c: clocks and exit codes.
 *
 * In: outcomes.  Out: exit codes.  Runs in: any thread.  Locks: none.
 */
#include <time.h>

#include "agent.h"

SluiceExit
sluice_agent_exit(SluiceOutcome outcome)
{
	switch (outcome)
	{
		case SLUICE_OK:
		case SLUICE_STOPPED:
			return SLUICE_EXIT_OK;
		case SLUICE_DIFFERENT:
			return SLUICE_EXIT_DIFFERENT;
		case SLUICE_USAGE:
			return SLUICE_EXIT_USAGE;
		case SLUICE_RETRY:
		case SLUICE_REFUSED:
			return SLUICE_EXIT_REFUSED;
		case SLUICE_COPY_AFRESH:
			return SLUICE_EXIT_COPY_NEEDED;
		case SLUICE_MOVED:
		case SLUICE_DAMAGED:
		case SLUICE_UNUSABLE:
			return SLUICE_EXIT_UNUSABLE;
		case SLUICE_INAPPLICABLE:
			break;
	}
	return SLUICE_EXIT_INAPPLICABLE;
}

static int64_t
read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t
sluice_agent_clock(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t
sluice_agent_time(void)
{
	return read_clock(CLOCK_REALTIME);
}
