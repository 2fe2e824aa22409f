/*
 * shmem.h: what our processes share.  One SluiceStream for each logical slot
 * of plugin "sluice", one SluiceSender for each connection of a replica.
 *
 * Locks: SluiceShmem.lock (LWLock) guards which entries are in use, to whom
 * they belong and pids; each entry's spinlock guards the fields said so; the
 * others are atomics with one writer each.  Neither lock is held across a
 * wait, an allocation or a catalog access.
 *
 * Owner: shmem.c.  Fields name their writer.
 */
#ifndef SLUICE_SHMEM_H
#define SLUICE_SHMEM_H

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

#include "watermark.h"

#define SLUICE_SHARD_NAME_MAX 40
#define SLUICE_REPLICA_NAME_MAX 200
#define SLUICE_MESSAGE_MAX 512

typedef struct SluiceRing SluiceRing;	/* ring/ring.h */

typedef enum SluiceStreamState
{
	SLUICE_STREAM_STARTING,		/* workers are being started */
	SLUICE_STREAM_CREATING,		/* the slot is being made */
	SLUICE_STREAM_CATCHING_UP,	/* decodes, more than a segment behind */
	SLUICE_STREAM_STREAMING,
	SLUICE_STREAM_PAUSED,		/* by sluice.pause */
	SLUICE_STREAM_STOPPED,		/* cannot go on; message says why and what to do */
	SLUICE_STREAM_RETRYING,		/* a worker failed, the launcher waits to start it again */
	SLUICE_STREAM_RESETTING		/* a new slot and lineage are being made, see reset.h */
} SluiceStreamState;

typedef enum SluiceResetWish
{
	SLUICE_RESET_NONE,
	SLUICE_RESET_AUTO,			/* cannot go on: if option auto_reset allows */
	SLUICE_RESET_CALL			/* CALL sluice.reset */
} SluiceResetWish;

typedef struct SluiceStream
{
	/* guarded by SluiceShmem.lock */
	bool		in_use;
	bool		create;			/* create_shard asks the decoder to make the slot */
	Oid			dboid;
	uint32		n;				/* the slot's number */
	char		shard[SLUICE_SHARD_NAME_MAX + 1];
	NameData	slot;
	pid_t		decoder_pid;	/* 0: none; written by the worker itself */
	pid_t		storer_pid;
	Latch	   *decoder_latch;	/* NULL: none */
	Latch	   *storer_latch;
	uint64		generation;		/* raised when the entry is given to another slot */
	bool		dropping;		/* create or drop ends its workers: none is started */
	bool		nobody;			/* decoder, create: without its slot the entry is nobody's */
	NameData	next_slot;		/* decoder: what a reset makes, until it is slot; "" none.
								 * No storer runs meanwhile. */
	uint32		next_n;

	/* guarded by mutex */
	slock_t		mutex;
	SluiceStreamState state;
	TimestampTz state_since;
	char		message[SLUICE_MESSAGE_MAX];	/* of the last failure or stop; "" none */
	int			sqlerrcode;
	SluiceWatermark low;		/* decoder; valid if low_valid */
	bool		low_valid;
	SluiceWatermark head;		/* decoder: last transaction on the ring, or where it began */
	SluiceWatermark stored;		/* storer: last transaction that is durable in the log */
	uint64		stored_end_lsn; /* storer: end of that transaction's commit record; 0 unknown */
	SluiceWatermark first;		/* storer: positions from here on can be started from */
	TimestampTz last_commit_time;	/* decoder: commit time of head */
	TimestampTz stored_time;	/* storer: commit time of stored */
	char		waits_for[SLUICE_MESSAGE_MAX];	/* decoder: what it waits for; "" nothing */

	SluiceResetWish reset;		/* see reset.h */
	char		reset_reason[SLUICE_MESSAGE_MAX];	/* of the wish */
	int			reset_tries;	/* one after another, each within a minute */
	TimestampTz reset_tried_at;
	uint64		resets;			/* since the entry was claimed */
	TimestampTz reset_at;		/* of the last one; 0: none */
	char		reset_last[SLUICE_MESSAGE_MAX]; /* its reason */

	/* one writer each, read without a lock */
	pg_atomic_uint64 decoded;	/* decoder: everything that ends before is decoded */
	pg_atomic_uint64 confirmed; /* decoder: confirmed on the slot */
	pg_atomic_uint64 transactions;	/* decoder: since its start */
	pg_atomic_uint64 changes;	/* decoder: since its start */
	pg_atomic_uint64 bytes;		/* decoder: encoded bytes since its start */
	pg_atomic_uint64 stored_transactions;	/* storer */
	pg_atomic_uint64 stored_bytes;	/* storer */
	pg_atomic_uint64 current_at;	/* decoder: server clock when nothing flushed was left to decode */
	pg_atomic_uint32 wake_wanted;	/* decoder sleeps: commits must set its latch, see below */

	ConditionVariable progress; /* decoded, low, stored or state moved */
	SluiceRing *ring;			/* set once at start-up */
} SluiceStream;

typedef enum SluiceSenderState
{
	SLUICE_SENDER_STARTING,
	SLUICE_SENDER_WAITING,		/* its position is ahead of what is decoded */
	SLUICE_SENDER_CATCHUP,		/* reads the change log */
	SLUICE_SENDER_STREAMING,	/* reads the ring */
	SLUICE_SENDER_COPYING
} SluiceSenderState;

/* Guarded by mutex but for in_use, pid and latch (SluiceShmem.lock). */
typedef struct SluiceSender
{
	bool		in_use;
	pid_t		pid;
	Latch	   *latch;
	Oid			dboid;
	char		shard[SLUICE_SHARD_NAME_MAX + 1];
	char		replica[SLUICE_REPLICA_NAME_MAX + 1];
	bool		replaced;		/* a later connection has its name */

	slock_t		mutex;
	SluiceSenderState state;
	char		mode[16];		/* serving, backup, copy */
	SluiceWatermark sent;
	SluiceWatermark applied;
	SluiceWatermark durable;
	TimestampTz connected_at;
	TimestampTz reply_time;		/* server clock when the last A came */
	TimestampTz applied_since;	/* since when applied < sent; 0: it is not */
	uint64		bytes_sent;
	char		waits_for[SLUICE_MESSAGE_MAX];
} SluiceSender;

typedef struct SluiceShmem
{
	uint32		magic;
	LWLock	   *lock;
	pid_t		launcher_pid;	/* lock */
	Latch	   *launcher_latch; /* lock */
	pg_atomic_uint32 stopping;	/* smart shutdown was seen: senders end */
	int			nstreams;		/* sluice.max_shards, set at start-up */
	int			nsenders;		/* sluice.max_replicas, set at start-up */
	SluiceStream *streams;
	SluiceSender *senders;
} SluiceShmem;

/* The shared memory root; NULL unless sluice is in shared_preload_libraries. */
extern SluiceShmem *sluice_shmem;

/* Hooks, from _PG_init */
extern void sluice_shmem_request(void);
extern void sluice_shmem_startup(void);

/*
 * ERRORs (object_not_in_prerequisite_state, with the line to add) unless the
 * library was preloaded.
 */
extern void sluice_shmem_require(void);

/*
 * The stream of a shard of this database that serves replicas (with several,
 * the one whose slot the state row names; until that is known, the highest
 * n).  NULL: none.
 */
extern SluiceStream *sluice_stream_find(Oid dboid, const char *shard);
extern SluiceStream *sluice_stream_find_slot(const char *slot);

/* Takes a free entry, or gives the one that the slot has.  NULL: all taken. */
extern SluiceStream *sluice_stream_claim(Oid dboid, const char *shard, uint32 n,
										 const char *slot, bool create);
/* The same for a slot that is to be made: n is above all that the cluster has. */
extern SluiceStream *sluice_stream_claim_next(Oid dboid, const char *shard);
/* Names the slot that a reset makes (next_slot, next_n): above all of the shard's name. */
extern void sluice_stream_name_next(SluiceStream *stream, uint32 above);
/* Gives the entry back; its workers are gone. */
extern void sluice_stream_release(SluiceStream *stream);

/* State with message ("" allowed); wakes who waits on progress. */
extern void sluice_stream_set_state(SluiceStream *stream, SluiceStreamState state,
									int sqlerrcode, const char *message);
extern const char *sluice_stream_state_name(SluiceStreamState state);

/*
 * Commit hook: sets the latches of decoders of this database that sleep.  A
 * decoder that is about to sleep sets wake_wanted, passes a full barrier and
 * looks at the flush position once more; the hook clears the flag, so that
 * one of many commits sends the signal.  The latch is read without a lock: it
 * belongs to a PGPROC, which is never freed, and whoever has it by now is
 * woken for nothing.
 */
extern void sluice_shmem_wake_decoders(void);
extern void sluice_shmem_wake_launcher(void);

/*
 * A sender's entry, given back by a before_shmem_exit callback at the latest.
 * Unless mode is copy (a first copy may use several connections), an entry of
 * the same database, shard and name that is not a copy is marked as replaced
 * and its latch set.  ERROR (configuration_limit_exceeded) if all are taken.
 */
extern SluiceSender *sluice_sender_claim(Oid dboid, const char *shard,
										 const char *replica, const char *mode);
extern void sluice_sender_release(SluiceSender *sender);
/* After an ERROR: gives back what this process had claimed. */
extern void sluice_sender_release_lost(void);

/* "sluice_<shard>_<n>" both ways; parse is false for other names. */
extern void sluice_slot_name(char *slot, const char *shard, uint32 n);	/* NAMEDATALEN */
extern bool sluice_slot_name_parse(const char *slot, char *shard, uint32 *n);

#endif
