/*
 * ring_core.c: the arithmetic of the ring; see ring_core.h.
 *
 * In: bytes and marks of one writer.  Out: the bytes, or the news that they
 * are gone.  Runs in: decoder, storer, senders, unit test.
 * Locks: as ring_core.h says.
 */
#include "ring_core.h"

#include <string.h>

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics work between processes");

void
sluice_ring_core_init(SluiceRingCore *core, uint64_t capacity, char *data)
{
	memset(core, 0, sizeof(*core));
	core->capacity = capacity;
	core->data = data;
}

/* ---- writer ---- */

static void
add_mark(SluiceRingCore *core, uint64_t offset, SluiceWatermark after)
{
	SluiceRingMark *mark = &core->marks[core->mark_end % SLUICE_RING_MARKS];

	if (core->mark_end - core->mark_first == SLUICE_RING_MARKS)
		core->mark_first++;
	mark->offset = offset;
	mark->after = after;
	core->mark_end++;
}

void
sluice_ring_core_start(SluiceRingCore *core, SluiceWatermark after)
{
	/* an earlier writer's reserved bytes may be half written: go behind them */
	uint64_t	base = atomic_load(&core->reserved);

	/* first the number: who sees a new head sees the new generation, too */
	atomic_fetch_add(&core->generation, 1);
	atomic_store(&core->base, base);
	atomic_store(&core->head, base);
	core->written = base;
	core->mark_first = core->mark_end;
	add_mark(core, base, after);
}

uint64_t
sluice_ring_core_floor(SluiceRingCore *core)
{
	uint64_t	base = atomic_load(&core->base);
	uint64_t	consumed = atomic_load(&core->consumed);

	return consumed > base ? consumed : base;
}

uint64_t
sluice_ring_core_room(SluiceRingCore *core)
{
	return core->capacity - (core->written - sluice_ring_core_floor(core));
}

void
sluice_ring_core_write(SluiceRingCore *core, const char *data, uint64_t size)
{
	uint64_t	at = core->written & (core->capacity - 1);
	uint64_t	first = core->capacity - at;

	atomic_store_explicit(&core->reserved, core->written + size, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);

	if (first > size)
		first = size;
	memcpy(core->data + at, data, first);
	memcpy(core->data, data + first, size - first);
	core->written += size;
}

void
sluice_ring_core_publish(SluiceRingCore *core)
{
	atomic_store_explicit(&core->head, core->written, memory_order_release);
}

void
sluice_ring_core_mark(SluiceRingCore *core, SluiceWatermark after)
{
	const SluiceRingMark *last = &core->marks[(core->mark_end - 1) % SLUICE_RING_MARKS];

	if (core->written - last->offset >= core->capacity / SLUICE_RING_MARK_SHARE)
		add_mark(core, core->written, after);
}

/* ---- readers ---- */

static bool
overrun(SluiceRingCore *core, uint64_t offset)
{
	return atomic_load_explicit(&core->reserved, memory_order_relaxed) > offset + core->capacity;
}

bool
sluice_ring_core_find(SluiceRingCore *core, SluiceWatermark w, uint64_t *generation,
					  uint64_t *offset)
{
	uint64_t	low = core->mark_first;
	uint64_t	high = core->mark_end;
	const SluiceRingMark *mark;

	if (atomic_load(&core->generation) == 0)
		return false;

	/* the first mark behind w */
	while (low < high)
	{
		uint64_t	middle = low + (high - low) / 2;

		mark = &core->marks[middle % SLUICE_RING_MARKS];
		if (sluice_watermark_compare(mark->after, w) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == core->mark_first)
		return false;
	mark = &core->marks[(low - 1) % SLUICE_RING_MARKS];
	if (overrun(core, mark->offset))
		return false;
	*generation = atomic_load(&core->generation);
	*offset = mark->offset;
	return true;
}

SluiceRingCoreResult
sluice_ring_core_read(SluiceRingCore *core, uint64_t generation, uint64_t *offset, char *to,
					  uint64_t max, uint64_t *size)
{
	uint64_t	head = atomic_load_explicit(&core->head, memory_order_acquire);
	uint64_t	at = *offset & (core->capacity - 1);
	uint64_t	first = core->capacity - at;
	uint64_t	n = 0;

	*size = 0;

	/* a head that belongs to another generation may be anywhere */
	if (head > *offset && head - *offset <= core->capacity)
	{
		n = head - *offset;
		if (n > max)
			n = max;
		if (first > n)
			first = n;
		memcpy(to, core->data + at, first);
		memcpy(to + first, core->data, n - first);
	}

	/* now: was all this ours, and still there when we copied it? */
	atomic_thread_fence(memory_order_acquire);
	if (generation == 0 ||
		atomic_load_explicit(&core->generation, memory_order_relaxed) != generation)
		return SLUICE_RING_CORE_RESTARTED;
	if (overrun(core, *offset))
		return SLUICE_RING_CORE_OVERRUN;
	if (n == 0)
		return SLUICE_RING_CORE_EMPTY;
	*offset += n;
	*size = n;
	return SLUICE_RING_CORE_DATA;
}

uint64_t
sluice_ring_core_unread(SluiceRingCore *core, uint64_t generation, uint64_t offset)
{
	uint64_t	head = atomic_load(&core->head);

	if (generation == 0 || atomic_load(&core->generation) != generation || head < offset)
		return 0;
	return head - offset;
}
