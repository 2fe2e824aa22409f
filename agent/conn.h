/*
 * conn.h: a libpq connection that speaks COPY BOTH, without ever blocking
 * beyond a deadline or a stop.
 *
 * In: connection string, SQL of a CALL.  Out: CopyData messages.
 * Errors of the server become outcomes by the table of docs/protocol.md.
 * A connection belongs to one thread.
 */
#ifndef SLUICE_CONN_H
#define SLUICE_CONN_H

#include <libpq-fe.h>
#include <stddef.h>

#include "agent.h"
#include "buffer.h"

typedef struct SluiceConn
{
	SluiceAgent *agent;
	PGconn	   *pg;
	int64_t		heard;			/* monotonic time of the last byte from the server */
	char		sqlstate[6];	/* of the last server error, "" if none */
} SluiceConn;

/*
 * Connects (30 s at most).  application_name is "sluice-agent" and the
 * replica's name.  SLUICE_RETRY: logged, nothing is left open.
 */
extern SluiceOutcome sluice_conn_open(SluiceAgent *agent, SluiceConn *conn);
extern void sluice_conn_close(SluiceConn *conn);	/* also of one never opened but zeroed */

/* Sends the SQL and waits until the server is in COPY BOTH. */
extern SluiceOutcome sluice_conn_call(SluiceConn *conn, const char *sql);

typedef enum SluiceReceived
{
	SLUICE_RECEIVED_NONE,		/* nothing whole has arrived */
	SLUICE_RECEIVED_MESSAGE,
	SLUICE_RECEIVED_DONE,		/* CopyDone and the end of the CALL */
	SLUICE_RECEIVED_FAILED		/* logged; see *outcome */
} SluiceReceived;

/*
 * The next CopyData message, without waiting: takes what libpq has, then what
 * the socket has.  *data (type byte first) is to be given to
 * sluice_conn_release().
 */
extern SluiceReceived sluice_conn_receive(SluiceConn *conn, char **data, size_t *size,
										  SluiceOutcome *outcome);
extern void sluice_conn_release(char *data);

/* Queues one CopyData message and writes what the socket takes. */
extern SluiceOutcome sluice_conn_send(SluiceConn *conn, const char *data, size_t size);
extern SluiceOutcome sluice_conn_send_done(SluiceConn *conn);

/*
 * Waits for the socket (readable; writable while output is queued), stop, or
 * the timeout (ms, -1: none).
 */
extern SluiceOutcome sluice_conn_wait(SluiceConn *conn, int timeout);

/* Appends the text as an SQL literal ('NULL' for NULL); false: not valid text. */
extern bool sluice_conn_literal(SluiceConn *conn, SluiceBuffer *out, const char *text);

/*
 * The outcome for a server error by its SQLSTATE; logs the message.  Table of
 * docs/protocol.md.
 */
extern SluiceOutcome sluice_conn_failure(SluiceConn *conn, const PGresult *result);

/* A wait of the reconnect loop: 25 ms doubling to 10 s, reset by success. */
typedef struct SluiceBackoff
{
	int			delay;			/* ms, 0: none yet */
} SluiceBackoff;

/* SLUICE_OK after the wait, SLUICE_STOPPED. */
extern SluiceOutcome sluice_conn_backoff(SluiceAgent *agent, SluiceBackoff *backoff);

#endif
