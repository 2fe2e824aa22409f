/*
 * watermark.c: positions in a shard's stream, as numbers and as text.
 *
 * In: WAL positions and backfill counters.  Out: LexiVersion texts, and back.
 * Runs in: every process of the extension and the agent.  Locks: none.
 */
#include "watermark.h"

#define BASE 36
#define MAX_DIGITS 13			/* of 2^64 - 1 */

static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

int
sluice_watermark_compare(SluiceWatermark a, SluiceWatermark b)
{
	if (a.major != b.major)
		return a.major < b.major ? -1 : 1;
	if (a.minor != b.minor)
		return a.minor < b.minor ? -1 : 1;
	return 0;
}

static char *
put_lexi(char *at, uint64_t value)
{
	char		reversed[MAX_DIGITS];
	int			n = 0;

	do
	{
		reversed[n++] = digits[value % BASE];
		value /= BASE;
	} while (value != 0);

	*at++ = digits[n - 1];
	while (n > 0)
		*at++ = reversed[--n];
	return at;
}

size_t
sluice_watermark_format(SluiceWatermark watermark, char text[SLUICE_WATERMARK_TEXT_MAX])
{
	char	   *at = put_lexi(text, watermark.major);

	if (watermark.minor != 0)
	{
		*at++ = '.';
		at = put_lexi(at, watermark.minor);
	}
	*at = '\0';
	return (size_t) (at - text);
}

static int
digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 10;
	return -1;
}

/* Returns where it stopped, or NULL if there is no canonical LexiVersion. */
static const char *
get_lexi(const char *at, uint64_t *value)
{
	int			n = digit_value(*at);
	uint64_t	result = 0;

	if (n < 0 || ++n > MAX_DIGITS)
		return NULL;
	at++;
	if (n > 1 && *at == '0')
		return NULL;
	for (; n > 0; n--, at++)
	{
		int			digit = digit_value(*at);

		if (digit < 0 || result > (UINT64_MAX - (uint64_t) digit) / BASE)
			return NULL;
		result = result * BASE + (uint64_t) digit;
	}
	*value = result;
	return at;
}

bool
sluice_watermark_parse(const char *text, SluiceWatermark *watermark)
{
	SluiceWatermark result = {0, 0};
	const char *at = get_lexi(text, &result.major);

	if (at != NULL && *at == '.')
	{
		at = get_lexi(at + 1, &result.minor);
		if (result.minor == 0)
			return false;
	}
	if (at == NULL || *at != '\0')
		return false;
	*watermark = result;
	return true;
}

SluiceWatermark
sluice_watermark_before(uint64_t position)
{
	SluiceWatermark result = {position == 0 ? 0 : position - 1, 0};

	return result;
}
