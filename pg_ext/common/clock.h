/*
 * clock.h: the server's timestamps as microseconds since 1970, and back.
 */
#ifndef SLUICE_CLOCK_H
#define SLUICE_CLOCK_H

#include "datatype/timestamp.h"

#define SLUICE_UNIX_EPOCH \
	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

static inline int64
sluice_unix_time(TimestampTz time)
{
	return time + SLUICE_UNIX_EPOCH;
}

#endif
