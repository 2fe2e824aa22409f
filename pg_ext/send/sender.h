/*
 * sender.h: the conversation with one replica, once its position is accepted.
 *
 * Owner: the client backend in CALL sluice.stream.  Locks: none kept.
 */
#ifndef SLUICE_SENDER_H
#define SLUICE_SENDER_H

#include "shmem.h"

typedef struct SluiceSenderTask
{
	SluiceStream *stream;
	uint64		generation;		/* of the stream's entry */
	uint32		n;				/* of its slot */
	SluiceSender *entry;
	const char *shard;
	const char *replica;
	SluiceWatermark after;
	SluiceWatermark lineage;	/* replica version */
} SluiceSenderTask;

/* Returns when the client has ended the conversation, or the server stops. */
extern void sluice_sender_run(const SluiceSenderTask *task);

/* ERROR SL001, SL005, SL006 or SL007 if this sender has to end; called in each loop. */
extern void sluice_sender_check(const SluiceSenderTask *task);

/* ERROR SL006 if the shard has stopped; for who has nothing left but to wait. */
extern void sluice_sender_check_stopped(const SluiceSenderTask *task);

/* Smart shutdown was seen. */
extern bool sluice_sender_stopping(void);

/* Notes the replica in the change log: it keeps what is behind `durable`. */
extern void sluice_sender_save(const SluiceSenderTask *task, SluiceWatermark durable);

#endif
