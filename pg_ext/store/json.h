/*
 * json.h: frames as JSON, in the shapes that readers of a change log know
 * (tag, relation, new, key, …).
 *
 * Values appear as they are stored in a replica: integers exact, reals in the
 * shortest form that gives the same double (NaN and infinities as strings),
 * texts as strings, bytes as '\x…'.  Columns of json and array types are the
 * raw text in a string (BEGIN says json: "s").  Unchanged columns are absent.
 *
 * In: frames in stream order.  Out: one JSON text a frame.
 * Runs in: whoever asks for the view.  Locks: none.
 */
#ifndef SLUICE_JSON_H
#define SLUICE_JSON_H

#include "lib/stringinfo.h"
#include "utils/hsearch.h"

#include "wire.h"

typedef struct SluiceJson
{
	HTAB	   *tables;			/* by OID: what rows of it look like now */
	MemoryContext context;		/* of the specs */
	int64		commit_time_ms; /* of the open transaction */
	bool		ascii;			/* the server's encoding is not UTF-8: escape the rest */
	StringInfo	out;

	/* for messages */
	SluiceWatermark watermark;
	const SluiceTable *table;
	const char *column;
} SluiceJson;

/* Lives in the current memory context. */
extern SluiceJson *sluice_json_create(void);
extern void sluice_json_set_table(SluiceJson *json, const SluiceTable *table);
/* NULL: not known */
extern const SluiceTable *sluice_json_table(SluiceJson *json, uint32 oid);

/* Appends the frame's JSON to out.  ERROR for damage, and for what is too large. */
extern void sluice_json_frame(SluiceJson *json, const SluiceFrame *frame, StringInfo out);

/* ---- between json.c, json_row.c and json_schema.c ---- */

extern void sluice_json_raw(SluiceJson *json, const char *ascii);
extern void sluice_json_string(SluiceJson *json, const char *data, Size size);
extern void sluice_json_cstring(SluiceJson *json, const char *string);	/* NULL: null */
/* "name": with a comma before it unless the object just began */
extern void sluice_json_name(SluiceJson *json, const char *name);
extern void sluice_json_pair(SluiceJson *json, const char *name, const char *string);
extern void sluice_json_integer(SluiceJson *json, const char *name, int64 value);
extern void sluice_json_bool(SluiceJson *json, const char *name, bool value);
extern void sluice_json_watermark(SluiceJson *json, const char *name, SluiceWatermark watermark);
extern void sluice_json_value(SluiceJson *json, const SluiceValue *value);
extern void sluice_json_open(SluiceJson *json, const char *tag);	/* {"tag":"…" */
extern void sluice_json_relation(SluiceJson *json, const char *name, const SluiceTable *table, uint32 oid);
extern void sluice_json_damaged(SluiceJson *json) pg_attribute_noreturn();

extern void sluice_json_row_frame(SluiceJson *json, const SluiceFrame *frame);
extern void sluice_json_truncate_frame(SluiceJson *json, const SluiceFrame *frame);
extern void sluice_json_backfill_frame(SluiceJson *json, const SluiceFrame *frame);
extern void sluice_json_schema_frame(SluiceJson *json, const SluiceFrame *frame);

#endif
