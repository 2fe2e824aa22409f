/*
 * guc.c: the settings sluice.*.
 *
 * In: postgresql.conf, ALTER SYSTEM.  Out: the variables of guc.h.
 * Runs in: the postmaster at start-up, inherited by every process.
 * Locks: none.
 */
#include "postgres.h"

#include <limits.h>

#include "miscadmin.h"
#include "replication/walsender.h"
#include "utils/guc.h"

#include "compat.h"
#include "guc.h"

int			sluice_max_shards = 8;
int			sluice_max_replicas = 64;
int			sluice_ring_size = 8192;
int			sluice_sender_timeout = -1;
int			sluice_storer_timeout = 20000;
char	   *sluice_advertise_address = NULL;

static void
define_startup_settings(void)
{
	DefineCustomIntVariable("sluice.max_shards",
							"Sets the maximum number of shards of all databases.",
							"Each takes one ring in shared memory and two background workers.",
							&sluice_max_shards, 8, 1, 256,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);

	DefineCustomIntVariable("sluice.max_replicas",
							"Sets the maximum number of connections of replicas at a time.",
							"Streams and first copies both count.",
							&sluice_max_replicas, 64, 1, 10000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);

	DefineCustomIntVariable("sluice.ring_size",
							"Sets the size of each shard's ring of encoded changes.",
							"It is rounded up to a power of two. Replicas that fall further "
							"behind read the change log.",
							&sluice_ring_size, 8192, 256, 1024 * 1024,
							PGC_POSTMASTER, GUC_UNIT_KB, NULL, NULL, NULL);
}

void
sluice_guc_define(void)
{
	define_startup_settings();

	DefineCustomIntVariable("sluice.sender_timeout",
							"Sets how long a replica's connection may be silent before it is ended.",
							"-1 takes wal_sender_timeout, 0 turns it off.",
							&sluice_sender_timeout, -1, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);

	DefineCustomIntVariable("sluice.storer_timeout",
							"Sets how long a storer may make no progress while the ring is full.",
							"After that its process is ended and started again. 0 turns it off.",
							&sluice_storer_timeout, 20000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);

	DefineCustomStringVariable("sluice.advertise_address",
							   "Sets the address under which the owner of a change log is recorded.",
							   "Empty: none is recorded.",
							   &sluice_advertise_address, "",
							   PGC_SIGHUP, 0, NULL, NULL, NULL);

	sluice_reserve_settings("sluice");
}

int
sluice_effective_sender_timeout(void)
{
	if (sluice_sender_timeout >= 0)
		return sluice_sender_timeout;
	return wal_sender_timeout;
}
