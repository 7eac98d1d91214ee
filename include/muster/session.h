/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: run steps of a graph on a server.
 *
 * A session extends its graph with its builder: it sends nodes that were added since the last step
 * before the next step. mu_session_run is thread-safe while no thread adds nodes.
 */
#ifndef MUSTER_SESSION_H
#define MUSTER_SESSION_H

#include "lib/base/buf.h"
#include "muster/graph.h"

struct mu_session;

/* The transport of a session to its server. A program that contains the server can replace the
 * connection by a function that calls the server directly. */
struct rpc_message;
struct mu_transport {
	/* Blocks. Returns 0 with the reply appended, or a negative code with err. timeout_ms <= 0:
	 * no timeout. */
	int (*call)(void *ctx, const char *method, const struct rpc_message *request,
		    long timeout_ms, struct mu_buf *reply, struct mu_err *err);
	void *ctx;
};

struct mu_session_options {
	/* Devices the session may use ("/job:ps", "/job:worker/task:1"). NULL: all tasks of the
	 * cluster, which then must all be running. */
	const char *const *device_filters;
	unsigned n_device_filters;
	long connect_timeout_ms;       /* 0: a minute */
	long run_timeout_ms;           /* default timeout of a step; 0: none */
	bool isolate_state;            /* variables belong to the session and are freed with it */
	bool log_placement;            /* the server logs the device of each op */
	const volatile int *stop;      /* (optional) a non-zero value ends the wait for a session */
	struct mu_transport transport; /* (optional) default: gRPC to the target */
};

/* Borrows b for the life of the session. target: "grpc://host:port", "host:port" or "unix:/path".
 * Does not connect: the first call that needs the session connects, and returns UNAVAILABLE if the
 * server does not reply in time. */
int mu_session_open(struct mu_session **out, const char *target, struct mu_builder *b,
		    const struct mu_session_options *options, struct mu_err *err);
void mu_session_close(
    struct mu_session *s); /* and frees it; tries once to close it on the server */
MU_AUTO_DEFINE(mu_session_close, struct mu_session)
/* Ends the session on the server, so that steps of other threads fail with CANCELLED or ABORTED.
 * Waits for a CreateSession or ExtendSession in progress. The session must still be
 * closed. Thread-safe. */
void mu_session_cancel(struct mu_session *s);

/* A server in this process shares the value's memory and may keep a reference (in a variable).
 * Check mu_tensor_is_sole before you modify the value. */
struct mu_feed {
	struct mu_out at;
	const struct mu_tensor *value;
};
struct mu_run {
	const struct mu_feed *feeds;
	unsigned n_feeds;
	const struct mu_out *fetches;
	unsigned n_fetches;
	const struct mu_out *targets; /* operations to run */
	unsigned n_targets;
	long timeout_ms; /* 0: run_timeout_ms of the session */
	/* (optional) Traces the step and appends the server's serialized RunMetadata. */
	struct mu_buf *metadata;
};
/* values[i] is the value of fetches[i], to be unref'd; unchanged on failure. After ABORTED or
 * UNAVAILABLE the session is unusable: open a new one. */
int mu_session_run(struct mu_session *s, const struct mu_run *run, struct mu_tensor *values,
		   struct mu_err *err);

/* A callable: a step whose feeds, fetches and targets are registered on the server once and then
 * run by handle. Ignores the values of run's feeds and its metadata. Borrows s; must be freed
 * before s is closed. */
struct mu_callable;
int mu_session_callable(struct mu_callable **out, struct mu_session *s, const struct mu_run *run,
			struct mu_err *err);
/* feeds[i] is the value of feed i; values[i] receives the value of fetch i, as in mu_session_run.
 * Thread-safe. */
int mu_callable_run(struct mu_callable *c, const struct mu_tensor *const *feeds,
		    struct mu_tensor *values, struct mu_err *err);
void mu_callable_free(struct mu_callable *c); /* tries once to release it on the server */
MU_AUTO_DEFINE(mu_callable_free, struct mu_callable)

struct mu_builder *mu_session_builder(struct mu_session *s);

/* Runs one fetch without feeds. */
int mu_session_get(struct mu_session *s, struct mu_out fetch, struct mu_tensor *value,
		   struct mu_err *err);
/* Runs one operation without feeds. */
int mu_session_do(struct mu_session *s, struct mu_out target, struct mu_err *err);

#endif
