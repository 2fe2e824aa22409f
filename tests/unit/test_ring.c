/*
 * test_ring.c: the ring's arithmetic, alone and under fire.
 *
 * The byte at offset o has the value pattern(o), so a reader that follows can
 * tell a torn or misplaced byte at once.  The races are run with processes
 * over shared memory, as in the server; one core is enough, since the kernel
 * takes turns inside the copies.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../pg_ext/ring/ring_core.c"

#define CAPACITY 4096

typedef struct Shared
{
	pthread_mutex_t lock;
	_Atomic int done;			/* the writer has written all */
	_Atomic uint64_t overruns;
	SluiceRingCore core;
	char		data[CAPACITY];
} Shared;

static char
pattern(uint64_t offset)
{
	return (char) ((offset * UINT64_C(2654435761)) >> 13);
}

static SluiceWatermark
wm(uint64_t major)
{
	SluiceWatermark w = {major, 0};

	return w;
}

static Shared *
shared_new(void)
{
	Shared	   *shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE,
							  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->lock, &attributes);
	shared->done = 0;
	shared->overruns = 0;
	sluice_ring_core_init(&shared->core, CAPACITY, shared->data);
	return shared;
}

static void
write_pattern(SluiceRingCore *core, uint64_t size)
{
	char		bytes[CAPACITY];

	for (uint64_t i = 0; i < size; i++)
		bytes[i] = pattern(core->written + i);
	sluice_ring_core_write(core, bytes, size);
}

static bool
is_pattern(const char *bytes, uint64_t offset, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
	{
		if (bytes[i] != pattern(offset + i))
			return false;
	}
	return true;
}

static void
test_read_and_wrap(void)
{
	Shared	   *shared = shared_new();
	SluiceRingCore *core = &shared->core;
	char		to[CAPACITY];
	uint64_t	generation = 0;
	uint64_t	offset = 0;
	uint64_t	size;

	CU_ASSERT_EQUAL(sluice_ring_core_read(core, generation, &offset, to, sizeof(to), &size),
					SLUICE_RING_CORE_RESTARTED);
	CU_ASSERT_FALSE(sluice_ring_core_find(core, wm(100), &generation, &offset));

	sluice_ring_core_start(core, wm(10));
	CU_ASSERT_FALSE(sluice_ring_core_find(core, wm(9), &generation, &offset));
	CU_ASSERT_TRUE(sluice_ring_core_find(core, wm(10), &generation, &offset));
	CU_ASSERT_EQUAL(sluice_ring_core_read(core, generation, &offset, to, sizeof(to), &size),
					SLUICE_RING_CORE_EMPTY);

	for (int i = 0; i < 100; i++)
	{
		write_pattern(core, 1000);
		CU_ASSERT_EQUAL(sluice_ring_core_read(core, generation, &offset, to, sizeof(to), &size),
						SLUICE_RING_CORE_EMPTY);
		CU_ASSERT_EQUAL(sluice_ring_core_unpublished(core), 1000);
		sluice_ring_core_publish(core);
		CU_ASSERT_EQUAL(sluice_ring_core_unread(core, generation, offset), 1000);
		CU_ASSERT_EQUAL(sluice_ring_core_read(core, generation, &offset, to, 600, &size),
						SLUICE_RING_CORE_DATA);
		CU_ASSERT_EQUAL(size, 600);
		CU_ASSERT_TRUE(is_pattern(to, offset - size, size));
		CU_ASSERT_EQUAL(sluice_ring_core_read(core, generation, &offset, to, 600, &size),
						SLUICE_RING_CORE_DATA);
		CU_ASSERT_EQUAL(size, 400);
		CU_ASSERT_TRUE(is_pattern(to, offset - size, size));
		core->consumed = offset;
	}
	munmap(shared, sizeof(*shared));
}

static void
test_room_is_what_the_storer_leaves(void)
{
	Shared	   *shared = shared_new();
	SluiceRingCore *core = &shared->core;

	sluice_ring_core_start(core, wm(1));
	CU_ASSERT_EQUAL(sluice_ring_core_room(core), CAPACITY);
	write_pattern(core, 4000);
	CU_ASSERT_EQUAL(sluice_ring_core_room(core), 96);
	write_pattern(core, 96);
	CU_ASSERT_EQUAL(sluice_ring_core_room(core), 0);
	core->consumed = 10;
	CU_ASSERT_EQUAL(sluice_ring_core_room(core), 10);

	/* a new generation starts with all of it, whatever a late storer says */
	sluice_ring_core_start(core, wm(2));
	CU_ASSERT_EQUAL(core->base, 4096);
	CU_ASSERT_EQUAL(sluice_ring_core_room(core), CAPACITY);
	core->consumed = 4000;
	CU_ASSERT_EQUAL(sluice_ring_core_room(core), CAPACITY);
	CU_ASSERT_EQUAL(sluice_ring_core_floor(core), 4096);
	munmap(shared, sizeof(*shared));
}

static void
test_overrun_and_restart(void)
{
	Shared	   *shared = shared_new();
	SluiceRingCore *core = &shared->core;
	char		to[CAPACITY];
	uint64_t	generation;
	uint64_t	offset;
	uint64_t	late;
	uint64_t	size;

	sluice_ring_core_start(core, wm(1));
	CU_ASSERT_TRUE(sluice_ring_core_find(core, wm(1), &generation, &offset));
	write_pattern(core, 4096);
	sluice_ring_core_publish(core);
	late = offset;
	CU_ASSERT_EQUAL(sluice_ring_core_read(core, generation, &late, to, 1, &size),
					SLUICE_RING_CORE_DATA);
	core->consumed = 4096;

	/* reserved is enough: the byte may be half written */
	late = offset;
	write_pattern(core, 1);
	CU_ASSERT_EQUAL(sluice_ring_core_read(core, generation, &late, to, 1, &size),
					SLUICE_RING_CORE_OVERRUN);
	CU_ASSERT_EQUAL(size, 0);
	CU_ASSERT_EQUAL(late, offset);
	late = offset + 1;
	CU_ASSERT_EQUAL(sluice_ring_core_read(core, generation, &late, to, sizeof(to), &size),
					SLUICE_RING_CORE_DATA);
	CU_ASSERT_EQUAL(size, 4095);

	/* what was not published when the writer died is never seen */
	sluice_ring_core_start(core, wm(2));
	CU_ASSERT_EQUAL(sluice_ring_core_read(core, generation, &late, to, sizeof(to), &size),
					SLUICE_RING_CORE_RESTARTED);
	CU_ASSERT_EQUAL(sluice_ring_core_unread(core, generation, late), 0);
	CU_ASSERT_FALSE(sluice_ring_core_find(core, wm(1), &generation, &offset));
	CU_ASSERT_TRUE(sluice_ring_core_find(core, wm(3), &generation, &offset));
	CU_ASSERT_EQUAL(offset, 4097);
	CU_ASSERT_EQUAL(generation, 2);
	munmap(shared, sizeof(*shared));
}

static void
test_marks(void)
{
	Shared	   *shared = shared_new();
	SluiceRingCore *core = &shared->core;
	uint64_t	generation;
	uint64_t	offset;

	/* transaction i takes 3 bytes and has watermark 100 + i */
	sluice_ring_core_start(core, wm(100));
	for (uint64_t i = 1; i <= 5000; i++)
	{
		core->consumed = core->written;
		write_pattern(core, 3);
		sluice_ring_core_mark(core, wm(100 + i));
		sluice_ring_core_publish(core);
	}
	CU_ASSERT_TRUE(core->mark_end - core->mark_first <= SLUICE_RING_MARKS);

	/* gone: 5000 * 3 - 4096 bytes are not there any more */
	CU_ASSERT_FALSE(sluice_ring_core_find(core, wm(100), &generation, &offset));
	CU_ASSERT_FALSE(sluice_ring_core_find(core, wm(100 + (5000 * 3 - 4096) / 3), &generation,
										  &offset));
	for (uint64_t i = 3700; i <= 5000; i += 7)
	{
		CU_ASSERT_TRUE(sluice_ring_core_find(core, wm(100 + i), &generation, &offset));
		/* everything behind the watermark is there, and the place is near */
		CU_ASSERT_TRUE(offset <= i * 3);
		CU_ASSERT_TRUE(offset + 2 * 4 + 3 >= i * 3);
	}

	/* the watermark between two transactions is as good as the earlier one */
	CU_ASSERT_TRUE(sluice_ring_core_find(core, wm(1000000), &generation, &offset));
	CU_ASSERT_TRUE(offset <= core->written);
	munmap(shared, sizeof(*shared));
}

/* A reader that follows, and finds its place again when it was overrun. */
static int
follow(Shared *shared, bool storer)
{
	SluiceRingCore *core = &shared->core;
	char		to[CAPACITY];
	uint64_t	generation = 0;
	uint64_t	offset = 0;
	uint64_t	size;

	for (unsigned turn = 0;; turn++)
	{
		int			done = shared->done;

		switch (sluice_ring_core_read(core, generation, &offset, to, 1 + turn % 700, &size))
		{
			case SLUICE_RING_CORE_DATA:
				if (!is_pattern(to, offset - size, size))
					return 1;
				if (storer)
					core->consumed = offset;
				else if (turn % 64 == 0)
					sched_yield();
				break;
			case SLUICE_RING_CORE_EMPTY:
				if (done)
					return 0;
				sched_yield();
				break;
			case SLUICE_RING_CORE_OVERRUN:
				if (storer)
					return 2;
				shared->overruns++;
				/* fall through */
			case SLUICE_RING_CORE_RESTARTED:
				pthread_mutex_lock(&shared->lock);
				if (storer)
				{
					generation = core->generation;
					offset = core->base;
				}
				else
					(void) sluice_ring_core_find(core, wm(UINT64_MAX), &generation, &offset);
				pthread_mutex_unlock(&shared->lock);
				break;
		}
	}
}

static void
produce(Shared *shared, uint64_t total)
{
	SluiceRingCore *core = &shared->core;
	unsigned	seed = 7;

	for (uint64_t n = 0; core->written < total; n++)
	{
		uint64_t	room = sluice_ring_core_room(core);
		uint64_t	size = 1 + (uint64_t) rand_r(&seed) % 900;

		if (n % 5000 == 0)
		{
			pthread_mutex_lock(&shared->lock);
			sluice_ring_core_start(core, wm(n));
			pthread_mutex_unlock(&shared->lock);
			continue;
		}
		if (room == 0)
		{
			sluice_ring_core_publish(core);
			sched_yield();
			continue;
		}
		write_pattern(core, size < room ? size : room);
		pthread_mutex_lock(&shared->lock);
		sluice_ring_core_mark(core, wm(n));
		pthread_mutex_unlock(&shared->lock);
		if (n % 3 == 0)
			sluice_ring_core_publish(core);
	}
	sluice_ring_core_publish(core);
	shared->done = 1;
}

/* A writer, a storer and readers that are too slow, in processes of their own. */
static void
test_processes(void)
{
	Shared	   *shared = shared_new();
	pid_t		readers[4];
	int			status;

	for (int i = 0; i < 4; i++)
	{
		readers[i] = fork();
		if (readers[i] == 0)
			_exit(follow(shared, i == 0));
	}
	produce(shared, UINT64_C(20000000));
	for (int i = 0; i < 4; i++)
	{
		CU_ASSERT_EQUAL(waitpid(readers[i], &status, 0), readers[i]);
		CU_ASSERT_TRUE(WIFEXITED(status));
		CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	}
	/* else the test has not tested what it is for */
	CU_ASSERT_TRUE(shared->overruns > 0);
	munmap(shared, sizeof(*shared));
}

int
main(void)
{
	CU_pSuite	suite;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	suite = CU_add_suite("ring", NULL, NULL);
	CU_add_test(suite, "read and wrap", test_read_and_wrap);
	CU_add_test(suite, "room is what the storer leaves", test_room_is_what_the_storer_leaves);
	CU_add_test(suite, "overrun and restart", test_overrun_and_restart);
	CU_add_test(suite, "marks", test_marks);
	CU_add_test(suite, "processes", test_processes);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	int			failures = (int) CU_get_number_of_failures();

	CU_cleanup_registry();
	return failures == 0 ? 0 : 1;
}
