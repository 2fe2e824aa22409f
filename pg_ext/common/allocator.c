/*
 * allocator.c: palloc behind the allocator of the codec.
 *
 * In: sizes.  Out: memory of the current context.
 * Runs in: every process of the extension.  Locks: none.
 */
#include "postgres.h"

#include "allocator.h"

static void *
palloc_grow(void *context, void *old, size_t size)
{
	if (old == NULL)
		return MemoryContextAllocHuge(CurrentMemoryContext, size);
	return repalloc_huge(old, size);
}

static void
palloc_release(void *context, void *old)
{
	if (old != NULL)
		pfree(old);
}

const SluiceAllocator sluice_palloc_allocator = {palloc_grow, palloc_release, NULL};
