/*
 * notify.h: what a service manager is told (sd_notify's protocol, without its
 * library): ready, and a line of status.
 */
#ifndef SLUICE_NOTIFY_H
#define SLUICE_NOTIFY_H

/* "READY=1", "STATUS=…", "STOPPING=1"; does nothing outside such a service. */
extern void sluice_notify(const char *state);

#endif
