/*
 * copyboth.h: COPY BOTH on an ordinary client connection, from within a
 * procedure run by CALL.  Knows nothing of what is sent.
 *
 * Life: sluice_copyboth_check() refuses contexts in which it cannot work,
 * before anything is sent; begin() releases the CALL's snapshot and sends
 * CopyBothResponse; then send, receive, flush, wait; end() answers or sends
 * CopyDone.  After end() the procedure returns and the session is usable.
 * An ERROR in between is an ErrorResponse to the client.
 */
#ifndef SLUICE_COPYBOTH_H
#define SLUICE_COPYBOTH_H

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "storage/latch.h"

#include "compat.h"

/* ERROR (invalid_transaction_termination) inside BEGIN, DO, a function or SELECT. */
extern void sluice_copyboth_check(FunctionCallInfo fcinfo, const char *procedure);

extern void sluice_copyboth_begin(void);
/* Waits for the client's CopyDone, with patience `timeout` (ms, 0: for ever). */
extern void sluice_copyboth_end(int timeout);

/*
 * One CopyData message of type byte and body.  Never blocks; bytes queue in
 * the connection's buffer until flushed.
 */
extern void sluice_copyboth_send(char type, const char *body, Size size);
/* The same from two parts. */
extern void sluice_copyboth_send2(char type, const char *head, Size head_size, const char *body, Size size);

/* Writes what the socket takes.  True: nothing is left. */
extern bool sluice_copyboth_flush(void);
extern bool sluice_copyboth_pending(void);
/* When the socket last took or gave something, or nothing was left to send. */
extern TimestampTz sluice_copyboth_moved_at(void);

typedef enum SluiceReceive
{
	SLUICE_RECEIVE_NONE,
	SLUICE_RECEIVE_MESSAGE,		/* CopyData: type byte and body in *message */
	SLUICE_RECEIVE_DONE			/* CopyDone */
} SluiceReceive;

/* Without waiting.  A lost connection ends the backend quietly; CopyFail is an ERROR. */
extern SluiceReceive sluice_copyboth_receive(StringInfo message);

/*
 * Waits for the latch (then reset), the socket (readable; writable too while
 * bytes are pending) or the timeout (ms, -1: none); answers interrupts and
 * configuration reload.
 */
extern void sluice_copyboth_wait(long timeout);

/*
 * CHECK_FOR_INTERRUPTS() for loops in which bytes may be pending: a session
 * that is told to end does not wait for a client that has stopped reading.
 */
extern void sluice_copyboth_heed_interrupts(void);

/* Ends the backend; the reason goes to the log, since nobody reads any more. */
extern void sluice_copyboth_give_up(const char *reason) SLUICE_NORETURN;

/*
 * A transaction with superuser rights on our own tables: row security off,
 * search_path pg_catalog, timeouts off.  With a snapshot (short ones, not to
 * be held across a wait) or without one (the caller takes its own).  The
 * current memory context is the transaction's until it commits; what it sets
 * for itself ends with it.
 */
extern void sluice_copyboth_begin_transaction(bool snapshot);
extern void sluice_copyboth_commit_transaction(void);

#endif
