/*
 * row_plan.h: the prepared statements of a table, made when first needed.
 * For row.c only.
 *
 * Parameters: ?1 … ?n the new values by position, ?n+1 the version, ?n+2 …
 * the old values: the key's in key order, or all.
 */
#ifndef SLUICE_ROW_PLAN_H
#define SLUICE_ROW_PLAN_H

#include "replica.h"
#include "statement.h"

#define SLUICE_UPDATE_VARIANTS 6

/* An UPDATE that leaves some columns alone. */
typedef struct SluiceUpdateVariant
{
	SluicePlan *plan;
	uint8_t    *pattern;		/* a byte a column: 1 is left alone */
	bool		by_old;			/* rows are found by the old key (it changes) */
} SluiceUpdateVariant;

typedef struct SluiceRowPlans
{
	SluicePlan *copy;			/* INSERT without _0_version */
	SluicePlan *insert;
	SluicePlan *update;			/* all columns but the key's, found by the new key */
	SluicePlan *delete;
	SluicePlan *truncate;
	SluiceUpdateVariant variants[SLUICE_UPDATE_VARIANTS];
	int			victim;			/* next variant to give way */
	bool		by_row;			/* rows are found by all their old values */
	bool	   *in_key;			/* a flag a column */
} SluiceRowPlans;

extern SluiceRowPlans *sluice_row_plans(SluiceReplicaTable *table);

/* NULL: logged */
extern sqlite3_stmt *sluice_row_plan_copy(SluiceReplica *replica, SluiceReplicaTable *table);
extern sqlite3_stmt *sluice_row_plan_insert(SluiceReplica *replica, SluiceReplicaTable *table);
extern sqlite3_stmt *sluice_row_plan_delete(SluiceReplica *replica, SluiceReplicaTable *table);
extern sqlite3_stmt *sluice_row_plan_truncate(SluiceReplica *replica, SluiceReplicaTable *table);

/* new: ncolumns values, UNCHANGED where the column keeps what it has. */
extern sqlite3_stmt *sluice_row_plan_update(SluiceReplica *replica, SluiceReplicaTable *table,
											const SluiceValue *new_values, bool by_old);

#endif
