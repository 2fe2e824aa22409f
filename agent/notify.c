/*
 * notify.c: one datagram to $NOTIFY_SOCKET.
 *
 * In: a state.  Out: a message to the service manager, if there is one.
 * Runs in: the main thread.  Locks: none.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "notify.h"

void
sluice_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t		length = path == NULL ? 0 : strlen(path);
	int			fd;

	if (length < 2 || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* nobody waits for an answer, and a lost one harms nothing */
	(void) !sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *) &address,
				   (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length));
	close(fd);
}
