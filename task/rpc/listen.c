/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from the network, through the gRPC C core library.
 *
 * Methods are registered, so that gRPC delivers a call together with its request in one event.  One
 * request is posted for each method, and one for all unregistered methods, which get UNIMPLEMENTED.
 * When a posted request is matched, the next one is posted before anything else.  References to a
 * call: one of the posted request, which becomes the handler's; one of the RECV_CLOSE batch; one of
 * the reply batch.  A batch that starts after the completion queue's shutdown aborts the process.
 * Therefore a listener has a reference to the queue, and is freed only when no call is left. */
#include "task/rpc/listen.h"

#include <grpc/byte_buffer.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <limits.h>

#include "lib/base/clock.h"
#include "lib/base/cond.h"
#include "lib/base/log.h"
#include "task/rpc/bind.h"
#include "task/rpc/call.h"
#include "task/rpc/core.h"
#include "task/rpc/frame_guard.h"
#include "task/rpc/tls.h"

enum {
	MAX_STREAMS = 16384, /* concurrent calls of one connection */
	HANDSHAKE_MS = 20000,
	/* detects failed machines of callers, so that their calls end */
	KEEPALIVE_MS = 60000,
	KEEPALIVE_TIMEOUT_MS = 20000,
	MIN_PING_INTERVAL_MS = 5000, /* clients of task/rpc/channel.c ping every 20 s */
};

struct listener {
	struct rpc_server *rpc;
	grpc_server *server;
	grpc_completion_queue *queue;
	const struct rpc_method *methods;
	void **method_handles; /* gRPC's handle for each method */
	unsigned n_methods;
	struct core_tag shutdown_tag;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	unsigned n_posted; /* posted requests */
	bool closing, is_shut_down;
};

struct net_call {
	struct rpc_call base; /* the first member */
	struct core_tag arrived_tag, closed_tag, sent_tag;
	struct listener *listener;
	grpc_call *call;
	gpr_timespec deadline;
	grpc_metadata_array metadata;
	grpc_call_details details; /* details of an unregistered method */
	grpc_byte_buffer *payload;
	int was_cancelled;
	grpc_slice status_text;
};

static struct net_call *net_call_of(struct rpc_call *c)
{
	return MU_CONTAINER(c, struct net_call, base);
}

static void post_request(struct listener *l, unsigned method);

static void net_call_free(struct rpc_call *base)
{
	struct net_call *c = net_call_of(base);

	grpc_metadata_array_destroy(&c->metadata);
	grpc_call_details_destroy(&c->details);
	grpc_slice_unref(c->status_text);
	if (c->call)
		grpc_call_unref(c->call);
	free(c);
}

static void net_call_on_closed(struct core_tag *tag, bool ok)
{
	struct net_call *c = MU_CONTAINER(tag, struct net_call, closed_tag);

	if (c->was_cancelled)
		rpc_call_on_disconnect(&c->base);
	rpc_call_unref(&c->base);
}

static void net_call_on_sent(struct core_tag *tag, bool ok)
{
	rpc_call_unref(&MU_CONTAINER(tag, struct net_call, sent_tag)->base);
}

static void call_send(struct rpc_call *base, const struct rpc_message *m, const struct mu_err *err)
{
	struct net_call *c = net_call_of(base);
	grpc_byte_buffer *buffer = NULL;
	grpc_op ops[3] = {0};
	size_t n = 0;

	ops[n++].op = GRPC_OP_SEND_INITIAL_METADATA;
	if (m) {
		buffer = message_to_buffer(m);
		ops[n].op = GRPC_OP_SEND_MESSAGE;
		ops[n++].data.send_message.send_message = buffer;
	}
	ops[n].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
	if (!m) {
		size_t len = strlen(err->msg);

		c->status_text = grpc_slice_from_copied_buffer(
		    err->msg, len > CORE_MAX_ERROR_TEXT ? CORE_MAX_ERROR_TEXT : len);
		ops[n].data.send_status_from_server.status =
		    (grpc_status_code)(err->code ? err->code : MU_UNKNOWN);
		ops[n].data.send_status_from_server.status_details = &c->status_text;
	}
	n++;
	atomic_fetch_add(&c->base.refs, 1);
	mu_tsan_release(&c->sent_tag);
	if (grpc_call_start_batch(c->call, ops, n, &c->sent_tag, NULL) != GRPC_CALL_OK) {
		mu_error("rpc", "cannot send a reply");
		rpc_call_unref(&c->base);
	}
	if (buffer)
		grpc_byte_buffer_destroy(buffer);
}

static uint32_t call_client_id(struct rpc_call *base)
{
	char *peer = grpc_call_get_peer(net_call_of(base)->call);
	uint32_t h = 2166136261u; /* FNV-1a */

	for (const char *c = peer; *c; c++)
		h = (h ^ (unsigned char)*c) * 16777619u;
	gpr_free(peer);
	return h ? h : 1; /* 0 is this process */
}

static const struct rpc_call_ops net_call_ops = {
    .send = call_send, .free = net_call_free, .client_id = call_client_id};

/* ---- requests ---- */

static void reply_unknown_method(struct net_call *c)
{
	struct mu_span path = {(const char *)GRPC_SLICE_START_PTR(c->details.method),
			       GRPC_SLICE_LENGTH(c->details.method)};
	struct mu_err err;

	if (!c->base.method)
		mu_fail(&err, MU_UNIMPLEMENTED, "this server has no method %.*s",
			(int)(path.len > 200 ? 200 : path.len), path.data);
	else
		mu_fail(&err, MU_INVALID_ARGUMENT, "%s: the request message is missing",
			c->base.method->path);
	rpc_reply_error(&c->base, &err);
}

static void finish_posted(struct listener *l)
{
	pthread_mutex_lock(&l->lock);
	if (--l->n_posted == 0)
		pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static void net_call_on_arrived(struct core_tag *tag, bool ok)
{
	struct net_call *c = MU_CONTAINER(tag, struct net_call, arrived_tag);
	struct listener *l = c->listener;
	grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};

	if (ok)
		post_request(l, c->base.method ? (unsigned)(c->base.method - l->methods)
					       : l->n_methods);
	if (!ok || !rpc_call_enter(&c->base)) { /* the server is stopping */
		grpc_byte_buffer_destroy(c->payload);
		rpc_call_unref(&c->base);
		finish_posted(l);
		return;
	}
	finish_posted(l);
	bytes_receive(&c->base.request, c->payload);
	atomic_fetch_add(&c->base.refs, 1);
	op.data.recv_close_on_server.cancelled = &c->was_cancelled;
	mu_tsan_release(&c->closed_tag);
	if (grpc_call_start_batch(c->call, &op, 1, &c->closed_tag, NULL) != GRPC_CALL_OK)
		rpc_call_unref(&c->base);
	if (c->base.method && c->payload)
		rpc_call_handle(&c->base);
	else
		reply_unknown_method(c);
}

/* Posts one request for a method; n_methods: for all unregistered methods. */
static void post_request(struct listener *l, unsigned method)
{
	struct net_call *c;
	grpc_call_error rc;

	pthread_mutex_lock(&l->lock);
	if (l->closing) {
		pthread_mutex_unlock(&l->lock);
		return;
	}
	l->n_posted++;
	pthread_mutex_unlock(&l->lock);
	c = MU_NEW(struct net_call);
	c->base.refs = 1;
	c->base.ops = &net_call_ops;
	c->base.server = l->rpc;
	c->listener = l;
	c->arrived_tag.complete = net_call_on_arrived;
	c->closed_tag.complete = net_call_on_closed;
	c->sent_tag.complete = net_call_on_sent;
	c->status_text = grpc_empty_slice();
	grpc_metadata_array_init(&c->metadata);
	grpc_call_details_init(&c->details);
	c->base.method = method < l->n_methods ? &l->methods[method] : NULL;
	mu_tsan_release(&c->arrived_tag);
	if (c->base.method)
		rc = grpc_server_request_registered_call(
		    l->server, l->method_handles[method], &c->call, &c->deadline, &c->metadata,
		    &c->payload, l->queue, l->queue, &c->arrived_tag);
	else
		rc = grpc_server_request_call(l->server, &c->call, &c->details, &c->metadata,
					      l->queue, l->queue, &c->arrived_tag);
	if (rc != GRPC_CALL_OK) {
		rpc_call_unref(&c->base);
		finish_posted(l);
	}
}

/* ---- start and stop ---- */

static grpc_server *make_server(size_t max_message)
{
	grpc_arg args[] = {
	    CORE_INT(GRPC_ARG_ALLOW_REUSEPORT, 0),
	    CORE_INT(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)max_message),
	    CORE_INT(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1),
	    CORE_INT(GRPC_ARG_MAX_CONCURRENT_STREAMS, MAX_STREAMS),
	    CORE_INT(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, HANDSHAKE_MS),
	    CORE_INT(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, MIN_PING_INTERVAL_MS),
	    CORE_INT(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
	    CORE_INT(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS),
	    CORE_INT(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS),
	    CORE_INT(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, CORE_READ_CHUNK),
	    CORE_INT(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, CORE_STREAM_WINDOW),
	    CORE_INT(GRPC_ARG_ENABLE_CHANNELZ, 0),
	};
	grpc_channel_args list = {MU_COUNT(args), args};

	return grpc_server_create(&list, NULL);
}

static void on_shutdown(struct core_tag *tag, bool ok)
{
	struct listener *l = MU_CONTAINER(tag, struct listener, shutdown_tag);

	pthread_mutex_lock(&l->lock);
	l->is_shut_down = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

void listener_close(struct listener *l)
{
	pthread_mutex_lock(&l->lock);
	l->closing = true;
	pthread_mutex_unlock(&l->lock);
	mu_tsan_release(&l->shutdown_tag);
	grpc_server_shutdown_and_notify(l->server, l->queue, &l->shutdown_tag);
}

void listener_cancel_all(struct listener *l)
{
	grpc_server_cancel_all_calls(l->server);
}

bool listener_wait_closed(struct listener *l, long ms)
{
	int64_t until = mu_clock_ms() + ms;
	bool is_closed;
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	while ((l->n_posted || !l->is_shut_down) && !rc)
		rc = mu_cond_wait_until(&l->changed, &l->lock, until);
	is_closed = !l->n_posted && l->is_shut_down;
	pthread_mutex_unlock(&l->lock);
	return is_closed;
}

void listener_free(struct listener *l)
{
	grpc_server_destroy(l->server);
	core_queue_unref();
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->changed);
	free(l->method_handles);
	free(l);
}

static int listen_at(struct listener *l, const char *address, struct rpc_tls *tls, int *port,
		     struct mu_err *err)
{
	grpc_server_credentials *creds =
	    tls ? rpc_tls_server_credentials(tls) : grpc_insecure_server_credentials_create();
	int rc = bind_listen(l->server, address, creds, port, err);

	grpc_server_credentials_release(creds);
	return rc;
}

int listener_start(struct rpc_server *server, const struct rpc_server_options *o,
		   struct listener **out, int *ports, struct mu_err *err)
{
	grpc_completion_queue *queue = core_queue_ref(err);
	struct listener *l;
	int rc = 0;

	if (!queue)
		return -MU_RESOURCE_EXHAUSTED;
	frame_guard_link();
	l = MU_NEW(struct listener);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	l->rpc = server;
	l->queue = queue;
	l->shutdown_tag.complete = on_shutdown;
	l->server =
	    make_server(o->max_message && o->max_message < INT_MAX ? o->max_message : INT_MAX);
	grpc_server_register_completion_queue(l->server, queue, NULL);
	l->methods = o->methods;
	l->n_methods = o->n_methods;
	l->method_handles = MU_NEW_ARRAY(void *, o->n_methods + 1);
	for (unsigned i = 0; i < o->n_methods; i++)
		l->method_handles[i] =
		    grpc_server_register_method(l->server, o->methods[i].path, NULL,
						GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
	for (unsigned i = 0; i < o->n_addresses && !rc; i++)
		rc =
		    listen_at(l, o->addresses[i], i < o->n_secured ? o->tls : NULL, &ports[i], err);
	if (rc) {
		listener_close(l);
		listener_wait_closed(l, INT_MAX);
		listener_free(l);
		return rc;
	}
	grpc_server_start(l->server);
	for (unsigned i = 0; i <= l->n_methods; i++)
		post_request(l, i);
	*out = l;
	return 0;
}
