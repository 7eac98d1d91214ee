/* SPDX-License-Identifier: Apache-2.0 */
/* Where a task waits for the streams of others.  Each is a listening socket, or -1. */
#ifndef MU_TASK_PEER_STREAM_LISTEN_H
#define MU_TASK_PEER_STREAM_LISTEN_H

#include "task/peer/stream_wire.h"

struct mu_err;

/* An abstract unix socket of a random name, which goes to the offer. */
int stream_listen_local(struct stream_offer *o, struct mu_err *err);
/* On the host, port 0: any; the real one goes to the offer.  Without it tensors go by gRPC: no
 * reason not to serve, so a failure is logged. */
int stream_listen_tcp(struct stream_offer *o, const char *host, int port);

#endif
