/*
 * subscriber.h: what one replica has got of the stream, and what it gets next.
 *
 * In: the frame stream's bytes, cut anywhere, with repetitions of whole
 * transactions.  Out: W and X messages in which no transaction comes twice.
 * Owner: the sender's backend.  Locks: none.
 */
#ifndef SLUICE_SUBSCRIBER_H
#define SLUICE_SUBSCRIBER_H

#include "lib/stringinfo.h"

#include "wire.h"

typedef struct SluiceSubscriber
{
	SluiceWatermark sent;		/* the last transaction that is wholly in `out` or sent */
	SluiceScanner scanner;
	StringInfoData out;			/* bytes that are not sent yet */
	int			boundary;		/* out.data up to here ends with a whole transaction, or is empty */
	bool		skipping;		/* the scanner is inside a transaction the replica has */
	bool		client_open;	/* out.data[0] continues a transaction at the client */
	uint64		bytes_sent;
} SluiceSubscriber;

/* Lives in the current memory context. */
extern void sluice_subscriber_init(SluiceSubscriber *subscriber, SluiceWatermark after);

/* Takes bytes; ERROR (data_corrupted) if they are no frames. */
extern void sluice_subscriber_take(SluiceSubscriber *subscriber, const char *data, Size size);

/* Sends what may be sent, in one message.  False: there was nothing. */
extern bool sluice_subscriber_send(SluiceSubscriber *subscriber);

/* Bytes that sluice_subscriber_send() would send. */
extern int	sluice_subscriber_ready(const SluiceSubscriber *subscriber);

/*
 * The bytes to come start at a transaction again: drops an unfinished one here
 * and, if part of it was sent, at the client.
 */
extern void sluice_subscriber_restart(SluiceSubscriber *subscriber);

#endif
