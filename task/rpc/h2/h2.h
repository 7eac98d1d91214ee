/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 server for unary gRPC calls in the clear or by mutual TLS: RFC 9113, RFC 7541 and
 * gRPC's own page on its use of them.  Any gRPC client may call.
 *
 * Shared by both ends of a connection: loop.c has threads and epoll, conn.c and frames.c read,
 * body.c gathers messages, send.c and out.c write, wire.c has TLS below, hpack*.c headers.
 * A server's end: listen.c has its sockets, request.c makes calls of requests, reply.c the answers.
 * A client's end: client.c; task/rpc/channel.c keeps the connection. */
#ifndef MU_TASK_RPC_H2_H2_H
#define MU_TASK_RPC_H2_H2_H

#include "task/rpc/server.h"

struct h2;

struct h2_options {
	const int *listeners;
	unsigned n_listeners;
	struct rpc_tls *tls; /* of the first n_secured listeners; borrowed */
	unsigned n_secured;
	unsigned threads;
};
/* Takes the listening sockets, also when it fails. */
int h2_start(struct rpc_server *server, const struct h2_options *o, struct h2 **out,
	     struct mu_err *err);
void h2_drain(struct h2 *h);                    /* listens no more and tells the clients */
bool h2_is_open(struct h2 *h, uint32_t serial); /* the connection of that number */
void h2_cancel_all(struct h2 *h);               /* as if all callers had gone away */
void h2_free(struct h2 *h); /* no call is left; writes what is not written yet */

#endif
