/*
 * checkpoint.c: checkpoints and durability, beside the writer.
 *
 * In: positions of commits, size of the -wal.  Out: a -wal that stays short
 * while no reader holds it, positions that a power cut cannot take back.
 * Runs in: a thread of its own, with its own connection.
 * Locks: mutex of the struct; never held across SQLite or a sync.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint.h"
#include "log.h"

#define PAGES_CHECKPOINT 2000	/* of 4 kB: checkpoint from here */
#define PAGES_HOLD 16000		/* hold the writer for the rest from here */
#define PAGES_LIMIT 32000		/* a writer that was faster waits from here */
#define SYNC_EVERY 1000000		/* us between syncs while commits come */
#define IDLE_EVERY 100000		/* us: signs of life of a writer that is held back */
#define RETRY_SOON 500000		/* us: the writer was faster */
#define RETRY_LATER 2000000		/* us: a reader keeps the -wal */

struct SluiceCheckpoint
{
	pthread_t	thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;		/* for the thread */
	pthread_cond_t go_on;		/* for the writer */
	SluiceReplica *replica;		/* for the writer's own thread only */
	sqlite3    *db;
	int			wal_fd;
	char		path[PATH_MAX];

	/* under lock */
	bool		stop;
	bool		hold;			/* the thread wants the writer to pause */
	bool		writing;		/* the writer is inside a transaction */
	bool		synced_all;		/* nothing committed since the last sync */
	bool		held_up;		/* by a reader: the last checkpoint left something
								 * although the writer was held */
	int			pages;			/* of the -wal after the last commit */
	SluicePosition committed;
	SluicePosition durable;

	/* the thread's own */
	int64_t		retry_at;		/* after a checkpoint that left something */
	int			warned;			/* pages when it last warned of a long -wal */
};

/* Waiting for the thread will help: no reader is in its way. */
static bool
too_long(const SluiceCheckpoint *cp)
{
	return cp->pages >= PAGES_LIMIT && !cp->held_up;
}

void
sluice_checkpoint_enter(SluiceCheckpoint *cp)
{
	SluiceReplica *replica = cp->replica;

	pthread_mutex_lock(&cp->lock);
	while (cp->hold || too_long(cp))
	{
		struct timespec at;
		int64_t		until = sluice_agent_clock() + IDLE_EVERY;

		at.tv_sec = until / 1000000;
		at.tv_nsec = until % 1000000 * 1000;
		if (pthread_cond_timedwait(&cp->go_on, &cp->lock, &at) != ETIMEDOUT ||
			replica->idle == NULL)
			continue;
		pthread_mutex_unlock(&cp->lock);
		replica->idle(replica->idle_argument);
		pthread_mutex_lock(&cp->lock);
	}
	cp->writing = true;
	pthread_mutex_unlock(&cp->lock);
}

void
sluice_checkpoint_leave(SluiceCheckpoint *cp)
{
	pthread_mutex_lock(&cp->lock);
	cp->writing = false;
	if (cp->hold)
		pthread_cond_signal(&cp->wake);
	pthread_mutex_unlock(&cp->lock);
}

void
sluice_checkpoint_noted(SluiceCheckpoint *cp, const SluicePosition *position, int pages)
{
	pthread_mutex_lock(&cp->lock);
	cp->committed = *position;
	if (pages > 0)
		cp->pages = pages;
	/* a first commit after a sync starts the clock of the next one */
	if (cp->synced_all || cp->pages >= PAGES_CHECKPOINT)
		pthread_cond_signal(&cp->wake);
	cp->synced_all = false;
	pthread_mutex_unlock(&cp->lock);
}

SluicePosition
sluice_checkpoint_durable(SluiceCheckpoint *cp)
{
	SluicePosition durable;

	pthread_mutex_lock(&cp->lock);
	durable = cp->durable;
	pthread_mutex_unlock(&cp->lock);
	return durable;
}

bool
sluice_checkpoint_moved(sqlite3 *db)
{
	int			moved = 0;

	return sqlite3_file_control(db, NULL, SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
		moved != 0;
}

static void
sync_directory(const char *path)
{
	char		directory[PATH_MAX];
	char	   *slash;
	int			fd;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (slash == NULL)
		snprintf(directory, sizeof(directory), ".");
	else
		slash[slash == directory] = '\0';
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fsync(fd) != 0)
		sluice_log(SLUICE_WARNING, "cannot sync directory \"%s\": %s", directory, strerror(errno));
	close(fd);
}

/*
 * Every commit up to now is in the -wal or was moved into the database by a
 * checkpoint, which syncs the database before the -wal starts anew.
 */
static void
sync_commits(SluiceCheckpoint *cp)
{
	SluicePosition position;
	bool		failed;

	pthread_mutex_lock(&cp->lock);
	position = cp->committed;
	cp->synced_all = true;
	pthread_mutex_unlock(&cp->lock);

	if (cp->wal_fd < 0)
	{
		char		name[PATH_MAX + 8];

		/* SQLite's locks are on the database and the -shm: this is safe */
		snprintf(name, sizeof(name), "%s-wal", cp->path);
		cp->wal_fd = open(name, O_RDWR | O_CLOEXEC);
		sync_directory(cp->path);
	}
	failed = cp->wal_fd < 0 || fdatasync(cp->wal_fd) != 0;
	if (failed)
	{
		sluice_log(SLUICE_WARNING, "cannot sync \"%s-wal\": %s", cp->path, strerror(errno));
		return;
	}
	if (sluice_checkpoint_moved(cp->db))
		return;					/* the writer finds it, too */
	pthread_mutex_lock(&cp->lock);
	cp->durable = position;
	pthread_mutex_unlock(&cp->lock);
}

/* True if all of the -wal is in the database. */
static bool
passive(SluiceCheckpoint *cp, int *pages)
{
	int			done = 0;
	int			rc = sqlite3_wal_checkpoint_v2(cp->db, NULL, SQLITE_CHECKPOINT_PASSIVE, pages,
											   &done);

	if (rc != SQLITE_OK && rc != SQLITE_BUSY)
		sluice_log(SLUICE_WARNING, "cannot checkpoint \"%s\": %s", cp->path,
				   sqlite3_errmsg(cp->db));
	return rc == SQLITE_OK && done >= *pages;
}

/* Waits for the writer to be between two transactions, and keeps it there. */
static bool
hold_writer(SluiceCheckpoint *cp)
{
	bool		held;

	pthread_mutex_lock(&cp->lock);
	cp->hold = true;
	while (cp->writing && !cp->stop)
		pthread_cond_wait(&cp->wake, &cp->lock);
	held = !cp->stop;
	if (!held)
		cp->hold = false;
	pthread_mutex_unlock(&cp->lock);
	return held;
}

static void
release_writer(SluiceCheckpoint *cp)
{
	pthread_mutex_lock(&cp->lock);
	cp->hold = false;
	pthread_cond_broadcast(&cp->go_on);
	pthread_mutex_unlock(&cp->lock);
}

static void
checkpoint(SluiceCheckpoint *cp)
{
	int			pages = 0;
	bool		all = passive(cp, &pages);
	bool		held_up = false;

	if (!all && pages >= PAGES_HOLD && hold_writer(cp))
	{
		/* only what was written meanwhile is left, unless a reader holds it */
		all = passive(cp, &pages);
		held_up = !all;
		release_writer(cp);
	}
	cp->retry_at = all ? 0 : sluice_agent_clock() + (pages >= PAGES_HOLD ? RETRY_LATER : RETRY_SOON);
	if (!all && pages >= PAGES_HOLD && pages / 2 >= cp->warned)
	{
		sluice_log(SLUICE_WARNING, "\"%s-wal\" has grown to %d MB; hint: A reader keeps a "
				   "transaction open; the file shrinks when it ends.", cp->path, pages / 256);
		cp->warned = pages;
	}
	if (all && cp->warned > 0)
	{
		sluice_log(SLUICE_INFO, "\"%s-wal\" starts anew", cp->path);
		cp->warned = 0;
	}
	pthread_mutex_lock(&cp->lock);
	if (all)
		cp->pages = 0;
	cp->held_up = held_up;
	pthread_cond_broadcast(&cp->go_on);
	pthread_mutex_unlock(&cp->lock);
}

/*
 * Is a checkpoint worth while?  Not again at once when the last one left
 * something, unless holding the writer would help.
 */
static bool
checkpoint_due(const SluiceCheckpoint *cp)
{
	if (cp->pages >= PAGES_HOLD && !cp->held_up)
		return true;
	return cp->pages >= PAGES_CHECKPOINT && sluice_agent_clock() >= cp->retry_at;
}

/* Until there is something to sync for a while, or to checkpoint. */
static void
wait_work(SluiceCheckpoint *cp)
{
	int64_t		until = 0;

	while (!cp->stop && !checkpoint_due(cp))
	{
		struct timespec at;

		if (cp->synced_all && cp->pages < PAGES_CHECKPOINT)
		{
			until = 0;
			pthread_cond_wait(&cp->wake, &cp->lock);
			continue;
		}
		if (until == 0)
			until = sluice_agent_clock() + SYNC_EVERY;
		if (cp->synced_all)
			until = cp->retry_at;
		at.tv_sec = until / 1000000;
		at.tv_nsec = until % 1000000 * 1000;
		if (pthread_cond_timedwait(&cp->wake, &cp->lock, &at) == ETIMEDOUT)
			return;
	}
}

static void *
run(void *argument)
{
	SluiceCheckpoint *cp = argument;

	sync_commits(cp);			/* what an earlier process committed */
	for (;;)
	{
		bool		stop;
		bool		due;

		pthread_mutex_lock(&cp->lock);
		wait_work(cp);
		stop = cp->stop;
		due = checkpoint_due(cp);
		pthread_mutex_unlock(&cp->lock);
		if (stop)
			return NULL;
		sync_commits(cp);
		if (due)
			checkpoint(cp);
	}
}

static bool
open_connection(SluiceCheckpoint *cp)
{
	if (sqlite3_open_v2(cp->path, &cp->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
		SQLITE_OK ||
		sqlite3_exec(cp->db, "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0",
					 NULL, NULL, NULL) != SQLITE_OK)
		return false;
	sqlite3_busy_timeout(cp->db, 100);
	sqlite3_db_config(cp->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return true;
}

SluiceCheckpoint *
sluice_checkpoint_start(SluiceReplica *replica)
{
	const SluiceAllocator *a = &sluice_malloc_allocator;
	SluiceCheckpoint *cp = a->grow(a->context, NULL, sizeof(*cp));
	pthread_condattr_t monotonic;

	memset(cp, 0, sizeof(*cp));
	cp->wal_fd = -1;
	snprintf(cp->path, sizeof(cp->path), "%s", replica->path);
	cp->committed = replica->position;
	cp->synced_all = true;
	pthread_mutex_init(&cp->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&cp->wake, &monotonic);
	pthread_cond_init(&cp->go_on, &monotonic);
	cp->replica = replica;
	pthread_condattr_destroy(&monotonic);
	if (!open_connection(cp) || pthread_create(&cp->thread, NULL, run, cp) != 0)
	{
		sluice_log(SLUICE_ERROR, "cannot start the checkpoint thread of \"%s\"", cp->path);
		sqlite3_close(cp->db);
		free(cp);
		return NULL;
	}
	return cp;
}

void
sluice_checkpoint_stop(SluiceCheckpoint *cp)
{
	if (cp == NULL)
		return;
	pthread_mutex_lock(&cp->lock);
	cp->stop = true;
	pthread_cond_signal(&cp->wake);
	pthread_mutex_unlock(&cp->lock);
	pthread_join(cp->thread, NULL);
	if (cp->wal_fd >= 0)
		close(cp->wal_fd);
	sqlite3_close(cp->db);
	pthread_cond_destroy(&cp->wake);
	pthread_cond_destroy(&cp->go_on);
	pthread_mutex_destroy(&cp->lock);
	free(cp);
}
