/*
 * reset.h: that a shard is to get a new slot and a new lineage.
 *
 * Whoever finds that a shard cannot go on asks, in the stream's entry; the
 * next decoder that starts does it (decode/lineage.c), or stops the shard if
 * the option auto_reset is off.  A wish does not outlive the server: what
 * cannot go on is found again.
 */
#ifndef SLUICE_RESET_H
#define SLUICE_RESET_H

#include "shmem.h"

/* A stronger wish stays.  The state is RESETTING, the message "reset: <reason>". */
extern void sluice_reset_ask(SluiceStream *stream, SluiceResetWish wish, const char *reason);

/* reason: SLUICE_MESSAGE_MAX, or NULL */
extern SluiceResetWish sluice_reset_wished(SluiceStream *stream, char *reason);

/* The wish is taken back. */
extern void sluice_reset_forget(SluiceStream *stream);

/* A try begins: ms that it should wait, because others were not long ago. */
extern long sluice_reset_delay(SluiceStream *stream);

/* The try goes on now. */
extern void sluice_reset_tried(SluiceStream *stream);

/* It is done: next_slot is slot, positions are not known yet. */
extern void sluice_reset_done(SluiceStream *stream);

/* SIGTERM to the decoder, if there is one; the launcher starts another. */
extern void sluice_reset_end_decoder(SluiceStream *stream);

#endif
