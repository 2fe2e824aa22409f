/*
 * number.c: numeric, float4 and float8 as SQLite numbers.
 *
 * numeric, by value: INTEGER where it is integral and fits 64 bits; REAL
 * where the shortest text of the nearest double has the same digits; else the
 * exact decimal as TEXT, without an exponent and trailing zeros.  float4: the
 * double of the text that PostgreSQL prints.  NaN is TEXT.
 *
 * In: Datums.  Out: values.
 * Runs in: the decoder's callbacks, backends.  Locks: none.
 */
#include "postgres.h"

#include <math.h>

#include "common/shortest_dec.h"
#include "utils/builtins.h"

#include "value_internal.h"

/*
 * A stored numeric: u16 header, then i16 weight unless the header is a short
 * one, then base-10000 digits, no zero ones at the ends.  The value is the sum
 * of digit[i] * 10000 ^ (weight - i).  This is the format on disk, which
 * PostgreSQL keeps to itself.
 */
#define HEADER_KIND		0xC000
#define HEADER_NEGATIVE 0x4000
#define HEADER_SHORT	0x8000
#define HEADER_SPECIAL	0xC000
#define SPECIAL_NAN		0xC000
#define SPECIAL_PLUS	0xD000
#define SHORT_NEGATIVE	0x2000
#define SHORT_WEIGHT_NEGATIVE 0x0040
#define SHORT_WEIGHT	0x003F

#define EXACT_MANTISSA (UINT64CONST(1) << 53)
#define EXACT_POWER 22			/* 10 ^ 22 is the last exact power in a double */
#define SURE_DIGITS UINT64CONST(1000000000000000)	/* 15 digits: any double keeps them */
#define MOST_DIGITS UINT64CONST(100000000000000000) /* 17: more never come back */

#define PRINTED 64				/* room for a double's text */

typedef struct Decimal
{
	bool		negative;
	int			weight;
	int			ndigits;
	const char *digits;			/* maybe not aligned */
} Decimal;

static const double powers[EXACT_POWER + 1] = {
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22
};

static inline uint16
half(const char *at)
{
	uint16		value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline int
digit(const Decimal *decimal, int i)
{
	return half(decimal->digits + 2 * i);
}

/* False: NaN or infinite; *special is its header. */
static bool
open_decimal(const struct varlena *stored, Decimal *decimal, uint16 *special)
{
	const char *data = VARDATA_ANY(stored);
	int			size = VARSIZE_ANY_EXHDR(stored);
	uint16		header = half(data);

	if ((header & HEADER_KIND) == HEADER_SPECIAL)
	{
		*special = header;
		return false;
	}
	if ((header & HEADER_KIND) == HEADER_SHORT)
	{
		decimal->negative = (header & SHORT_NEGATIVE) != 0;
		decimal->weight = header & SHORT_WEIGHT;
		if ((header & SHORT_WEIGHT_NEGATIVE) != 0)
			decimal->weight -= SHORT_WEIGHT + 1;
		decimal->digits = data + 2;
		size -= 2;
	}
	else
	{
		decimal->negative = (header & HEADER_KIND) == HEADER_NEGATIVE;
		decimal->weight = (int16) half(data + 2);
		decimal->digits = data + 4;
		size -= 4;
	}
	decimal->ndigits = size / 2;
	while (decimal->ndigits > 0 && digit(decimal, decimal->ndigits - 1) == 0)
		decimal->ndigits--;
	return true;
}

/* The value as an integer, if it is one and fits. */
static bool
as_integer(const Decimal *decimal, int64 *value)
{
	uint64		sum = 0;

	if (decimal->ndigits == 0)
	{
		*value = 0;
		return true;
	}
	if (decimal->ndigits > decimal->weight + 1 || decimal->weight > 4 ||
		(decimal->weight == 4 && digit(decimal, 0) > 922))
		return false;
	for (int i = 0; i <= decimal->weight; i++)
		sum = sum * 10000 + (i < decimal->ndigits ? digit(decimal, i) : 0);
	if (sum > (uint64) PG_INT64_MAX + decimal->negative)
		return false;
	*value = decimal->negative ? (int64) (0 - sum) : (int64) sum;
	return true;
}

/* mantissa * 10 ^ exponent, the mantissa without zeros at its end. */
static bool
mantissa_of(const Decimal *decimal, uint64 *mantissa, int *exponent)
{
	*mantissa = 0;
	/* 17 digits never take more than 6 of base 10000 */
	if (decimal->ndigits > 6)
		return false;
	for (int i = 0; i < decimal->ndigits; i++)
	{
		int			last = digit(decimal, i);
		int			by = 10000;

		*exponent = 4 * (decimal->weight - i);
		if (i == decimal->ndigits - 1)
			for (; last % 10 == 0; last /= 10, by /= 10)
				++*exponent;
		if (*mantissa > (MOST_DIGITS - 1) / by)
			return false;
		*mantissa = *mantissa * by + last;
	}
	return *mantissa < MOST_DIGITS;
}

/* A number's text in parts, the mantissa without zeros at its end; no sign. */
static void
parse_decimal(const char *printed, uint64 *mantissa, int *exponent)
{
	bool		point = false;

	*mantissa = 0;
	*exponent = 0;
	for (; *printed != '\0' && *printed != 'e'; printed++)
	{
		if (*printed == '.')
			point = true;
		else if (isdigit((unsigned char) *printed))
		{
			*mantissa = *mantissa * 10 + (*printed - '0');
			*exponent -= point;
		}
	}
	if (*printed == 'e')
		*exponent += atoi(printed + 1);
	while (*mantissa != 0 && *mantissa % 10 == 0)
	{
		*mantissa /= 10;
		++*exponent;
	}
}

/* The nearest double. */
static double
make_double(bool negative, uint64 mantissa, int exponent)
{
	char		printed[PRINTED];
	double		value;

	/* one operation on exact operands rounds rightly */
	if (mantissa < EXACT_MANTISSA && exponent >= -EXACT_POWER && exponent <= EXACT_POWER)
		value = exponent < 0 ? (double) mantissa / powers[-exponent] :
			(double) mantissa * powers[exponent];
	else
	{
		snprintf(printed, PRINTED, UINT64_FORMAT "e%d", mantissa, exponent);
		value = strtod(printed, NULL);
	}
	return negative ? -value : value;
}

/* The nearest decimal with so many digits, in parts. */
static void
nearest_decimal(double value, int digits, uint64 *mantissa, int *exponent, char *printed)
{
	snprintf(printed, PRINTED, "%.*e", digits - 1, fabs(value));
	parse_decimal(printed, mantissa, exponent);
}

/*
 * Is this the shortest decimal that gives the value, and of those the
 * nearest?  That is what the value is printed as.
 */
static bool
prints_back(double value, uint64 mantissa, int exponent)
{
	char		printed[PRINTED];
	uint64		nearest;
	int			nearest_exponent;
	int			digits = 0;

	if (isinf(value) || value == 0)
		return false;
	for (uint64 rest = mantissa; rest > 0; rest /= 10)
		digits++;
	nearest_decimal(value, digits, &nearest, &nearest_exponent, printed);
	if (nearest != mantissa || nearest_exponent != exponent)
		return false;
	if (digits == 1)
		return true;
	nearest_decimal(value, digits - 1, &nearest, &nearest_exponent, printed);
	return strtod(printed, NULL) != fabs(value);
}

/* All digits, no exponent, no zeros at the end; returns the length. */
static size_t
format_decimal(const Decimal *decimal, char *printed)
{
	char	   *at = printed;
	char		group[8];

	if (decimal->negative)
		*at++ = '-';
	if (decimal->weight < 0)
		*at++ = '0';
	for (int i = 0; i <= decimal->weight; i++)
		at += sprintf(at, i == 0 ? "%d" : "%04d", i < decimal->ndigits ? digit(decimal, i) : 0);
	if (decimal->ndigits > decimal->weight + 1)
	{
		*at++ = '.';
		for (int i = -1; i > decimal->weight; i--)
		{
			memcpy(at, "0000", 4);
			at += 4;
		}
		for (int i = Max(decimal->weight + 1, 0); i < decimal->ndigits; i++)
		{
			sprintf(group, "%04d", digit(decimal, i));
			memcpy(at, group, 4);
			at += 4;
		}
		while (at[-1] == '0')
			at--;
	}
	*at = '\0';
	return at - printed;
}

static char *
decimal_text(const Decimal *decimal, size_t *size)
{
	char	   *printed;

	printed = palloc(16 + 4 * (Size) (Max(decimal->weight, 0) + decimal->ndigits +
								   Max(-decimal->weight, 0)));
	*size = format_decimal(decimal, printed);
	return printed;
}

static void
encode_decimal(const Decimal *decimal, bool as_real, SluiceBuffer *out)
{
	uint64		mantissa;
	int			exponent = 0;
	int64		integer;
	double		value;
	char	   *printed;
	size_t		size;

	if (!as_real && as_integer(decimal, &integer))
	{
		sluice_wire_put_integer(out, integer);
		return;
	}
	if (mantissa_of(decimal, &mantissa, &exponent))
	{
		value = make_double(decimal->negative, mantissa, exponent);
		if (as_real ||
			(mantissa < SURE_DIGITS && exponent >= -EXACT_POWER && exponent <= EXACT_POWER) ||
			prints_back(value, mantissa, exponent))
		{
			sluice_wire_put_real(out, value);
			return;
		}
	}
	printed = decimal_text(decimal, &size);
	if (as_real)
		sluice_wire_put_real(out, strtod(printed, NULL));
	else
		sluice_wire_put_text(out, printed, size);
	pfree(printed);
}

void
sluice_number_encode_numeric(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	struct varlena *stored = PG_DETOAST_DATUM_PACKED(value);
	Decimal		decimal;
	uint16		special;

	if (open_decimal(stored, &decimal, &special))
		encode_decimal(&decimal, encoder->numerics_double, out);
	else if (special == SPECIAL_NAN)
		sluice_wire_put_text(out, "NaN", 3);
	else
		sluice_wire_put_real(out, special == SPECIAL_PLUS ? INFINITY : -INFINITY);
	if (stored != (struct varlena *) DatumGetPointer(value))
		pfree(stored);
}

void
sluice_number_encode_float8(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	float8		number = DatumGetFloat8(value);

	if (isnan(number))
		sluice_wire_put_text(out, "NaN", 3);
	else
		sluice_wire_put_real(out, number);
}

void
sluice_number_encode_float4(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	float4		number = DatumGetFloat4(value);
	char		printed[FLOAT_SHORTEST_DECIMAL_LEN];
	uint64		mantissa;
	int			exponent;

	if (isnan(number))
		sluice_wire_put_text(out, "NaN", 3);
	/* infinite, or a small integer: the same as a double, -0 included */
	else if (isinf(number) || (fabsf(number) < 16777216.0f && truncf(number) == number))
		sluice_wire_put_real(out, number);
	else
	{
		float_to_shortest_decimal_buf(fabsf(number), printed);
		parse_decimal(printed, &mantissa, &exponent);
		sluice_wire_put_real(out, make_double(number < 0, mantissa, exponent));
	}
}

int
sluice_number_format_float4(float4 value, char *printed)
{
	return float_to_shortest_decimal_buf(value, printed);
}

int
sluice_number_format_float8(float8 value, char *printed)
{
	return double_to_shortest_decimal_buf(value, printed);
}
