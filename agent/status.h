/*
 * status.h: `sluice-agent status`: how far a file is, without a server.
 *
 * In: the replica's file, and a copy beside it if one is under way.
 * Out: text, or JSON with --json; with --cookies what
 * sluice.reinitialize_change_log() asks for.
 *
 * The agent of the file may go on meanwhile.
 */
#ifndef SLUICE_STATUS_H
#define SLUICE_STATUS_H

#include "agent.h"

extern SluiceOutcome sluice_status_run(SluiceAgent *agent);

#endif
