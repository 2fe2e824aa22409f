/*
 * worker.h: the start of every background worker of ours, and its end.
 *
 * A worker is found by the index and generation of its SluiceStream.  An
 * ERROR ends it (the launcher starts it again); its exit callback clears its
 * pid and latch, records the failure's message and wakes the launcher.
 */
#ifndef SLUICE_WORKER_H
#define SLUICE_WORKER_H

#include "postmaster/bgworker.h"

#include "compat.h"
#include "shmem.h"

typedef enum SluiceWorkerKind
{
	SLUICE_WORKER_DECODER,
	SLUICE_WORKER_STORER,
	SLUICE_WORKER_BACKFILL
} SluiceWorkerKind;

/*
 * Signal handlers, pinned settings, database connection as bootstrap
 * superuser, pid and latch in the stream's entry.  Ends the process quietly
 * if the entry has passed to another slot or has a living worker of the kind.
 */
extern SluiceStream *sluice_worker_start(SluiceWorkerKind kind, Datum main_arg);

/*
 * Registers the dynamic worker; `notify` is signalled when it starts and ends.
 * False: no free slot (the caller retries).
 */
extern bool sluice_worker_launch(SluiceWorkerKind kind, SluiceStream *stream, pid_t notify,
								 BackgroundWorkerHandle **handle);

/*
 * Ends this worker for good: state STOPPED with the message, so that the
 * launcher does not start it again until it is told to.
 */
extern void sluice_worker_stop(SluiceStream *stream, int sqlerrcode,
							   const char *message) SLUICE_NORETURN;

/* Top of every loop: interrupts, configuration reload. */
extern void sluice_worker_interrupts(void);

#endif
