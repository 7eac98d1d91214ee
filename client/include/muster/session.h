/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: a graph on a server, and its steps.
 *
 * A session follows its builder: nodes added since the last run are sent before the next one.
 * mu_session_run may be called from several threads as long as nobody adds nodes meanwhile.
 */
#ifndef MUSTER_SESSION_H
#define MUSTER_SESSION_H

#include "lib/base/buf.h"
#include "muster/graph.h"

struct mu_session;

/* How a session's calls reach its server.  A program that has the server within itself gives a call
 * that goes straight to it, instead of through a connection to itself. */
struct rpc_message;
struct mu_transport {
	/* As rpc_call: blocks; 0 with the reply appended, or negative with err.  timeout_ms <= 0:
	 * none. */
	int (*call)(void *ctx, const char *method, const struct rpc_message *request,
		    long timeout_ms, struct mu_buf *reply, struct mu_err *err);
	void *ctx;
};

struct mu_session_options {
	/* Devices the session may use ("/job:ps", "/job:worker/task:1"); none: the whole cluster,
	 * which then has to be there, all of it. */
	const char *const *device_filters;
	unsigned n_device_filters;
	long connect_timeout_ms;       /* 0: a minute */
	long run_timeout_ms;           /* of every step; 0: none */
	bool isolate_state;            /* variables of its own, gone with the session */
	bool log_placement;            /* the server's log tells which op runs on which device */
	const volatile int *stop;      /* (optional) once it is not 0 nobody waits for a session */
	struct mu_transport transport; /* (optional) else gRPC to the target */
};

/* Borrows b for its life.  target: "grpc://host:port", "host:port" or "unix:/path".  UNAVAILABLE
 * when nobody answers within the connect timeout. */
int mu_session_open(struct mu_session **out, const char *target, struct mu_builder *b,
		    const struct mu_session_options *options, struct mu_err *err);
void mu_session_close(struct mu_session *s); /* and frees it; tells the server, briefly */
MU_AUTO_DEFINE(mu_session_close, struct mu_session)
/* Ends the session on the server, so that steps of other threads fail with CANCELLED or ABORTED;
 * it is still to be closed.  From any thread. */
void mu_session_cancel(struct mu_session *s);

/* A server in this process shares the value's memory and may keep it (a variable that it was
 * assigned to): before it is written to again ask mu_tensor_is_sole. */
struct mu_feed {
	struct mu_out at;
	const struct mu_tensor *value;
};
struct mu_run {
	const struct mu_feed *feeds;
	unsigned n_feeds;
	const struct mu_out *fetches;
	unsigned n_fetches;
	const struct mu_out *targets; /* run for what they do */
	unsigned n_targets;
	long timeout_ms; /* 0: the session's */
	/* (optional) The step is traced, and its RunMetadata, as the server wrote it, appended. */
	struct mu_buf *metadata;
};
/* values[i] is the value of fetches[i], to be unref'd; untouched on failure.  ABORTED and
 * UNAVAILABLE mean that the session is of no more use: open a new one. */
int mu_session_run(struct mu_session *s, const struct mu_run *run, struct mu_tensor *values,
		   struct mu_err *err);

/* A step that runs over and over, by number: what it feeds, fetches and runs is told to the server
 * once.  The values of run's feeds, and its metadata, are not looked at.  Borrows s, which is to be
 * closed after it; of no more use once s is. */
struct mu_callable;
int mu_session_callable(struct mu_callable **out, struct mu_session *s, const struct mu_run *run,
			struct mu_err *err);
/* feeds[i] is the value of feed i, values[i] becomes that of fetch i, as in mu_session_run.  From
 * several threads as well. */
int mu_callable_run(struct mu_callable *c, const struct mu_tensor *const *feeds,
		    struct mu_tensor *values, struct mu_err *err);
void mu_callable_free(struct mu_callable *c); /* tells the server, briefly */
MU_AUTO_DEFINE(mu_callable_free, struct mu_callable)

struct mu_builder *mu_session_builder(struct mu_session *s);

/* One fetch, no feeds. */
int mu_session_get(struct mu_session *s, struct mu_out fetch, struct mu_tensor *value,
		   struct mu_err *err);
/* One operation, no feeds. */
int mu_session_do(struct mu_session *s, struct mu_out target, struct mu_err *err);

#endif
