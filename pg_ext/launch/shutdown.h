/*
 * shutdown.h: notices a smart shutdown, which backends are not told of.
 */
#ifndef SLUICE_SHUTDOWN_H
#define SLUICE_SHUTDOWN_H

/*
 * Called at least once a second while replicas are connected; ends their
 * connections once the server is stopping.  True: there are replicas.
 */
extern bool sluice_shutdown_watch(void);

#endif
