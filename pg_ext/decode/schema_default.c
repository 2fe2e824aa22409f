/*
 * schema_default.c: the SQL text of a column's default, if it is a constant.
 *
 * Only constants of built-in types and of enums, under casts, are told: their
 * text does not depend on what the caches of the moment say of users'
 * objects, so that it is the same under any snapshot.  Anything else: NULL.
 *
 * In: pg_attrdef, pg_enum.  Out: text in the reader's result memory.
 * Runs in: the decoder's callbacks, backends.  Locks: see schema_catalog.c.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/indexing.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

#include "schema_reader.h"

/* Detoasted before the scan ends; NULL: none. */
static char *
expression_text(SluiceSchemaReader *reader, Oid relid, int attnum)
{
	SluiceCatalogScan scan;
	ScanKeyData keys[2];
	HeapTuple	tuple;
	char	   *sql = NULL;

	sluice_catalog_key_oid(&keys[0], Anum_pg_attrdef_adrelid, relid);
	ScanKeyInit(&keys[1], Anum_pg_attrdef_adnum, BTEqualStrategyNumber, F_INT2EQ,
				Int16GetDatum(attnum));
	sluice_catalog_begin(&scan, AttrDefaultRelationId, AttrDefaultIndexId, reader->snapshot,
						 2, keys);
	if (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
	{
		bool		isnull;
		Datum		value = sluice_catalog_value(&scan, tuple, Anum_pg_attrdef_adbin, &isnull);

		if (!isnull)
			sql = TextDatumGetCString(value);
	}
	sluice_catalog_end(&scan);
	return sql;
}

/* True (stop) at a node whose text may depend on more than the node. */
static bool
depends(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Const:
			return ((Const *) node)->consttype >= FirstNormalObjectId;
		case T_FuncExpr:
			if ((((FuncExpr *) node)->funcformat != COERCE_EXPLICIT_CAST &&
				 ((FuncExpr *) node)->funcformat != COERCE_IMPLICIT_CAST) ||
				((FuncExpr *) node)->funcresulttype >= FirstNormalObjectId)
				return true;
			break;
		case T_RelabelType:
			if (((RelabelType *) node)->resulttype >= FirstNormalObjectId)
				return true;
			break;
		case T_CoerceViaIO:
			if (((CoerceViaIO *) node)->resulttype >= FirstNormalObjectId)
				return true;
			break;
		case T_ArrayExpr:
			if (((ArrayExpr *) node)->array_typeid >= FirstNormalObjectId)
				return true;
			break;
		case T_List:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, depends, context);
}

/* 'label'::type; NULL: not an enum's constant. */
static char *
enum_text(SluiceSchemaReader *reader, const Const *constant)
{
	const SluiceTypeFacts *type = sluice_catalog_type(reader, constant->consttype);
	SluiceCatalogScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	char	   *sql = NULL;

	if (type->typtype != TYPTYPE_ENUM || constant->constisnull)
		return NULL;
	sluice_catalog_key_oid(&key, Anum_pg_enum_oid, DatumGetObjectId(constant->constvalue));
	sluice_catalog_begin(&scan, EnumRelationId, EnumOidIndexId, reader->snapshot, 1, &key);
	if (HeapTupleIsValid(tuple = sluice_catalog_next(&scan)))
		sql = psprintf("%s::%s",
						quote_literal_cstr(NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel)),
						quote_identifier(NameStr(type->name)));
	sluice_catalog_end(&scan);
	return sql;
}

const char *
sluice_schema_default(SluiceSchemaReader *reader, Oid relid, int attnum)
{
	char	   *serialized = expression_text(reader, relid, attnum);
	Node	   *node;
	char	   *sql;

	if (serialized == NULL)
		return NULL;
	node = stringToNode(serialized);
	while (IsA(node, CoerceToDomain))
		node = (Node *) ((CoerceToDomain *) node)->arg;
	if (IsA(node, Const) && ((Const *) node)->consttype >= FirstNormalObjectId)
		sql = enum_text(reader, (Const *) node);
	else if (depends(node, NULL))
		sql = NULL;
	else
		sql = deparse_expression(node, NIL, false, false);
	return sql == NULL ? NULL : sluice_schema_string(reader, sql);
}
