/*
 * schema_change.h: schema messages of the stream, one by one, on the file.
 *
 * Each carries the table as it is after that message.  Names are mapped as if
 * the replica had been copied afresh, so a message can rename other tables and
 * columns than its own.  Whatever is undone with the SQLite transaction is
 * undone in memory too (replica.h, tables_changed).
 *
 * Runs in: the thread that owns the replica, inside its transaction.
 */
#ifndef SLUICE_SCHEMA_CHANGE_H
#define SLUICE_SCHEMA_CHANGE_H

#include "row.h"
#include "wire.h"

extern bool sluice_schema_change_is(SluiceTag tag);

/* The OID of the table it is about; 0: it cannot be read. */
extern uint32_t sluice_schema_change_table(const SluiceFrame *frame,
										   const SluiceAllocator *allocator);

/*
 * table: as noted, NULL for CREATE_TABLE.  Pointers to tables of the replica
 * are void afterwards.
 */
extern SluiceOutcome sluice_schema_change_apply(SluiceRowContext *context,
												SluiceReplicaTable *table,
												const SluiceFrame *frame,
												const SluiceAllocator *allocator);

#endif
