/* SPDX-License-Identifier: Apache-2.0 */
/* A client's end of connections: unary gRPC calls over HTTP/2, to any gRPC server. */
#ifndef MU_TASK_RPC_H2_CLIENT_H
#define MU_TASK_RPC_H2_CLIENT_H

#include "task/rpc/bytes.h"
#include "task/rpc/h2/conn.h"

struct h2_ask;
struct h2_client_events { /* from the reading thread, without a lock */
	void (*settled)(void *owner, struct h2_conn *c); /* calls may be started */
	/* It takes no new calls: the server said so (why is NULL), or it has ended. */
	void (*lost)(void *owner, struct h2_conn *c, const struct mu_err *why);
	/* What a started call came to, once, unless it was cancelled.  Takes reply. */
	void (*answered)(struct h2_ask *r, const struct mu_err *err, struct rpc_bytes *reply);
	void (*again)(struct h2_ask *r); /* instead: the server never looked at it */
	void (*unref)(struct h2_ask *r); /* a reference to give back; perhaps with the lock */
	void (*freed)(void *owner);      /* (optional) the connection is, and needs it no more */
};
struct h2_client { /* the owner of its connections */
	const struct h2_client_events *events;
	const char *authority, *name; /* of the server: as HTTP has it, and in errors */
	bool secured;
};

enum { H2_QUIET_MS = 20000 }; /* then a call that waits has its connection looked at */

/* A call: made by its owner, in whose keeping it is. */
struct h2_ask {
	struct h2_stream stream; /* the first member; prepared to be sent */
	_Atomic unsigned refs;
	const char *path;
	int64_t deadline_ms; /* 0: none */
	size_t length;       /* of what is sent */
	/* the reading thread's */
	bool opened;
	int http, status; /* -1: none has come */
	struct mu_buf text;
};
static inline struct h2_ask *h2_ask_of(struct h2_stream *s)
{
	return MU_CONTAINER(s, struct h2_ask, stream);
}
void h2_ask_init(struct h2_ask *r, const char *path, const struct rpc_message *m);
void h2_ask_fini(struct h2_ask *r);

extern const struct h2_side h2_client_side;

enum h2_start { H2_STARTED, H2_FULL, H2_GONE };
/* FULL: as many are open as the server takes; GONE: by another connection perhaps. */
enum h2_start h2_client_start(struct h2_conn *c, struct h2_ask *r);
void h2_client_cancel(struct h2_ask *r); /* what comes for it is thrown away */
/* Keep-alive; returns when to look again (INT64_MAX: when something is started). */
int64_t h2_client_tick(struct h2_conn *c, int64_t now_ms);

#endif
