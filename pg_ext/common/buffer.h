/*
 * buffer.h: a growing byte buffer and an allocator, for code that is compiled
 * into both the server extension and the agent.
 *
 * The allocator hides palloc and malloc.  grow() never returns NULL: the
 * extension's raises an ERROR, the agent's ends the process with a message.
 *
 * Pure C.  Owner of a buffer: whoever initialised it.  No locks.
 */
#ifndef SLUICE_BUFFER_H
#define SLUICE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

typedef struct SluiceAllocator
{
	/* like realloc: old may be NULL; size > 0 */
	void	   *(*grow) (void *context, void *old, size_t size);
	void		(*release) (void *context, void *old);
	void	   *context;
} SluiceAllocator;

typedef struct SluiceBuffer
{
	char	   *data;
	size_t		length;
	size_t		capacity;
	const SluiceAllocator *allocator;
} SluiceBuffer;

extern void sluice_buffer_init(SluiceBuffer *buffer, const SluiceAllocator *allocator);
extern void sluice_buffer_reset(SluiceBuffer *buffer);	/* length 0, memory kept */
extern void sluice_buffer_release(SluiceBuffer *buffer);	/* memory given back */

/* Makes room for `more` bytes behind length; returns where they start. */
extern char *sluice_buffer_reserve(SluiceBuffer *buffer, size_t more);
extern void sluice_buffer_append(SluiceBuffer *buffer, const void *data, size_t size);

#endif
