/*
 * agent.h: what the whole of one sluice-agent process shares: outcomes, exit
 * codes, the context with the configuration and the wish to stop.
 *
 * Habit: a function that can fail logs the cause once, where it is known, and
 * returns an outcome; its callers only pass it on or act by it.
 *
 * Owner: main.c.  The stop flag is set by the signal handler; every wait also
 * polls wake_fd, which becomes readable with it and is never drained.
 */
#ifndef SLUICE_AGENT_H
#define SLUICE_AGENT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum SluiceOutcome
{
	SLUICE_OK,
	SLUICE_STOPPED,				/* asked to end */
	SLUICE_RETRY,				/* no connection, or not now: try again after a while */
	SLUICE_COPY_AFRESH,			/* the file cannot go on from where it stands */
	SLUICE_MOVED,				/* the path names another file now, or none: open it anew */
	SLUICE_DAMAGED,				/* the file is corrupt: set aside, copy afresh */
	SLUICE_DIFFERENT,			/* verify found differences */
	SLUICE_USAGE,
	SLUICE_REFUSED,				/* the server will not have it */
	SLUICE_UNUSABLE,			/* the file cannot be used: locked, read-only, full … */
	SLUICE_INAPPLICABLE			/* a change that cannot be applied */
} SluiceOutcome;

typedef enum SluiceExit
{
	SLUICE_EXIT_OK = 0,
	SLUICE_EXIT_DIFFERENT = 1,
	SLUICE_EXIT_USAGE = 2,
	SLUICE_EXIT_REFUSED = 3,
	SLUICE_EXIT_UNUSABLE = 4,
	SLUICE_EXIT_COPY_NEEDED = 5,	/* with --no-copy */
	SLUICE_EXIT_BACKUP_WEDGED = 6,
	SLUICE_EXIT_INAPPLICABLE = 7
} SluiceExit;

#define SLUICE_AGENT_VERSION "1.0"
#define SLUICE_PROTOCOL_VERSION 1

/* From the command line over the environment over a file; config.c. */
typedef struct SluiceConfig
{
	char	   *command;		/* run, sync, status, verify, help, version */
	char	   *upstream;		/* libpq connection string; never logged */
	char	   *shard;
	char	   *replica;		/* path of the SQLite file */
	char	   *name;			/* of the replica, default host:path */
	int			jobs;			/* connections of a first copy */
	bool		row_log;
	bool		progress;
	bool		no_copy;		/* never copy afresh: exit with 5 */
	bool		json;			/* status as JSON */
	bool		cookies;		/* status: what reinitialize_change_log wants */
	char	   *log_level;
	char	   *config;			/* the file this came from */
} SluiceConfig;

typedef struct SluiceAgent
{
	SluiceConfig config;
	volatile sig_atomic_t stop; /* nonzero: end soon */
	int			wake_fd;		/* readable once stop is set */
	int			lock_fd;		/* filelock.h; -1: none */
	bool		worked;			/* a server has let this agent in: what it refuses now
								 * may be allowed again */
} SluiceAgent;

extern SluiceExit sluice_agent_exit(SluiceOutcome outcome);

/* Monotonic and wall clock, microseconds. */
extern int64_t sluice_agent_clock(void);
extern int64_t sluice_agent_time(void);	/* since 1970 */

#endif
