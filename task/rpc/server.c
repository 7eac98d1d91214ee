/* SPDX-License-Identifier: Apache-2.0 */
/* The server side: methods are registered, so that gRPC brings a call together with its request in
 * one event; one unregistered request stays posted for everything else and answers UNIMPLEMENTED.
 *
 * A call is held by its posted operations and by its handler: NEW until it arrives, then CLOSE (the
 * RECV_CLOSE batch), the handler, and SENT (the answer's batch).  Each is one reference.  The
 * server counts calls; it is only taken down when none is left, because a batch started after the
 * queue's shutdown aborts the process.
 *
 * A call of this process (rpc_local_start) has no gRPC call behind it: its references are the
 * handler's and its caller's, and its answer is a function.
 *
 * Cancellation against answer: `state` of a call moves OPEN -> CANCELLING -> OPEN or OPEN ->
 * ANSWERED under the server's lock; an answer from another thread waits while CANCELLING. */
#include "task/rpc/server.h"

#include <grpc/support/time.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "lib/base/log.h"
#include "task/rpc/bind.h"
#include "task/rpc/core.h"

enum { STOP_AFTER_CANCEL_MS = 10000, MAX_THREADS = 16, MAX_ERROR_TEXT = 2048 };

struct rpc_server {
	grpc_server *server;
	grpc_completion_queue *queue;
	const struct rpc_method *methods; /* copied */
	void **registered;                /* gRPC's handle for each */
	unsigned n_methods;
	void *ctx;
	pthread_t threads[MAX_THREADS];
	unsigned n_threads;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned calls; /* that have arrived and are not gone */
	unsigned armed; /* posted requests */
	bool stopping, down;
	struct core_tag down_tag;
};

struct rpc_call {
	struct core_tag arrived, closed, sent;
	_Atomic unsigned refs;
	struct rpc_server *server;
	const struct rpc_method *method; /* NULL: unregistered */
	grpc_call *call;
	gpr_timespec deadline;
	grpc_metadata_array metadata;
	grpc_call_details details; /* unregistered only */
	grpc_byte_buffer *payload;
	struct rpc_bytes request;
	int was_cancelled;
	enum { OPEN, CANCELLING, ANSWERED } state;
	bool gone; /* the caller is */
	pthread_t canceller;
	void (*on_cancel)(void *arg);
	void *on_cancel_arg;
	grpc_slice status_text;
	rpc_local_done local_done; /* NULL: it came through gRPC */
	void *local_arg;
};

static void arm(struct rpc_server *s, unsigned method);

static void call_unref(struct rpc_call *c)
{
	struct rpc_server *s = c->server;
	bool had_arrived = c->call || c->local_done;

	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	bytes_fini(&c->request);
	grpc_metadata_array_destroy(&c->metadata);
	grpc_call_details_destroy(&c->details);
	grpc_slice_unref(c->status_text);
	if (c->call)
		grpc_call_unref(c->call);
	free(c);
	pthread_mutex_lock(&s->lock);
	if (had_arrived)
		s->calls--;
	else
		s->armed--;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* Runs fn as the call's cancellation; with the lock held and state OPEN, gives both back. */
static void run_cancel(struct rpc_call *c, void (*fn)(void *arg), void *arg)
{
	struct rpc_server *s = c->server;

	c->on_cancel = NULL;
	c->state = CANCELLING;
	c->canceller = pthread_self();
	atomic_fetch_add(&c->refs, 1); /* fn may answer */
	pthread_mutex_unlock(&s->lock);
	fn(arg);
	pthread_mutex_lock(&s->lock);
	if (c->state == CANCELLING)
		c->state = OPEN;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	call_unref(c);
	pthread_mutex_lock(&s->lock);
}

static void on_closed(struct core_tag *tag, bool ok)
{
	struct rpc_call *c = MU_CONTAINER(tag, struct rpc_call, closed);
	struct rpc_server *s = c->server;

	pthread_mutex_lock(&s->lock);
	if (c->state == OPEN && c->was_cancelled) {
		c->gone = true;
		if (c->on_cancel)
			run_cancel(c, c->on_cancel, c->on_cancel_arg);
	}
	pthread_mutex_unlock(&s->lock);
	call_unref(c);
}

static void on_sent(struct core_tag *tag, bool ok)
{
	call_unref(MU_CONTAINER(tag, struct rpc_call, sent));
}

static void answer(struct rpc_call *c, const struct rpc_message *m, const struct mu_err *err)
{
	struct rpc_server *s = c->server;
	grpc_byte_buffer *buffer = NULL;
	grpc_op ops[3] = {0};
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	while (c->state == CANCELLING && !pthread_equal(c->canceller, pthread_self()))
		pthread_cond_wait(&s->changed, &s->lock);
	c->state = ANSWERED;
	c->on_cancel = NULL;
	pthread_mutex_unlock(&s->lock);

	if (c->local_done) {
		c->local_done(c->local_arg, err, m);
		call_unref(c);
		return;
	}
	ops[n++].op = GRPC_OP_SEND_INITIAL_METADATA;
	if (m) {
		buffer = message_to_buffer(m);
		ops[n].op = GRPC_OP_SEND_MESSAGE;
		ops[n++].data.send_message.send_message = buffer;
	}
	ops[n].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
	ops[n].data.send_status_from_server.status = GRPC_STATUS_OK;
	if (err) {
		size_t len = strlen(err->msg);

		c->status_text = grpc_slice_from_copied_buffer(
		    err->msg, len > MAX_ERROR_TEXT ? MAX_ERROR_TEXT : len);
		ops[n].data.send_status_from_server.status =
		    (grpc_status_code)(err->code ? err->code : MU_UNKNOWN);
		ops[n].data.send_status_from_server.status_details = &c->status_text;
	}
	n++;
	atomic_fetch_add(&c->refs, 1); /* SENT */
	core_hand_over(&c->sent);
	if (grpc_call_start_batch(c->call, ops, n, &c->sent, NULL) != GRPC_CALL_OK) {
		mu_error("rpc", "an answer could not be sent");
		call_unref(c);
	}
	if (buffer)
		grpc_byte_buffer_destroy(buffer);
	call_unref(c); /* the handler's */
}

void rpc_reply(struct rpc_call *c, const struct rpc_message *m)
{
	answer(c, m, NULL);
}

void rpc_reply_error(struct rpc_call *c, const struct mu_err *err)
{
	answer(c, NULL, err);
}

struct rpc_bytes *rpc_request(struct rpc_call *c)
{
	return &c->request;
}

long rpc_time_left_ms(const struct rpc_call *c)
{
	gpr_timespec left;

	if (gpr_time_cmp(c->deadline, gpr_inf_future(c->deadline.clock_type)) == 0)
		return LONG_MAX;
	left = gpr_time_sub(c->deadline, gpr_now(c->deadline.clock_type));
	return left.tv_sec < 0 ? 0 : (long)gpr_time_to_millis(left);
}

void rpc_on_cancel(struct rpc_call *c, void (*fn)(void *arg), void *arg)
{
	struct rpc_server *s = c->server;

	pthread_mutex_lock(&s->lock);
	if (c->gone && c->state == OPEN) {
		run_cancel(c, fn, arg);
	} else {
		c->on_cancel = fn;
		c->on_cancel_arg = arg;
	}
	pthread_mutex_unlock(&s->lock);
}

/* ---- calls of this process ---- */

static const struct rpc_method *find_method(const struct rpc_server *s, const char *path)
{
	for (unsigned i = 0; i < s->n_methods; i++)
		if (!strcmp(s->methods[i].path, path))
			return &s->methods[i];
	return NULL;
}

struct rpc_call *rpc_local_start(struct rpc_server *s, const char *path,
				 const struct rpc_message *request, long timeout_ms,
				 rpc_local_done done, void *arg, struct mu_err *err)
{
	const struct rpc_method *method = find_method(s, path);
	struct rpc_call *c;

	if (!method) {
		mu_fail(err, MU_UNIMPLEMENTED, "this server has no method %.200s", path);
		return NULL;
	}
	pthread_mutex_lock(&s->lock);
	if (s->stopping) {
		pthread_mutex_unlock(&s->lock);
		mu_fail(err, MU_UNAVAILABLE, "the server in this process is stopping");
		return NULL;
	}
	s->calls++;
	pthread_mutex_unlock(&s->lock);
	c = MU_NEW(struct rpc_call);
	c->refs = 2;
	c->server = s;
	c->method = method;
	c->deadline = core_deadline(timeout_ms);
	c->local_done = done;
	c->local_arg = arg;
	c->status_text = grpc_empty_slice();
	grpc_metadata_array_init(&c->metadata);
	bytes_init(&c->request, message_to_buffer(request));
	method->handle(c, s->ctx);
	return c;
}

void rpc_local_cancel(struct rpc_call *c)
{
	struct rpc_server *s = c->server;

	pthread_mutex_lock(&s->lock);
	if (c->state == OPEN) {
		c->gone = true;
		if (c->on_cancel)
			run_cancel(c, c->on_cancel, c->on_cancel_arg);
	}
	pthread_mutex_unlock(&s->lock);
}

void rpc_local_end(struct rpc_call *c)
{
	call_unref(c);
}

static void on_arrived(struct core_tag *tag, bool ok)
{
	struct rpc_call *c = MU_CONTAINER(tag, struct rpc_call, arrived);
	struct rpc_server *s = c->server;
	grpc_op op = {0};
	struct mu_err err;

	if (!ok) { /* the server is going down */
		call_unref(c);
		return;
	}
	arm(s, c->method ? (unsigned)(c->method - s->methods) : s->n_methods);
	pthread_mutex_lock(&s->lock);
	s->armed--;
	s->calls++;
	pthread_mutex_unlock(&s->lock);
	bytes_init(&c->request, c->payload);
	atomic_fetch_add(&c->refs, 1); /* CLOSE; the first reference is now the handler's */
	op.op = GRPC_OP_RECV_CLOSE_ON_SERVER;
	op.data.recv_close_on_server.cancelled = &c->was_cancelled;
	core_hand_over(&c->closed);
	if (grpc_call_start_batch(c->call, &op, 1, &c->closed, NULL) != GRPC_CALL_OK)
		call_unref(c);
	if (!c->method) {
		struct mu_span path = {(const char *)GRPC_SLICE_START_PTR(c->details.method),
				       GRPC_SLICE_LENGTH(c->details.method)};

		mu_fail(&err, MU_UNIMPLEMENTED, "this server has no method %.*s",
			(int)(path.len > 200 ? 200 : path.len), path.data);
		rpc_reply_error(c, &err);
		return;
	}
	if (!c->payload) {
		mu_fail(&err, MU_INVALID_ARGUMENT, "%s came without a request message",
			c->method->path);
		rpc_reply_error(c, &err);
		return;
	}
	c->method->handle(c, s->ctx);
}

/* Posts one request for a method (n_methods: whatever is not registered). */
static void arm(struct rpc_server *s, unsigned method)
{
	struct rpc_call *c;
	grpc_call_error bad;

	pthread_mutex_lock(&s->lock);
	if (s->stopping) {
		pthread_mutex_unlock(&s->lock);
		return;
	}
	s->armed++;
	pthread_mutex_unlock(&s->lock);
	c = MU_NEW(struct rpc_call);
	c->arrived.fire = on_arrived;
	c->closed.fire = on_closed;
	c->sent.fire = on_sent;
	c->refs = 1;
	c->server = s;
	c->status_text = grpc_empty_slice();
	grpc_metadata_array_init(&c->metadata);
	grpc_call_details_init(&c->details);
	c->method = method < s->n_methods ? &s->methods[method] : NULL;
	core_hand_over(&c->arrived);
	if (c->method) {
		bad = grpc_server_request_registered_call(
		    s->server, s->registered[method], &c->call, &c->deadline, &c->metadata,
		    &c->payload, s->queue, s->queue, &c->arrived);
	} else {
		bad = grpc_server_request_call(s->server, &c->call, &c->details, &c->metadata,
					       s->queue, s->queue, &c->arrived);
	}
	if (bad != GRPC_CALL_OK)
		call_unref(c);
}

static void on_down(struct core_tag *tag, bool ok)
{
	struct rpc_server *s = MU_CONTAINER(tag, struct rpc_server, down_tag);

	pthread_mutex_lock(&s->lock);
	s->down = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void *serve(void *arg)
{
	struct rpc_server *s = arg;

	for (;;) {
		grpc_event e =
		    grpc_completion_queue_next(s->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);

		if (e.type == GRPC_QUEUE_SHUTDOWN)
			return NULL;
		if (e.type == GRPC_OP_COMPLETE) {
			struct core_tag *tag = e.tag;

			core_take_over(tag);
			tag->fire(tag, e.success);
		}
	}
}

static grpc_server *make_server(size_t max_message)
{
	int max = max_message == 0 || max_message > INT_MAX ? INT_MAX : (int)max_message;
	grpc_arg args[] = {
	    CORE_TRANSPORT_ARGS,
	    CORE_INT(GRPC_ARG_ALLOW_REUSEPORT, 0),
	    CORE_INT(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, max),
	    CORE_INT(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1),
	    /* our own clients ping a silent server every 20 s */
	    CORE_INT(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000),
	    CORE_INT(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
	    /* a caller whose machine is gone must not keep its calls here for ever */
	    CORE_INT(GRPC_ARG_KEEPALIVE_TIME_MS, 60000),
	    CORE_INT(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000),
	};
	grpc_channel_args list = {MU_COUNT(args), args};

	return grpc_server_create(&list, NULL);
}

static void free_server(struct rpc_server *s)
{
	grpc_server_destroy(s->server);
	grpc_completion_queue_shutdown(s->queue);
	if (s->n_threads == 0) /* never started: drain by hand */
		serve(s);
	for (unsigned i = 0; i < s->n_threads; i++)
		pthread_join(s->threads[i], NULL);
	grpc_completion_queue_destroy(s->queue);
	core_shutdown();
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	for (unsigned i = 0; i < s->n_methods; i++)
		free((char *)s->methods[i].path);
	free((void *)s->methods);
	free(s->registered);
	free(s);
}

static void register_methods(struct rpc_server *s, const struct rpc_server_options *o)
{
	struct rpc_method *copy = MU_NEW_ARRAY(struct rpc_method, o->n_methods ? o->n_methods : 1);

	s->registered = MU_NEW_ARRAY(void *, o->n_methods ? o->n_methods : 1);
	for (unsigned i = 0; i < o->n_methods; i++) {
		copy[i] = o->methods[i];
		copy[i].path = mu_xstrdup(o->methods[i].path);
		s->registered[i] = grpc_server_register_method(
		    s->server, copy[i].path, NULL, GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
	}
	s->methods = copy;
	s->n_methods = o->n_methods;
}

/* A server that never started must still be shut down before it may be destroyed. */
static int give_up(struct rpc_server *s, int *ports, int rc)
{
	grpc_server_shutdown_and_notify(s->server, s->queue, &s->down_tag);
	while (!s->down) {
		grpc_event e =
		    grpc_completion_queue_next(s->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
		struct core_tag *tag = e.tag;

		tag->fire(tag, e.success);
	}
	free_server(s);
	free(ports);
	return rc;
}

int rpc_server_start(const struct rpc_server_options *o, struct rpc_server **out, int *ports,
		     struct mu_err *err)
{
	struct rpc_server *s = MU_NEW(struct rpc_server);
	int *got = MU_NEW_ARRAY(int, o->n_addresses ? o->n_addresses : 1), rc;
	unsigned threads = o->threads ? o->threads : 2;

	core_init();
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->ctx = o->ctx;
	s->down_tag.fire = on_down;
	s->queue = grpc_completion_queue_create_for_next(NULL);
	s->server = make_server(o->max_message);
	grpc_server_register_completion_queue(s->server, s->queue, NULL);
	register_methods(s, o);
	for (unsigned i = 0; i < o->n_addresses; i++) {
		rc = bind_listen(s->server, o->addresses[i], &got[i], err);
		if (rc)
			return give_up(s, got, rc);
	}
	grpc_server_start(s->server);
	for (unsigned i = 0; i <= s->n_methods; i++)
		arm(s, i);
	if (threads > MAX_THREADS)
		threads = MAX_THREADS;
	for (; s->n_threads < threads; s->n_threads++)
		if (pthread_create(&s->threads[s->n_threads], NULL, serve, s))
			break;
	if (s->n_threads == 0) {
		mu_fail(err, MU_RESOURCE_EXHAUSTED, "no thread could be started for the server");
		s->stopping = true;
		return give_up(s, got, -MU_RESOURCE_EXHAUSTED);
	}
	memcpy(ports, got, o->n_addresses * sizeof(int));
	free(got);
	*out = s;
	return 0;
}

/* With the lock: until no call is left, or the time is up. */
static bool wait_idle(struct rpc_server *s, long ms)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += ms / 1000;
	end.tv_nsec += ms % 1000 * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	while (s->calls || s->armed || !s->down)
		if (pthread_cond_timedwait(&s->changed, &s->lock, &end))
			return !s->calls && !s->armed && s->down;
	return true;
}

void rpc_server_stop(struct rpc_server *s, long grace_ms)
{
	bool idle;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_mutex_unlock(&s->lock);
	grpc_server_shutdown_and_notify(s->server, s->queue, &s->down_tag);
	pthread_mutex_lock(&s->lock);
	idle = wait_idle(s, grace_ms);
	pthread_mutex_unlock(&s->lock);
	if (!idle) {
		grpc_server_cancel_all_calls(s->server);
		pthread_mutex_lock(&s->lock);
		idle = wait_idle(s, STOP_AFTER_CANCEL_MS);
		pthread_mutex_unlock(&s->lock);
	}
	if (!idle) { /* somebody keeps a call: leaking the server is safer than pulling it away */
		mu_error("rpc", "%u calls were never answered; the server is left as it is",
			 s->calls);
		return;
	}
	free_server(s);
}
