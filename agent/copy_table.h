/*
 * copy_table.h: what one connection of a first copy brings, into the file.
 *
 * States: between tables (table NULL), where H, N and K may come; inside one,
 * where W, F and K may come.  H makes the table, W fills it, F marks it as
 * complete, all inside the SQLite transaction that the caller holds open.
 *
 * One thread; several of them write one file in turns.
 */
#ifndef SLUICE_COPY_TABLE_H
#define SLUICE_COPY_TABLE_H

#include "copy_list.h"
#include "progress.h"

typedef struct SluiceCopyTable
{
	SluiceReplica *replica;
	SluiceCopyList *list;
	SluiceProgress *progress;
	SluiceReplicaTable *table;	/* being filled; NULL: none */
	SluiceCopyItem *item;		/* of that table */
	uint64_t	rows;			/* of it so far */
	SluiceArena arena;			/* of one message */
} SluiceCopyTable;

extern void sluice_copy_table_init(SluiceCopyTable *copy, SluiceReplica *replica,
								   SluiceCopyList *list, SluiceProgress *progress);
extern void sluice_copy_table_release(SluiceCopyTable *copy);

/*
 * One CopyData message, type byte first.  SLUICE_RETRY: the server broke the
 * protocol (logged): give the connection up.
 */
extern SluiceOutcome sluice_copy_table_message(SluiceCopyTable *copy, const char *data,
											   size_t size);

/* The connection is lost: what there is of an unfinished table goes. */
extern SluiceOutcome sluice_copy_table_abandon(SluiceCopyTable *copy);

#endif
