/*
 * copy_list.h: the tables that are to be copied, and who copies them.
 *
 * In: the L message, or what _sluice.copy holds of it.  Out: batches of tables
 * for connections, SQLite names.  A table's row leaves _sluice.copy in the
 * same SQLite transaction that completes its copy.
 *
 * One thread.
 */
#ifndef SLUICE_COPY_LIST_H
#define SLUICE_COPY_LIST_H

#include "replica.h"

typedef enum SluiceCopyItemState
{
	SLUICE_COPY_WAITING,
	SLUICE_COPY_ASSIGNED,		/* asked for on some connection */
	SLUICE_COPY_DONE			/* complete, or gone */
} SluiceCopyItemState;

typedef struct SluiceCopyItem
{
	uint32_t	oid;
	SluiceCopyItemState state;
	const char *schema;
	const char *name;			/* PostgreSQL's */
	const char *sqlite_name;	/* set by sluice_copy_list_assign_names() */
	int64_t		rows;			/* estimates */
	int64_t		bytes;
	const char *problem;		/* not copied; NULL: it is */
} SluiceCopyItem;

typedef struct SluiceCopyList
{
	SluiceArena arena;
	size_t		count;
	SluiceCopyItem *items;		/* large ones first */
	SluiceCopyItem **by_oid;
	size_t		waiting;		/* number of items in that state */
	size_t		done;

	/* of the L message only */
	SluiceOrigin origin;		/* without the shard */
	SluicePlaced placed;		/* S0, low0, high0 */
	const char *publications;	/* JSON array */
} SluiceCopyList;

extern void sluice_copy_list_init(SluiceCopyList *list);
extern void sluice_copy_list_release(SluiceCopyList *list);

/* The body of an L message (type byte not included); false: damaged. */
extern bool sluice_copy_list_decode(SluiceCopyList *list, const char *data, size_t size);

/* Inside a transaction: makes _sluice.copy and fills it. */
extern SluiceOutcome sluice_copy_list_store(SluiceReplica *replica, const SluiceCopyList *list);
/* What is left to do. */
extern SluiceOutcome sluice_copy_list_load(SluiceReplica *replica, SluiceCopyList *list);
/* Inside a transaction: item is complete or gone. */
extern SluiceOutcome sluice_copy_list_done(SluiceReplica *replica, SluiceCopyList *list,
										   SluiceCopyItem *item);

/* By the rule of names.h, over the list and the tables that are copied already. */
extern void sluice_copy_list_assign_names(SluiceReplica *replica, SluiceCopyList *list);

/*
 * Takes the next tables to copy on one of `jobs` connections: a large one
 * alone, of small ones many, fewer towards the end.  Returns how many of
 * oids[0..max) are set; 0: none wait.
 */
extern size_t sluice_copy_list_take(SluiceCopyList *list, int jobs, uint32_t *oids, size_t max);
/* Gives back what a lost connection had not completed. */
extern void sluice_copy_list_give_back(SluiceCopyList *list, const uint32_t *oids, size_t count);

extern SluiceCopyItem *sluice_copy_list_find(SluiceCopyList *list, uint32_t oid);

#endif
