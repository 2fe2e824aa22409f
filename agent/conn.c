/*
 * conn.c: a libpq connection that speaks COPY BOTH and never blocks for long.
 *
 * In: connection string, SQL of a CALL.  Out: CopyData messages.
 * Runs in: the thread that opened it.  Locks: none.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "conn.h"
#include "conn_error.h"
#include "log.h"

#define CONNECT_TIMEOUT 30000000	/* us */
#define CALL_TIMEOUT 60000000	/* us without a byte from the server */
#define FIRST_DELAY 25			/* ms */
#define LAST_DELAY 10000

/* ---- waiting ---- */

static SluiceOutcome
wait_socket(SluiceConn *conn, short events, int timeout, bool *ready)
{
	struct pollfd fds[2] = {
		{.fd = PQsocket(conn->pg), .events = events},
		{.fd = conn->agent->wake_fd, .events = POLLIN}
	};
	int			n;

	*ready = false;
	if (conn->agent->stop)
		return SLUICE_STOPPED;
	n = poll(fds, 2, timeout);
	if (conn->agent->stop)
		return SLUICE_STOPPED;
	if (n < 0 && errno != EINTR)
	{
		sluice_log(SLUICE_ERROR, "cannot wait for the server: %s", strerror(errno));
		return SLUICE_RETRY;
	}
	*ready = n > 0 && fds[0].revents != 0;
	return SLUICE_OK;
}

SluiceOutcome
sluice_conn_wait(SluiceConn *conn, int timeout)
{
	bool		pending = PQflush(conn->pg) > 0;
	bool		ready;

	return wait_socket(conn, (short) (POLLIN | (pending ? POLLOUT : 0)), timeout, &ready);
}

SluiceOutcome
sluice_conn_backoff(SluiceAgent *agent, SluiceBackoff *backoff)
{
	struct pollfd wake = {.fd = agent->wake_fd, .events = POLLIN};

	backoff->delay = backoff->delay == 0 ? FIRST_DELAY :
		backoff->delay * 2 > LAST_DELAY ? LAST_DELAY : backoff->delay * 2;
	poll(&wake, 1, backoff->delay);
	return agent->stop ? SLUICE_STOPPED : SLUICE_OK;
}

/* ---- opening ---- */

static PGconn *
start(SluiceAgent *agent)
{
	char		application[64];
	/* what the connection string says of these wins over what is before it */
	const char *const keywords[] = {
		"keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
		"fallback_application_name", "dbname", "client_encoding", NULL
	};
	const char *const values[] = {
		"30", "10", "3", "60000", application, agent->config.upstream, "UTF8", NULL
	};

	snprintf(application, sizeof(application), "sluice-agent %s",
			 agent->config.name != NULL ? agent->config.name : "");
	return PQconnectStartParams(keywords, values, 1);
}

static SluiceOutcome
finish_connecting(SluiceConn *conn)
{
	int64_t		deadline = sluice_agent_clock() + CONNECT_TIMEOUT;
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	while (status != PGRES_POLLING_OK)
	{
		int64_t		left = deadline - sluice_agent_clock();
		SluiceOutcome outcome;
		bool		ready;

		if (status == PGRES_POLLING_FAILED)
			return sluice_conn_error_connecting(conn);
		if (left <= 0)
		{
			sluice_conn_error_lost(conn, "the server does not answer");
			return SLUICE_RETRY;
		}
		outcome = wait_socket(conn, status == PGRES_POLLING_READING ? POLLIN : POLLOUT,
							  (int) (left / 1000) + 1, &ready);
		if (outcome != SLUICE_OK)
			return outcome;
		if (ready)
			status = PQconnectPoll(conn->pg);
	}
	return SLUICE_OK;
}

SluiceOutcome
sluice_conn_open(SluiceAgent *agent, SluiceConn *conn)
{
	SluiceOutcome outcome = SLUICE_OK;

	conn->agent = agent;
	conn->sqlstate[0] = '\0';
	conn->pg = start(agent);
	if (conn->pg == NULL)
	{
		sluice_log(SLUICE_ERROR, "out of memory");
		return SLUICE_RETRY;
	}
	PQsetErrorVerbosity(conn->pg, PQERRORS_VERBOSE);
	PQsetNoticeProcessor(conn->pg, sluice_conn_error_notice, NULL);
	if (PQstatus(conn->pg) == CONNECTION_BAD)
		outcome = sluice_conn_error_connecting(conn);
	if (outcome == SLUICE_OK)
		outcome = finish_connecting(conn);
	if (outcome == SLUICE_OK && PQsetnonblocking(conn->pg, 1) != 0)
		outcome = SLUICE_RETRY;
	if (outcome != SLUICE_OK)
	{
		sluice_conn_close(conn);
		return outcome;
	}
	PQsetErrorVerbosity(conn->pg, PQERRORS_DEFAULT);
	conn->heard = sluice_agent_clock();
	return SLUICE_OK;
}

void
sluice_conn_close(SluiceConn *conn)
{
	if (conn->pg != NULL)
		PQfinish(conn->pg);
	conn->pg = NULL;
}

/* ---- the call ---- */

/* Takes what has arrived, so that PQisBusy can change. */
static SluiceOutcome
consume(SluiceConn *conn)
{
	if (!PQconsumeInput(conn->pg))
	{
		sluice_conn_error_lost(conn, PQerrorMessage(conn->pg));
		return SLUICE_RETRY;
	}
	conn->heard = sluice_agent_clock();
	return SLUICE_OK;
}

static SluiceOutcome
wait_result(SluiceConn *conn, PGresult **result)
{
	while (PQisBusy(conn->pg))
	{
		bool		ready;
		bool		pending = PQflush(conn->pg) > 0;
		SluiceOutcome outcome = wait_socket(conn, (short) (POLLIN | (pending ? POLLOUT : 0)),
											1000, &ready);

		if (outcome == SLUICE_OK && ready)
			outcome = consume(conn);
		if (outcome == SLUICE_OK && sluice_agent_clock() - conn->heard > CALL_TIMEOUT)
		{
			sluice_conn_error_lost(conn, "the server does not answer");
			outcome = SLUICE_RETRY;
		}
		if (outcome != SLUICE_OK)
			return outcome;
	}
	*result = PQgetResult(conn->pg);
	return SLUICE_OK;
}

SluiceOutcome
sluice_conn_call(SluiceConn *conn, const char *sql)
{
	PGresult   *result = NULL;
	SluiceOutcome outcome;

	if (!PQsendQuery(conn->pg, sql))
	{
		sluice_conn_error_lost(conn, PQerrorMessage(conn->pg));
		return SLUICE_RETRY;
	}
	conn->heard = sluice_agent_clock();
	outcome = wait_result(conn, &result);
	if (outcome != SLUICE_OK)
		return outcome;
	if (PQresultStatus(result) != PGRES_COPY_BOTH)
		outcome = sluice_conn_failure(conn, result);
	PQclear(result);
	return outcome;
}

/* ---- messages ---- */

/*
 * COPY BOTH has ended: by an error, or by the server's CopyDone, which is
 * answered; then the CALL's own end comes.
 */
static SluiceReceived
ended(SluiceConn *conn, SluiceOutcome *outcome)
{
	bool		failed = false;

	for (;;)
	{
		PGresult   *result = NULL;
		ExecStatusType status;

		*outcome = wait_result(conn, &result);
		if (*outcome != SLUICE_OK)
			return SLUICE_RECEIVED_FAILED;
		if (result == NULL)
			break;
		status = PQresultStatus(result);
		if ((status == PGRES_COPY_IN || status == PGRES_COPY_BOTH) && !failed)
			*outcome = sluice_conn_send_done(conn);
		else if (status == PGRES_FATAL_ERROR)
		{
			*outcome = sluice_conn_failure(conn, result);
			failed = true;
		}
		PQclear(result);
		if (*outcome != SLUICE_OK)
			return SLUICE_RECEIVED_FAILED;
	}
	return SLUICE_RECEIVED_DONE;
}

SluiceReceived
sluice_conn_receive(SluiceConn *conn, char **data, size_t *size, SluiceOutcome *outcome)
{
	for (;;)
	{
		int			n = PQgetCopyData(conn->pg, data, 1);
		bool		ready;

		if (n > 0)
		{
			*size = (size_t) n;
			conn->agent->worked = true;
			return SLUICE_RECEIVED_MESSAGE;
		}
		if (n == -1)
			return ended(conn, outcome);
		if (n < -1)
		{
			sluice_conn_error_lost(conn, PQerrorMessage(conn->pg));
			*outcome = SLUICE_RETRY;
			return SLUICE_RECEIVED_FAILED;
		}
		*outcome = wait_socket(conn, POLLIN, 0, &ready);
		if (*outcome == SLUICE_OK && !ready)
			return SLUICE_RECEIVED_NONE;
		if (*outcome == SLUICE_OK)
			*outcome = consume(conn);
		if (*outcome != SLUICE_OK)
			return SLUICE_RECEIVED_FAILED;
	}
}

void
sluice_conn_release(char *data)
{
	PQfreemem(data);
}

static SluiceOutcome
sent(SluiceConn *conn, int n)
{
	if (n > 0 && PQflush(conn->pg) >= 0)
		return SLUICE_OK;
	/* 0: libpq could not queue it; in practice only when the socket is gone */
	sluice_conn_error_lost(conn, PQerrorMessage(conn->pg));
	return SLUICE_RETRY;
}

SluiceOutcome
sluice_conn_send(SluiceConn *conn, const char *data, size_t size)
{
	return sent(conn, PQputCopyData(conn->pg, data, (int) size));
}

SluiceOutcome
sluice_conn_send_done(SluiceConn *conn)
{
	return sent(conn, PQputCopyEnd(conn->pg, NULL));
}

bool
sluice_conn_literal(SluiceConn *conn, SluiceBuffer *out, const char *text)
{
	char	   *literal;

	if (text == NULL)
	{
		sluice_buffer_append(out, "NULL", 4);
		return true;
	}
	literal = PQescapeLiteral(conn->pg, text, strlen(text));
	if (literal == NULL)
		return false;
	sluice_buffer_append(out, literal, strlen(literal));
	PQfreemem(literal);
	return true;
}
