/*
 * schema_catalog.c: scans of single catalogs for the schema reader.
 *
 * In: a snapshot (NULL: the catalog snapshot of the moment, inside decoding
 * callbacks the historic one).  Out: facts, in the reader's memory.
 * Runs in: the decoder's callbacks, backends.
 * Locks: ACCESS SHARE on a catalog while it is scanned.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "schema_reader.h"
#include "shmem.h"

void
sluice_catalog_begin(SluiceCatalogScan *scan, Oid catalog, Oid index, Snapshot snapshot,
					 int nkeys, ScanKey keys)
{
	scan->relation = table_open(catalog, AccessShareLock);
	scan->scan = systable_beginscan(scan->relation, index, OidIsValid(index), snapshot,
									nkeys, keys);
}

HeapTuple
sluice_catalog_next(SluiceCatalogScan *scan)
{
	return systable_getnext(scan->scan);
}

Datum
sluice_catalog_value(SluiceCatalogScan *scan, HeapTuple tuple, int attnum, bool *isnull)
{
	return heap_getattr(tuple, attnum, RelationGetDescr(scan->relation), isnull);
}

void
sluice_catalog_end(SluiceCatalogScan *scan)
{
	systable_endscan(scan->scan);
	table_close(scan->relation, AccessShareLock);
}

void
sluice_catalog_key_oid(ScanKey key, int attnum, Oid value)
{
	ScanKeyInit(key, attnum, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(value));
}

static void
fill_relation(SluiceRelationFacts *facts, Form_pg_class form)
{
	facts->found = true;
	facts->namespace = form->relnamespace;
	facts->am = form->relam;
	facts->kind = form->relkind;
	facts->persistence = form->relpersistence;
	facts->identity = form->relreplident;
	facts->partition = form->relispartition;
	facts->name = form->relname;
}

/* NULL: no such relation under the snapshot. */
const SluiceRelationFacts *
sluice_catalog_relation(SluiceSchemaReader *reader, Oid relid)
{
	bool		found;
	SluiceRelationFacts *facts = hash_search(reader->relations, &relid, HASH_ENTER, &found);

	if (!found)
	{
		SluiceCatalogScan scan;
		ScanKeyData key;
		HeapTuple	tuple;

		facts->found = false;
		sluice_catalog_key_oid(&key, Anum_pg_class_oid, relid);
		sluice_catalog_begin(&scan, RelationRelationId, ClassOidIndexId, reader->snapshot, 1, &key);
		if (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
			fill_relation(facts, (Form_pg_class) GETSTRUCT(tuple));
		sluice_catalog_end(&scan);
	}
	return facts->found ? facts : NULL;
}

/* All tables at once, for reading a whole schema. */
void
sluice_catalog_relations(SluiceSchemaReader *reader)
{
	SluiceCatalogScan scan;
	HeapTuple	tuple;

	sluice_catalog_begin(&scan, RelationRelationId, InvalidOid, reader->snapshot, 0, NULL);
	while (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (form->relkind == RELKIND_RELATION || form->relkind == RELKIND_PARTITIONED_TABLE)
			fill_relation(hash_search(reader->relations, &form->oid, HASH_ENTER, NULL), form);
	}
	sluice_catalog_end(&scan);
}

const SluiceTypeFacts *
sluice_catalog_type(SluiceSchemaReader *reader, Oid type)
{
	bool		found;
	SluiceTypeFacts *facts = hash_search(reader->types, &type, HASH_ENTER, &found);
	SluiceCatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;

	if (found)
		return facts;
	facts->typtype = '\0';
	sluice_catalog_key_oid(&key, Anum_pg_type_oid, type);
	sluice_catalog_begin(&scan, TypeRelationId, TypeOidIndexId, reader->snapshot, 1, &key);
	if (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		Form_pg_type form = (Form_pg_type) GETSTRUCT(tuple);

		facts->typtype = form->typtype;
		/* those two have their own text form and start at 0 */
		facts->array = IsTrueArrayType(form) && type != INT2VECTOROID && type != OIDVECTOROID;
		facts->element = form->typelem;
		facts->base = form->typbasetype;
		facts->base_typmod = form->typtypmod;
		facts->name = form->typname;
	}
	sluice_catalog_end(&scan);
	if (facts->typtype == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("type with OID %u does not exist", type)));
	return facts;
}

/* Is the object a member of our extension? */
static bool
extension_member(SluiceSchemaReader *reader, Oid catalog, Oid object)
{
	SluiceCatalogScan scan;
	ScanKeyData keys[2];
	HeapTuple	tuple;
	Oid			extension = InvalidOid;
	bool		result = false;

	sluice_catalog_key_oid(&keys[0], Anum_pg_depend_classid, catalog);
	sluice_catalog_key_oid(&keys[1], Anum_pg_depend_objid, object);
	sluice_catalog_begin(&scan, DependRelationId, DependDependerIndexId, reader->snapshot, 2, keys);
	while (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->deptype == DEPENDENCY_EXTENSION && form->refclassid == ExtensionRelationId)
			extension = form->refobjid;
	}
	sluice_catalog_end(&scan);
	if (!OidIsValid(extension))
		return false;

	sluice_catalog_key_oid(&keys[0], Anum_pg_extension_oid, extension);
	sluice_catalog_begin(&scan, ExtensionRelationId, ExtensionOidIndexId, reader->snapshot, 1, keys);
	if (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
		result = strcmp(NameStr(((Form_pg_extension) GETSTRUCT(tuple))->extname), "sluice") == 0;
	sluice_catalog_end(&scan);
	return result;
}

/* A change-log schema of ours: it, or its table "state", is a member. */
static bool
change_log_schema(SluiceSchemaReader *reader, Oid namespace)
{
	SluiceCatalogScan scan;
	ScanKeyData keys[2];
	HeapTuple	tuple;
	Oid			state = InvalidOid;

	if (extension_member(reader, NamespaceRelationId, namespace))
		return true;
	ScanKeyInit(&keys[0], Anum_pg_class_relname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum("state"));
	sluice_catalog_key_oid(&keys[1], Anum_pg_class_relnamespace, namespace);
	sluice_catalog_begin(&scan, RelationRelationId, ClassNameNspIndexId, reader->snapshot, 2, keys);
	if (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
		state = ((Form_pg_class) GETSTRUCT(tuple))->oid;
	sluice_catalog_end(&scan);
	return OidIsValid(state) && extension_member(reader, RelationRelationId, state);
}

/* NULL: no such schema under the snapshot. */
const SluiceNamespaceFacts *
sluice_catalog_namespace(SluiceSchemaReader *reader, Oid oid)
{
	bool		found;
	SluiceNamespaceFacts *facts = hash_search(reader->namespaces, &oid, HASH_ENTER, &found);

	if (!found)
	{
		SluiceCatalogScan scan;
		ScanKeyData key;
		HeapTuple	tuple;
		const char *name = NameStr(facts->name);

		memset(&facts->name, 0, sizeof(facts->name));
		sluice_catalog_key_oid(&key, Anum_pg_namespace_oid, oid);
		sluice_catalog_begin(&scan, NamespaceRelationId, NamespaceOidIndexId, reader->snapshot,
							 1, &key);
		if (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
			facts->name = ((Form_pg_namespace) GETSTRUCT(tuple))->nspname;
		sluice_catalog_end(&scan);

		facts->excluded = strncmp(name, "pg_", 3) == 0 ||
			strcmp(name, "information_schema") == 0 || strcmp(name, "sluice") == 0 ||
			(strncmp(name, "cdc_", 4) == 0 && change_log_schema(reader, oid));
	}
	return NameStr(facts->name)[0] != '\0' ? facts : NULL;
}

/* A partition has one parent; one whose detaching is under way has none. */
Oid
sluice_catalog_parent(Oid relid, Snapshot snapshot)
{
	SluiceCatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	Oid			parent = InvalidOid;

	sluice_catalog_key_oid(&key, Anum_pg_inherits_inhrelid, relid);
	sluice_catalog_begin(&scan, InheritsRelationId, InheritsRelidSeqnoIndexId, snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		Form_pg_inherits form = (Form_pg_inherits) GETSTRUCT(tuple);

		if (!form->inhdetachpending)
			parent = form->inhparent;
	}
	sluice_catalog_end(&scan);
	return parent;
}

List *
sluice_catalog_children(Oid relid, Snapshot snapshot)
{
	SluiceCatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	List	   *children = NIL;

	sluice_catalog_key_oid(&key, Anum_pg_inherits_inhparent, relid);
	sluice_catalog_begin(&scan, InheritsRelationId, InheritsParentIndexId, snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		Form_pg_inherits form = (Form_pg_inherits) GETSTRUCT(tuple);

		if (!form->inhdetachpending)
			children = lappend_oid(children, form->inhrelid);
	}
	sluice_catalog_end(&scan);
	list_sort(children, list_oid_cmp);
	return children;
}
