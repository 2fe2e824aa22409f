/*
 * pack.c: the frame stream cut into slices, in memory.
 *
 * In: pieces of the stream, cut anywhere.  Out: slices that are ready.
 * Runs in: storer.  Locks: none.  States: pack.h.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "allocator.h"
#include "pack.h"

static SluiceSlice *
current(SluicePack *pack)
{
	return &pack->slices[pack->nready];
}

static char *
current_data(SluicePack *pack)
{
	return pack->memory + (Size) pack->nready * SLUICE_SLICE_SIZE;
}

static void
clear_current(SluicePack *pack)
{
	SluiceSlice *slice = current(pack);

	memset(slice, 0, sizeof(*slice));
	slice->format = SLUICE_WIRE_VERSION;
	slice->data = current_data(pack);
}

void
sluice_pack_init(SluicePack *pack)
{
	memset(pack, 0, sizeof(*pack));
	pack->slices = palloc(sizeof(SluiceSlice) * SLUICE_PACK_SLICES);
	pack->memory = palloc((Size) SLUICE_PACK_SLICES * SLUICE_SLICE_SIZE);
	sluice_buffer_init(&pack->begin, &sluice_palloc_allocator);
	sluice_buffer_reserve(&pack->begin, 256);	/* here and now: it lives as long as the pack */
	sluice_pack_restart(pack, pack->head);
}

void
sluice_pack_restart(SluicePack *pack, SluiceWatermark head)
{
	sluice_scanner_init(&pack->scanner);
	pack->head = head;
	pack->transactions = 0;
	pack->nready = 0;
	pack->skipping = false;
	pack->open = false;
	pack->whole = 0;
	pack->start = 0;
	pack->parts = 0;
	pack->parts_written = 0;
	clear_current(pack);
}

static TimestampTz
server_time(int64 unix_time)
{
	return unix_time - INT64CONST(946684800000000);
}

/* The current slice is done; `size` of its bytes stay, the rest moves on. */
static void
close_current(SluicePack *pack, Size size)
{
	SluiceSlice *slice = current(pack);
	Size		rest = slice->size - size;
	const char *data = current_data(pack);

	Assert(size > 0 && pack->nready < SLUICE_PACK_SLICES - 1);
	slice->size = size;
	pack->nready++;
	clear_current(pack);
	memcpy(current_data(pack), data + size, rest);
	current(pack)->size = rest;
}

/* The open transaction fills the current slice and goes on. */
static void
close_part(SluicePack *pack, bool last)
{
	SluiceSlice *slice = current(pack);
	const SluiceBegin *begin = &pack->scanner.begin;

	slice->first = slice->last = begin->watermark;
	slice->commit_time = server_time(begin->commit_time);
	slice->xid = begin->xid;
	slice->end_lsn = last ? pack->scanner.commit.end_lsn : 0;
	slice->flags = (pack->parts > 0 ? SLUICE_SLICE_OPEN_START : 0) |
		(last ? 0 : SLUICE_SLICE_OPEN_END);
	close_current(pack, slice->size);
	pack->parts++;
}

void
sluice_pack_close_whole(SluicePack *pack)
{
	if (pack->whole == 0)
		return;
	close_current(pack, pack->start);
	pack->transactions += pack->whole;
	pack->whole = 0;
	pack->start = 0;
}

static void
put(SluicePack *pack, const char *data, Size size)
{
	while (size > 0)
	{
		SluiceSlice *slice = current(pack);
		Size		n = Min(size, SLUICE_SLICE_SIZE - slice->size);

		/* others' bytes stand before it: it begins a slice of its own */
		if (n < size && pack->whole > 0)
		{
			sluice_pack_close_whole(pack);
			continue;
		}
		memcpy(current_data(pack) + slice->size, data, n);
		slice->size += n;
		data += n;
		size -= n;
		if (size > 0)
			close_part(pack, false);
	}
}

static void
begin_transaction(SluicePack *pack)
{
	const SluiceBegin *begin = &pack->scanner.begin;

	pack->parts = 0;
	pack->parts_written = 0;
	pack->skipping = sluice_watermark_compare(begin->watermark, pack->head) <= 0;
	if (pack->skipping)
		return;
	pack->open = true;
	sluice_buffer_reset(&pack->begin);
	sluice_wire_begin(&pack->begin, begin);
	put(pack, pack->begin.data, pack->begin.length);
}

static void
commit_transaction(SluicePack *pack)
{
	const SluiceBegin *begin = &pack->scanner.begin;

	if (pack->skipping)
	{
		pack->skipping = false;
		return;
	}
	pack->head = begin->watermark;
	if (pack->parts > 0)
	{
		close_part(pack, true);
		pack->transactions++;
	}
	else
	{
		SluiceSlice *slice = current(pack);

		if (pack->whole++ == 0)
			slice->first = begin->watermark;
		slice->last = begin->watermark;
		slice->commit_time = server_time(begin->commit_time);
		slice->xid = begin->xid;
		slice->end_lsn = pack->scanner.commit.end_lsn;
	}
	pack->open = false;
	pack->parts = 0;
	pack->start = current(pack)->size;
}

/* True: parts of it are in the log. */
static bool
rollback_transaction(SluicePack *pack)
{
	bool		written = pack->parts_written > 0;

	if (pack->skipping)
	{
		pack->skipping = false;
		return false;
	}
	if (pack->parts == 0)
		current(pack)->size = pack->start;
	else
	{
		pack->nready -= (int) (pack->parts - pack->parts_written);
		clear_current(pack);
	}
	pack->open = false;
	pack->parts = 0;
	pack->parts_written = 0;
	return written;
}

Size
sluice_pack_feed(SluicePack *pack, const char *data, Size size, SluicePackEvent *event)
{
	Size		used = 0;

	*event = SLUICE_PACK_NONE;
	while (used < size)
	{
		SluiceScanEvent scanned;
		Size		n;

		if (pack->nready >= SLUICE_PACK_FULL)
		{
			*event = SLUICE_PACK_READY;
			break;
		}
		n = sluice_scanner_feed(&pack->scanner, data + used,
								Min(size - used, SLUICE_SLICE_SIZE), &scanned);
		if (scanned == SLUICE_SCAN_DAMAGED)
		{
			*event = SLUICE_PACK_DAMAGED;
			break;
		}
		if (pack->open && scanned != SLUICE_SCAN_ROLLBACK)
			put(pack, data + used, n);
		used += n;
		if (scanned == SLUICE_SCAN_BEGIN)
			begin_transaction(pack);
		else if (scanned == SLUICE_SCAN_COMMIT)
			commit_transaction(pack);
		else if (scanned == SLUICE_SCAN_ROLLBACK && rollback_transaction(pack))
		{
			*event = SLUICE_PACK_ROLLBACK;
			break;
		}
	}
	return used;
}

void
sluice_pack_taken(SluicePack *pack)
{
	SluiceSlice *from = current(pack);
	const char *data = current_data(pack);
	SluiceSlice kept = *from;

	if (pack->nready == 0)
		return;
	if (pack->open)
		pack->parts_written = pack->parts;
	pack->nready = 0;
	memmove(current_data(pack), data, kept.size);
	*current(pack) = kept;
	current(pack)->data = current_data(pack);
	pack->transactions = 0;
}
