/*
 * filelock.c: one agent per replica file.
 *
 * In: path of the replica.  Out: a lock held until release or process end.
 * The lock file has one line: pid, inode of the database, "wal" or "whole".
 * Runs in: the agent's main thread.  Locks: flock of "<file>-lock".
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "filelock.h"
#include "log.h"

static bool
read_line(int fd, char *line, size_t size)
{
	ssize_t		n = pread(fd, line, size - 1, 0);

	if (n < 0)
		n = 0;
	line[n] = '\0';
	return n > 0;
}

static bool
same_file(SluiceAgent *agent, const char *path)
{
	char		name[PATH_MAX];

	/* what is beside the replica (a copy in the making) is not noted */
	snprintf(name, sizeof(name), "%s", agent->config.replica);
	return strcmp(name, path) == 0;
}

/* Ours instead of the last owner's; what was noted of the file stays. */
static void
write_pid(int fd)
{
	char		line[128];
	char		word[16] = "whole";
	uintmax_t	inode = 0;
	long		pid;
	int			n;

	if (read_line(fd, line, sizeof(line)))
		sscanf(line, "%ld %" SCNuMAX " %15s", &pid, &inode, word);
	n = snprintf(line, sizeof(line), "%ld %" PRIuMAX " %s\n", (long) getpid(), inode, word);
	if (pwrite(fd, line, (size_t) n, 0) == n && ftruncate(fd, n) != 0)
		sluice_log(SLUICE_WARNING, "cannot write lock file: %s", strerror(errno));
}

SluiceOutcome
sluice_filelock_take(SluiceAgent *agent, const char *path)
{
	char		name[PATH_MAX];
	char		line[128];
	int			fd;

	snprintf(name, sizeof(name), "%s-lock", path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
	{
		sluice_log(SLUICE_ERROR, "cannot open lock file \"%s\": %s", name, strerror(errno));
		return SLUICE_UNUSABLE;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
	{
		long		pid = 0;

		if (errno != EWOULDBLOCK)
			sluice_log(SLUICE_ERROR, "cannot lock \"%s\": %s", name, strerror(errno));
		else
		{
			if (read_line(fd, line, sizeof(line)))
				sscanf(line, "%ld", &pid);
			sluice_log(SLUICE_ERROR, "replica \"%s\" is in use by another agent (pid %ld); "
					   "hint: A replica file has one writer; give this one a file of its own.",
					   path, pid);
		}
		close(fd);
		return SLUICE_UNUSABLE;
	}
	agent->lock_fd = fd;
	write_pid(fd);
	return SLUICE_OK;
}

void
sluice_filelock_release(SluiceAgent *agent)
{
	if (agent->lock_fd >= 0)
		close(agent->lock_fd);
	agent->lock_fd = -1;
}

void
sluice_filelock_note(SluiceAgent *agent, const char *path, bool needs_wal)
{
	struct stat st;
	char		line[128];
	int			n;

	if (agent->lock_fd < 0 || !same_file(agent, path) || stat(path, &st) != 0)
		return;
	n = snprintf(line, sizeof(line), "%ld %" PRIuMAX " %s\n", (long) getpid(),
				 (uintmax_t) st.st_ino, needs_wal ? "wal" : "whole");
	if (pwrite(agent->lock_fd, line, (size_t) n, 0) != n || ftruncate(agent->lock_fd, n) != 0)
		sluice_log(SLUICE_WARNING, "cannot write \"%s-lock\": %s", path, strerror(errno));
}

bool
sluice_filelock_wal_lost(SluiceAgent *agent, const char *path)
{
	struct stat st;
	char		line[128];
	char		wal[PATH_MAX];
	char		word[16];
	uintmax_t	inode;
	long		pid;

	if (agent->lock_fd < 0 || !same_file(agent, path) || stat(path, &st) != 0 ||
		!read_line(agent->lock_fd, line, sizeof(line)) ||
		sscanf(line, "%ld %" SCNuMAX " %15s", &pid, &inode, word) != 3)
		return false;
	snprintf(wal, sizeof(wal), "%s-wal", path);
	return inode == (uintmax_t) st.st_ino && strcmp(word, "wal") == 0 && access(wal, F_OK) != 0;
}
