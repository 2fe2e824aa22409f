/*
 * datetime.c: dates and times as milliseconds since 1970, or as ISO text.
 *
 * Milliseconds are INTEGER when they are whole.  Otherwise they are the
 * nearest double, REAL, if that gives the microseconds back, which it does at
 * least from 1691 to 2248; if not, the value is ISO text.  Infinities are
 * REAL.  With timestamps_text all is ISO text.
 *
 * In: Datums of date, time, timetz, timestamp, timestamptz.  Out: values.
 * DateStyle and TimeZone are not looked at.
 * Runs in: the decoder's callbacks, backends.  Locks: none.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#include "value_internal.h"

#define MS_PER_DAY INT64CONST(86400000)
#define EPOCH_DAYS (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)

static void
put_string(SluiceBuffer *out, const char *string)
{
	sluice_wire_put_text(out, string, strlen(string));
}

static void
date_text(Datum value, SluiceBuffer *out)
{
	DateADT		date = DatumGetDateADT(value);
	char		string[MAXDATELEN + 1];
	struct pg_tm tm;

	if (DATE_NOT_FINITE(date))
		EncodeSpecialDate(date, string);
	else
	{
		j2date(date + POSTGRES_EPOCH_JDATE, &tm.tm_year, &tm.tm_mon, &tm.tm_mday);
		EncodeDateOnly(&tm, USE_ISO_DATES, string);
	}
	put_string(out, string);
}

/* zone: the value is of a timestamptz, told at UTC */
static void
timestamp_text(Timestamp timestamp, bool zone, SluiceBuffer *out)
{
	char		string[MAXDATELEN + 1];
	struct pg_tm tm;
	fsec_t		fsec;

	if (TIMESTAMP_NOT_FINITE(timestamp))
		EncodeSpecialTimestamp(timestamp, string);
	else if (timestamp2tm(timestamp, NULL, &tm, &fsec, NULL, NULL) == 0)
	{
		if (zone)
			tm.tm_isdst = 1;	/* says that there is a zone */
		EncodeDateTime(&tm, fsec, zone, 0, NULL, USE_ISO_DATES, string);
	}
	else
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	put_string(out, string);
}

static void
time_text(Datum value, SluiceBuffer *out)
{
	char		string[MAXDATELEN + 1];
	struct pg_tm tm;
	fsec_t		fsec;

	time2tm(DatumGetTimeADT(value), &tm, &fsec);
	EncodeTimeOnly(&tm, fsec, false, 0, USE_ISO_DATES, string);
	put_string(out, string);
}

/* Rounds down, so that the rest is never negative. */
static int64
floor_div(int64 value, int64 by)
{
	return value / by - (value % by < 0);
}

/*
 * The nearest double of microseconds as milliseconds, and whether it gives
 * them back.  All parts of the way back are exact.
 */
static bool
as_double(int64 whole, int rest, double *ms)
{
	double		floored;

	*ms = (double) whole + rest / 1000.0;
	/* one rounding only, where the microseconds are exact as a double */
	if (whole > -INT64CONST(9000000000000) && whole < INT64CONST(9000000000000))
		*ms = (double) (whole * 1000 + rest) / 1000.0;
	floored = floor(*ms);
	return (int64) floored == whole && (int) rint((*ms - floored) * 1000.0) == rest;
}

/* False, with nothing put, if it has to be text. */
static bool
put_ms(int64 whole, int rest, SluiceBuffer *out)
{
	double		ms;

	if (rest == 0)
		sluice_wire_put_integer(out, whole);
	else if (as_double(whole, rest, &ms))
		sluice_wire_put_real(out, ms);
	else
		return false;
	return true;
}

static void
encode_date(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	DateADT		date = DatumGetDateADT(value);

	if (DATE_NOT_FINITE(date))
		sluice_wire_put_real(out, DATE_IS_NOBEGIN(date) ? -INFINITY : INFINITY);
	else
		sluice_wire_put_integer(out, ((int64) date + EPOCH_DAYS) * MS_PER_DAY);
}

static void
encode_timestamp(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	Timestamp	timestamp = DatumGetTimestamp(value);
	int64		whole;

	if (TIMESTAMP_NOT_FINITE(timestamp))
	{
		sluice_wire_put_real(out, TIMESTAMP_IS_NOBEGIN(timestamp) ? -INFINITY : INFINITY);
		return;
	}
	whole = floor_div(timestamp, 1000);
	if (!put_ms(whole + EPOCH_DAYS * MS_PER_DAY, (int) (timestamp - whole * 1000), out))
		timestamp_text(timestamp, encoder->type == TIMESTAMPTZOID, out);
}

static void
encode_time(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	TimeADT		time = DatumGetTimeADT(value);

	(void) put_ms(time / 1000, (int) (time % 1000), out);
}

static void
encode_timetz(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	char		string[MAXDATELEN + 1];
	struct pg_tm tm;
	fsec_t		fsec;
	int			tz;

	timetz2tm(DatumGetTimeTzADTP(value), &tm, &fsec, &tz);
	EncodeTimeOnly(&tm, fsec, true, tz, USE_ISO_DATES, string);
	put_string(out, string);
}

static void
encode_date_text(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	date_text(value, out);
}

static void
encode_timestamp_text(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	timestamp_text(DatumGetTimestamp(value), encoder->type == TIMESTAMPTZOID, out);
}

static void
encode_time_text(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	time_text(value, out);
}

SluiceEncodeFunction
sluice_datetime_encoder(Oid type, const SluiceEncodeOptions *options)
{
	switch (type)
	{
		case DATEOID:
			return options->timestamps_text ? encode_date_text : encode_date;
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return options->timestamps_text ? encode_timestamp_text : encode_timestamp;
		case TIMEOID:
			return options->timestamps_text ? encode_time_text : encode_time;
		case TIMETZOID:
			return encode_timetz;
		default:
			return NULL;
	}
}
