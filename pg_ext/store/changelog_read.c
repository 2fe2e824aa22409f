/*
 * changelog_read.c: reading the change log in order from a watermark.
 *
 * In: a place.  Out: slices of complete transactions.
 * Runs in: sender (catch-up), view.  Locks: ACCESS SHARE on the table.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"

#include "error.h"
#include "slices.h"

static void
too_old(const char *shard, SluiceWatermark after, SluiceWatermark first)
{
	char		wanted[SLUICE_WATERMARK_TEXT_MAX];
	char		have[SLUICE_WATERMARK_TEXT_MAX];

	sluice_watermark_format(after, wanted);
	sluice_watermark_format(first, have);
	ereport(ERROR,
			(errcode(SLUICE_ERRCODE_WATERMARK_TOO_OLD),
			 errmsg("the change log of shard \"%s\" does not reach back to watermark %s", shard, wanted),
			 errdetail("The earliest position to start from is %s.", have),
			 errhint("The replica has to be copied afresh.  A longer retention_time or a larger retention_size keeps more (sluice.set_option).")));
}

/* The number where the first transaction behind `after` begins; 0: behind the head. */
static int64
find_place(SluiceSlices *slices, const char *shard, SluiceWatermark after)
{
	SluiceWatermark first = sluice_slices_first(slices);

	if (sluice_watermark_compare(after, first) < 0)
		too_old(shard, after, first);
	if (slices->head.number == 0 || sluice_watermark_compare(after, slices->head.last) >= 0)
		return 0;
	return sluice_slices_behind(slices, after);
}

void
sluice_changelog_place(const char *shard, SluiceWatermark after, SluiceLogPlace *place)
{
	SluiceSlices slices;

	sluice_slices_open(&slices, shard, AccessShareLock);
	place->after = after;
	place->number = find_place(&slices, shard, after);
	sluice_slices_close(&slices);
}

static int
read_from(SluiceSlices *slices, const char *shard, SluiceLogPlace *place, Size max_bytes, SluiceSlice **out)
{
	TupleDesc	desc = RelationGetDescr(slices->heap->relation);
	SysScanDesc scan = sluice_slices_scan(slices, place->number);
	HeapTuple	tuple;
	int64		number = place->number;
	Size		bytes = 0;
	int			n = 0;
	int			allocated = 16;

	*out = palloc(sizeof(SluiceSlice) * allocated);
	while (number <= slices->head.number && (n == 0 || bytes < max_bytes) &&
		   HeapTupleIsValid(tuple = systable_getnext_ordered(scan, ForwardScanDirection)))
	{
		if (n == allocated)
			*out = repalloc_huge(*out, sizeof(SluiceSlice) * (allocated *= 2));
		sluice_slices_form(*out + n, heap_copytuple(tuple), desc);
		if ((*out)[n].number != number)
			break;
		bytes += (*out)[n].size;
		place->after = (*out)[n].last;
		number++;
		n++;
	}
	systable_endscan_ordered(scan);
	if (n == 0)
		too_old(shard, place->after, sluice_slices_first(slices));
	place->number = number;
	return n;
}

int
sluice_changelog_read(const char *shard, SluiceLogPlace *place, Size max_bytes, SluiceSlice **out)
{
	SluiceSlices slices;
	int			n = 0;

	*out = NULL;
	sluice_slices_open(&slices, shard, AccessShareLock);

	/* a log that has less than was read from it is another log */
	if (place->number > slices.head.number + 1)
		too_old(shard, place->after, sluice_slices_first(&slices));
	if (place->number == 0)
		place->number = find_place(&slices, shard, place->after);
	if (place->number > 0 && place->number <= slices.head.number)
		n = read_from(&slices, shard, place, max_bytes, out);
	sluice_slices_close(&slices);
	return n;
}
