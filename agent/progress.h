/*
 * progress.h: how far a first copy has come, for people.
 *
 * In: tables, rows and bytes as they are done.  Out: a line on standard error
 * once a second (on a terminal it overwrites itself) if wanted.
 * One thread.
 */
#ifndef SLUICE_PROGRESS_H
#define SLUICE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SluiceProgress
{
	bool		show;
	bool		terminal;
	int64_t		started;		/* clock, us */
	int64_t		shown;			/* clock of the last line */
	size_t		tables;
	size_t		tables_done;
	double		rows_expected;	/* of all tables; estimates until they are done */
	uint64_t	rows;
	uint64_t	rows_before;	/* done by an earlier run: not in the rate */
	uint64_t	bytes;			/* on the wire */
} SluiceProgress;

extern void sluice_progress_start(SluiceProgress *progress, bool show, int64_t now);

/* Shows a line if the last one is a second old. */
extern void sluice_progress_tick(SluiceProgress *progress, int64_t now);
extern void sluice_progress_finish(SluiceProgress *progress, int64_t now);

/* The line without its end, as tick() shows it. */
extern void sluice_progress_format(const SluiceProgress *progress, int64_t now, char *text,
								   size_t size);

#endif
