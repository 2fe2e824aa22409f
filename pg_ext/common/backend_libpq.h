/*
 * backend_libpq.h: the server's libpq.h without the headers of Kerberos.
 *
 * A server built with GSSAPI makes libpq.h include gssapi.h, which is in a
 * package of its own that the server's development package does not need.
 * Only functions and the wait set are used here, and no member of Port.
 */
#ifndef SLUICE_BACKEND_LIBPQ_H
#define SLUICE_BACKEND_LIBPQ_H

#undef ENABLE_GSS
#undef ENABLE_SSPI
#include "libpq/libpq.h"

#endif
