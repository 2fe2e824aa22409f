/*
 * replica.h: the SQLite file: lock, pragmas, our tables, position.
 *
 * One agent per file: main.c holds the lock of "<file>-lock" (filelock.h).  The
 * writer's connection never checkpoints; checkpoint.c has a thread with a
 * connection of its own for that, and for making commits durable.
 *
 * Writing goes in groups: sluice_replica_begin() … rows … commit().  The
 * position (watermark, xid, commit time of the last transaction) is written by
 * commit() in the same SQLite transaction as the rows.
 *
 * A SluiceReplica belongs to one thread.
 */
#ifndef SLUICE_REPLICA_H
#define SLUICE_REPLICA_H

#include <sqlite3.h>

#include "agent.h"
#include "memory.h"
#include "placed.h"
#include "spec.h"
#include "watermark.h"

/* _zero.versionHistory and _sluice.versionHistory */
#define SLUICE_ZERO_VERSION 17
#define SLUICE_FILE_VERSION 1

/* How far the file has come; _sluice.state.stage. */
typedef enum SluiceStage
{
	SLUICE_STAGE_EMPTY,			/* no list of tables yet */
	SLUICE_STAGE_COPYING,		/* tables are missing */
	SLUICE_STAGE_CATCHING_UP,	/* all copied; not past every high, or indexes missing */
	SLUICE_STAGE_READY			/* served */
} SluiceStage;

/* What the file is a replica of; _sluice.state and _zero.replicationConfig. */
typedef struct SluiceOrigin
{
	char	   *shard;
	char	   *replica_version;	/* lineage */
	uint64_t	system_id;
	uint32_t	timeline;
	uint8_t		timestamps;		/* option bytes of the protocol */
	uint8_t		numerics;
} SluiceOrigin;

typedef struct SluicePosition
{
	SluiceWatermark watermark;	/* last transaction applied: stateVersion */
	uint64_t	xid;			/* its 64-bit xid and commit time; 0: none yet */
	int64_t		commit_time;
	uint64_t	seen;			/* bare position: nothing more before it (STATUS); 0 */
} SluicePosition;

/*
 * `problem` of a table that was on the list of a first copy but gone when its
 * turn came: it has no SQLite table, and the stream tells of its end.
 */
#define SLUICE_PROBLEM_GONE "it was dropped before it could be copied"

/* A table of the replica: kept in memory while the file is open. */
typedef struct SluiceReplicaTable
{
	SluiceTable spec;
	const char *name;			/* in SQLite */
	const char **columns;		/* SQLite names, by position in spec.columns */
	bool		copied;			/* its rows are all there */
	const SluicePlaced *placed; /* NULL once its high is passed */
	const char *problem;		/* why it is not followed; NULL */
	bool		integer_key;	/* the key is INTEGER PRIMARY KEY */
	struct SluiceRowPlans *plans;	/* row_plan.c: prepared statements */
	struct SluiceKeyForm *key_form; /* rowlog.c: its key as JSON */
	SluiceArena arena;			/* of all the above */
	uint64_t	judged;			/* apply.c: begin for which `skipped` holds */
	bool		skipped;		/* its transaction is in the copied rows */
} SluiceReplicaTable;

typedef struct SluiceReplica
{
	SluiceAgent *agent;
	char	   *path;			/* absolute */
	sqlite3    *db;
	SluiceStage stage;
	SluiceOrigin origin;
	SluicePosition position;	/* as committed */
	SluicePlaced *list_placed;	/* S0 of the list of tables; NULL once passed */
	SluiceArena arena;			/* origin, list_placed */
	struct SluiceTableSet *tables;	/* by OID; tableset in replica_table.c */
	struct SluiceStatements *statements;	/* statement.c */
	struct SluiceCheckpoint *checkpoint;	/* checkpoint.c; NULL: none */
	bool		in_transaction;
	bool		tables_changed; /* in memory, by the open transaction */
	bool		reader;			/* opened by sluice_replica_open_reader() */
	int			wal_pages;		/* after the last commit */
	/* called at least every 100 ms inside long work of SQLite; may be NULL */
	void		(*idle) (void *argument);
	void	   *idle_argument;
	int64_t		stop_seen;		/* when the stop was first noticed in SQLite */
} SluiceReplica;

typedef enum SluiceOpenMode
{
	SLUICE_OPEN_EXISTING,		/* must be there */
	SLUICE_OPEN_CREATE,			/* made if it is not */
	SLUICE_OPEN_LOAD			/* as CREATE, for a first copy: rollback journal, no
								 * syncs, no checkpoint thread (replica->checkpoint is
								 * NULL); copy.c syncs and marks what it must */
} SluiceOpenMode;

/*
 * Opens and checks the file and reads its tables.  SLUICE_OK: *replica is
 * set.  SLUICE_COPY_AFRESH: there is no file (OPEN_EXISTING) or it is empty.
 * SLUICE_DAMAGED: corrupt.  SLUICE_UNUSABLE also: not a replica of ours.
 * SLUICE_UNUSABLE: not readable or writable, newer format.
 */
extern SluiceOutcome sluice_replica_open(SluiceAgent *agent, const char *path,
										 SluiceOpenMode mode, SluiceReplica **replica);

/* For status and verify: no lock, read only, no thread. */
extern SluiceOutcome sluice_replica_open_reader(SluiceAgent *agent, const char *path,
												SluiceReplica **replica);
extern void sluice_replica_close(SluiceReplica *replica);

/* ---- writing ---- */

extern SluiceOutcome sluice_replica_begin(SluiceReplica *replica);
/* position NULL: it stays as it is */
extern SluiceOutcome sluice_replica_commit(SluiceReplica *replica, const SluicePosition *position);
extern void sluice_replica_rollback(SluiceReplica *replica);

/* Runs SQL without results, logged on failure as "cannot <what>". */
extern SluiceOutcome sluice_replica_exec(SluiceReplica *replica, const char *sql, const char *what);

/*
 * The outcome of an SQLite error code, logged as "cannot <what>: …": full,
 * read-only, I/O → UNUSABLE; corrupt, not a database → DAMAGED; interrupted →
 * STOPPED; else INAPPLICABLE.
 */
extern SluiceOutcome sluice_replica_failure(SluiceReplica *replica, int code, const char *what);

/*
 * A statement prepared once per text and kept; NULL: logged.  `sql` must be
 * the same pointer each time (a literal).  Reset and cleared by the caller.
 */
extern sqlite3_stmt *sluice_replica_statement(SluiceReplica *replica, const char *sql);
/* Steps a statement that gives no rows, resets it and clears its bindings. */
extern SluiceOutcome sluice_replica_step(SluiceReplica *replica, sqlite3_stmt *statement,
										 const char *what);

/*
 * Position for resuming and acknowledging: the greater of the last
 * transaction and what `seen` stands for.
 */
extern SluiceWatermark sluice_replica_resume(const SluicePosition *position);

/* ---- state ---- (inside a transaction) */

extern SluiceOutcome sluice_replica_set_origin(SluiceReplica *replica, const SluiceOrigin *origin,
											   const char *publications_json);
extern SluiceOutcome sluice_replica_set_timeline(SluiceReplica *replica, uint32_t timeline);
extern SluiceOutcome sluice_replica_set_stage(SluiceReplica *replica, SluiceStage stage);
/* S0, low0, high0 of the list; NULL: passed */
extern SluiceOutcome sluice_replica_set_list(SluiceReplica *replica, const SluicePlaced *placed);
/* the position a stream starts from: the lowest low */
extern SluiceOutcome sluice_replica_set_position(SluiceReplica *replica,
												 const SluicePosition *position);
extern SluiceOutcome sluice_replica_event(SluiceReplica *replica, const char *event);

/* ---- tables ---- */

extern SluiceReplicaTable *sluice_replica_find(const SluiceReplica *replica, uint32_t oid);
extern size_t sluice_replica_count(const SluiceReplica *replica);
/* by OID, rising; index < count */
extern SluiceReplicaTable *sluice_replica_at(const SluiceReplica *replica, size_t index);

/*
 * Notes a table (in _sluice.tables, _sluice.names, _zero.tableMetadata,
 * _zero.column_metadata and in memory), not its CREATE TABLE.  `name` is the SQLite
 * name.  placed may be NULL.  Replaces what was noted for that OID.
 */
extern SluiceOutcome sluice_replica_note(SluiceReplica *replica, const SluiceTable *spec,
										 const char *name, const SluicePlaced *placed,
										 SluiceReplicaTable **table);
extern SluiceOutcome sluice_replica_set_copied(SluiceReplica *replica, SluiceReplicaTable *table);
/* high is passed: the snapshot is forgotten */
extern SluiceOutcome sluice_replica_set_passed(SluiceReplica *replica, SluiceReplicaTable *table);
extern SluiceOutcome sluice_replica_set_problem(SluiceReplica *replica, SluiceReplicaTable *table,
												const char *problem);
extern SluiceOutcome sluice_replica_forget(SluiceReplica *replica, SluiceReplicaTable *table);

/* ---- the file as a whole ---- replica_file.c */

/* "<path>-copy": where a first copy is built. */
extern char *sluice_replica_copy_path(const char *path, const SluiceAllocator *allocator);

/*
 * Puts the closed file `from` (no -wal left) in place of `to`; the old one
 * with its -wal and -shm is unlinked as one, readers keep it until they
 * reopen.  Crash safe: after a crash either the old or the new one is there.
 */
extern SluiceOutcome sluice_replica_swap(const char *from, const char *to);

/* Moves a damaged file and its -wal aside, to "<path>-damaged-<time>". */
extern SluiceOutcome sluice_replica_set_aside(const char *path);
extern SluiceOutcome sluice_replica_remove(const char *path);	/* with -wal and -shm */
extern bool sluice_replica_exists(const char *path);
extern bool sluice_replica_has_wal(const char *path);

#endif
