/*
 * conn_error.c: what goes wrong on a connection, said once and sorted.
 *
 * In: libpq's and the server's errors.  Out: outcomes by the table of
 * docs/protocol.md; log lines, an equal one at most once a minute.
 * Runs in: the thread of the connection.  Locks: none.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "conn_error.h"
#include "log.h"

#define AGAIN 60000000			/* us until an equal message is logged again */

#define PASSWORD_HINT "The password can stand in ~/.pgpass (mode 600), in a file that the " \
	"connection string names with passfile=…, or in PGPASSWORD."

typedef struct Rule
{
	const char *sqlstate;		/* or a class, "28" */
	SluiceOutcome outcome;
	SluiceOutcome before;		/* while this agent never was let in */
	const char *hint;
} Rule;

static const Rule rules[] = {
	{"SL001", SLUICE_COPY_AFRESH, SLUICE_COPY_AFRESH, NULL},
	{"SL002", SLUICE_COPY_AFRESH, SLUICE_COPY_AFRESH, NULL},
	{"SL003", SLUICE_COPY_AFRESH, SLUICE_COPY_AFRESH, NULL},
	{"SL004", SLUICE_REFUSED, SLUICE_REFUSED, NULL},
	{"SL005", SLUICE_REFUSED, SLUICE_REFUSED, NULL},
	{"SL006", SLUICE_RETRY, SLUICE_RETRY, NULL},
	{"SL007", SLUICE_RETRY, SLUICE_REFUSED, NULL},
	{"SL008", SLUICE_RETRY, SLUICE_RETRY, NULL},
	/* no extension in this database */
	{"42883", SLUICE_RETRY, SLUICE_REFUSED, "CREATE EXTENSION sluice in this database."},
	{"3F000", SLUICE_RETRY, SLUICE_REFUSED, "CREATE EXTENSION sluice in this database."},
	{"3D000", SLUICE_RETRY, SLUICE_REFUSED, NULL},
	{"42501", SLUICE_RETRY, SLUICE_REFUSED, "The role has to be a member of sluice_replica: "
	"GRANT sluice_replica TO …"},
	{"22", SLUICE_REFUSED, SLUICE_REFUSED, NULL},
	{"28P01", SLUICE_RETRY, SLUICE_REFUSED, PASSWORD_HINT},
	{"28", SLUICE_RETRY, SLUICE_REFUSED, NULL},
	{"2D000", SLUICE_REFUSED, SLUICE_REFUSED, "Connect to the server itself, not through a "
	"transaction pooler."},
};

static const Rule *
find_rule(const char *sqlstate)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strncmp(rules[i].sqlstate, sqlstate, strlen(rules[i].sqlstate)) == 0)
			return &rules[i];
	return NULL;
}

/* Process life: the last message of a connection that will be tried again. */
static char last_text[512];
static int64_t last_time;

static void
say(SluiceOutcome outcome, const char *text)
{
	SluiceLogLevel level = outcome == SLUICE_RETRY || outcome == SLUICE_COPY_AFRESH ?
		SLUICE_WARNING : SLUICE_ERROR;
	int64_t		now = sluice_agent_clock();

	if (level == SLUICE_WARNING && strncmp(text, last_text, sizeof(last_text) - 1) == 0 &&
		now - last_time < AGAIN)
		level = SLUICE_DEBUG;
	else
	{
		snprintf(last_text, sizeof(last_text), "%s", text);
		last_time = now;
	}
	sluice_log(level, "%s", text);
}

/* libpq ends its messages with a line feed */
static void
trim(char *text)
{
	size_t		length = strlen(text);

	while (length > 0 && isspace((unsigned char) text[length - 1]))
		text[--length] = '\0';
}

void
sluice_conn_error_lost(SluiceConn *conn, const char *text)
{
	char		line[1024];
	char		message[1100];

	snprintf(line, sizeof(line), "%s", text);
	trim(line);
	snprintf(message, sizeof(message), "connection lost: %s", line);
	say(SLUICE_RETRY, message);
}

/* ": 28P01: " in a verbose message, and not ": FATAL: "; a copy into sqlstate. */
static bool
find_sqlstate(const char *text, char *sqlstate)
{
	for (const char *at = strchr(text, ':'); at != NULL; at = strchr(at + 1, ':'))
	{
		const char *code = at + 1 + strspn(at + 1, " ");

		if (strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && code[5] == ':' &&
			strcspn(code, "0123456789") < 5)
		{
			memcpy(sqlstate, code, 5);
			sqlstate[5] = '\0';
			return true;
		}
	}
	return false;
}

SluiceOutcome
sluice_conn_error_connecting(SluiceConn *conn)
{
	SluiceOutcome outcome = SLUICE_RETRY;
	char		line[1024];
	char		message[1400];
	const char *hint = NULL;
	const Rule *rule;

	snprintf(line, sizeof(line), "%s", PQerrorMessage(conn->pg));
	/* LOCATION and what else is verbose */
	line[strcspn(line, "\n")] = '\0';
	trim(line);
	if (find_sqlstate(PQerrorMessage(conn->pg), conn->sqlstate))
	{
		rule = find_rule(conn->sqlstate);
		if (rule != NULL)
		{
			outcome = conn->agent->worked ? rule->outcome : rule->before;
			if (strncmp(rule->sqlstate, "28", 2) == 0)
				hint = rule->hint;
		}
	}
	/* libpq's own refusal has no code */
	else if (PQconnectionNeedsPassword(conn->pg))
	{
		outcome = conn->agent->worked ? SLUICE_RETRY : SLUICE_REFUSED;
		hint = PASSWORD_HINT;
	}
	/* a connection string that cannot be read never gets better */
	else if (PQsocket(conn->pg) < 0 && PQhost(conn->pg) == NULL)
		outcome = SLUICE_USAGE;
	snprintf(message, sizeof(message), "cannot connect: %s%s%s%s", line,
			 hint != NULL ? "; hint: " : "", hint != NULL ? hint : "",
			 outcome == SLUICE_RETRY ? "; trying again" : "");
	say(outcome, message);
	return outcome;
}

static const char *
field(const PGresult *result, int code)
{
	const char *text = PQresultErrorField(result, code);

	return text == NULL ? "" : text;
}

SluiceOutcome
sluice_conn_failure(SluiceConn *conn, const PGresult *result)
{
	const char *detail = field(result, PG_DIAG_MESSAGE_DETAIL);
	const char *hint = field(result, PG_DIAG_MESSAGE_HINT);
	SluiceOutcome outcome = SLUICE_RETRY;
	const Rule *rule;
	char		message[2048];

	snprintf(conn->sqlstate, sizeof(conn->sqlstate), "%s", field(result, PG_DIAG_SQLSTATE));
	/* libpq's own errors have no code: the connection is gone */
	if (conn->sqlstate[0] == '\0')
	{
		sluice_conn_error_lost(conn, PQerrorMessage(conn->pg));
		return SLUICE_RETRY;
	}
	rule = find_rule(conn->sqlstate);
	if (rule != NULL)
	{
		outcome = conn->agent->worked ? rule->outcome : rule->before;
		if (rule->hint != NULL)
			hint = rule->hint;
	}
	snprintf(message, sizeof(message), "server: %s (%s)%s%s%s%s",
			 field(result, PG_DIAG_MESSAGE_PRIMARY), conn->sqlstate,
			 detail[0] != '\0' ? "; " : "", detail, hint[0] != '\0' ? "; hint: " : "", hint);
	say(outcome, message);
	return outcome;
}

void
sluice_conn_error_notice(void *argument, const char *message)
{
	char		line[1024];

	snprintf(line, sizeof(line), "%s", message);
	trim(line);
	sluice_log(SLUICE_INFO, "server: %s", line);
}
