/*
 * storage.c: how a type's column is declared in a replica, and the settings
 * under which output functions write.
 *
 * In: type OIDs.  Out: storage; pinned settings for the current GUC nest level.
 * Runs in: the decoder (also in callbacks), backends.  Locks: none kept.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "value.h"

SluiceStorage
sluice_value_storage_of_base(Oid type, const SluiceEncodeOptions *options)
{
	switch (type)
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
			return SLUICE_STORAGE_INTEGER;
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
			return SLUICE_STORAGE_ANY;
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return options->timestamps_text ? SLUICE_STORAGE_TEXT : SLUICE_STORAGE_ANY;
		case BYTEAOID:
			return SLUICE_STORAGE_BLOB;
		default:
			return SLUICE_STORAGE_TEXT;
	}
}

SluiceStorage
sluice_value_storage(Oid type, const SluiceEncodeOptions *options)
{
	return sluice_value_storage_of_base(getBaseType(type), options);
}

static const char *const pinned[][2] = {
	{"datestyle", "ISO, YMD"},
	{"intervalstyle", "postgres"},
	{"timezone", "UTC"},
	{"extra_float_digits", "1"},
	{"bytea_output", "hex"},
	{"lc_monetary", "C"},
	{"xmlbinary", "base64"},
	{"xmloption", "content"},
	{"quote_all_identifiers", "off"},
	{"search_path", "pg_catalog"},
};

int
sluice_value_pin_settings(void)
{
	int			level = NewGUCNestLevel();

	for (int i = 0; i < lengthof(pinned); i++)
		(void) set_config_option(pinned[i][0], pinned[i][1], PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	return level;
}

void
sluice_value_pin_session(void)
{
	for (int i = 0; i < lengthof(pinned); i++)
		SetConfigOption(pinned[i][0], pinned[i][1], PGC_USERSET, PGC_S_OVERRIDE);
}
