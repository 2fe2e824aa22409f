/*
 * progress.c: how far a first copy has come, for people.
 *
 * In: counts.  Out: lines on standard error.  Runs in: the copying thread.
 * Locks: none.
 */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECOND 1000000
#define LINE 200

void
sluice_progress_start(SluiceProgress *progress, bool show, int64_t now)
{
	memset(progress, 0, sizeof(*progress));
	progress->show = show;
	progress->terminal = isatty(STDERR_FILENO) == 1;
	progress->started = now;
	progress->shown = now;
}

/* 1234567 as 1,234,567 */
static const char *
grouped(uint64_t number, char text[28])
{
	char	   *at = text + 27;
	int			digits = 0;

	*at = '\0';
	do
	{
		if (digits > 0 && digits % 3 == 0)
			*--at = ',';
		*--at = (char) ('0' + number % 10);
		number /= 10;
		digits++;
	} while (number > 0);
	return at;
}

static void
format_time_left(const SluiceProgress *progress, double rate, char *text, size_t size)
{
	double		left = progress->rows_expected - (double) progress->rows;
	double		seconds;

	text[0] = '\0';
	if (rate < 1 || left < 0)
		return;
	seconds = left / rate;
	if (seconds >= 3600 * 1000)
		return;
	if (seconds >= 3600)
		snprintf(text, size, ", about %d:%02d h left", (int) (seconds / 3600),
				 (int) (seconds / 60) % 60);
	else
		snprintf(text, size, ", about %d:%02d left", (int) (seconds / 60), (int) seconds % 60);
}

void
sluice_progress_format(const SluiceProgress *progress, int64_t now, char *text, size_t size)
{
	double		elapsed = (double) (now - progress->started) / SECOND;
	double		rate = 0;
	double		expected = progress->rows_expected;
	char		rows[28];
	char		total[28];
	char		per_second[28];
	char		left[40];
	int			percent;

	if (elapsed > 0)
		rate = (double) (progress->rows - progress->rows_before) / elapsed;
	if (expected < (double) progress->rows)
		expected = (double) progress->rows;
	percent = expected > 0 ? (int) (100.0 * (double) progress->rows / expected) : 100;
	format_time_left(progress, rate, left, sizeof(left));
	snprintf(text, size,
			 "copying: %zu of %zu tables, %s of about %s rows (%d %%), %.1f MB, %s rows/s%s",
			 progress->tables_done, progress->tables, grouped(progress->rows, rows),
			 grouped((uint64_t) expected, total), percent, (double) progress->bytes / 1e6,
			 grouped((uint64_t) rate, per_second), left);
}

static void
show(SluiceProgress *progress, int64_t now, const char *end)
{
	char		line[LINE];

	sluice_progress_format(progress, now, line, sizeof(line));
	if (progress->terminal)
		fprintf(stderr, "\r%s\033[K%s", line, end);
	else
		fprintf(stderr, "%s\n", line);
	fflush(stderr);
	progress->shown = now;
}

void
sluice_progress_tick(SluiceProgress *progress, int64_t now)
{
	if (progress->show && now - progress->shown >= SECOND)
		show(progress, now, "");
}

void
sluice_progress_finish(SluiceProgress *progress, int64_t now)
{
	if (progress->show)
		show(progress, now, "\n");
}
