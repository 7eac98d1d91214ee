/* SPDX-License-Identifier: Apache-2.0 */
/* The listening sockets for streams; each function returns a socket, or -1. */
#ifndef MU_TASK_PEER_STREAM_LISTEN_H
#define MU_TASK_PEER_STREAM_LISTEN_H

#include "task/peer/stream_wire.h"

struct mu_err;

/* Listens on an abstract Unix socket with a random name, which is stored in the offer. */
int stream_listen_local(struct stream_offer *o, struct mu_err *err);
/* Listens on a TCP port (0: any); the real port is stored in the offer.  A failure is only logged,
 * because tensors can be sent over gRPC. */
int stream_listen_tcp(struct stream_offer *o, const char *host, int port);

#endif
