/*
 * encode_test.c: the product's encoder and catalog reader, callable from SQL.
 *
 * encode_value(anyelement, timestamps_text, numerics_double, out class, out value)
 * encode_storage(regtype) returns "char"
 * encode_schema(publications text[]) returns text
 * encode_table(regclass, publications text[]) returns text, NULL if not published
 * encode_publish_as(regclass, publications text[]) returns regclass
 * encode_scan(regclass, publications text[], times) returns (rows, bytes, ms, memory)
 *
 * In: SQL.  Out: what was encoded, read back.  Runs in: backends.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "encode_test.h"
#include "row.h"
#include "schema.h"
#include "value.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(encode_value);
PG_FUNCTION_INFO_V1(encode_storage);
PG_FUNCTION_INFO_V1(encode_schema);
PG_FUNCTION_INFO_V1(encode_table);
PG_FUNCTION_INFO_V1(encode_publish_as);
PG_FUNCTION_INFO_V1(encode_scan);

static Datum
result_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

Datum
encode_value(PG_FUNCTION_ARGS)
{
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 0);
	SluiceEncodeOptions options = {PG_GETARG_BOOL(1), PG_GETARG_BOOL(2)};
	SluiceBuffer out;
	SluiceCursor cursor;
	SluiceValue value;
	Datum		values[2];
	bool		nulls[2] = {false, false};
	char	   *printed;
	int			level;

	sluice_buffer_init(&out, &sluice_palloc_allocator);
	level = sluice_value_pin_settings();
	sluice_value_encode(sluice_value_encoder(type, -1, &options), PG_GETARG_DATUM(0), &out);
	AtEOXact_GUC(true, level);
	sluice_cursor_init(&cursor, out.data, out.length);
	if (!sluice_cursor_value(&cursor, &value) || !sluice_cursor_done(&cursor))
		elog(ERROR, "damaged value");
	values[0] = CStringGetTextDatum(encode_test_class(&value));
	printed = encode_test_text(&value);
	nulls[1] = printed == NULL;
	values[1] = nulls[1] ? (Datum) 0 : CStringGetTextDatum(printed);
	PG_RETURN_DATUM(result_row(fcinfo, values, nulls));
}

Datum
encode_storage(PG_FUNCTION_ARGS)
{
	SluiceEncodeOptions options = {false, false};

	PG_RETURN_CHAR(sluice_value_storage(PG_GETARG_OID(0), &options));
}

static List *
names_of(ArrayType *array)
{
	Datum	   *names;
	int			n;
	List	   *list = NIL;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &names, NULL, &n);
	for (int i = 0; i < n; i++)
		list = lappend(list, TextDatumGetCString(names[i]));
	return list;
}

Datum
encode_schema(PG_FUNCTION_ARGS)
{
	SluiceEncodeOptions options = {false, PG_GETARG_BOOL(1)};
	SluiceSchema *schema = sluice_schema_read(names_of(PG_GETARG_ARRAYTYPE_P(0)),
											  GetActiveSnapshot(), &options);
	StringInfoData out;

	initStringInfo(&out);
	for (int i = 0; i < schema->ntables; i++)
		encode_test_table(&out, &schema->tables[i]);
	PG_RETURN_TEXT_P(cstring_to_text(out.data));
}

Datum
encode_table(PG_FUNCTION_ARGS)
{
	SluiceEncodeOptions options = {false, false};
	SluiceTable *table = sluice_schema_read_table(PG_GETARG_OID(0),
												  names_of(PG_GETARG_ARRAYTYPE_P(1)),
												  NULL, &options);
	StringInfoData out;

	if (table == NULL)
		PG_RETURN_NULL();
	initStringInfo(&out);
	encode_test_table(&out, table);
	PG_RETURN_TEXT_P(cstring_to_text(out.data));
}

Datum
encode_publish_as(PG_FUNCTION_ARGS)
{
	SluiceEncodeOptions options = {false, false};
	SluiceSchema *schema = sluice_schema_read(names_of(PG_GETARG_ARRAYTYPE_P(1)), NULL, &options);
	Oid			target = sluice_schema_publish_as(schema, PG_GETARG_OID(0));

	if (!OidIsValid(target))
		PG_RETURN_NULL();
	PG_RETURN_OID(target);
}

/* Encodes all rows; the largest use of memory by the row's context is told. */
static void
scan(Relation relation, SluiceRowEncoder *encoder, int64 *rows, int64 *bytes, Size *memory)
{
	TupleTableSlot *slot = table_slot_create(relation, NULL);
	TableScanDesc desc = table_beginscan(relation, GetActiveSnapshot(), 0, NULL);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "row",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = CurrentMemoryContext;
	SluiceBuffer out;

	sluice_buffer_init(&out, &sluice_palloc_allocator);
	sluice_buffer_reserve(&out, 65536);
	MemoryContextSwitchTo(context);
	while (table_scan_getnextslot(desc, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		sluice_buffer_reset(&out);
		if (!sluice_row_insert(encoder, slot->tts_values, slot->tts_isnull, true, &out))
			elog(ERROR, "row is too large");
		*bytes += out.length;
		++*rows;
		*memory = Max(*memory, MemoryContextMemAllocated(context, true));
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(old);
	*memory = Max(*memory, MemoryContextMemAllocated(CurrentMemoryContext, true));
	MemoryContextDelete(context);
	table_endscan(desc);
	ExecDropSingleTupleTableSlot(slot);
}

Datum
encode_scan(PG_FUNCTION_ARGS)
{
	SluiceEncodeOptions options = {false, false};
	SluiceTable *table = sluice_schema_read_table(PG_GETARG_OID(0),
												  names_of(PG_GETARG_ARRAYTYPE_P(1)),
												  NULL, &options);
	Relation	relation = table_open(PG_GETARG_OID(0), AccessShareLock);
	SluiceRowEncoder *encoder;
	char	   *mismatch;
	int64		rows = 0;
	int64		bytes = 0;
	Size		memory = 0;
	instr_time	start;
	instr_time	end;
	Datum		values[4];
	bool		nulls[4] = {false, false, false, false};
	int			level = sluice_value_pin_settings();

	encoder = sluice_row_encoder(table, RelationGetRelid(relation), RelationGetDescr(relation),
								 &options, &mismatch);
	if (encoder == NULL)
		elog(ERROR, "%s", mismatch);
	INSTR_TIME_SET_CURRENT(start);
	scan(relation, encoder, &rows, &bytes, &memory);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	AtEOXact_GUC(true, level);
	table_close(relation, AccessShareLock);
	values[0] = Int64GetDatum(rows);
	values[1] = Int64GetDatum(bytes);
	values[2] = Float8GetDatum(INSTR_TIME_GET_MILLISEC(end));
	values[3] = Int64GetDatum((int64) memory);
	PG_RETURN_DATUM(result_row(fcinfo, values, nulls));
}
