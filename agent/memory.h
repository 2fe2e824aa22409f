/*
 * memory.h: the agent's allocators.
 *
 * sluice_malloc_allocator is for buffers that live long.  An arena is for what
 * is decoded and dropped together (specs, messages): single pieces are not
 * given back, reset() gives all back and keeps one block for the next use.
 *
 * Memory that cannot be had ends the process with a message.  No locks: an
 * arena belongs to one thread.
 */
#ifndef SLUICE_MEMORY_H
#define SLUICE_MEMORY_H

#include "buffer.h"

extern const SluiceAllocator sluice_malloc_allocator;

typedef struct SluiceArena
{
	SluiceAllocator allocator;	/* hand &arena->allocator to who wants one */
	struct SluiceArenaBlock *blocks;	/* newest first */
} SluiceArena;

/* The arena must not be moved after init: its allocator points to it. */
extern void sluice_arena_init(SluiceArena *arena);
extern void sluice_arena_reset(SluiceArena *arena);
extern void sluice_arena_release(SluiceArena *arena);

extern void *sluice_arena_alloc(SluiceArena *arena, size_t size);	/* zeroed */
extern char *sluice_arena_strdup(SluiceArena *arena, const char *text);
extern char *sluice_arena_printf(SluiceArena *arena, const char *format, ...)
			__attribute__((format(printf, 2, 3)));

#endif
