/*
 * options.c: the options of a shard, from text.
 *
 * In: an option's name and value.  Out: SluiceOptions.
 * Runs in: sluice.create_shard, sluice.set_option.  Locks: none.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "state.h"

#define RETENTION_MS_DEFAULT (INT64CONST(7) * 24 * 3600 * 1000)
#define RETENTION_BYTES_DEFAULT (INT64CONST(10) * 1024 * 1024 * 1024)
#define RETENTION_MS_MIN INT64CONST(60000)
#define RETENTION_BYTES_MIN (INT64CONST(16) * 1024 * 1024)

void
sluice_options_init(SluiceOptions *options)
{
	memset(options, 0, sizeof(*options));
	options->auto_reset = true;
	options->retention_ms = RETENTION_MS_DEFAULT;
	options->retention_bytes = RETENTION_BYTES_DEFAULT;
}

static void
refuse(const char *name, const char *value, const char *allowed)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for option \"%s\": \"%s\"", name, value),
			 errhint("%s", allowed)));
}

static int64
retention_time(const char *name, const char *value)
{
	Interval   *interval;
	double		days;
	double		ms;

	/* an ill-formed text is an error of the type's own */
	interval = DatumGetIntervalP(DirectFunctionCall3(interval_in, CStringGetDatum(value),
													 ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
	days = (double) interval->month * DAYS_PER_MONTH + interval->day;
	ms = days * 86400000.0 + interval->time / 1000.0;
	if (ms < RETENTION_MS_MIN || ms > PG_INT32_MAX * 86400000.0)
		refuse(name, value, "It is an interval of at least one minute, such as '7 days'.");
	return (int64) ms;
}

static int64
retention_size(const char *name, const char *value)
{
	int64		bytes = DatumGetInt64(DirectFunctionCall1(pg_size_bytes, CStringGetTextDatum(value)));

	if (bytes < RETENTION_BYTES_MIN)
		refuse(name, value, "It is a size of at least 16 MB, such as '10 GB'.");
	return bytes;
}

/* Which of two words value is. */
static bool
second_word(const char *name, const char *value, const char *first, const char *second)
{
	if (strcmp(value, second) == 0)
		return true;
	if (strcmp(value, first) != 0)
		refuse(name, value, psprintf("Allowed are '%s' and '%s'.", first, second));
	return false;
}

void
sluice_options_set(SluiceOptions *options, const char *name, const char *value)
{
	if (strcmp(name, "auto_reset") == 0)
	{
		if (!parse_bool(value, &options->auto_reset))
			refuse(name, value, "Allowed are 'on' and 'off'.");
	}
	else if (strcmp(name, "retention_time") == 0)
		options->retention_ms = retention_time(name, value);
	else if (strcmp(name, "retention_size") == 0)
		options->retention_bytes = retention_size(name, value);
	else if (strcmp(name, "timestamps") == 0)
		options->timestamps_text = second_word(name, value, "epoch_ms", "text");
	else if (strcmp(name, "numerics") == 0)
		options->numerics_double = second_word(name, value, "exact", "double");
	else
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there is no option \"%s\"", name),
				 errhint("The options are auto_reset, retention_time, retention_size, timestamps and numerics.")));
}
