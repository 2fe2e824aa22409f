/*
 * copyboth.c: COPY BOTH on an ordinary client connection.
 *
 * In: messages of the client.  Out: messages to the client.
 * Runs in: the client backend that runs CALL sluice.stream or sluice.copy.
 * Locks: none; no snapshot is held between transactions.
 *
 * States: OFF → (begin) OPEN → (the client's CopyDone, or end) HALF → (both) OFF.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "executor/spi.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "backend_libpq.h"
#include "compat.h"
#include "copyboth.h"

#define LARGE (256 * 1024)		/* of a buffer, what is kept */

/* one conversation a process: it has one client */
static bool done_sent;
static bool done_received;
static StringInfoData joined;	/* head and body of a message in one piece */
static TimestampTz moved_at;

/* of the open transaction */
static Oid	saved_user;
static int	saved_context;
static MemoryContext saved_memory;
static bool has_snapshot;

void
sluice_copyboth_check(FunctionCallInfo fcinfo, const char *procedure)
{
	const char *reason = NULL;

	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext))
		reason = "It was not run by CALL.";
	else if (castNode(CallContext, fcinfo->context)->atomic)
		reason = "It was called inside a transaction block or a function.";
	else if (ActivePortal == NULL || ActivePortal->commandTag != CMDTAG_CALL)
		reason = "It was called from another command.";
	else if (whereToSendOutput != DestRemote || MyProcPort == NULL)
		reason = "There is no client to speak to.";

	if (reason != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("procedure sluice.%s must be called on its own by a client", procedure),
				 errdetail_internal("%s", reason),
				 errhint("Send CALL sluice.%s as a single statement outside a transaction; sluice-agent does.",
						 procedure)));
}

/* SPI_commit begins a transaction, and that may arm timeouts anew. */
static void
commit(void)
{
	SPI_commit();
	disable_timeout(STATEMENT_TIMEOUT, false);
	sluice_disable_transaction_timeout();
}

void
sluice_copyboth_begin(void)
{
	StringInfoData message;

	initStringInfo(&joined);
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	commit();

	done_sent = false;
	done_received = false;
	moved_at = GetCurrentTimestamp();
	pq_beginmessage(&message, 'W');
	pq_sendbyte(&message, 0);
	pq_sendint16(&message, 0);
	pq_endmessage(&message);
	if (pq_flush() != 0)
		proc_exit(0);
}

void
sluice_copyboth_end(int timeout)
{
	TimestampTz begun = GetCurrentTimestamp();
	StringInfoData ignored;

	if (!done_sent)
	{
		pq_putmessage_noblock('c', NULL, 0);
		done_sent = true;
	}
	initStringInfo(&ignored);
	while (!sluice_copyboth_flush() || !done_received)
	{
		if (sluice_copyboth_receive(&ignored) != SLUICE_RECEIVE_NONE)
			continue;
		if (timeout > 0 &&
			TimestampDifferenceExceeds(begun, GetCurrentTimestamp(), timeout))
			sluice_copyboth_give_up("the client does not end the conversation");
		sluice_copyboth_wait(timeout > 0 ? timeout : -1);
	}
	pfree(ignored.data);
	pfree(joined.data);
	SPI_finish();
}

/* ---- to the client ---- */

void
sluice_copyboth_send2(char type, const char *head, Size head_size, const char *body, Size size)
{
	Assert(!done_sent);
	resetStringInfo(&joined);
	enlargeStringInfo(&joined, (int) (1 + head_size + size));
	appendStringInfoChar(&joined, type);
	if (head_size > 0)
		appendBinaryStringInfo(&joined, head, (int) head_size);
	if (size > 0)
		appendBinaryStringInfo(&joined, body, (int) size);
	pq_putmessage_noblock('d', joined.data, joined.len);
	if (joined.maxlen > LARGE)
	{
		joined.maxlen = LARGE;
		joined.data = repalloc(joined.data, LARGE);
	}
}

void
sluice_copyboth_send(char type, const char *body, Size size)
{
	sluice_copyboth_send2(type, NULL, 0, body, size);
}

bool
sluice_copyboth_flush(void)
{
	/* who has gone does not read why */
	if (pq_flush_if_writable() != 0)
		proc_exit(0);
	if (pq_is_send_pending())
		return false;
	moved_at = GetCurrentTimestamp();
	return true;
}

bool
sluice_copyboth_pending(void)
{
	return pq_is_send_pending();
}

TimestampTz
sluice_copyboth_moved_at(void)
{
	return moved_at;
}

void
sluice_copyboth_give_up(const char *reason)
{
	whereToSendOutput = DestNone;
	ereport(COMMERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("connection of a replica ended: %s", reason)));
	proc_exit(0);
}

/* ---- from the client ---- */

static int
size_limit(unsigned char type)
{
	switch (type)
	{
		case 'd':				/* CopyData: acknowledgements are small */
		case 'f':				/* CopyFail, with its reason */
		case 'c':				/* CopyDone */
		case 'H':				/* Flush */
		case 'S':				/* Sync: the extended protocol has sent it already */
		case 'X':				/* Terminate */
			return PQ_SMALL_MESSAGE_LIMIT;
		default:
			ereport(FATAL,
					(errcode(ERRCODE_PROTOCOL_VIOLATION),
					 errmsg("unexpected message type 0x%02X during COPY from a replica", type)));
	}
	return 0;
}

/* A whole message that is there; false: none. */
static bool
next_message(unsigned char *type, StringInfo message)
{
	int			r;

	pq_startmsgread();
	r = pq_getbyte_if_available(type);
	if (r < 0)
		sluice_copyboth_give_up("unexpected end of file");
	if (r == 0)
	{
		pq_endmsgread();
		return false;
	}
	resetStringInfo(message);
	if (pq_getmessage(message, size_limit(*type)))
		sluice_copyboth_give_up("unexpected end of file");
	moved_at = GetCurrentTimestamp();
	return true;
}

SluiceReceive
sluice_copyboth_receive(StringInfo message)
{
	unsigned char type;

	while (!done_received && next_message(&type, message))
	{
		switch (type)
		{
			case 'd':
				return SLUICE_RECEIVE_MESSAGE;
			case 'c':
				done_received = true;
				break;
			case 'f':
				done_received = true;
				ereport(ERROR,
						(errcode(ERRCODE_QUERY_CANCELED),
						 errmsg("the replica has failed: %s", pq_getmsgstring(message))));
				break;
			case 'X':
				proc_exit(0);
			default:			/* Flush, Sync */
				break;
		}
	}
	return done_received ? SLUICE_RECEIVE_DONE : SLUICE_RECEIVE_NONE;
}

/* ---- waiting ---- */

void
sluice_copyboth_heed_interrupts(void)
{
	/* the farewell would wait for the socket */
	if (ProcDiePending && pq_is_send_pending() && !sluice_copyboth_flush())
		whereToSendOutput = DestNone;
	CHECK_FOR_INTERRUPTS();
}

void
sluice_copyboth_wait(long timeout)
{
	WaitEvent	event;
	int			events = done_received ? 0 : WL_SOCKET_READABLE;

	if (!done_received && pq_buffer_has_data())
		return;
	if (pq_is_send_pending())
		events |= WL_SOCKET_WRITEABLE;
	if (events == 0)
		events = WL_SOCKET_READABLE;

	InvalidateCatalogSnapshotConditionally();
	ModifyWaitEvent(FeBeWaitSet, FeBeWaitSetSocketPos, events, NULL);
	if (WaitEventSetWait(FeBeWaitSet, timeout, &event, 1,
						 sluice_wait_event(SLUICE_WAIT_CLIENT)) == 1 &&
		(event.events & WL_SOCKET_WRITEABLE))
		moved_at = GetCurrentTimestamp();
	ResetLatch(MyLatch);
	sluice_copyboth_heed_interrupts();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/* ---- transactions ---- */

/*
 * Our own tables are nobody's but the extension owner's, so the reads and
 * writes of a replica's backend run as the bootstrap superuser, as those of
 * the workers do.  A procedure that commits can be no SECURITY DEFINER.
 */
void
sluice_copyboth_begin_transaction(bool snapshot)
{
	static const char *const pinned[][2] = {
		{"search_path", "pg_catalog"},
		{"row_security", "off"},
		{"lock_timeout", "0"},
		{"synchronous_commit", "local"},	/* a lost standby is nothing to replicas */
		{"default_transaction_read_only", "off"},
	};

	GetUserIdAndSecContext(&saved_user, &saved_context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID, saved_context | SECURITY_LOCAL_USERID_CHANGE);
	saved_memory = MemoryContextSwitchTo(CurTransactionContext);
	(void) NewGUCNestLevel();	/* all that is set from here on ends with the transaction */
	for (int i = 0; i < lengthof(pinned); i++)
		(void) set_config_option(pinned[i][0], pinned[i][1], PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	XactReadOnly = false;
	XactIsoLevel = XACT_READ_COMMITTED;
	has_snapshot = snapshot;
	if (snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
}

void
sluice_copyboth_commit_transaction(void)
{
	if (has_snapshot)
		PopActiveSnapshot();
	has_snapshot = false;
	MemoryContextSwitchTo(saved_memory);
	SetUserIdAndSecContext(saved_user, saved_context);
	commit();
}
