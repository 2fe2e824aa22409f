/*
 * schema_leaf.c: can the partitions of a root be followed under its name?
 *
 * A row of a partition is published with the replica identity of the
 * partition, and matched by the key of the root.  Rows of a foreign or an
 * unlogged partition are read by a copy but never come through the WAL.
 *
 * In: pg_inherits and what describes the partitions.  Out: table->problem.
 * Runs in: the decoder's callbacks, backends.  Locks: see schema_catalog.c.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "schema_reader.h"

static bool
names_contain(const SluiceColumnDraft *drafts, int ndrafts, const List *attnums, const char *name)
{
	for (int i = 0; i < ndrafts; i++)
		if (strcmp(sluice_value_name(NameStr(drafts[i].name)), name) == 0)
			return list_member_int(attnums, drafts[i].attnum);
	return false;
}

/* Do old rows of the leaf carry the root's key? */
static bool
identity_serves(SluiceSchemaReader *reader, const SluiceTable *table,
				const SluiceRelationFacts *leaf)
{
	List	   *attnums;
	SluiceColumnDraft *drafts;
	int			ndrafts;
	bool		serves = true;

	if (leaf->identity == REPLICA_IDENTITY_FULL)
		return true;
	attnums = sluice_schema_identity(reader, leaf);
	if (attnums == NIL)
		return true;			/* PostgreSQL refuses its updates and deletes */
	if (table->nkey == 0)
		return false;
	drafts = sluice_schema_columns(reader, leaf->oid, &ndrafts);
	for (int i = 0; i < table->nkey && serves; i++)
		serves = names_contain(drafts, ndrafts, attnums, table->columns[table->key[i]].name);
	pfree(drafts);
	return serves;
}

static void
check_leaf(SluiceSchemaReader *reader, SluiceTable *table, const SluiceRelationFacts *leaf)
{
	if (leaf->kind != RELKIND_RELATION || leaf->persistence != RELPERSISTENCE_PERMANENT)
		sluice_schema_problem(reader, table,
							  "its partition %s is %s, whose changes are not in the WAL: "
							  "detach it, or publish without publish_via_partition_root",
							  quote_identifier(NameStr(leaf->name)),
							  leaf->kind != RELKIND_RELATION ? "a foreign table" : "an unlogged table");
	else if (!identity_serves(reader, table, leaf))
		sluice_schema_problem(reader, table,
							  "the replica identity of its partition %s does not cover the key of the root: "
							  "give both the same, or the partition REPLICA IDENTITY FULL",
							  quote_identifier(NameStr(leaf->name)));
}

void
sluice_schema_check_leaves(SluiceSchemaReader *reader, SluiceTable *table)
{
	List	   *pending = sluice_catalog_children(table->oid, reader->snapshot);

	while (pending != NIL && table->problem == NULL)
	{
		const SluiceRelationFacts *child = sluice_catalog_relation(reader, llast_oid(pending));

		CHECK_FOR_INTERRUPTS();
		pending = list_delete_last(pending);
		if (child == NULL)
			continue;
		if (child->kind == RELKIND_PARTITIONED_TABLE)
			pending = list_concat(pending, sluice_catalog_children(child->oid, reader->snapshot));
		else
			check_leaf(reader, table, child);
	}
}

List *
sluice_schema_leaves(Oid root, Snapshot snapshot)
{
	List	   *pending = sluice_catalog_children(root, snapshot);
	List	   *leaves = NIL;

	while (pending != NIL)
	{
		Oid			relid = llast_oid(pending);

		CHECK_FOR_INTERRUPTS();
		pending = list_delete_last(pending);
		/* what kind a relation is never changes */
		if (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE)
			pending = list_concat(pending, sluice_catalog_children(relid, snapshot));
		else
			leaves = lappend_oid(leaves, relid);
	}
	return leaves;
}
