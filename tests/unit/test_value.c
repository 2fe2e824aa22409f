/*
 * test_value.c: values, strings and buffers of the codec, whole and cut.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "unit.h"
#include "wire.h"

static SluiceArena arena;

static void
value_is_same(const SluiceValue *a, const SluiceValue *b)
{
	CU_ASSERT_EQUAL_FATAL(a->class, b->class);
	if (a->class == SLUICE_INTEGER)
		CU_ASSERT_EQUAL(a->u.integer, b->u.integer);
	if (a->class == SLUICE_REAL)
		CU_ASSERT_EQUAL(memcmp(&a->u.real, &b->u.real, sizeof(double)), 0);
	if (a->class == SLUICE_TEXT || a->class == SLUICE_BLOB)
	{
		CU_ASSERT_EQUAL_FATAL(a->u.bytes.size, b->u.bytes.size);
		CU_ASSERT_EQUAL(memcmp(a->u.bytes.data, b->u.bytes.data, a->u.bytes.size), 0);
	}
}

/* Both ways, and no shorter piece of it can be read. */
static size_t
check_value(const SluiceValue *value)
{
	SluiceBuffer out;
	SluiceCursor cursor;
	SluiceValue back;
	size_t		size;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	sluice_wire_put_value(&out, value);
	size = out.length;
	sluice_cursor_init(&cursor, out.data, out.length);
	CU_ASSERT_TRUE(sluice_cursor_value(&cursor, &back));
	value_is_same(value, &back);
	CU_ASSERT_TRUE(sluice_cursor_done(&cursor));

	for (size_t n = 0; n < size; n = n < 20 || n + 20 > size ? n + 1 : size - 19)
	{
		char	   *exact = malloc(n + 1);

		memcpy(exact, out.data, n);
		sluice_cursor_init(&cursor, exact, n);
		CU_ASSERT_FALSE(sluice_cursor_value(&cursor, &back));
		CU_ASSERT_TRUE(cursor.damaged);
		CU_ASSERT_FALSE(sluice_cursor_done(&cursor));
		free(exact);
	}
	sluice_buffer_release(&out);
	return size;
}

static size_t
check_integer(int64_t number)
{
	SluiceValue value = {SLUICE_INTEGER, {.integer = number}};

	return check_value(&value);
}

static void
integers(void)
{
	static const struct
	{
		int64_t		edge;
		size_t		size;
	}			edges[] = {
		{0, 2}, {1, 2}, {-1, 2}, {INT8_MAX, 2}, {INT8_MIN, 2},
		{INT8_MAX + 1, 3}, {INT8_MIN - 1, 3}, {UINT8_MAX, 3}, {INT16_MAX, 3}, {INT16_MIN, 3},
		{INT16_MAX + 1, 5}, {INT16_MIN - 1, 5}, {UINT16_MAX, 5}, {INT32_MAX, 5}, {INT32_MIN, 5},
		{(int64_t) INT32_MAX + 1, 9}, {(int64_t) INT32_MIN - 1, 9}, {UINT32_MAX, 9},
		{INT64_C(9007199254740993), 9}, {INT64_MAX, 9}, {INT64_MIN, 9}, {INT64_MIN + 1, 9},
	};

	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		CU_ASSERT_EQUAL(check_integer(edges[i].edge), edges[i].size);
	for (int bit = 0; bit < 63; bit++)
	{
		for (int64_t by = -2; by <= 2; by++)
		{
			check_integer((INT64_C(1) << bit) + by);
			check_integer(-(INT64_C(1) << bit) + by);
		}
	}
}

static void
reals(void)
{
	static const uint64_t nans[] = {
		UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000001), UINT64_C(0x7ff0000000000001)
	};
	double		numbers[] = {
		0.0, -0.0, 1.5, -1e308, 5e-324, 0.1, INFINITY, -INFINITY, -216237.00000035969
	};
	SluiceValue value = {.class = SLUICE_REAL};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
	{
		value.u.real = numbers[i];
		CU_ASSERT_EQUAL(check_value(&value), 9);
	}
	for (size_t i = 0; i < 3; i++)
	{
		memcpy(&value.u.real, &nans[i], sizeof(double));
		CU_ASSERT_EQUAL(check_value(&value), 9);
	}
}

static void
bytes(void)
{
	static const size_t sizes[] = {0, 1, 254, 255, 256, 257, 65535, 65536, 65537, 3000000};
	char	   *data = malloc(3000000);

	for (size_t i = 0; i < 3000000; i++)
		data[i] = (char) (i * 7);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		size_t		head = sizes[i] < 256 ? 2 : 5;
		SluiceValue value = {SLUICE_TEXT, {.bytes = {data, (uint32_t) sizes[i]}}};

		CU_ASSERT_EQUAL(check_value(&value), head + sizes[i]);
		value.class = SLUICE_BLOB;
		CU_ASSERT_EQUAL(check_value(&value), head + sizes[i]);
	}
	free(data);
}

static void
null_and_unchanged(void)
{
	SluiceValue value = {.class = SLUICE_NULL};

	CU_ASSERT_EQUAL(check_value(&value), 1);
	value.class = SLUICE_UNCHANGED;
	CU_ASSERT_EQUAL(check_value(&value), 1);
}

static void
unknown_types(void)
{
	for (int type = 0; type < 256; type++)
	{
		char		data[300];
		SluiceCursor cursor;
		SluiceValue value;

		memset(data, 0, sizeof(data));
		data[0] = (char) type;
		sluice_cursor_init(&cursor, data, sizeof(data));
		CU_ASSERT_EQUAL(sluice_cursor_value(&cursor, &value), type <= 10);
	}
}

static void
damage_is_sticky(void)
{
	SluiceCursor cursor;
	SluiceValue value;
	char		data[4] = {1, 2, 3, 4};

	sluice_cursor_init(&cursor, data, 4);
	CU_ASSERT_EQUAL(sluice_cursor_u8(&cursor), 1);
	CU_ASSERT_EQUAL(sluice_cursor_u32(&cursor), 0);
	CU_ASSERT_TRUE(cursor.damaged);
	CU_ASSERT_EQUAL(sluice_cursor_u8(&cursor), 0);
	CU_ASSERT_EQUAL(sluice_cursor_u16(&cursor), 0);
	CU_ASSERT_EQUAL(sluice_cursor_u64(&cursor), 0);
	CU_ASSERT_EQUAL(sluice_cursor_watermark(&cursor).major, 0);
	CU_ASSERT_PTR_NULL(sluice_cursor_string(&cursor, &arena.allocator));
	CU_ASSERT_FALSE(sluice_cursor_value(&cursor, &value));
	CU_ASSERT_FALSE(sluice_cursor_done(&cursor));
}

static void
strings(void)
{
	static const char *const texts[] = {NULL, "", "x", "na\xc3\xafve"};
	SluiceBuffer out;
	SluiceCursor cursor;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	for (int i = 0; i < 4; i++)
		sluice_wire_put_string(&out, texts[i]);
	sluice_cursor_init(&cursor, out.data, out.length);
	CU_ASSERT_PTR_NULL(sluice_cursor_string(&cursor, &arena.allocator));
	CU_ASSERT_FALSE(cursor.damaged);
	for (int i = 1; i < 4; i++)
		CU_ASSERT_STRING_EQUAL(sluice_cursor_string(&cursor, &arena.allocator), texts[i]);
	CU_ASSERT_TRUE(sluice_cursor_done(&cursor));

	/* a zero byte inside, and a length that is not there */
	sluice_cursor_init(&cursor, "\3\0\0\0a\0b", 7);
	CU_ASSERT_PTR_NULL(sluice_cursor_string(&cursor, &arena.allocator));
	CU_ASSERT_TRUE(cursor.damaged);
	sluice_cursor_init(&cursor, "\xfe\xff\xff\xff", 4);
	CU_ASSERT_PTR_NULL(sluice_cursor_string(&cursor, &arena.allocator));
	CU_ASSERT_TRUE(cursor.damaged);
	sluice_buffer_release(&out);
	sluice_arena_reset(&arena);
}

static void
buffers(void)
{
	SluiceBuffer out;
	char	   *at;

	sluice_buffer_init(&out, &sluice_malloc_allocator);
	CU_ASSERT_PTR_NOT_NULL(sluice_buffer_reserve(&out, 0));
	for (int i = 0; i < 5000; i++)
		sluice_buffer_append(&out, "abc", 3);
	CU_ASSERT_EQUAL(out.length, 15000);
	CU_ASSERT_EQUAL(memcmp(out.data + 14997, "abc", 3), 0);
	at = sluice_buffer_reserve(&out, 1000000);
	CU_ASSERT_PTR_EQUAL(at, out.data + 15000);
	CU_ASSERT_TRUE(out.capacity >= 1015000);
	sluice_buffer_reset(&out);
	CU_ASSERT_TRUE(out.length == 0 && out.capacity >= 1015000);
	sluice_buffer_release(&out);
	CU_ASSERT_TRUE(out.data == NULL && out.capacity == 0);
	sluice_buffer_release(&out);
}

static const UnitTest tests[] = {
	{"integers take the least bytes", integers},
	{"reals to the bit", reals},
	{"texts and blobs", bytes},
	{"null and unchanged", null_and_unchanged},
	{"unknown types of values are refused", unknown_types},
	{"damage is sticky", damage_is_sticky},
	{"strings", strings},
	{"buffers", buffers},
};

int
main(void)
{
	int			result;

	sluice_arena_init(&arena);
	result = unit_main("value", tests, sizeof(tests) / sizeof(tests[0]));
	sluice_arena_release(&arena);
	return result;
}
