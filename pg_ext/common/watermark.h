/*
 * watermark.h: positions in a shard's stream.
 *
 * A watermark is (major, minor).  major is the commit LSN: where the commit
 * record starts.  minor is 0 for upstream transactions and counts backfill
 * transactions after that commit.  The text form is the LexiVersion of major,
 * and "." plus the LexiVersion of minor when minor is not 0; texts compare
 * bytewise in stream order.
 *
 * LexiVersion: base 36, lower case, preceded by one base-36 digit that says
 * how many digits follow, less one (0 is "00", 35 is "0z", 36 is "110").
 *
 * Pure C: used by the extension and by the agent.  No locks, no state.
 */
#ifndef SLUICE_WATERMARK_H
#define SLUICE_WATERMARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SluiceWatermark
{
	uint64_t	major;
	uint64_t	minor;
} SluiceWatermark;

/* Prefix and 13 digits, twice, the dot and the terminating zero. */
#define SLUICE_WATERMARK_TEXT_MAX 30

/* <0, 0, >0 in stream order */
extern int	sluice_watermark_compare(SluiceWatermark a, SluiceWatermark b);

/* Writes the text form with its zero; returns its length. */
extern size_t sluice_watermark_format(SluiceWatermark watermark,
									  char text[SLUICE_WATERMARK_TEXT_MAX]);

/* False, and *watermark untouched, unless text is exactly one canonical form. */
extern bool sluice_watermark_parse(const char *text, SluiceWatermark *watermark);

/*
 * The watermark that stands for "every commit whose record starts before the
 * bare WAL position": position - 1 (0 stays 0).
 */
extern SluiceWatermark sluice_watermark_before(uint64_t position);

#endif
