/*
 * log.h: messages of the agent, one line each on standard error, with time
 * and level (without the time under systemd, which has its own).
 *
 * Habits: lower case, no full stop; what is wrong, which object; a hint is a
 * sentence after "; hint: ".  Never a row's values but keys, never a password.
 * Threads: any.
 */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

#include <stdbool.h>

typedef enum SluiceLogLevel
{
	SLUICE_ERROR,
	SLUICE_WARNING,
	SLUICE_INFO,
	SLUICE_DEBUG
} SluiceLogLevel;

extern void sluice_log(SluiceLogLevel level, const char *format, ...)
			__attribute__((format(printf, 2, 3)));

/* "error", "warning", "info", "debug"; false if it is none of them. */
extern bool sluice_log_set_level(const char *name);
extern bool sluice_log_enabled(SluiceLogLevel level);

/* The last error's text, "" if there was none: for status and tests. */
extern const char *sluice_log_last_error(void);

#endif
