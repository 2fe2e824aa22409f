/*
 * verify_moment.c: dates and times for verify, from PostgreSQL's ISO texts.
 *
 * In: "2024-02-29", "2024-02-29 12:00:00.5+00", "0044-03-15 BC", "infinity",
 * "24:00:00".  Out: milliseconds, or the text where a double would not give
 * the microseconds back.
 * Runs in: sluice-agent verify.  Locks: none.
 */
#include <math.h>
#include <string.h>

#include "verify_moment.h"

#define SECOND_US 1000000
#define DAY_MS 86400000

typedef struct Text
{
	const char *at;
	const char *end;
} Text;

static bool
next_is(Text *text, char c)
{
	if (text->at == text->end || *text->at != c)
		return false;
	text->at++;
	return true;
}

/* Digits, at least `least`. */
static bool
number(Text *text, int least, int64_t *value)
{
	int			digits = 0;

	*value = 0;
	while (text->at < text->end && *text->at >= '0' && *text->at <= '9' && digits < 9)
	{
		*value = *value * 10 + (*text->at++ - '0');
		digits++;
	}
	return digits >= least;
}

/* hh:mm:ss[.ffffff] in microseconds */
static bool
clock_time(Text *text, int64_t *us)
{
	int64_t		hour;
	int64_t		minute;
	int64_t		second;
	int64_t		unit = SECOND_US / 10;

	if (!number(text, 2, &hour) || !next_is(text, ':') ||
		!number(text, 2, &minute) || !next_is(text, ':') || !number(text, 2, &second))
		return false;
	*us = ((hour * 60 + minute) * 60 + second) * SECOND_US;
	if (next_is(text, '.'))
	{
		for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; unit /= 10)
			*us += (*text->at++ - '0') * unit;
	}
	return true;
}

/* Days since 1970 of the Gregorian calendar, run back before its time; year 0 is 1 BC. */
static int64_t
days(int64_t year, int64_t month, int64_t day)
{
	static const int before_month[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
	int64_t		y = year - 1;
	bool		leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	int64_t		fours = y >= 0 ? y / 4 : -((3 - y) / 4);
	int64_t		hundreds = y >= 0 ? y / 100 : -((99 - y) / 100);
	int64_t		four_hundreds = y >= 0 ? y / 400 : -((399 - y) / 400);

	return y * 365 + fours - hundreds + four_hundreds +
		before_month[month - 1] + (leap && month > 2) + day - 1 - 719162;
}

static bool
set_milliseconds(int64_t ms, int64_t us_rest, const char *field, size_t size, SluiceValue *value)
{
	__int128	us = (__int128) ms * 1000 + us_rest;

	if (us_rest == 0)
	{
		value->class = SLUICE_INTEGER;
		value->u.integer = ms;
		return true;
	}
	value->class = SLUICE_REAL;
	value->u.real = (double) ((long double) us / 1000.0L);
	if ((__int128) llrint(value->u.real * 1000.0) == us)
		return true;
	value->class = SLUICE_TEXT;
	value->u.bytes.data = field;
	value->u.bytes.size = (uint32_t) size;
	return true;
}

static bool
set_infinity(const char *field, size_t size, SluiceValue *value)
{
	value->class = SLUICE_REAL;
	if (size == 8 && memcmp(field, "infinity", 8) == 0)
		value->u.real = INFINITY;
	else if (size == 9 && memcmp(field, "-infinity", 9) == 0)
		value->u.real = -INFINITY;
	else
		return false;
	return true;
}

bool
sluice_verify_moment(const char *field, size_t size, SluiceValue *value)
{
	Text		text = {field, field + size};
	int64_t		year;
	int64_t		month;
	int64_t		day;
	int64_t		us = 0;

	if (set_infinity(field, size, value))
		return true;
	if (!number(&text, 4, &year) || !next_is(&text, '-') || !number(&text, 2, &month) ||
		!next_is(&text, '-') || !number(&text, 2, &day) || month < 1 || month > 12)
		return false;
	if (text.end - text.at >= 8 && text.at[1] != 'B' && next_is(&text, ' '))
	{
		if (!clock_time(&text, &us))
			return false;
		if (text.end - text.at >= 3 && memcmp(text.at, "+00", 3) == 0)
			text.at += 3;
	}
	if (text.end - text.at == 3 && memcmp(text.at, " BC", 3) == 0)
	{
		year = 1 - year;
		text.at += 3;
	}
	if (text.at != text.end)
		return false;
	return set_milliseconds(days(year, month, day) * DAY_MS + us / 1000, us % 1000, field, size,
							value);
}

bool
sluice_verify_clock(const char *field, size_t size, SluiceValue *value)
{
	Text		text = {field, field + size};
	int64_t		us;

	if (!clock_time(&text, &us) || text.at != text.end)
		return false;
	return set_milliseconds(us / 1000, us % 1000, field, size, value);
}
