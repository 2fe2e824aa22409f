/*
 * shutdown.c: see shutdown.h.
 *
 * A smart shutdown waits for every client, and a replica's connection never
 * ends by itself.  The only place where the postmaster says that it is
 * stopping is the last line of postmaster.pid.
 *
 * In: postmaster.pid.  Out: SluiceShmem.stopping, latches, SIGTERM for those
 * that do not listen.
 * Runs in: the launcher.  Locks: SluiceShmem.lock.
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/pidfile.h"
#include "utils/timestamp.h"

#include "shmem.h"
#include "shutdown.h"

#define PATIENCE 5000			/* ms before senders are terminated */

/* An unreadable file is no news. */
static bool
server_is_stopping(void)
{
	char		content[1024];
	const char *line = content;
	ssize_t		size;
	int			fd = BasicOpenFile("postmaster.pid", O_RDONLY);

	if (fd < 0)
		return false;
	size = read(fd, content, sizeof(content) - 1);
	close(fd);
	if (size <= 0)
		return false;
	content[size] = '\0';

	for (int i = 1; i < LOCK_FILE_LINE_PM_STATUS; i++)
	{
		line = strchr(line, '\n');
		if (line == NULL)
			return false;
		line++;
	}
	return strncmp(line, PM_STATUS_STOPPING, strlen("stopping")) == 0;
}

/* Sets latches or sends SIGTERM; returns how many senders there are. */
static int
for_each_sender(bool wake, bool end)
{
	int			count = 0;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	for (int i = 0; i < sluice_shmem->nsenders; i++)
	{
		SluiceSender *sender = &sluice_shmem->senders[i];

		if (!sender->in_use)
			continue;
		count++;
		if (wake && sender->latch)
			SetLatch(sender->latch);
		if (end)
			kill(sender->pid, SIGTERM);
	}
	LWLockRelease(sluice_shmem->lock);
	return count;
}

bool
sluice_shutdown_watch(void)
{
	static TimestampTz seen = 0;
	int			count = for_each_sender(false, false);

	if (count == 0)
		return false;
	if (seen == 0)
	{
		if (!server_is_stopping())
			return true;
		seen = GetCurrentTimestamp();
		pg_atomic_write_u32(&sluice_shmem->stopping, 1);
		ereport(LOG, (errmsg("the server is stopping: ending %d connections of replicas", count)));
	}
	for_each_sender(true, TimestampDifferenceExceeds(seen, GetCurrentTimestamp(), PATIENCE));
	return true;
}
