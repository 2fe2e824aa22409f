/*
 * guard.h: refuses to drop what running shards need.
 */
#ifndef SLUICE_GUARD_H
#define SLUICE_GUARD_H

/* From _PG_init */
extern void sluice_guard_install(void);

#endif
