/*
 * log.c: messages of the agent on standard error.
 *
 * In: formatted text.  Out: one line per message, written at once, so that
 * threads do not mix theirs.
 * Runs in: any thread.  Locks: one, around the last error's text.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define MAX_LINE 4096

static const char *const names[] = {"error", "warning", "info", "debug"};
static const int priorities[] = {3, 4, 6, 7};	/* of syslog */

/* Process life: set once at start. */
static SluiceLogLevel limit = SLUICE_INFO;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last_error[MAX_LINE];

bool
sluice_log_set_level(const char *name)
{
	for (int i = 0; i < (int) (sizeof(names) / sizeof(names[0])); i++)
		if (strcmp(name, names[i]) == 0)
		{
			limit = (SluiceLogLevel) i;
			return true;
		}
	return false;
}

bool
sluice_log_enabled(SluiceLogLevel level)
{
	return level <= limit;
}

/* What stands before the text: time and level, or what the journal wants. */
static size_t
prefix(char *line, size_t size, SluiceLogLevel level)
{
	struct timespec now;
	struct tm	parts;
	size_t		n;

	if (getenv("JOURNAL_STREAM") != NULL)
		return (size_t) snprintf(line, size, "<%d>", priorities[level]);
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &parts);
	n = strftime(line, size, "%Y-%m-%d %H:%M:%S", &parts);
	n += (size_t) snprintf(line + n, size - n, ".%03ld %s: ", now.tv_nsec / 1000000,
						   names[level]);
	return n;
}

void
sluice_log(SluiceLogLevel level, const char *format, ...)
{
	char		line[MAX_LINE];
	size_t		start;
	size_t		length;
	va_list		arguments;
	int			n;

	if (level > limit)
		return;
	start = prefix(line, sizeof(line), level);
	va_start(arguments, format);
	n = vsnprintf(line + start, sizeof(line) - start - 1, format, arguments);
	va_end(arguments);
	length = start + (n < 0 ? 0 : (size_t) n);
	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	/* a message is one line whatever the server or a name put into it */
	for (size_t i = start; i < length; i++)
		if (line[i] == '\n' || line[i] == '\r')
			line[i] = ' ';
	if (level == SLUICE_ERROR)
	{
		pthread_mutex_lock(&lock);
		memcpy(last_error, line + start, length - start);
		last_error[length - start] = '\0';
		pthread_mutex_unlock(&lock);
	}
	line[length++] = '\n';
	if (write(STDERR_FILENO, line, length) < 0)
		return;
}

const char *
sluice_log_last_error(void)
{
	return last_error;
}
