/*
 * test_watermark.c: LexiVersion and watermark texts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "watermark.h"

static SluiceWatermark
mark(uint64_t major, uint64_t minor)
{
	SluiceWatermark result = {major, minor};

	return result;
}

static void
check_text(uint64_t major, uint64_t minor, const char *expected)
{
	char		text[SLUICE_WATERMARK_TEXT_MAX];
	SluiceWatermark back = {77, 77};
	size_t		length = sluice_watermark_format(mark(major, minor), text);

	CU_ASSERT_STRING_EQUAL(text, expected);
	CU_ASSERT_EQUAL(length, strlen(expected));
	CU_ASSERT_TRUE(sluice_watermark_parse(expected, &back));
	CU_ASSERT_TRUE(back.major == major && back.minor == minor);
}

static void
texts(void)
{
	check_text(0, 0, "00");
	check_text(1, 0, "01");
	check_text(9, 0, "09");
	check_text(10, 0, "0a");
	check_text(35, 0, "0z");
	check_text(36, 0, "110");
	check_text(1295, 0, "1zz");
	check_text(1296, 0, "2100");
	check_text(UINT64_C(0x100000000), 0, "61z141z4");
	check_text(UINT64_MAX, 0, "c3w5e11264sgsf");
	check_text(UINT64_MAX, UINT64_MAX, "c3w5e11264sgsf.c3w5e11264sgsf");
	check_text(36, 1, "110.01");
	check_text(0, 36, "00.110");
}

static void
refused(void)
{
	static const char *const bad[] = {
		"", "0", "1", "000", "001", "1", "10", "101", "11", "1100", "0Z", "0A", "1zz ", " 00", "00 ", "-1",
		"0z.", "0z.0", "0z.00", "0z.010", "0z.01.01", ".01", "0z..01", "0z,01", "0/0",
		"c3w5e11264sgsg",		/* 2^64 */
		"czzzzzzzzzzzzz", "d10000000000000", "z1", "c3w5e11264sgs", "0\xc3\xa4", "0z.c3w5e11264sgsg",
		"200z", "20zz"
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		SluiceWatermark untouched = {5, 6};

		if (sluice_watermark_parse(bad[i], &untouched))
			printf("accepted \"%s\"\n", bad[i]);
		CU_ASSERT_FALSE(sluice_watermark_parse(bad[i], &untouched));
		CU_ASSERT_TRUE(untouched.major == 5 && untouched.minor == 6);
	}
}

static uint64_t
random_number(void)
{
	uint64_t	value = 0;

	for (int i = 0; i < 5; i++)
		value = (value << 15) ^ (uint64_t) (random() & 0x7fff);
	return value >> (random() % 64);
}

static int
sign(int value)
{
	return (value > 0) - (value < 0);
}

static void
order(void)
{
	srandom(1);
	for (int i = 0; i < 100000; i++)
	{
		SluiceWatermark a = mark(random_number(), random() % 3 == 0 ? random_number() : 0);
		SluiceWatermark b = mark(random_number(), random() % 3 == 0 ? random_number() : 0);
		char		at[SLUICE_WATERMARK_TEXT_MAX];
		char		bt[SLUICE_WATERMARK_TEXT_MAX];
		SluiceWatermark back;

		if (random() % 4 == 0)
			b.major = a.major;
		sluice_watermark_format(a, at);
		sluice_watermark_format(b, bt);
		CU_ASSERT_EQUAL(sign(strcmp(at, bt)), sign(sluice_watermark_compare(a, b)));
		CU_ASSERT_TRUE(sluice_watermark_parse(at, &back));
		CU_ASSERT_EQUAL(sluice_watermark_compare(a, back), 0);
	}
	CU_ASSERT_TRUE(strcmp("123", "123.01") < 0 && strcmp("123.01", "124") < 0);
	CU_ASSERT_TRUE(sluice_watermark_compare(mark(1, UINT64_MAX), mark(2, 0)) < 0);
	CU_ASSERT_TRUE(sluice_watermark_compare(mark(2, 1), mark(2, 0)) > 0);
}

static void
before(void)
{
	CU_ASSERT_EQUAL(sluice_watermark_before(0).major, 0);
	CU_ASSERT_EQUAL(sluice_watermark_before(1).major, 0);
	CU_ASSERT_EQUAL(sluice_watermark_before(UINT64_MAX).major, UINT64_MAX - 1);
	CU_ASSERT_EQUAL(sluice_watermark_before(1000).minor, 0);
}

static const UnitTest tests[] = {
	{"texts and back", texts},
	{"texts that are not canonical are refused", refused},
	{"texts sort as watermarks do", order},
	{"a bare position stands for what starts before it", before},
};

UNIT_MAIN("watermark", tests)
