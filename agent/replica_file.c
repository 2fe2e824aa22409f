/*
 * replica_file.c: a replica as files: beside, swapped, set aside.
 *
 * SQLite's -wal and -shm belong to one database file by name only, so a new
 * file must never come to a name whose old -wal is still there.  And readers
 * that have the old file open must keep what they have until they reopen:
 * renaming and unlinking leave their open files alone.
 *
 * In: paths.  Out: files.  Runs in: the agent's main thread.  Locks: none.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "replica.h"

static const char *const tails[] = {"", "-wal", "-shm", "-journal"};

char *
sluice_replica_copy_path(const char *path, const SluiceAllocator *allocator)
{
	size_t		size = strlen(path) + sizeof("-copy");
	char	   *name = allocator->grow(allocator->context, NULL, size);

	snprintf(name, size, "%s-copy", path);
	return name;
}

bool
sluice_replica_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

bool
sluice_replica_has_wal(const char *path)
{
	char		name[PATH_MAX];

	snprintf(name, sizeof(name), "%s-wal", path);
	return access(name, F_OK) == 0;
}

static bool
sync_path(const char *path, int flags)
{
	int			fd = open(path, flags | O_CLOEXEC);
	bool		done = fd >= 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	return done;
}

static bool
sync_directory_of(const char *path)
{
	char		directory[PATH_MAX];
	char	   *slash;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (slash == NULL)
		strcpy(directory, ".");
	else
		slash[slash == directory] = '\0';
	return sync_path(directory, O_RDONLY | O_DIRECTORY);
}

static SluiceOutcome
failed(const char *what, const char *from, const char *to)
{
	sluice_log(SLUICE_ERROR, "cannot %s \"%s\"%s%s%s: %s", what, from, to != NULL ? " to \"" : "",
			   to != NULL ? to : "", to != NULL ? "\"" : "", strerror(errno));
	return SLUICE_UNUSABLE;
}

/*
 * Renames name and what belongs to it, the database first: nobody can open it
 * without its -wal meanwhile.  What is not there is not missed: an earlier
 * process may have been killed in between.
 */
static SluiceOutcome
move(const char *from, const char *to)
{
	for (int i = 0; i < 4; i++)
	{
		char		source[PATH_MAX];
		char		target[PATH_MAX];

		snprintf(source, sizeof(source), "%s%s", from, tails[i]);
		snprintf(target, sizeof(target), "%s%s", to, tails[i]);
		if (rename(source, target) != 0 && errno != ENOENT)
			return failed("rename", source, target);
	}
	return SLUICE_OK;
}

SluiceOutcome
sluice_replica_remove(const char *path)
{
	for (int i = 0; i < 4; i++)
	{
		char		name[PATH_MAX];

		snprintf(name, sizeof(name), "%s%s", path, tails[i]);
		if (unlink(name) != 0 && errno != ENOENT)
			return failed("remove", name, NULL);
	}
	return SLUICE_OK;
}

/*
 * The old -wal and -shm leave their names before the new file comes.  A crash
 * in between leaves the complete copy under its own name, and the next start
 * goes on here: run.c finds a copy that is ready.
 */
SluiceOutcome
sluice_replica_swap(const char *from, const char *to)
{
	char		old[PATH_MAX];
	SluiceOutcome outcome;

	if (sluice_replica_has_wal(from))
	{
		sluice_log(SLUICE_ERROR, "copy \"%s\" was not closed, it cannot be swapped in", from);
		return SLUICE_UNUSABLE;
	}
	if (!sync_path(from, O_RDWR))
		return failed("sync", from, NULL);
	snprintf(old, sizeof(old), "%s-old", to);
	outcome = sluice_replica_remove(old);
	if (outcome == SLUICE_OK)
		outcome = move(to, old);
	if (outcome != SLUICE_OK)
		return outcome;
	if (rename(from, to) != 0)
		return failed("rename", from, to);
	if (!sync_directory_of(to))
		sluice_log(SLUICE_WARNING, "cannot sync the directory of \"%s\": %s", to, strerror(errno));
	return sluice_replica_remove(old);
}

SluiceOutcome
sluice_replica_set_aside(const char *path)
{
	char		aside[PATH_MAX];
	char		when[32];
	time_t		now = time(NULL);
	struct tm	parts;

	gmtime_r(&now, &parts);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &parts);
	snprintf(aside, sizeof(aside), "%s-damaged-%s", path, when);
	if (move(path, aside) != SLUICE_OK)
		return SLUICE_UNUSABLE;
	sluice_log(SLUICE_WARNING, "the damaged replica is kept as \"%s\"", aside);
	return SLUICE_OK;
}
