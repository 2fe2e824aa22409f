/*
 * verify_table.h: one published table against the file.
 *
 * Each row of the server is looked up by its key and compared value by value;
 * rows that the file has beyond these are found by counting, and then named.
 * Tables without a key are compared as bags of rows, by a sum of hashes.
 *
 * While the table is being written to, both sides are never read at quite the
 * same place, so differences are only suspects: those count that a second
 * pass finds again just as they were.
 */
#ifndef SLUICE_VERIFY_TABLE_H
#define SLUICE_VERIFY_TABLE_H

#include "replica.h"
#include "verify_server.h"

#define SLUICE_VERIFY_SUSPECTS 1000	/* that are kept; more are counted only */

typedef struct SluiceVerifySuspect
{
	uint64_t	hash;			/* of key and of what both sides have */
	char	   *text;			/* key, column, kind of difference */
} SluiceVerifySuspect;

/* What one pass over a table found. */
typedef struct SluiceVerifyPass
{
	SluiceArena arena;			/* of the suspects */
	uint64_t	rows;			/* of the server */
	uint64_t	differences;
	size_t		nsuspects;
	SluiceVerifySuspect *suspects;
} SluiceVerifyPass;

extern void sluice_verify_pass_init(SluiceVerifyPass *pass);
extern void sluice_verify_pass_release(SluiceVerifyPass *pass);

/* held: the same table in the file. */
extern SluiceOutcome sluice_verify_table_pass(SluiceVerifyServer *server,
											  const SluiceVerifyTable *table,
											  SluiceReplica *replica,
											  const SluiceReplicaTable *held,
											  SluiceVerifyPass *pass);

/* Keeps of `pass` what `before` has too. */
extern void sluice_verify_pass_intersect(SluiceVerifyPass *pass, const SluiceVerifyPass *before);

/* The columns of both sides are the same; else a suspect is noted in pass. */
extern bool sluice_verify_table_columns(const SluiceVerifyTable *table,
										const SluiceReplicaTable *held, SluiceVerifyPass *pass);

#endif
