/*
 * subscriber.c: see subscriber.h.
 *
 * Between transactions bytes are held back until their BEGIN is whole, so
 * that a transaction which the replica has is left out without a trace.
 *
 * In: frame bytes.  Out: W and X messages.  Runs in: the sender's backend.
 * Locks: none.
 */
#include "postgres.h"

#include "copyboth.h"
#include "subscriber.h"

void
sluice_subscriber_init(SluiceSubscriber *subscriber, SluiceWatermark after)
{
	memset(subscriber, 0, sizeof(*subscriber));
	subscriber->sent = after;
	sluice_scanner_init(&subscriber->scanner);
	initStringInfo(&subscriber->out);
}

static void
at_begin(SluiceSubscriber *subscriber)
{
	if (sluice_watermark_compare(subscriber->scanner.begin.watermark, subscriber->sent) > 0)
		return;
	subscriber->skipping = true;
	subscriber->out.len = subscriber->boundary;
}

static void
at_end(SluiceSubscriber *subscriber, SluiceScanEvent event)
{
	if (subscriber->skipping)
	{
		subscriber->skipping = false;
		return;
	}
	if (event == SLUICE_SCAN_COMMIT)
		subscriber->sent = subscriber->scanner.commit.watermark;
	subscriber->boundary = subscriber->out.len;
}

void
sluice_subscriber_take(SluiceSubscriber *subscriber, const char *data, Size size)
{
	while (size > 0)
	{
		SluiceScanEvent event;
		Size		n = sluice_scanner_feed(&subscriber->scanner, data, size, &event);

		if (event == SLUICE_SCAN_DAMAGED)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("the frame stream of the shard is damaged"),
					 errhint("Reconnecting reads it anew; if this comes again, drop the shard and create it afresh.")));
		if (!subscriber->skipping)
			appendBinaryStringInfo(&subscriber->out, data, (int) n);
		data += n;
		size -= n;
		if (event == SLUICE_SCAN_BEGIN)
			at_begin(subscriber);
		else if (event != SLUICE_SCAN_NONE)
			at_end(subscriber, event);
	}
}

static bool
in_open_transaction(const SluiceSubscriber *subscriber)
{
	return subscriber->scanner.in_transaction && !subscriber->skipping;
}

int
sluice_subscriber_ready(const SluiceSubscriber *subscriber)
{
	return in_open_transaction(subscriber) ? subscriber->out.len : subscriber->boundary;
}

bool
sluice_subscriber_send(SluiceSubscriber *subscriber)
{
	StringInfo	out = &subscriber->out;
	int			ready = sluice_subscriber_ready(subscriber);

	if (ready == 0)
		return false;
	sluice_copyboth_send('W', out->data, ready);
	subscriber->bytes_sent += ready;
	subscriber->client_open = in_open_transaction(subscriber);
	subscriber->boundary = 0;
	out->len -= ready;
	memmove(out->data, out->data + ready, out->len);
	return true;
}

void
sluice_subscriber_restart(SluiceSubscriber *subscriber)
{
	bool		cut = subscriber->client_open && subscriber->boundary == 0;

	subscriber->out.len = subscriber->boundary;
	subscriber->skipping = false;
	sluice_scanner_init(&subscriber->scanner);
	if (cut)
	{
		sluice_copyboth_send('X', NULL, 0);
		subscriber->client_open = false;
	}
}
