/*
 * wire_scan.c: transaction boundaries in a byte stream that is cut anywhere.
 *
 * In: pieces of the frame stream.  Out: where transactions begin and end.
 * Runs in: sender, storer, agent.  Locks: none.
 *
 * States: between transactions (in_transaction false) only BEGIN and STATUS
 * may come; inside, everything but these two.  Between frames nhead is 0;
 * inside a BEGIN or COMMIT its whole frame is gathered in head, inside any
 * other only the header, then `left` bytes are passed over.
 */
#include "wire_bytes.h"

_Static_assert(SLUICE_FRAME_HEADER + BEGIN_SIZE <= sizeof(((SluiceScanner *) 0)->head),
			   "BEGIN fits into the scanner");
_Static_assert(SLUICE_FRAME_HEADER + COMMIT_SIZE <= sizeof(((SluiceScanner *) 0)->head),
			   "COMMIT fits into the scanner");

void
sluice_scanner_init(SluiceScanner *scanner)
{
	memset(scanner, 0, sizeof(*scanner));
}

static inline bool
is_boundary(uint8_t tag)
{
	return tag == SLUICE_TAG_BEGIN || tag == SLUICE_TAG_COMMIT || tag == SLUICE_TAG_ROLLBACK;
}

/* A frame's header is known: may it stand here? */
static bool
header_fits(const SluiceScanner *scanner, uint8_t tag, uint32_t size)
{
	switch (tag)
	{
		case SLUICE_TAG_BEGIN:
			return !scanner->in_transaction && size == BEGIN_SIZE;
		case SLUICE_TAG_STATUS:
			return !scanner->in_transaction && size == STATUS_SIZE;
		case SLUICE_TAG_COMMIT:
			return scanner->in_transaction && size == COMMIT_SIZE;
		case SLUICE_TAG_ROLLBACK:
			return scanner->in_transaction && size == 0;
		default:
			return scanner->in_transaction && size <= SLUICE_FRAME_MAX && tag_known(tag);
	}
}

/* A whole boundary frame is there: take it in. */
static SluiceScanEvent
boundary(SluiceScanner *scanner, uint8_t tag, const char *payload)
{
	SluiceFrame frame = {(SluiceTag) tag, payload, 0, 0};
	SluiceBegin begin;
	SluiceCommit commit;

	switch (tag)
	{
		case SLUICE_TAG_BEGIN:
			frame.size = BEGIN_SIZE;
			if (!sluice_wire_get_begin(&frame, &begin))
				return SLUICE_SCAN_DAMAGED;
			scanner->begin = begin;
			scanner->in_transaction = true;
			return SLUICE_SCAN_BEGIN;
		case SLUICE_TAG_COMMIT:
			frame.size = COMMIT_SIZE;
			if (!sluice_wire_get_commit(&frame, &commit) ||
				sluice_watermark_compare(commit.watermark, scanner->begin.watermark) != 0)
				return SLUICE_SCAN_DAMAGED;
			scanner->commit = commit;
			scanner->in_transaction = false;
			return SLUICE_SCAN_COMMIT;
		default:
			scanner->in_transaction = false;
			return SLUICE_SCAN_ROLLBACK;
	}
}

/* Frames that lie in the piece as a whole; stops at a boundary or the rest. */
static const char *
scan_whole(SluiceScanner *scanner, const char *at, const char *end, SluiceScanEvent *event)
{
	while ((size_t) (end - at) >= SLUICE_FRAME_HEADER)
	{
		uint32_t	size = load_u32(at);
		uint8_t		tag = (uint8_t) at[4];

		if (!header_fits(scanner, tag, size))
		{
			*event = SLUICE_SCAN_DAMAGED;
			return at;
		}
		if ((size_t) (end - at) - SLUICE_FRAME_HEADER < size)
			break;
		if (is_boundary(tag))
		{
			*event = boundary(scanner, tag, at + SLUICE_FRAME_HEADER);
			return *event == SLUICE_SCAN_DAMAGED ? at : at + SLUICE_FRAME_HEADER + size;
		}
		at += SLUICE_FRAME_HEADER + (size_t) size;
	}
	return at;
}

/* Fills head up to `want`; true if it is full. */
static bool
gather(SluiceScanner *scanner, size_t want, const char **at, const char *end)
{
	size_t		n = want - scanner->nhead;

	if (n > (size_t) (end - *at))
		n = (size_t) (end - *at);
	memcpy(scanner->head + scanner->nhead, *at, n);
	scanner->nhead = (uint8_t) (scanner->nhead + n);
	*at += n;
	return scanner->nhead == want;
}

/* Goes on with a frame that is cut; returns where it stopped. */
static const char *
scan_cut(SluiceScanner *scanner, const char *at, const char *end, SluiceScanEvent *event)
{
	uint32_t	n;

	scanner->in_frame = true;
	if (scanner->nhead < SLUICE_FRAME_HEADER)
	{
		if (!gather(scanner, SLUICE_FRAME_HEADER, &at, end))
			return at;
		scanner->left = load_u32(scanner->head);
		scanner->tag = (uint8_t) scanner->head[4];
		if (!header_fits(scanner, scanner->tag, scanner->left))
		{
			*event = SLUICE_SCAN_DAMAGED;
			return at;
		}
	}
	if (is_boundary(scanner->tag))
	{
		if (!gather(scanner, SLUICE_FRAME_HEADER + (size_t) scanner->left, &at, end))
			return at;
		*event = boundary(scanner, scanner->tag, scanner->head + SLUICE_FRAME_HEADER);
		if (*event == SLUICE_SCAN_DAMAGED)
			return at;
	}
	else
	{
		n = scanner->left;
		if (n > (size_t) (end - at))
			n = (uint32_t) (end - at);
		at += n;
		scanner->left -= n;
		if (scanner->left > 0)
			return at;
	}
	scanner->in_frame = false;
	scanner->nhead = 0;
	scanner->left = 0;
	return at;
}

size_t
sluice_scanner_feed(SluiceScanner *scanner, const char *data, size_t size, SluiceScanEvent *event)
{
	const char *at = data;
	const char *end = data + size;

	*event = scanner->damaged ? SLUICE_SCAN_DAMAGED : SLUICE_SCAN_NONE;
	while (at < end && *event == SLUICE_SCAN_NONE)
	{
		if (!scanner->in_frame)
			at = scan_whole(scanner, at, end, event);
		if (at < end && *event == SLUICE_SCAN_NONE)
			at = scan_cut(scanner, at, end, event);
	}
	if (*event == SLUICE_SCAN_DAMAGED)
		scanner->damaged = true;
	return (size_t) (at - data);
}
