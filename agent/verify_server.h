/*
 * verify_server.h: the server's side of verify: what is published, rows as
 * PostgreSQL prints them, positions.
 *
 * Plain SQL over one connection with settings of its own; the role needs
 * SELECT on the published tables and sluice_monitor.
 */
#ifndef SLUICE_VERIFY_SERVER_H
#define SLUICE_VERIFY_SERVER_H

#include "conn.h"
#include "memory.h"
#include "verify_value.h"

typedef struct SluiceVerifyColumn
{
	int			attnum;
	const char *name;
	const char *expression;		/* what is selected */
	SluiceVerifyKind kind;
} SluiceVerifyColumn;

typedef struct SluiceVerifyTable
{
	uint32_t	oid;
	const char *schema;
	const char *name;
	const char *filter;			/* NULL: none */
	bool		partitioned;
	size_t		ncolumns;
	SluiceVerifyColumn *columns;	/* by attnum */
} SluiceVerifyTable;

typedef struct SluiceVerifyServer
{
	SluiceAgent *agent;
	SluiceConn	conn;
	SluiceArena arena;			/* of the tables */
	size_t		ntables;
	SluiceVerifyTable *tables;	/* by OID */
} SluiceVerifyServer;

/* Connects and reads what the shard publishes. */
extern SluiceOutcome sluice_verify_server_open(SluiceAgent *agent, SluiceVerifyServer *server);
extern void sluice_verify_server_close(SluiceVerifyServer *server);

/* A position behind everything that is committed now. */
extern SluiceOutcome sluice_verify_server_position(SluiceVerifyServer *server, uint64_t *position);

/* Starts COPY of a table's rows … */
extern SluiceOutcome sluice_verify_server_select(SluiceVerifyServer *server,
												 const SluiceVerifyTable *table);
/*
 * … and gives them: fields[0..ncolumns) and sizes, in memory that is good
 * until the next call.  *end: there are no more.
 */
extern SluiceOutcome sluice_verify_server_row(SluiceVerifyServer *server,
											  const SluiceVerifyTable *table, char **line,
											  char **fields, size_t *sizes, bool *end);

#endif
