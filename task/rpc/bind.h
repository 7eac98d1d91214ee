/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that a server listens on. */
#ifndef MU_TASK_RPC_BIND_H
#define MU_TASK_RPC_BIND_H

#include "lib/base/err.h"

enum { BIND_MOST = 8 }; /* sockets for one address: a name may stand for several */

/* Listening sockets, non-blocking, for "host:port" or "unix:path": their number, or an error. *port
 * gets the real port (0 for a unix socket). */
int bind_listen(const char *address, int fds[BIND_MOST], int *port, struct mu_err *err);

#endif
