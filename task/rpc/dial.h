/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting to a server: names are looked up and sockets connected on a thread of its own, for
 * both may take long. */
#ifndef MU_TASK_RPC_DIAL_H
#define MU_TASK_RPC_DIAL_H

#include <stddef.h>

#include "lib/base/err.h"

/* fd is the callee's, non-blocking; negative: err says why. */
typedef void (*dial_done)(void *arg, int fd, const struct mu_err *err);
/* "host:port" or "unix:path".  done is called once, from another thread, or never when an error
 * comes back. */
int dial_start(const char *target, dial_done done, void *arg, struct mu_err *err);
/* host is copied from target, without brackets: size bytes are enough for its length and a NUL. */
void dial_host(const char *target, char *host, size_t size);

#endif
