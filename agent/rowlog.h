/*
 * rowlog.h: which rows changed in which transaction (_sluice.rowLog; readers
 * see it as _sluice.changes and _zero.changeLog2).
 *
 * One append holds many changes as JSON.  Trimmed by age and number.
 * Runs in the thread that owns the replica, inside its transaction.
 */
#ifndef SLUICE_ROWLOG_H
#define SLUICE_ROWLOG_H

#include "replica.h"

typedef struct SluiceRowLog SluiceRowLog;

/*
 * on = false: NULL, and what was logged before is erased, because it would
 * have a gap.  Switched on anew: every row counts as changed by the first
 * transaction that comes.
 */
extern SluiceOutcome sluice_rowlog_open(SluiceReplica *replica, bool on, SluiceRowLog **log);
extern void sluice_rowlog_close(SluiceRowLog *log);

/* A transaction of the stream begins; several may follow before a flush. */
extern SluiceOutcome sluice_rowlog_begin(SluiceRowLog *log, const char *version);
/* op 's' (set) or 'd' (deleted); key in key order */
extern SluiceOutcome sluice_rowlog_row(SluiceRowLog *log, SluiceReplicaTable *table, char op,
									   const SluiceValue *const *key);
/* op 't' (truncated) or 'r' (all rows count as changed) */
extern SluiceOutcome sluice_rowlog_table(SluiceRowLog *log, SluiceReplicaTable *table, char op);

/* Tables change: what comes now may be another table, or have other names. */
extern void sluice_rowlog_schema(SluiceRowLog *log);

/* Before an SQLite commit. */
extern SluiceOutcome sluice_rowlog_flush(SluiceRowLog *log);
/* The SQLite transaction was rolled back, committed. */
extern void sluice_rowlog_abort(SluiceRowLog *log);
extern void sluice_rowlog_committed(SluiceRowLog *log);

/* Now and then, before a commit. */
extern SluiceOutcome sluice_rowlog_trim(SluiceRowLog *log);

#endif
