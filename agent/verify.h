/*
 * verify.h: `sluice-agent verify`: is the file equal to what is published?
 *
 * In: the server's tables as PostgreSQL prints them, the file.  Out: a line
 * for each table that differs, a summary; SLUICE_DIFFERENT if any does.
 *
 * The agent of the file may go on meanwhile, and so may the writers.
 */
#ifndef SLUICE_VERIFY_H
#define SLUICE_VERIFY_H

#include "agent.h"

extern SluiceOutcome sluice_verify_run(SluiceAgent *agent);

#endif
