/*
 * encode_print.c: values, row frames and specs as text, for tests to look at.
 *
 * In: what the product's codec reads back.  Out: text.  Runs in: backends.
 */
#include "postgres.h"

#include "common/shortest_dec.h"
#include "nodes/nodes.h"
#include "utils/builtins.h"
#include "utils/ruleutils.h"

#include "encode_test.h"

const char *
encode_test_class(const SluiceValue *value)
{
	static const char *const names[] = {"NULL", "INTEGER", "REAL", "TEXT", "BLOB", "UNCHANGED"};

	return names[value->class];
}

char *
encode_test_text(const SluiceValue *value)
{
	char	   *hex;

	switch (value->class)
	{
		case SLUICE_INTEGER:
			return psprintf(INT64_FORMAT, value->u.integer);
		case SLUICE_REAL:
			return double_to_shortest_decimal(value->u.real);
		case SLUICE_TEXT:
			return pnstrdup(value->u.bytes.data, value->u.bytes.size);
		case SLUICE_BLOB:
			hex = palloc(value->u.bytes.size * 2 + 1);
			hex_encode(value->u.bytes.data, value->u.bytes.size, hex);
			hex[value->u.bytes.size * 2] = '\0';
			return hex;
		default:
			return NULL;
	}
}

static void
print_values(StringInfo out, const char *label, SluiceCursor *values, int n)
{
	SluiceValue value;

	if (n == 0)
		return;
	appendStringInfo(out, " %s(", label);
	for (int i = 0; i < n; i++)
	{
		if (!sluice_cursor_value(values, &value))
			elog(ERROR, "damaged value");
		appendStringInfo(out, "%s%s", i > 0 ? ", " : "", encode_test_class(&value));
		if (encode_test_text(&value) == NULL)
			continue;
		if ((value.class == SLUICE_TEXT || value.class == SLUICE_BLOB) && value.u.bytes.size > 60)
			appendStringInfo(out, " %u bytes", value.u.bytes.size);
		else
			appendStringInfo(out, " %s", encode_test_text(&value));
	}
	appendStringInfoChar(out, ')');
}

void
encode_test_frame(StringInfo out, const SluiceTable *table, const char *data, Size size)
{
	SluiceFrame frame;
	SluiceRowHead head;
	SluiceCursor values;

	if (sluice_wire_frame(data, size, &frame) != SLUICE_WIRE_OK || frame.total != size ||
		!sluice_wire_get_row(&frame, &head, &values))
		elog(ERROR, "damaged frame");
	if (head.table_oid != table->oid || head.fingerprint != table->fingerprint)
		elog(ERROR, "frame of another table");
	appendStringInfo(out, "%c %s", frame.tag, table->name);
	print_values(out, head.old == SLUICE_OLD_KEY ? "key" : "old", &values, head.nold);
	print_values(out, "new", &values, head.nnew);
	if (!sluice_cursor_done(&values))
		elog(ERROR, "bytes left over in frame");
}

static void
print_index(StringInfo out, const SluiceTable *table, const SluiceIndex *index)
{
	static const char *const names[] = {"unique", "primary", "identity", "deferrable", "nulls_equal"};

	appendStringInfo(out, "  index %s (", index->name);
	for (int i = 0; i < index->ncolumns; i++)
	{
		int			at = sluice_table_column_by_attnum(table, index->columns[i].attnum);

		appendStringInfo(out, "%s%s%s", i > 0 ? ", " : "", table->columns[at].name,
						 index->columns[i].descending ? " desc" : "");
	}
	appendStringInfoChar(out, ')');
	for (int i = 0; i < lengthof(names); i++)
		if (index->flags & (1 << i))
			appendStringInfo(out, " %s", names[i]);
	appendStringInfoChar(out, '\n');
}

void
encode_test_table(StringInfo out, const SluiceTable *table)
{
	static const char *const names[] = {"not_null", "enum", "array", "generated"};

	appendStringInfo(out, "%s.%s identity %c%s", table->schema, table->name, table->identity,
					 table->flags & SLUICE_TABLE_PARTITIONED ? " partitioned" : "");
	if (table->nkey > 0)
		appendStringInfoString(out, " key");
	for (int i = 0; i < table->nkey; i++)
		appendStringInfo(out, " %s", table->columns[table->key[i]].name);
	appendStringInfoChar(out, '\n');
	if (table->problem != NULL)
		appendStringInfo(out, "  problem %s\n", table->problem);
	if (table->filter != NULL)
		appendStringInfo(out, "  filter %s\n",
						 deparse_expression(stringToNode(table->filter),
											deparse_context_for(table->name, table->oid),
											false, false));
	for (int i = 0; i < table->ncolumns; i++)
	{
		const SluiceColumn *column = &table->columns[i];

		appendStringInfo(out, "  %d %s %s %c", column->attnum, column->name, column->type,
						 column->storage);
		for (int j = 0; j < lengthof(names); j++)
			if (column->flags & (1 << j))
				appendStringInfo(out, " %s", names[j]);
		if (column->max_length >= 0)
			appendStringInfo(out, " max %d", column->max_length);
		if (column->default_sql != NULL)
			appendStringInfo(out, " default %s", column->default_sql);
		appendStringInfoChar(out, '\n');
	}
	for (int i = 0; i < table->nindexes; i++)
		print_index(out, table, &table->indexes[i]);
}
