/*
 * relation.h: how the rows of a relation are published.
 */
#ifndef SLUICE_RELATION_H
#define SLUICE_RELATION_H

#include "utils/relcache.h"

#include "decoder.h"
#include "filter.h"
#include "row.h"

typedef struct SluiceRelation
{
	Oid			relid;			/* hash key */
	bool		valid;			/* no invalidation since it was filled */
	MemoryContext context;		/* of what follows */
	SluiceTable *table;			/* under which its rows come; NULL: not published */
	SluiceRowEncoder *encoder;
	SluiceFilter *filter;		/* NULL: all rows are published */
	bool		filter_logged;	/* old rows carry what the filter looks at */
	bool		full;			/* old rows come whole */
	bool		has_key;		/* old rows carry the key of the table */
	Datum	   *values;			/* natts of the relation each */
	bool	   *nulls;
	Datum	   *old_values;
	bool	   *old_nulls;
} SluiceRelation;

/* In the decoder's memory. */
extern SluiceRelations *sluice_relations_create(SluiceDecoder *decoder);

/*
 * Inside a callback, with the relation of the historic view.  Stops the shard
 * if its columns are not those of the tracked schema.
 */
extern SluiceRelation *sluice_relation_get(SluiceDecoder *decoder, ReorderBufferTXN *txn,
										   Relation relation);

/* The tracked schema has changed: entries are made anew. */
extern void sluice_relations_forget(SluiceRelations *relations);

#endif
