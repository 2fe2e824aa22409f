/*
 * admin.h: what the administrative SQL functions share.
 */
#ifndef SLUICE_ADMIN_H
#define SLUICE_ADMIN_H

#include "fmgr.h"
#include "nodes/pg_list.h"

#include "shmem.h"
#include "state.h"

/*
 * ERRORs unless the library was preloaded and the caller has the rights of
 * the extension's owner; what: "create a shard".
 */
extern void sluice_admin_require(const char *what);

/* ERRORs (invalid_transaction_termination) where a procedure cannot commit. */
extern void sluice_admin_require_nonatomic(FunctionCallInfo fcinfo, const char *procedure);

/*
 * A stretch of superuser's rights within one transaction: names are found in
 * pg_catalog only, row security is off.  leave() before the transaction ends;
 * an ERROR undoes it by itself.
 */
typedef struct SluiceAdminStretch
{
	Oid			user;
	int			context;
	int			guc_level;
} SluiceAdminStretch;

extern void sluice_admin_enter(SluiceAdminStretch *stretch);
extern void sluice_admin_leave(const SluiceAdminStretch *stretch);

/* One utility command through SPI. */
extern void sluice_admin_run(const char *command);

/* Names of this database's shards (char *), sorted; whether they work or not. */
extern List *sluice_admin_shards(void);

/* "sluice_<shard>" of NAMEDATALEN */
extern void sluice_admin_default_publication(char *name, const char *shard);

/* Keeps others from making or dropping the shard until the transaction ends. */
extern void sluice_admin_lock_shard(const char *shard);

/* An argument that is text; ERROR (null_value_not_allowed). */
extern char *sluice_admin_text(FunctionCallInfo fcinfo, int i, const char *name);

/* ---- create_check.c ---- */

/* ERRORs unless the server can have another logical slot of ours. */
extern void sluice_create_check_server(void);
/* ERRORs unless each exists; warns of what FOR ALL TABLES brings along. */
extern void sluice_create_check_publications(List *publications);
/* ERRORs, naming tables, for what cannot be followed. */
extern void sluice_create_check_tables(const SluiceState *state, bool keyless);

/* ---- create_wait.c ---- */

/* An entry for a new slot; the launcher starts its decoder.  ERRORs if there is no room. */
extern SluiceStream *sluice_create_begin(const char *shard);
/*
 * Returns when the shard streams.  ERRORs with the decoder's message if the
 * slot cannot be made.  Says which session it waits for.
 */
extern void sluice_create_wait(SluiceStream *stream);
/* NOTICEs whom the decoder waits for, each once; told: pids (int) that were told. */
extern List *sluice_create_tell_blockers(int decoder_pid, List *told);

/* ---- pause.c ---- */

/* The shard's entry; one that has lost its slot gets one.  ERROR if there is no room. */
extern SluiceStream *sluice_pause_find(const char *shard, const SluiceState *state);
/* State row in a transaction of its own; ERROR SL007. */
extern SluiceState *sluice_pause_read(const char *shard);

/* ---- stop.c: all for the shard's streams in this database ---- */

/* No worker is started for it from now on. */
extern void sluice_stop_mark(const char *shard);
/* Ends replicas' connections and workers, and waits until they are gone. */
extern void sluice_stop_wait(const char *shard);
/* Takes the mark away: workers run again, or, without a slot, the entry goes. */
extern void sluice_stop_resume(const char *shard);
/* Ends replicas' connections, and waits until they are gone. */
extern void sluice_stop_senders(const char *shard);
/* SIGTERM to workers, and waits until they are gone. */
extern void sluice_stop_workers(const char *shard);
/* Drops the shard's slots and gives the entries back; their workers are gone. */
extern void sluice_stop_drop_slots(const char *shard);
/* Drops the change log, and the publication if create_shard made it. */
extern void sluice_stop_drop_catalog(const char *shard);

#endif
