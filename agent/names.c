/*
 * names.c: PostgreSQL's names to SQLite's; the rule is in names.h.
 *
 * In: all names of a name space.  Out: a name for each, none twice.
 * Runs in: agent.  Locks: none.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

/* Names in use, by open addressing on the ASCII lower case. */
typedef struct NameSet
{
	const char **slots;
	size_t		mask;
} NameSet;

static unsigned char
lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char) (c + ('a' - 'A')) : c;
}

static bool
same(const char *a, const char *b)
{
	while (*a != '\0' && lower((unsigned char) *a) == lower((unsigned char) *b))
		a++, b++;
	return lower((unsigned char) *a) == lower((unsigned char) *b);
}

static bool
starts(const char *name, const char *with)
{
	for (; *with != '\0'; name++, with++)
		if (lower((unsigned char) *name) != lower((unsigned char) *with))
			return false;
	return true;
}

static bool
reserved(const char *name, bool column)
{
	if (column)
		return same(name, "_0_version");
	return starts(name, "sqlite_") || starts(name, "_zero.") || starts(name, "_sluice.");
}

static size_t
slot_of(const NameSet *set, const char *name)
{
	size_t		hash = 2166136261u;

	for (const char *c = name; *c != '\0'; c++)
		hash = (hash ^ lower((unsigned char) *c)) * 16777619u;
	for (size_t i = hash & set->mask;; i = (i + 1) & set->mask)
		if (set->slots[i] == NULL || same(set->slots[i], name))
			return i;
}

/* False if it is taken. */
static bool
take(NameSet *set, const char *name)
{
	size_t		slot = slot_of(set, name);

	if (set->slots[slot] != NULL)
		return false;
	set->slots[slot] = name;
	return true;
}

static void
set_init(NameSet *set, size_t count, const SluiceAllocator *allocator)
{
	size_t		size = 16;

	while (size < count * 2)
		size *= 2;
	set->mask = size - 1;
	set->slots = allocator->grow(allocator->context, NULL, size * sizeof(char *));
	memset(set->slots, 0, size * sizeof(char *));
}

static int
by_id(const void *a, const void *b)
{
	uint32_t	x = ((const SluiceName *) a)->id;
	uint32_t	y = ((const SluiceName *) b)->id;

	return x < y ? -1 : x > y;
}

static char *
join(const SluiceAllocator *allocator, const char *a, const char *b, const char *c)
{
	size_t		la = strlen(a);
	size_t		lb = strlen(b);
	size_t		lc = strlen(c);
	char	   *text = allocator->grow(allocator->context, NULL, la + lb + lc + 1);

	memcpy(text, a, la);
	memcpy(text + la, b, lb);
	memcpy(text + la + lb, c, lc + 1);
	return text;
}

char *
sluice_names_plain(const char *schema, const char *name, const SluiceAllocator *allocator)
{
	if (strcmp(schema, "public") == 0)
		return join(allocator, name, "", "");
	return join(allocator, schema, ".", name);
}

static void
assign(SluiceName *names, size_t count, NameSet *set, bool column,
	   const SluiceAllocator *allocator)
{
	qsort(names, count, sizeof(SluiceName), by_id);
	for (size_t i = 0; i < count; i++)
	{
		names[i].name = NULL;
		if (!reserved(names[i].plain, column) && take(set, names[i].plain))
			names[i].name = names[i].plain;
	}
	for (size_t i = 0; i < count; i++)
	{
		char		hex[16];
		const char *name = names[i].plain;

		if (names[i].name != NULL)
			continue;
		snprintf(hex, sizeof(hex), "%x", names[i].id);
		/* a reserved prefix stays reserved whatever follows it */
		if (!column && reserved(name, column))
			name = join(allocator, "~", name, "");
		do
			name = join(allocator, name, "~", hex);
		while (!take(set, name));
		names[i].name = name;
	}
}

void
sluice_names_assign(SluiceName *names, size_t count, bool column,
					const SluiceAllocator *allocator)
{
	NameSet		set;

	set_init(&set, count, allocator);
	assign(names, count, &set, column, allocator);
	allocator->release(allocator->context, set.slots);
}

void
sluice_names_assign_beside(SluiceName *names, size_t count, const SluiceName *taken,
						   size_t ntaken, const SluiceAllocator *allocator)
{
	NameSet		set;

	set_init(&set, count + ntaken, allocator);
	for (size_t i = 0; i < ntaken; i++)
		take(&set, taken[i].name);
	assign(names, count, &set, false, allocator);
	allocator->release(allocator->context, set.slots);
}

void
sluice_names_quote(SluiceBuffer *out, const char *name)
{
	sluice_buffer_append(out, "\"", 1);
	for (const char *c = name; *c != '\0'; c++)
	{
		if (*c == '"')
			sluice_buffer_append(out, "\"", 1);
		sluice_buffer_append(out, c, 1);
	}
	sluice_buffer_append(out, "\"", 1);
}
