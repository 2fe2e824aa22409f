/*
 * greeting.h: the first message of a stream.
 */
#ifndef SLUICE_GREETING_H
#define SLUICE_GREETING_H

#include "replica.h"

typedef struct SluiceGreeting
{
	uint64_t	system_id;
	uint32_t	timeline;
	const char *replica_version;
	SluiceWatermark first;
	SluiceWatermark head;
	int64_t		server_time;
	uint32_t	sender_timeout; /* ms, 0: off */
	uint8_t		timestamps;
	uint8_t		numerics;
	const char *server_version;
	SluiceArena arena;			/* of the texts; zeroed or used before */
} SluiceGreeting;

/*
 * Reads it and compares it with what the replica is of.  COPY_AFRESH: another
 * system or lineage, or values are encoded in another way now.
 */
extern SluiceOutcome sluice_greeting_take(SluiceReplica *replica, const char *data, size_t size,
										  SluiceGreeting *greeting);

#endif
