/* SPDX-License-Identifier: Apache-2.0 */
/* A server's end of connections: what request.c and reply.c share with listen.c. */
#ifndef MU_TASK_RPC_H2_SERVER_H
#define MU_TASK_RPC_H2_SERVER_H

#include "task/rpc/call.h"
#include "task/rpc/h2/conn.h"
#include "task/rpc/h2/h2.h"
#include "task/rpc/h2/loop.h"

enum { H2_MAX_LISTENERS = 32 };

struct h2 { /* the owner of its connections */
	struct rpc_server *server;
	struct h2_loop loop;
	int reserve; /* a descriptor to give up when there are no more */
	int rested;  /* a timer: the listeners, which had none, are watched again */
	struct rpc_tls *tls;
	_Atomic unsigned n_strangers; /* connections that have not greeted */
	pthread_mutex_t lock;         /* guards what follows */
	bool draining;
	int listeners[H2_MAX_LISTENERS];
	unsigned n_listeners, n_secured;
};

struct h2_call {
	struct h2_stream stream; /* the first member */
	struct rpc_call call;
};
static inline struct h2_call *h2_call_of(struct h2_stream *s)
{
	return MU_CONTAINER(s, struct h2_call, stream);
}

/* ---- listen.c ---- */
struct h2_conn *h2_server_conn_new(struct h2 *h, int fd);

/* ---- request.c ---- */
int h2_request_headers(struct h2_conn *c, uint32_t id, bool end, struct mu_span block,
		       struct mu_err *err);
void h2_request_end(struct h2_stream *s); /* all of it has come: answers or handles it */
void h2_request_reset(struct h2_stream *s, uint32_t code);

/* ---- reply.c ---- */
extern const struct rpc_call_ops h2_call_ops;
void h2_reply_close(struct h2_stream *s); /* its status, and the end of it; with the lock */

#endif
