/*
 * memory.c: the agent's allocators.
 *
 * In: sizes.  Out: memory, always.  Runs in: any thread of the agent, an arena
 * in one.  Locks: none.
 */
#include "memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 16
#define BLOCK_SIZE ((size_t) 32 * 1024)
#define EXIT_NO_MEMORY 71		/* EX_OSERR */

typedef struct SluiceArenaBlock
{
	struct SluiceArenaBlock *next;
	size_t		size;			/* of bytes */
	size_t		used;
	_Alignas(ALIGNMENT) char bytes[];
} SluiceArenaBlock;

/* In front of each piece, for growing it. */
typedef struct Piece
{
	_Alignas(ALIGNMENT) size_t size;
} Piece;

__attribute__((noreturn)) static void
no_memory(size_t size)
{
	fprintf(stderr, "sluice-agent: out of memory (%zu bytes wanted)\n", size);
	exit(EXIT_NO_MEMORY);
}

static void *
malloc_grow(void *context, void *old, size_t size)
{
	void	   *memory = realloc(old, size);

	(void) context;
	if (memory == NULL)
		no_memory(size);
	return memory;
}

static void
malloc_release(void *context, void *old)
{
	(void) context;
	free(old);
}

const SluiceAllocator sluice_malloc_allocator = {malloc_grow, malloc_release, NULL};

/* ---- arena ---- */

static size_t
aligned(size_t size)
{
	return (size + ALIGNMENT - 1) & ~(size_t) (ALIGNMENT - 1);
}

static Piece *
take_piece(SluiceArena *arena, size_t size)
{
	SluiceArenaBlock *block = arena->blocks;
	size_t		need;
	Piece	   *piece;

	if (size > SIZE_MAX / 2)
		no_memory(size);
	need = sizeof(Piece) + aligned(size);
	if (block == NULL || block->size - block->used < need)
	{
		size_t		block_size = need > BLOCK_SIZE ? need : BLOCK_SIZE;

		block = malloc_grow(NULL, NULL, sizeof(SluiceArenaBlock) + block_size);
		block->size = block_size;
		block->used = 0;
		block->next = arena->blocks;
		arena->blocks = block;
	}
	piece = (Piece *) (block->bytes + block->used);
	piece->size = size;
	block->used += need;
	return piece;
}

static void *
arena_grow(void *context, void *old, size_t size)
{
	SluiceArena *arena = context;
	Piece	   *before;
	Piece	   *piece;

	if (old != NULL)
	{
		before = (Piece *) ((char *) old - sizeof(Piece));
		if (aligned(before->size) >= size)
		{
			if (before->size < size)
				before->size = size;
			return old;
		}
	}
	piece = take_piece(arena, size);
	if (old != NULL)
	{
		before = (Piece *) ((char *) old - sizeof(Piece));
		memcpy((char *) piece + sizeof(Piece), old, before->size);
	}
	return (char *) piece + sizeof(Piece);
}

static void
arena_release_piece(void *context, void *old)
{
	(void) context;
	(void) old;
}

void
sluice_arena_init(SluiceArena *arena)
{
	arena->allocator.grow = arena_grow;
	arena->allocator.release = arena_release_piece;
	arena->allocator.context = arena;
	arena->blocks = NULL;
}

static void
free_blocks(SluiceArenaBlock *block)
{
	while (block != NULL)
	{
		SluiceArenaBlock *next = block->next;

		free(block);
		block = next;
	}
}

void
sluice_arena_reset(SluiceArena *arena)
{
	SluiceArenaBlock *keep = arena->blocks;

	if (keep == NULL)
		return;
	if (keep->size > BLOCK_SIZE)
	{
		sluice_arena_release(arena);
		return;
	}
	free_blocks(keep->next);
	keep->next = NULL;
	keep->used = 0;
}

void
sluice_arena_release(SluiceArena *arena)
{
	free_blocks(arena->blocks);
	arena->blocks = NULL;
}

void *
sluice_arena_alloc(SluiceArena *arena, size_t size)
{
	return memset((char *) take_piece(arena, size) + sizeof(Piece), 0, size);
}

char *
sluice_arena_strdup(SluiceArena *arena, const char *text)
{
	size_t		size = strlen(text) + 1;

	return memcpy(sluice_arena_alloc(arena, size), text, size);
}

char *
sluice_arena_printf(SluiceArena *arena, const char *format, ...)
{
	va_list		args;
	int			size;
	char	   *text;

	va_start(args, format);
	size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size < 0)
		no_memory(0);
	text = sluice_arena_alloc(arena, (size_t) size + 1);
	va_start(args, format);
	vsnprintf(text, (size_t) size + 1, format, args);
	va_end(args);
	return text;
}
