/* SPDX-License-Identifier: Apache-2.0 */
/* Listening TCP sockets. */
#ifndef MU_LIB_NET_LISTEN_H
#define MU_LIB_NET_LISTEN_H

struct mu_err;

/* Listens on the first address of the host that allows it; "::" accepts IPv4 too.  Port 0 selects a
 * free port.  Returns a non-blocking socket with its port in *bound_port, or an error. */
int mu_listen_tcp(const char *host, int port, int *bound_port, struct mu_err *err);

#endif
