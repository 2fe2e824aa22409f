/*
 * compat.h: what differs between the server's versions 15 to 18, under names
 * of our own.  No other file looks at PG_VERSION_NUM.
 *
 * Runs in: any process.  Locks: said at each function.
 */
#ifndef SLUICE_COMPAT_H
#define SLUICE_COMPAT_H

#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "replication/logical.h"
#include "replication/reorderbuffer.h"
#include "replication/slot.h"
#include "storage/ipc.h"
#include "utils/rel.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"				/* was in postgres.h */
#endif

/* pg_attribute_noreturn() went with 18 */
#if defined(__GNUC__)
#define SLUICE_NORETURN __attribute__((noreturn))
#else
#define SLUICE_NORETURN
#endif

/* ---- start-up ---- */

/* Calls `request` when shared memory may be asked for. */
extern void sluice_hook_shmem_request(void (*request) (void));
extern void sluice_reserve_settings(const char *prefix);

/* ---- waiting ---- */

typedef enum SluiceWait
{
	SLUICE_WAIT_LAUNCHER,		/* launcher: for workers, slots, its timer */
	SLUICE_WAIT_WAL,			/* decoder: for flushed WAL */
	SLUICE_WAIT_RING_SPACE,		/* decoder: for the storer */
	SLUICE_WAIT_RING_DATA,		/* storer, sender: for the decoder */
	SLUICE_WAIT_CLIENT,			/* sender: for its replica */
	SLUICE_WAIT_PROGRESS,		/* anyone: for a stream to move on */
	SLUICE_WAIT_COUNT
} SluiceWait;

/* The wait event, named where the server lets us (17+). */
extern uint32 sluice_wait_event(SluiceWait wait);

/* 17+ re-arms transaction_timeout at each start of a transaction. */
extern void sluice_disable_transaction_timeout(void);

/* ---- WAL ---- */

/* A non-transactional logical message, not flushed; returns where it ends. */
extern XLogRecPtr sluice_log_message(const char *prefix, const char *message, Size size);

/* ---- tables ---- */

/*
 * TRUNCATE within the transaction, of which logical decoding learns nothing.
 * Caller holds ACCESS EXCLUSIVE.
 */
extern void sluice_relation_empty(Relation relation);

/* ---- slots ---- */

/* The slot can never be used again.  Caller holds the slot's mutex or the
 * control lock. */
extern bool sluice_slot_invalidated(const ReplicationSlot *slot);
/* Drops what this process has made and not persisted. */
extern void sluice_slot_cleanup(void);

/* ---- decoding ---- */

extern void sluice_check_decoding(void);

/*
 * Makes the slot, acquired and ephemeral; with failover where the server has
 * it.  Acquire does not wait for another holder.
 */
extern void sluice_slot_create(const char *name);
extern void sluice_slot_acquire(const char *name);
extern LogicalDecodingContext *sluice_create_init_context(const char *plugin,
														  XLogReaderRoutine *routine);

/* NULL: none */
extern HeapTuple sluice_change_new(const ReorderBufferChange *change);
extern HeapTuple sluice_change_old(const ReorderBufferChange *change);

/*
 * What wakes a process at every flush, if the server has it (16+): to be
 * prepared before the flush position is looked at for the last time.
 */
extern void sluice_flush_wait_prepare(void);
extern void sluice_flush_wait_cancel(void);

/* ---- other sessions ---- */

typedef struct SluiceBackendInfo
{
	char		application[NAMEDATALEN];
	char		activity[256];
	TimestampTz xact_start;		/* 0: not in a transaction */
} SluiceBackendInfo;

/* False: no such backend. */
extern bool sluice_backend_info(int pid, SluiceBackendInfo *info);

#endif
