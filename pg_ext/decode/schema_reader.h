/*
 * schema_reader.h: what the files of the catalog reader share (schema.c,
 * schema_publication.c, schema_table.c, schema_filter.c, schema_index.c,
 * schema_leaf.c).
 *
 * A reader lives for one call of sluice_schema_read*(): facts that it looks
 * up go to its own memory context, results to the caller's.  All catalog
 * access is by scans under reader->snapshot: never the caches, which show
 * what an MVCC snapshot does not.
 */
#ifndef SLUICE_SCHEMA_READER_H
#define SLUICE_SCHEMA_READER_H

#include "access/genam.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "utils/hsearch.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

#include "schema.h"

#define SLUICE_PUBLISH_INSERT	0x01
#define SLUICE_PUBLISH_UPDATE	0x02
#define SLUICE_PUBLISH_DELETE	0x04
#define SLUICE_PUBLISH_TRUNCATE	0x08
#define SLUICE_PUBLISH_ALL		0x0f

typedef struct SluicePublication
{
	Oid			oid;
	char	   *name;
	bool		all_tables;
	bool		via_root;
	uint8		actions;		/* SLUICE_PUBLISH_* */
	List	   *namespaces;		/* OIDs: FOR TABLES IN SCHEMA */
} SluicePublication;

/* A row of pg_publication_rel. */
typedef struct SluicePublishedRelation
{
	Oid			relid;
	SluicePublication *publication;
	char	   *filter;			/* node text; NULL: none */
	bool		listed;			/* has a column list */
	Bitmapset  *columns;		/* of the list: attnums */
} SluicePublishedRelation;

/* A row of pg_class. */
typedef struct SluiceRelationFacts
{
	Oid			oid;			/* hash key */
	bool		found;
	Oid			namespace;
	Oid			am;
	char		kind;
	char		persistence;
	char		identity;
	bool		partition;
	NameData	name;
} SluiceRelationFacts;

/* A row of pg_type. */
typedef struct SluiceTypeFacts
{
	Oid			oid;			/* hash key */
	char		typtype;
	bool		array;			/* a true array type */
	Oid			element;
	Oid			base;			/* of a domain */
	int32		base_typmod;
	NameData	name;
} SluiceTypeFacts;

typedef struct SluiceNamespaceFacts
{
	Oid			oid;			/* hash key */
	bool		excluded;		/* never part of a shard */
	NameData	name;
} SluiceNamespaceFacts;

typedef struct SluiceSchemaReader
{
	Snapshot	snapshot;		/* NULL: the historic one */
	Snapshot	registered;		/* the reader's own, or NULL */
	const SluiceEncodeOptions *options;
	MemoryContext context;		/* of the reader's own facts */
	MemoryContext result;
	List	   *publications;	/* SluicePublication */
	SluicePublishedRelation *published; /* by relid */
	int			npublished;
	HTAB	   *relations;
	HTAB	   *types;
	HTAB	   *namespaces;
} SluiceSchemaReader;

/* A published column before types and defaults are looked up. */
typedef struct SluiceColumnDraft
{
	int16		attnum;
	bool		not_null;
	bool		has_default;
	bool		generated;
	Oid			type;
	int32		typmod;
	NameData	name;
} SluiceColumnDraft;

/* One scan of a catalog; NULL or false at its end. */
typedef struct SluiceCatalogScan
{
	Relation	relation;
	SysScanDesc scan;
} SluiceCatalogScan;

/* schema_catalog.c */
extern void sluice_catalog_begin(SluiceCatalogScan *scan, Oid catalog, Oid index,
								 Snapshot snapshot, int nkeys, ScanKey keys);
extern HeapTuple sluice_catalog_next(SluiceCatalogScan *scan);
extern Datum sluice_catalog_value(SluiceCatalogScan *scan, HeapTuple tuple, int attnum,
								  bool *isnull);
extern void sluice_catalog_end(SluiceCatalogScan *scan);
extern void sluice_catalog_key_oid(ScanKey key, int attnum, Oid value);
extern const SluiceRelationFacts *sluice_catalog_relation(SluiceSchemaReader *reader, Oid relid);
extern void sluice_catalog_relations(SluiceSchemaReader *reader);
extern const SluiceTypeFacts *sluice_catalog_type(SluiceSchemaReader *reader, Oid type);
extern const SluiceNamespaceFacts *sluice_catalog_namespace(SluiceSchemaReader *reader, Oid oid);
extern Oid	sluice_catalog_parent(Oid relid, Snapshot snapshot);	/* of a partition; or none */
extern List *sluice_catalog_children(Oid relid, Snapshot snapshot);

/* schema_publication.c */
extern void sluice_publication_load(SluiceSchemaReader *reader, List *names);
/* Publishable, and not in a schema that never is. */
extern bool sluice_publication_candidate(SluiceSchemaReader *reader,
										 const SluiceRelationFacts *relation);
/* As pgoutput has it: itself, a root, or InvalidOid; and by which publications. */
extern Oid	sluice_publication_publish_as(SluiceSchemaReader *reader,
										 const SluiceRelationFacts *relation,
										  List **publications);
/* NULL: the publication says nothing of this relation in particular. */
extern const SluicePublishedRelation *sluice_publication_entry(SluiceSchemaReader *reader,
															   const SluicePublication *publication,
															   Oid relid);

/* schema_table.c */
extern void sluice_schema_fill_table(SluiceSchemaReader *reader,
									 const SluiceRelationFacts *relation,
									 List *publications, SluiceTable *table);
/* Columns that are not dropped, by attnum. */
extern SluiceColumnDraft *sluice_schema_columns(SluiceSchemaReader *reader, Oid relid,
												int *ncolumns);
/* In the result's memory, as UTF-8. */
extern char *sluice_schema_string(SluiceSchemaReader *reader, const char *string);
/* A problem is kept if it is the first. */
extern void sluice_schema_problem(SluiceSchemaReader *reader, SluiceTable *table,
								  const char *format,...) pg_attribute_printf(3, 4);

/* schema_filter.c */
/* Whether the publications are what a shard can follow, and the filter. */
extern void sluice_schema_fill_filter(SluiceSchemaReader *reader,
									  const SluiceRelationFacts *relation, List *publications,
									  SluiceTable *table);

/* schema_default.c */
extern const char *sluice_schema_default(SluiceSchemaReader *reader, Oid relid, int attnum);

/* schema_index.c */
extern void sluice_schema_fill_indexes(SluiceSchemaReader *reader, SluiceTable *table);
/* Attnums of the replica identity's index (not for FULL); empty: none. */
extern List *sluice_schema_identity(SluiceSchemaReader *reader,
									const SluiceRelationFacts *relation);

/* schema_leaf.c */
extern void sluice_schema_check_leaves(SluiceSchemaReader *reader, SluiceTable *table);

#endif
