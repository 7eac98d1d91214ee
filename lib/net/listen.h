/* SPDX-License-Identifier: Apache-2.0 */
/* Listening TCP sockets. */
#ifndef MU_LIB_NET_LISTEN_H
#define MU_LIB_NET_LISTEN_H

struct mu_err;

/* Listens on the first usable address of the host; "::" accepts IPv4 too.  Port 0 selects a
 * free port.  Returns a non-blocking socket and sets *bound_port, or returns an error. */
int mu_listen_tcp(const char *host, int port, int *bound_port, struct mu_err *err);

#endif
