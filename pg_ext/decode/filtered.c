/*
 * filtered.c: see filtered.h.
 *
 * A replica has exactly the rows that match.  So an update that takes a row
 * over the border is an insert or a delete to it.  When no old row came, no
 * column of the replica identity has changed; PostgreSQL lets a filter look at
 * no other ones, so the old row matched if the new one does.
 *
 * In: the values of a change.  Out: the change to send.
 * Runs in: decoder, in callbacks.  Locks: none.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "filtered.h"
#include "value.h"

static bool
is_published(const SluiceRelation *entry, Form_pg_attribute attribute)
{
	if (entry->relid == entry->table->oid)
		return sluice_table_column_by_attnum(entry->table, attribute->attnum) >= 0;
	return sluice_table_column_by_name(entry->table,
									   sluice_value_name(NameStr(attribute->attname))) >= 0;
}

static inline bool
on_disk(Form_pg_attribute attribute, Datum value)
{
	return attribute->attlen == -1 && VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value));
}

/* An INSERT has all values: unchanged ones come from the old row, if it is whole. */
static bool
complete_new_row(SluiceRelation *entry, TupleDesc desc, char **problem)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attisdropped || entry->nulls[i] || !on_disk(attribute, entry->values[i]))
			continue;
		if (!entry->old_nulls[i] && !on_disk(attribute, entry->old_values[i]))
			entry->values[i] = entry->old_values[i];
		else if (is_published(entry, attribute))
		{
			*problem = psprintf("UPDATE made a row match the row filter, and its unchanged value of column %s is not in the WAL: "
								"give the table REPLICA IDENTITY FULL, and make the shard anew",
								quote_identifier(sluice_value_name(NameStr(attribute->attname))));
			return false;
		}
	}
	return true;
}

static bool
filter_update(SluiceRelation *entry, TupleDesc desc, bool old,
			  enum ReorderBufferChangeType *action, char **problem)
{
	bool		before;
	bool		after;

	after = sluice_filter_matches(entry->filter, entry->values, entry->nulls,
								  old ? entry->old_values : NULL, entry->old_nulls, problem);
	if (!old || *problem != NULL)
		return after;
	before = sluice_filter_matches(entry->filter, entry->old_values, entry->old_nulls,
								   NULL, NULL, problem);
	if (*problem != NULL || (!before && !after))
		return false;
	if (before && !after)
		*action = REORDER_BUFFER_CHANGE_DELETE;
	if (!before && after)
	{
		*action = REORDER_BUFFER_CHANGE_INSERT;
		return complete_new_row(entry, desc, problem);
	}
	return true;
}

bool
sluice_filtered_change(SluiceRelation *entry, TupleDesc desc, bool old,
					   enum ReorderBufferChangeType *action, char **problem)
{
	*problem = NULL;
	if (*action == REORDER_BUFFER_CHANGE_INSERT)
		return sluice_filter_matches(entry->filter, entry->values, entry->nulls, NULL, NULL,
									 problem);
	if (!entry->filter_logged)
	{
		*problem = psprintf("%s of a row whose replica identity lacks a column of the row filter: "
							"give the table REPLICA IDENTITY FULL, and make the shard anew",
							*action == REORDER_BUFFER_CHANGE_UPDATE ? "UPDATE" : "DELETE");
		return false;
	}
	if (*action == REORDER_BUFFER_CHANGE_DELETE)
		return sluice_filter_matches(entry->filter, entry->old_values, entry->old_nulls,
									 NULL, NULL, problem);
	return filter_update(entry, desc, old, action, problem);
}
