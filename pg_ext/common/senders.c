/*
 * senders.c: the entries of connected replicas (shmem.h).
 *
 * In: the name of a replica.  Out: its entry.
 * Runs in: client backends in CALL sluice.stream or sluice.copy.
 * Locks: SluiceShmem.lock to find, give and take entries.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "shmem.h"

/* this process's entry, so that its end gives it back whatever happens */
static SluiceSender *mine = NULL;

void
sluice_sender_release(SluiceSender *sender)
{
	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	if (sender->in_use && sender->pid == MyProcPid)
	{
		sender->in_use = false;
		sender->pid = 0;
		sender->latch = NULL;
	}
	LWLockRelease(sluice_shmem->lock);
	if (mine == sender)
		mine = NULL;
	/* it may wait to see senders go */
	if (pg_atomic_read_u32(&sluice_shmem->stopping))
		sluice_shmem_wake_launcher();
}

void
sluice_sender_release_lost(void)
{
	if (mine)
		sluice_sender_release(mine);
}

static void
release_at_exit(int code, Datum argument)
{
	sluice_sender_release_lost();
}

static bool
is_copy(const char *mode)
{
	return strcmp(mode, "copy") == 0;
}

/* An earlier stream of the same replica; copies run side by side. */
static bool
is_rival(const SluiceSender *sender, Oid dboid, const char *shard, const char *replica,
		 const char *mode)
{
	return sender->in_use && sender->dboid == dboid &&
		!is_copy(sender->mode) && !is_copy(mode) &&
		strcmp(sender->shard, shard) == 0 && strcmp(sender->replica, replica) == 0;
}

static void
fill(SluiceSender *sender, Oid dboid, const char *shard, const char *replica, const char *mode)
{
	TimestampTz now = GetCurrentTimestamp();

	SpinLockAcquire(&sender->mutex);
	sender->state = SLUICE_SENDER_STARTING;
	strlcpy(sender->mode, mode, sizeof(sender->mode));
	memset(&sender->sent, 0, sizeof(sender->sent));
	memset(&sender->applied, 0, sizeof(sender->applied));
	memset(&sender->durable, 0, sizeof(sender->durable));
	sender->connected_at = now;
	sender->reply_time = 0;
	sender->applied_since = 0;
	sender->bytes_sent = 0;
	sender->waits_for[0] = '\0';
	SpinLockRelease(&sender->mutex);

	sender->dboid = dboid;
	strlcpy(sender->shard, shard, sizeof(sender->shard));
	strlcpy(sender->replica, replica, sizeof(sender->replica));
	sender->replaced = false;
	sender->pid = MyProcPid;
	sender->latch = &MyProc->procLatch;
	sender->in_use = true;
}

SluiceSender *
sluice_sender_claim(Oid dboid, const char *shard, const char *replica, const char *mode)
{
	static bool registered = false;
	SluiceSender *found = NULL;

	if (!registered)
	{
		before_shmem_exit(release_at_exit, (Datum) 0);
		registered = true;
	}
	sluice_sender_release_lost();

	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	for (int i = 0; i < sluice_shmem->nsenders; i++)
	{
		SluiceSender *sender = &sluice_shmem->senders[i];

		if (is_rival(sender, dboid, shard, replica, mode))
		{
			sender->replaced = true;
			if (sender->latch)
				SetLatch(sender->latch);
		}
		else if (!sender->in_use && found == NULL)
			found = sender;
	}
	if (found)
		fill(found, dboid, shard, replica, mode);
	LWLockRelease(sluice_shmem->lock);

	if (found == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many replicas are connected"),
				 errdetail("sluice.max_replicas is %d.", sluice_shmem->nsenders),
				 errhint("Raise sluice.max_replicas in postgresql.conf and restart the server.")));
	mine = found;
	return found;
}
