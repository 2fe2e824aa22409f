/*
 * launcher.h: the static worker that turns slots into running workers.
 */
#ifndef SLUICE_LAUNCHER_H
#define SLUICE_LAUNCHER_H

/* From _PG_init */
extern void sluice_launcher_register(void);

#endif
