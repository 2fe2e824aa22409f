/*
 * test_verify.c: the mapping that verify compares with, by values worked out
 * by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "verify_value.h"

static SluiceValue
expect(SluiceVerifyKind kind, const char *text)
{
	static char field[4096];
	SluiceValue value = {.class = SLUICE_UNCHANGED};
	size_t		size = strlen(text);

	memcpy(field, text, size);
	if (!sluice_verify_expect(kind, field, size, &value))
	{
		printf("not understood: %s\n", text);
		value.class = SLUICE_UNCHANGED;
	}
	return value;
}

static void
is_integer(SluiceVerifyKind kind, const char *text, int64_t number)
{
	SluiceValue value = expect(kind, text);

	CU_ASSERT_EQUAL(value.class, SLUICE_INTEGER);
	CU_ASSERT_EQUAL(value.u.integer, number);
	if (value.class != SLUICE_INTEGER || value.u.integer != number)
		printf("%s\n", text);
}

static void
is_real(SluiceVerifyKind kind, const char *text, double number)
{
	SluiceValue value = expect(kind, text);

	CU_ASSERT_EQUAL(value.class, SLUICE_REAL);
	CU_ASSERT_EQUAL(memcmp(&value.u.real, &number, sizeof(double)), 0);
	if (value.class != SLUICE_REAL)
		printf("%s\n", text);
}

static void
is_text(SluiceVerifyKind kind, const char *text, const char *held)
{
	SluiceValue value = expect(kind, text);

	CU_ASSERT_EQUAL_FATAL(value.class, SLUICE_TEXT);
	CU_ASSERT_EQUAL_FATAL(value.u.bytes.size, strlen(held));
	CU_ASSERT_EQUAL(memcmp(value.u.bytes.data, held, strlen(held)), 0);
}

static void
numerics(void)
{
	SluiceVerifyKind n = SLUICE_VERIFY_NUMERIC;

	is_integer(n, "0", 0);
	is_integer(n, "0.000", 0);
	is_integer(n, "100", 100);
	is_integer(n, "-7.00", -7);
	is_integer(n, "9223372036854775807", INT64_MAX);
	is_integer(n, "-9223372036854775808.0", INT64_MIN);
	is_real(n, "0.1", 0.1);
	is_real(n, "-0.5000", -0.5);
	is_real(n, "0.00123", 0.00123);
	is_real(n, "1234.5678", 1234.5678);
	is_real(n, "100000000000000000000", 1e20);
	is_real(n, "0.30000000000000004", 0.30000000000000004);
	is_text(n, "NaN", "NaN");
	is_real(n, "Infinity", INFINITY);
	is_real(n, "-Infinity", -INFINITY);
	is_text(n, "9223372036854775808", "9223372036854775808");
	is_text(n, "0.3000000000000000044", "0.3000000000000000044");
	is_text(n, "12345678901234567890.1234567890", "12345678901234567890.123456789");
	is_text(n, "0.10000000000000001", "0.10000000000000001");	/* a double prints 0.1 */
	is_text(n, "-123456789.1234567891234500", "-123456789.12345678912345");
}

static void
floats(void)
{
	SluiceVerifyKind f = SLUICE_VERIFY_FLOAT;

	is_real(f, "0", 0.0);
	is_real(f, "-0", -0.0);
	is_real(f, "5e-324", 5e-324);
	is_real(f, "-216237.00000035969", -216237.00000035969);
	is_real(f, "-Infinity", -INFINITY);
	is_text(f, "NaN", "NaN");
}

static void
moments(void)
{
	SluiceVerifyKind m = SLUICE_VERIFY_MOMENT;

	is_integer(m, "1970-01-01", 0);
	is_integer(m, "1969-12-31", -86400000);
	is_integer(m, "2000-02-29", INT64_C(951782400000));
	is_integer(m, "1900-03-01", INT64_C(-2203891200000));
	is_integer(m, "2024-05-06 07:08:09+00", INT64_C(1714979289000));
	is_integer(m, "2024-05-06 07:08:09.123", INT64_C(1714979289123));
	is_real(m, "2024-05-06 07:08:09.123456+00", 1714979289123.456);
	is_real(m, "1969-12-31 23:59:59.999999", -0.001);
	is_integer(m, "0001-01-01", INT64_C(-62135596800000));
	is_integer(m, "0001-12-31 BC", INT64_C(-62135683200000));
	is_integer(m, "0044-03-15 12:00:00 BC", INT64_C(-63517780800000));
	is_integer(m, "4713-01-01 BC", INT64_C(-210863520000000));
	is_integer(m, "5874897-12-31", INT64_C(185331706992000000));
	is_integer(m, "294276-12-31 00:00:00", INT64_C(9224317929600000));
	is_real(m, "infinity", INFINITY);
	is_real(m, "-infinity", -INFINITY);
	is_text(m, "294276-12-31 23:59:59.999999", "294276-12-31 23:59:59.999999");
}

static void
clocks(void)
{
	is_integer(SLUICE_VERIFY_CLOCK, "00:00:00", 0);
	is_integer(SLUICE_VERIFY_CLOCK, "24:00:00", 86400000);
	is_integer(SLUICE_VERIFY_CLOCK, "01:02:03.004", 3723004);
	is_real(SLUICE_VERIFY_CLOCK, "23:59:59.999999", 86399999.999);
}

static void
others(void)
{
	SluiceValue value;

	is_integer(SLUICE_VERIFY_BOOLEAN, "t", 1);
	is_integer(SLUICE_VERIFY_BOOLEAN, "f", 0);
	is_integer(SLUICE_VERIFY_INTEGER, "-9223372036854775808", INT64_MIN);
	is_text(SLUICE_VERIFY_TEXT, "a\\nb\\\\c\\td\\\\N", "a\nb\\c\td\\N");
	is_text(SLUICE_VERIFY_TEXT, "", "");
	value = expect(SLUICE_VERIFY_TEXT, "\\N");
	CU_ASSERT_EQUAL(value.class, SLUICE_NULL);
	value = expect(SLUICE_VERIFY_BYTEA, "\\\\x00ff7a");
	CU_ASSERT_EQUAL(value.class, SLUICE_BLOB);
	CU_ASSERT_EQUAL(value.u.bytes.size, 3);
	CU_ASSERT_EQUAL(memcmp(value.u.bytes.data, "\0\xffz", 3), 0);
	value = expect(SLUICE_VERIFY_BYTEA, "\\\\x");
	CU_ASSERT_TRUE(value.class == SLUICE_BLOB && value.u.bytes.size == 0);
}

static void
kinds(void)
{
	CU_ASSERT_EQUAL(sluice_verify_kind("int8", false, false), SLUICE_VERIFY_INTEGER);
	CU_ASSERT_EQUAL(sluice_verify_kind("timestamptz", false, false), SLUICE_VERIFY_MOMENT);
	CU_ASSERT_EQUAL(sluice_verify_kind("timestamptz", true, false), SLUICE_VERIFY_TEXT);
	CU_ASSERT_EQUAL(sluice_verify_kind("time", true, false), SLUICE_VERIFY_TEXT);
	CU_ASSERT_EQUAL(sluice_verify_kind("timetz", false, false), SLUICE_VERIFY_TEXT);
	CU_ASSERT_EQUAL(sluice_verify_kind("numeric", false, true), SLUICE_VERIFY_FLOAT);
	CU_ASSERT_EQUAL(sluice_verify_kind("jsonb", false, false), SLUICE_VERIFY_TEXT);
}

static void
not_understood(void)
{
	static char bad[] = "2024-13-01";
	SluiceValue value;

	CU_ASSERT_FALSE(sluice_verify_expect(SLUICE_VERIFY_MOMENT, bad, 10, &value));
	CU_ASSERT_FALSE(sluice_verify_expect(SLUICE_VERIFY_INTEGER, bad, 10, &value));
	CU_ASSERT_FALSE(sluice_verify_expect(SLUICE_VERIFY_BOOLEAN, bad, 10, &value));
	CU_ASSERT_FALSE(sluice_verify_expect(SLUICE_VERIFY_BYTEA, bad, 10, &value));
	CU_ASSERT_FALSE(sluice_verify_expect(SLUICE_VERIFY_NUMERIC, bad, 10, &value));
	CU_ASSERT_FALSE(sluice_verify_expect(SLUICE_VERIFY_INTEGER, bad, 0, &value));
}

static const UnitTest tests[] = {
	{"numeric", numerics},
	{"floats", floats},
	{"dates and timestamps", moments},
	{"times", clocks},
	{"the others", others},
	{"kinds", kinds},
	{"texts that are not understood", not_understood},
};

UNIT_MAIN("verify", tests)
