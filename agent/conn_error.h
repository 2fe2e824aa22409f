/*
 * conn_error.h: what goes wrong on a connection, said once and sorted.
 * For conn.c.
 */
#ifndef SLUICE_CONN_ERROR_H
#define SLUICE_CONN_ERROR_H

#include "conn.h"

/* The connection could not be made. */
extern SluiceOutcome sluice_conn_error_connecting(SluiceConn *conn);
/* It was lost; text is libpq's, or ours. */
extern void sluice_conn_error_lost(SluiceConn *conn, const char *text);
extern void sluice_conn_error_notice(void *argument, const char *message);

#endif
