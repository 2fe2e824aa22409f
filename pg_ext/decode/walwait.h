/*
 * walwait.h: sleeping until there is flushed WAL to decode.
 */
#ifndef SLUICE_WALWAIT_H
#define SLUICE_WALWAIT_H

#include "access/xlogdefs.h"

#include "shmem.h"

/* Only what is flushed may be decoded. */
extern XLogRecPtr sluice_walwait_flushed(void);

/*
 * Sleeps until more than `seen` is flushed, the latch is set, or a time is
 * over in which asynchronous commits and other writers of WAL are found.
 * The caller resets the latch before it looks for work.
 */
extern void sluice_walwait(SluiceStream *stream, XLogRecPtr seen);

#endif
