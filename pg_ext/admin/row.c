/*
 * row.c: rows of the status views, see status.h.
 *
 * In: plain values.  Out: tuples of a materialized result.
 * Runs in: client backends.  Locks: none.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "status.h"

void
sluice_row_begin(SluiceRow *row)
{
	memset(row, 0, sizeof(*row));
}

static void
put(SluiceRow *row, Datum value, bool null)
{
	Assert(row->count < SLUICE_ROW_COLUMNS);
	row->values[row->count] = value;
	row->nulls[row->count] = null;
	row->count++;
}

void
sluice_row_null(SluiceRow *row)
{
	put(row, (Datum) 0, true);
}

/* NULL and "" are null */
void
sluice_row_text(SluiceRow *row, const char *value)
{
	if (value == NULL || value[0] == '\0')
		sluice_row_null(row);
	else
		put(row, CStringGetTextDatum(value), false);
}

void
sluice_row_bool(SluiceRow *row, bool value)
{
	put(row, BoolGetDatum(value), false);
}

void
sluice_row_int8(SluiceRow *row, uint64 value)
{
	put(row, Int64GetDatum((int64) Min(value, (uint64) PG_INT64_MAX)), false);
}

void
sluice_row_int4(SluiceRow *row, int32 value)
{
	put(row, Int32GetDatum(value), false);
}

void
sluice_row_pid(SluiceRow *row, pid_t pid)
{
	put(row, Int32GetDatum(pid), pid == 0);
}

void
sluice_row_lsn(SluiceRow *row, uint64 lsn)
{
	put(row, LSNGetDatum(lsn), lsn == InvalidXLogRecPtr);
}

void
sluice_row_time(SluiceRow *row, TimestampTz at)
{
	put(row, TimestampTzGetDatum(at), at == 0);
}

void
sluice_row_watermark(SluiceRow *row, SluiceWatermark watermark)
{
	char		string[SLUICE_WATERMARK_TEXT_MAX];

	if (watermark.major == 0)
	{
		sluice_row_null(row);
		return;
	}
	sluice_watermark_format(watermark, string);
	put(row, CStringGetTextDatum(string), false);
}

/* Clocks step back, times here do not: 0 at the least. */
void
sluice_row_interval(SluiceRow *row, int64 us)
{
	Interval   *interval = palloc0(sizeof(Interval));

	us = Max(us, 0);
	interval->day = (int32) Min(us / USECS_PER_DAY, PG_INT32_MAX);
	interval->time = us % USECS_PER_DAY;
	put(row, IntervalPGetDatum(interval), false);
}

/* from - to in bytes, 0 at the least */
void
sluice_row_distance(SluiceRow *row, uint64 from, uint64 to)
{
	sluice_row_int8(row, from > to ? from - to : 0);
}

void
sluice_row_end(SluiceRow *row, ReturnSetInfo *result)
{
	tuplestore_putvalues(result->setResult, result->setDesc, row->values, row->nulls);
}

void
sluice_row_names(SluiceRow *row, List *names)
{
	Datum	   *elements = palloc(sizeof(Datum) * Max(list_length(names), 1));
	int			count = 0;
	ListCell   *cell;

	foreach(cell, names)
		elements[count++] = CStringGetTextDatum((char *) lfirst(cell));
	put(row, PointerGetDatum(construct_array(elements, count, TEXTOID, -1, false, TYPALIGN_INT)),
		false);
}
