/*
 * guc.h: the settings sluice.*; each is documented in README.md.
 */
#ifndef SLUICE_GUC_H
#define SLUICE_GUC_H

extern int	sluice_max_shards;		/* sluice.max_shards, 8, start-up only */
extern int	sluice_max_replicas;	/* sluice.max_replicas, 64, start-up only */
extern int	sluice_ring_size;		/* sluice.ring_size, kB, 8192, start-up only */
extern int	sluice_sender_timeout;	/* sluice.sender_timeout, ms; -1: wal_sender_timeout; 0: off */
extern int	sluice_storer_timeout;	/* sluice.storer_timeout, ms, 20000: no progress with a full ring */
extern char *sluice_advertise_address;	/* sluice.advertise_address */

extern void sluice_guc_define(void);

/* The timeout of senders in ms, 0: off. */
extern int	sluice_effective_sender_timeout(void);

#endif
