/*
 * buffer.c: a growing byte buffer.
 *
 * In: bytes.  Out: one piece of memory that holds them.
 * Runs in: every process of the extension and the agent.  Locks: none.
 */
#include "buffer.h"

#include <string.h>

#define INITIAL_CAPACITY 1024
/* From here on it grows by a quarter, so that huge values cost less. */
#define DOUBLING_LIMIT ((size_t) 64 * 1024 * 1024)

void
sluice_buffer_init(SluiceBuffer *buffer, const SluiceAllocator *allocator)
{
	buffer->data = NULL;
	buffer->length = 0;
	buffer->capacity = 0;
	buffer->allocator = allocator;
}

void
sluice_buffer_reset(SluiceBuffer *buffer)
{
	buffer->length = 0;
}

void
sluice_buffer_release(SluiceBuffer *buffer)
{
	if (buffer->data != NULL)
		buffer->allocator->release(buffer->allocator->context, buffer->data);
	sluice_buffer_init(buffer, buffer->allocator);
}

static void
enlarge(SluiceBuffer *buffer, size_t more)
{
	const SluiceAllocator *allocator = buffer->allocator;
	size_t		capacity = buffer->capacity;
	size_t		need;

	/* a size that cannot be is left to grow(), which reports it */
	need = more > SIZE_MAX - buffer->length ? SIZE_MAX : buffer->length + more;

	if (capacity < DOUBLING_LIMIT)
		capacity *= 2;
	else if (capacity < SIZE_MAX / 2)
		capacity += capacity / 4;
	if (capacity < INITIAL_CAPACITY)
		capacity = INITIAL_CAPACITY;
	if (capacity < need)
		capacity = need;

	buffer->data = allocator->grow(allocator->context, buffer->data, capacity);
	buffer->capacity = capacity;
}

char *
sluice_buffer_reserve(SluiceBuffer *buffer, size_t more)
{
	if (buffer->capacity - buffer->length < more || buffer->data == NULL)
		enlarge(buffer, more);
	return buffer->data + buffer->length;
}

void
sluice_buffer_append(SluiceBuffer *buffer, const void *data, size_t size)
{
	char	   *at = sluice_buffer_reserve(buffer, size);

	if (size > 0)
		memcpy(at, data, size);
	buffer->length += size;
}
