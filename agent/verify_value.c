/*
 * verify_value.c: what a replica must hold for a text that PostgreSQL prints.
 *
 * In: texts.  Out: values.  Runs in: sluice-agent verify.  Locks: none.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify_moment.h"
#include "verify_value.h"

#define MAX_DIGITS 17			/* of a double, as the shortest text needs at most */

SluiceVerifyKind
sluice_verify_kind(const char *type, bool timestamps_text, bool numerics_double)
{
	static const struct
	{
		const char *type;
		SluiceVerifyKind kind;
	}			kinds[] = {
		{"bool", SLUICE_VERIFY_BOOLEAN},
		{"int2", SLUICE_VERIFY_INTEGER},
		{"int4", SLUICE_VERIFY_INTEGER},
		{"int8", SLUICE_VERIFY_INTEGER},
		{"oid", SLUICE_VERIFY_INTEGER},
		{"float4", SLUICE_VERIFY_FLOAT},
		{"float8", SLUICE_VERIFY_FLOAT},
		{"numeric", SLUICE_VERIFY_NUMERIC},
		{"bytea", SLUICE_VERIFY_BYTEA},
		{"date", SLUICE_VERIFY_MOMENT},
		{"timestamp", SLUICE_VERIFY_MOMENT},
		{"timestamptz", SLUICE_VERIFY_MOMENT},
		{"time", SLUICE_VERIFY_CLOCK},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
	{
		if (strcmp(kinds[i].type, type) != 0)
			continue;
		if (timestamps_text && kinds[i].kind >= SLUICE_VERIFY_MOMENT)
			return SLUICE_VERIFY_TEXT;
		if (numerics_double && kinds[i].kind == SLUICE_VERIFY_NUMERIC)
			return SLUICE_VERIFY_FLOAT;
		return kinds[i].kind;
	}
	return SLUICE_VERIFY_TEXT;
}

size_t
sluice_verify_unescape(char *field, size_t size)
{
	char	   *from = memchr(field, '\\', size);
	char	   *end = field + size;
	char	   *to = from;

	if (from == NULL)
		return size;
	while (from < end)
	{
		char		c = *from++;

		if (c == '\\' && from < end)
		{
			c = *from++;
			switch (c)
			{
				case 'b':
					c = '\b';
					break;
				case 'f':
					c = '\f';
					break;
				case 'n':
					c = '\n';
					break;
				case 'r':
					c = '\r';
					break;
				case 't':
					c = '\t';
					break;
				case 'v':
					c = '\v';
					break;
				default:
					break;
			}
		}
		*to++ = c;
	}
	return (size_t) (to - field);
}

static void
set_text(SluiceValue *value, const char *data, size_t size)
{
	value->class = SLUICE_TEXT;
	value->u.bytes.data = data;
	value->u.bytes.size = (uint32_t) size;
}

static bool
is(const char *field, size_t size, const char *text)
{
	return size == strlen(text) && memcmp(field, text, size) == 0;
}

/* A copy with its zero, for the C library. */
static bool
terminated(const char *field, size_t size, char *text, size_t room)
{
	if (size >= room)
		return false;
	memcpy(text, field, size);
	text[size] = '\0';
	return true;
}

static bool
expect_integer(const char *field, size_t size, SluiceValue *value)
{
	char		text[32];
	char	   *end;

	if (size == 0 || !terminated(field, size, text, sizeof(text)))
		return false;
	errno = 0;
	value->class = SLUICE_INTEGER;
	value->u.integer = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0';
}

/* NaN has no form as a number in SQLite and is a text. */
static bool
expect_float(const char *field, size_t size, SluiceValue *value)
{
	char		local[400];
	char	   *text = local;
	char	   *end;
	bool		whole;

	if (is(field, size, "NaN"))
	{
		set_text(value, "NaN", 3);
		return true;
	}
	/* a numeric may have any length */
	if (size >= sizeof(local) && (text = malloc(size + 1)) == NULL)
		return false;
	memcpy(text, field, size);
	text[size] = '\0';
	value->class = SLUICE_REAL;
	value->u.real = strtod(text, &end);
	whole = size > 0 && *end == '\0';
	if (text != local)
		free(text);
	return whole;
}

/* ---- numeric ---- */

/* A decimal text taken apart: sign, digits without outer zeros, exponent. */
typedef struct Decimal
{
	bool		negative;
	size_t		ndigits;		/* significant; 0: the number is 0 */
	size_t		first;			/* place of the first of them in the text */
	long		exponent;		/* the first digit stands for digit * 10^exponent */
	char		digits[MAX_DIGITS + 3];	/* the first of them */
} Decimal;

static bool
take_apart(const char *field, size_t size, Decimal *decimal)
{
	const char *point;
	size_t		before;			/* digits before the point */
	size_t		place = 0;		/* of the digit that is looked at */
	size_t		last = 0;		/* of the last one that is not 0 */

	memset(decimal, 0, sizeof(*decimal));
	if (size > 0 && field[0] == '-')
	{
		decimal->negative = true;
		field++;
		size--;
	}
	point = memchr(field, '.', size);
	before = point == NULL ? size : (size_t) (point - field);
	for (size_t at = 0; at < size; at++)
	{
		if (at == before)
			continue;			/* the point */
		if (field[at] < '0' || field[at] > '9')
			return false;
		if (field[at] != '0' && decimal->ndigits++ == 0)
		{
			decimal->exponent = (long) before - 1 - (long) place;
			decimal->first = place;
		}
		if (decimal->ndigits > 0)
		{
			if (place - decimal->first < sizeof(decimal->digits))
				decimal->digits[place - decimal->first] = field[at];
			if (field[at] != '0')
				last = place;
		}
		place++;
	}
	if (decimal->ndigits > 0)
		decimal->ndigits = last - decimal->first + 1;
	return size > 0;
}

/* True if the shortest text that gives this double has just these digits. */
static bool
prints_same(double real, const Decimal *exact)
{
	char		text[48];

	for (int digits = 1; digits <= MAX_DIGITS; digits++)
	{
		Decimal		shortest = {0};
		char	   *e;

		snprintf(text, sizeof(text), "%.*e", digits - 1, real);
		if (strtod(text, NULL) != real)
			continue;
		e = strchr(text, 'e');
		if (!take_apart(text, (size_t) (e - text), &shortest))
			return false;
		shortest.exponent += strtol(e + 1, NULL, 10);
		return shortest.negative == exact->negative && shortest.ndigits == exact->ndigits &&
			shortest.exponent == exact->exponent &&
			memcmp(shortest.digits, exact->digits, exact->ndigits) == 0;
	}
	return false;
}

/* By value: an integer, else a double that prints the same digits, else text. */
static bool
expect_numeric(const char *field, size_t size, SluiceValue *value)
{
	Decimal		exact;
	const char *point;
	size_t		plain = size;

	if (is(field, size, "NaN") || is(field, size, "Infinity") || is(field, size, "-Infinity"))
		return expect_float(field, size, value);
	if (!take_apart(field, size, &exact))
		return false;
	point = memchr(field, '.', size);
	if (point != NULL)
	{
		while (field[plain - 1] == '0')
			plain--;
		if (field[plain - 1] == '.')
			plain--;
	}
	if (memchr(field, '.', plain) == NULL && expect_integer(field, plain, value))
		return true;
	if (exact.ndigits <= MAX_DIGITS)
	{
		if (!expect_float(field, size, value))
			return false;
		if (isfinite(value->u.real) && prints_same(value->u.real, &exact))
			return true;
	}
	set_text(value, field, plain);
	return true;
}

/* ---- the others ---- */

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool
expect_bytea(char *field, size_t size, SluiceValue *value)
{
	size_t		n = 0;

	if (size < 2 || field[0] != '\\' || field[1] != 'x' || size % 2 != 0)
		return false;
	for (size_t i = 2; i < size; i += 2)
	{
		int			high = hex_digit(field[i]);
		int			low = hex_digit(field[i + 1]);

		if (high < 0 || low < 0)
			return false;
		field[n++] = (char) (high * 16 + low);
	}
	set_text(value, field, n);
	value->class = SLUICE_BLOB;
	return true;
}

bool
sluice_verify_expect(SluiceVerifyKind kind, char *field, size_t size, SluiceValue *value)
{
	if (size == 2 && field[0] == '\\' && field[1] == 'N')
	{
		value->class = SLUICE_NULL;
		return true;
	}
	size = sluice_verify_unescape(field, size);
	switch (kind)
	{
		case SLUICE_VERIFY_TEXT:
			set_text(value, field, size);
			return true;
		case SLUICE_VERIFY_BOOLEAN:
			value->class = SLUICE_INTEGER;
			value->u.integer = is(field, size, "t");
			return is(field, size, "t") || is(field, size, "f");
		case SLUICE_VERIFY_INTEGER:
			return expect_integer(field, size, value);
		case SLUICE_VERIFY_FLOAT:
			return expect_float(field, size, value);
		case SLUICE_VERIFY_NUMERIC:
			return expect_numeric(field, size, value);
		case SLUICE_VERIFY_BYTEA:
			return expect_bytea(field, size, value);
		case SLUICE_VERIFY_MOMENT:
			return sluice_verify_moment(field, size, value);
		case SLUICE_VERIFY_CLOCK:
			return sluice_verify_clock(field, size, value);
	}
	return false;
}

/* ---- SQLite's side ---- */

SluiceValue
sluice_verify_column(sqlite3_stmt *statement, int column)
{
	SluiceValue value = {.class = SLUICE_NULL};

	switch (sqlite3_column_type(statement, column))
	{
		case SQLITE_INTEGER:
			value.class = SLUICE_INTEGER;
			value.u.integer = sqlite3_column_int64(statement, column);
			break;
		case SQLITE_FLOAT:
			value.class = SLUICE_REAL;
			value.u.real = sqlite3_column_double(statement, column);
			break;
		case SQLITE_TEXT:
		case SQLITE_BLOB:
			value.class = sqlite3_column_type(statement, column) == SQLITE_TEXT ?
				SLUICE_TEXT : SLUICE_BLOB;
			value.u.bytes.data = sqlite3_column_blob(statement, column);
			value.u.bytes.size = (uint32_t) sqlite3_column_bytes(statement, column);
			break;
		default:
			break;
	}
	return value;
}

bool
sluice_verify_same(const SluiceValue *value, sqlite3_stmt *statement, int column)
{
	SluiceValue held = sluice_verify_column(statement, column);

	if (held.class != value->class)
		return false;
	switch (value->class)
	{
		case SLUICE_INTEGER:
			return held.u.integer == value->u.integer;
		case SLUICE_REAL:
			return memcmp(&held.u.real, &value->u.real, sizeof(double)) == 0;
		case SLUICE_TEXT:
		case SLUICE_BLOB:
			return held.u.bytes.size == value->u.bytes.size &&
				(value->u.bytes.size == 0 ||
				 memcmp(held.u.bytes.data, value->u.bytes.data, value->u.bytes.size) == 0);
		default:
			return true;
	}
}

void
sluice_verify_bind(sqlite3_stmt *statement, int parameter, const SluiceValue *value)
{
	switch (value->class)
	{
		case SLUICE_INTEGER:
			sqlite3_bind_int64(statement, parameter, value->u.integer);
			break;
		case SLUICE_REAL:
			sqlite3_bind_double(statement, parameter, value->u.real);
			break;
		case SLUICE_TEXT:
			sqlite3_bind_text64(statement, parameter, value->u.bytes.data, value->u.bytes.size,
								SQLITE_STATIC, SQLITE_UTF8);
			break;
		case SLUICE_BLOB:
			sqlite3_bind_blob64(statement, parameter,
								value->u.bytes.size == 0 ? "" : value->u.bytes.data,
								value->u.bytes.size, SQLITE_STATIC);
			break;
		default:
			sqlite3_bind_null(statement, parameter);
			break;
	}
}

static uint64_t
hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *at = data;

	while (size >= 8)
	{
		uint64_t	word;

		memcpy(&word, at, 8);
		hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25);
		hash ^= hash >> 32;
		at += 8;
		size -= 8;
	}
	for (; size > 0; size--, at++)
		hash = (hash ^ *at) * UINT64_C(0x100000001b3);
	return hash ^ (hash >> 29);
}

uint64_t
sluice_verify_hash(uint64_t hash, const SluiceValue *value)
{
	unsigned char class = (unsigned char) value->class;

	hash = hash_bytes(hash, &class, 1);
	switch (value->class)
	{
		case SLUICE_INTEGER:
			return hash_bytes(hash, &value->u.integer, sizeof(int64_t));
		case SLUICE_REAL:
			return hash_bytes(hash, &value->u.real, sizeof(double));
		case SLUICE_TEXT:
		case SLUICE_BLOB:
			hash = hash_bytes(hash, &value->u.bytes.size, sizeof(uint32_t));
			return hash_bytes(hash, value->u.bytes.data, value->u.bytes.size);
		default:
			return hash;
	}
}
