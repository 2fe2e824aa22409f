/*
 * stop.c: taking down what runs for a shard, and what it leaves.
 *
 * Order: no new worker (dropping), replicas' connections, workers, slots,
 * catalogs.  A crash in between leaves a shard that drop_shard takes up again.
 *
 * In: a shard's name.  Out: nothing of it runs, or is there.
 * Runs in: CALL sluice.create_shard (when it fails) and sluice.drop_shard.
 * Locks: SluiceShmem.lock; none while waiting.
 */
#include "postgres.h"

#include <signal.h>

#include "catalog/pg_publication.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "admin.h"
#include "compat.h"
#include "create.h"

#define AGAIN_AFTER 1000		/* ms between signals to who does not go */

static bool
is_stream_of(const SluiceStream *stream, const char *shard)
{
	return stream->in_use && stream->dboid == MyDatabaseId && strcmp(stream->shard, shard) == 0;
}

/* Sets or clears dropping; returns how many streams there are. */
static int
mark(const char *shard, bool dropping)
{
	int			count = 0;

	LWLockAcquire(sluice_shmem->lock, LW_EXCLUSIVE);
	for (int i = 0; i < sluice_shmem->nstreams; i++)
	{
		SluiceStream *stream = &sluice_shmem->streams[i];

		if (!is_stream_of(stream, shard))
			continue;
		stream->dropping = dropping;
		if (!dropping)
		{
			/* a slot that is not there by now will not be: the launcher forgets the entry */
			stream->nobody = stream->nobody || stream->create;
			stream->create = false;
		}
		count++;
	}
	LWLockRelease(sluice_shmem->lock);
	return count;
}

void
sluice_stop_mark(const char *shard)
{
	(void) mark(shard, true);
}

void
sluice_stop_resume(const char *shard)
{
	if (mark(shard, false) > 0)
		sluice_shmem_wake_launcher();
}

/* Returns how many senders of the shard there are. */
static int
end_senders(const char *shard)
{
	int			count = 0;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	for (int i = 0; i < sluice_shmem->nsenders; i++)
	{
		SluiceSender *sender = &sluice_shmem->senders[i];

		if (sender->in_use && sender->dboid == MyDatabaseId && strcmp(sender->shard, shard) == 0 &&
			sender->pid != MyProcPid)
		{
			kill(sender->pid, SIGTERM);
			count++;
		}
	}
	LWLockRelease(sluice_shmem->lock);
	return count;
}

/* True: the stream is the shard's and has workers, which were sent SIGTERM if `end`. */
static bool
has_workers(SluiceStream *stream, const char *shard, bool end)
{
	bool		has = false;

	LWLockAcquire(sluice_shmem->lock, LW_SHARED);
	if (is_stream_of(stream, shard))
	{
		has = stream->decoder_pid != 0 || stream->storer_pid != 0;
		if (end && stream->decoder_pid != 0)
			kill(stream->decoder_pid, SIGTERM);
		if (end && stream->storer_pid != 0)
			kill(stream->storer_pid, SIGTERM);
	}
	LWLockRelease(sluice_shmem->lock);
	return has;
}

/* Workers wake us when they go; a signal may have come too early for one. */
static void
wait_for_workers(SluiceStream *stream, const char *shard)
{
	bool		end = true;

	ConditionVariablePrepareToSleep(&stream->progress);
	while (has_workers(stream, shard, end))
		end = ConditionVariableTimedSleep(&stream->progress, AGAIN_AFTER,
										  sluice_wait_event(SLUICE_WAIT_PROGRESS));
	ConditionVariableCancelSleep();
}

/* Backends tell nobody when they go; so this looks again, soon. */
void
sluice_stop_senders(const char *shard)
{
	while (end_senders(shard) > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 50,
						 sluice_wait_event(SLUICE_WAIT_PROGRESS));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

void
sluice_stop_workers(const char *shard)
{
	for (int i = 0; i < sluice_shmem->nstreams; i++)
		wait_for_workers(&sluice_shmem->streams[i], shard);
}

void
sluice_stop_wait(const char *shard)
{
	sluice_stop_senders(shard);
	sluice_stop_workers(shard);
}

/* The next slot of the shard in this database. */
static bool
next_slot(const char *shard, char *name)
{
	bool		found = false;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots && !found; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		char		slot_shard[SLUICE_SHARD_NAME_MAX + 1];
		uint32		n;

		found = slot->in_use && slot->data.database == MyDatabaseId &&
			strcmp(NameStr(slot->data.plugin), "sluice") == 0 &&
			sluice_slot_name_parse(NameStr(slot->data.name), slot_shard, &n) &&
			strcmp(slot_shard, shard) == 0;
		if (found)
			strlcpy(name, NameStr(slot->data.name), NAMEDATALEN);
	}
	LWLockRelease(ReplicationSlotControlLock);
	return found;
}

void
sluice_stop_drop_slots(const char *shard)
{
	char		name[NAMEDATALEN];
	SluiceStream *stream;

	while (next_slot(shard, name))
		ReplicationSlotDrop(name, false);
	while ((stream = sluice_stream_find(MyDatabaseId, shard)) != NULL)
		sluice_stream_release(stream);
	sluice_shmem_wake_launcher();
}

/* Another shard that has the publication; NULL: none. */
static const char *
user_of(const char *publication, const char *shard)
{
	ListCell   *cell;

	foreach(cell, sluice_admin_shards())
	{
		SluiceState *state = sluice_state_read(lfirst(cell), NoLock, true);
		ListCell   *name;

		if (state == NULL || strcmp(lfirst(cell), shard) == 0)
			continue;
		foreach(name, state->publications)
			if (strcmp(lfirst(name), publication) == 0)
				return lfirst(cell);
	}
	return NULL;
}

void
sluice_stop_drop_catalog(const char *shard)
{
	SluiceState *state = sluice_state_read(shard, NoLock, true);
	char		publication[NAMEDATALEN];
	const char *user;

	sluice_store_drop(shard);
	if (state == NULL || !state->default_publication)
		return;
	sluice_admin_default_publication(publication, shard);
	user = user_of(publication, shard);
	if (user)
		ereport(NOTICE,
				(errmsg("publication \"%s\" is kept, shard \"%s\" has it too", publication, user)));
	else
		sluice_admin_run(psprintf("DROP PUBLICATION IF EXISTS %s", quote_identifier(publication)));
}
