/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_RPC_H2_SOCKET_H
#define MU_TASK_RPC_H2_SOCKET_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "lib/base/mem.h"

/* Small frames go at once; a machine that is gone is noticed.  A unix socket refuses all of it. */
static inline void h2_socket_tune(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
	    {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1},
	    {IPPROTO_TCP, TCP_KEEPIDLE, 60}, {IPPROTO_TCP, TCP_KEEPINTVL, 5},
	    {IPPROTO_TCP, TCP_KEEPCNT, 4},
	};

	for (unsigned i = 0; i < MU_COUNT(options); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

#endif
