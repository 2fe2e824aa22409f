/*
 * module.c: what happens when the library is loaded: settings, shared memory,
 * the commit hook, the guard of dropped objects, the launcher.
 *
 * Nothing of it without shared_preload_libraries: then every function of ours
 * refuses, saying so (sluice_shmem_require).
 *
 * Runs in: the postmaster, inherited by every process.  Locks: none.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"

#include "compat.h"
#include "guard.h"
#include "guc.h"
#include "launcher.h"
#include "shmem.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static shmem_startup_hook_type startup_next = NULL;

static void
startup(void)
{
	if (startup_next)
		startup_next();
	sluice_shmem_startup();
}

/*
 * A commit that was flushed is what sleeping decoders wait for.  An
 * asynchronous one is not flushed yet: their own timeout finds it.
 */
static void
on_xact_event(XactEvent event, void *argument)
{
	if (event == XACT_EVENT_COMMIT &&
		synchronous_commit > SYNCHRONOUS_COMMIT_OFF &&
		TransactionIdIsValid(GetTopTransactionIdIfAny()))
		sluice_shmem_wake_decoders();
	else if (event == XACT_EVENT_ABORT)
		sluice_sender_release_lost();
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	sluice_guc_define();
	sluice_hook_shmem_request(sluice_shmem_request);
	startup_next = shmem_startup_hook;
	shmem_startup_hook = startup;
	RegisterXactCallback(on_xact_event, NULL);
	sluice_guard_install();
	sluice_launcher_register();
}
