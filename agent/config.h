/*
 * config.h: what the agent is told: command line over environment
 * (SLUICE_<NAME>) over a file of "name = value" lines (--config).
 *
 * Names are those of the long options.  Values that may hold secrets are
 * never printed.
 */
#ifndef SLUICE_CONFIG_H
#define SLUICE_CONFIG_H

#include "agent.h"

/*
 * Fills agent->config.  SLUICE_USAGE: logged.  "help" and "version" need no
 * more than themselves.
 */
extern SluiceOutcome sluice_config_read(SluiceAgent *agent, int argc, char **argv);
extern void sluice_config_release(SluiceConfig *config);

extern void sluice_config_help(void);

#endif
