/* SPDX-License-Identifier: Apache-2.0 */
/* Back-off for listeners whose accept() fails with EMFILE, ENFILE, ENOBUFS or ENOMEM.
 *
 * The pending connection stays in the backlog and poll() reports it again at once, so an immediate
 * retry would spin.  Callers stop polling the listener for ACCEPT_BACKOFF_MS. */
#ifndef MU_LIB_NET_ACCEPT_BACKOFF_H
#define MU_LIB_NET_ACCEPT_BACKOFF_H

#include <stdbool.h>

enum { ACCEPT_BACKOFF_MS = 100 };

/* Returns true if this errno of accept() requires a back-off.  Logs a warning for the component, at
 * most once in ten seconds in the whole process. */
bool mu_accept_backoff(int error, const char *component);

#endif
