/*
 * watch.h: which catalog entries matter to a shard, and what a transaction's
 * invalidation messages say of them.
 */
#ifndef SLUICE_WATCH_H
#define SLUICE_WATCH_H

#include "replication/reorderbuffer.h"

#include "spec.h"

typedef struct SluiceWatch SluiceWatch;

typedef enum SluiceWatched
{
	SLUICE_WATCHED_TABLE,		/* a tracked table or one of its indexes */
	SLUICE_WATCHED_PARTITION,	/* a partition below a tracked root */
	SLUICE_WATCHED_COMPOSITE	/* the columns of a type that a column has */
} SluiceWatched;

/* What the messages of one transaction touch; in the current context. */
typedef struct SluiceTouched
{
	bool		all;			/* read everything anew */
	bool		enum_renamed;	/* a label of a type that a column has */
	List	   *tables;			/* OIDs of tracked tables */
	List	   *composites;		/* pg_class OIDs */
	List	   *others;			/* relations that are not watched */
} SluiceTouched;

/* Of a schema, with the types as the catalogs of now have them. */
extern SluiceWatch *sluice_watch_create(const SluiceSchema *schema);

extern void sluice_watch_add_partition(SluiceWatch *watch, Oid partition, Oid root);
extern bool sluice_watch_has_partition(SluiceWatch *watch, Oid partition, Oid root);
/* Partitions of the root that are watched. */
extern List *sluice_watch_partitions(SluiceWatch *watch, Oid root);

extern void sluice_watch_look(SluiceWatch *watch, const ReorderBufferTXN *txn,
							  SluiceTouched *touched);

#endif
