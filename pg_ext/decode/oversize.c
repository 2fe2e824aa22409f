/*
 * oversize.c: naming a row that is too large for SQLite, by its key and its
 * largest column, so that a person can find it.
 *
 * In: the row's values.  Out: a text.
 * Runs in: decoder, in callbacks.  Locks: none.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/transam.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "oversize.h"

/* Of a key value, so much is shown. */
#define KEY_SHOWN 64

static Size
size_of(Form_pg_attribute attribute, Datum value)
{
	if (attribute->attlen > 0)
		return attribute->attlen;
	if (attribute->attlen == -2)
		return strlen(DatumGetCString(value));
	return toast_raw_datum_size(value);
}

static int
largest(TupleDesc desc, const Datum *values, const bool *nulls, Size *size)
{
	int			found = 0;

	*size = 0;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);
		Size		n;

		if (attribute->attisdropped || nulls[i])
			continue;
		n = size_of(attribute, values[i]);
		if (n > *size)
		{
			*size = n;
			found = i;
		}
	}
	return found;
}

/* Only types of the server's own: nobody's output function is run here. */
static void
append_value(StringInfo out, Form_pg_attribute attribute, Datum value)
{
	Oid			output;
	bool		varlena;
	char	   *shown;
	int			length;

	if (attribute->atttypid >= FirstNormalObjectId || size_of(attribute, value) > 1024 * 1024 ||
		(attribute->attlen == -1 && VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value))))
	{
		appendStringInfoString(out, "…");
		return;
	}
	getTypeOutputInfo(attribute->atttypid, &output, &varlena);
	shown = OidOutputFunctionCall(output, value);
	length = pg_mbcliplen(shown, strlen(shown), KEY_SHOWN);
	appendBinaryStringInfo(out, shown, length);
	if (shown[length] != '\0')
		appendStringInfoString(out, "…");
}

char *
sluice_oversize_describe(const SluiceRelation *entry, TupleDesc desc, bool old)
{
	const Datum *values = old ? entry->old_values : entry->values;
	const bool *nulls = old ? entry->old_nulls : entry->nulls;
	const SluiceTable *table = entry->table;
	StringInfoData out;
	Size		size;
	int			column = largest(desc, values, nulls, &size);

	initStringInfo(&out);
	appendStringInfoString(&out, "its row");
	for (int i = 0; i < table->nkey; i++)
	{
		const char *name = table->columns[table->key[i]].name;

		appendStringInfoString(&out, i == 0 ? " with " : ", ");
		for (int j = 0; j < desc->natts; j++)
		{
			Form_pg_attribute attribute = TupleDescAttr(desc, j);

			if (attribute->attisdropped || strcmp(NameStr(attribute->attname), name) != 0)
				continue;
			appendStringInfo(&out, "%s = ", quote_identifier(name));
			if (nulls[j])
				appendStringInfoString(&out, "NULL");
			else
				append_value(&out, attribute, values[j]);
		}
	}
	appendStringInfo(&out,
					 " is larger than the %u bytes that SQLite can hold (column %s: %zu bytes)",
					 SLUICE_ROW_MAX,
					 quote_identifier(NameStr(TupleDescAttr(desc, column)->attname)), size);
	return out.data;
}
