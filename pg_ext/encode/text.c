/*
 * text.c: texts of the server as the UTF-8 that SQLite wants.
 *
 * In: bytes in the server encoding.  Out: TEXT values, strings.
 * With SQL_ASCII nothing says what the bytes are: what is not UTF-8 is an
 * ERROR here, so create_shard refuses such a database.
 * Runs in: the decoder (also in callbacks), backends.  Locks: none kept.
 */
#include "postgres.h"

#include <limits.h>

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "mb/pg_wchar.h"
#include "utils/syscache.h"

#include "value_internal.h"

const char *
sluice_text_utf8(const char *data, size_t *size)
{
	const char *converted;

	if (likely(GetDatabaseEncoding() == PG_UTF8))
		return data;
	if (*size > INT_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("value of %zu bytes is too large to be converted to UTF8", *size)));
	converted = (const char *) pg_do_encoding_conversion((unsigned char *) unconstify(char *, data),
														 (int) *size, GetDatabaseEncoding(),
														 PG_UTF8);
	if (converted != data)
		*size = strlen(converted);
	return converted;
}

const char *
sluice_value_name(const char *name)
{
	size_t		size = strlen(name);

	return sluice_text_utf8(name, &size);
}

void
sluice_text_put(SluiceBuffer *out, const char *data, size_t size)
{
	const char *utf8 = sluice_text_utf8(data, &size);

	sluice_wire_put_text(out, utf8, size);
	if (utf8 != data)
		pfree(unconstify(char *, utf8));
}

const char *
sluice_text_enum_label(Oid label, char *name)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, ObjectIdGetDatum(label));

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("enum label with OID %u does not exist", label)));
	strlcpy(name, NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel), NAMEDATALEN);
	ReleaseSysCache(tuple);
	return name;
}

void
sluice_text_encode_enum(SluiceValueEncoder *encoder, Datum value, SluiceBuffer *out)
{
	char		name[NAMEDATALEN];

	sluice_text_enum_label(DatumGetObjectId(value), name);
	sluice_text_put(out, name, strlen(name));
}

/* As 16 and later print it: a byte above 127 is no text in any encoding. */
int
sluice_text_char(char value, char *printed)
{
	if (IS_HIGHBIT_SET(value))
		return sprintf(printed, "\\%03o", (unsigned char) value);
	printed[0] = value;
	printed[1] = '\0';
	return value != '\0';
}
