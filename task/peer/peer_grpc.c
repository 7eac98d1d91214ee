/* SPDX-License-Identifier: Apache-2.0 */
/* Calls another task through TensorFlow's worker RPCs.  The channel is opened at the first use.
 *
 * Running receives are listed with their step.  When the step ends on this task, they are
 * cancelled, because the other task may never reply. */
#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/pb.h"
#include "lib/base/random.h"
#include "proto/worker.pb-c.h"
#include "task/messages/control.h"
#include "task/messages/step_messages.h"
#include "task/peer/peer_stream.h"
#include "task/rpc/channel.h"
#include "task/rpc/tls.h"

struct receive;
struct peer_grpc {
	struct peer base;
	char *address;
	struct rpc_tls *tls;  /* a reference, or NULL */
	pthread_mutex_t lock; /* guards the members below; not held across `done` */
	struct rpc_channel *ch;
	struct receive *receives;
	_Atomic unsigned n_receives;
};

struct receive {
	struct receive *prev, *next;
	struct peer_grpc *peer;
	int64_t step_id;
	uint64_t call; /* 0: not started */
	rendezvous_done done;
	void *arg;
};

/* The id of all runs over streams. */
#define STREAM_RUN_ID (1ull << 63)

struct control {
	struct stream_peer *stream; /* GetStatus: receives the offer in the reply; else NULL */
	peer_done done;
	void *arg;
};

static const char *const paths[] = {
    [PEER_GET_STATUS] = "/tensorflow.WorkerService/GetStatus",
    [PEER_CREATE_SESSION] = "/tensorflow.WorkerService/CreateWorkerSession",
    [PEER_DELETE_SESSION] = "/tensorflow.WorkerService/DeleteWorkerSession",
    [PEER_REGISTER_GRAPH] = "/tensorflow.WorkerService/RegisterGraph",
    [PEER_DEREGISTER_GRAPH] = "/tensorflow.WorkerService/DeregisterGraph",
    [PEER_CLEANUP_GRAPH] = "/tensorflow.WorkerService/CleanupGraph",
    [PEER_CLEANUP_ALL] = "/tensorflow.WorkerService/CleanupAll",
};

static struct peer_grpc *grpc_of(struct peer *p)
{
	return MU_CONTAINER(p, struct peer_grpc, base);
}

static struct rpc_channel *channel(struct peer_grpc *g, struct mu_err *err)
{
	struct rpc_channel *ch;

	pthread_mutex_lock(&g->lock);
	if (!g->ch && rpc_channel_open_tls(g->address, g->tls, &g->ch, err))
		g->ch = NULL;
	ch = g->ch;
	pthread_mutex_unlock(&g->lock);
	return ch;
}

static void control_done(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct control *c = arg;

	if (!err && c->stream)
		stream_peer_offered(c->stream, rpc_bytes_flat(reply));
	c->done(c->arg, err, err ? MU_SPAN("") : rpc_bytes_flat(reply));
	free(c);
}

static void run_done(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct control *c = arg;
	struct mu_err status;

	if (!err && response_status_parse(rpc_bytes_flat(reply), 5, 6, &status))
		err = &status;
	c->done(c->arg, err, err ? MU_SPAN("") : rpc_bytes_flat(reply));
	free(c);
}

static uint64_t grpc_start(struct peer *p, const char *method, struct mu_span request,
			   long timeout_ms, bool wait_for_ready, rpc_done fn, peer_done done,
			   void *arg)
{
	struct rpc_message m = {.head = request};
	struct control *c;
	struct mu_err err;
	struct rpc_channel *ch = channel(grpc_of(p), &err);
	uint64_t id = 0;

	if (ch) {
		c = MU_NEW(struct control);
		*c = (struct control){method == paths[PEER_GET_STATUS] ? p->stream : NULL, done,
				      arg};
		id = rpc_start(ch, method, &m, timeout_ms, wait_for_ready ? RPC_WAIT_FOR_READY : 0,
			       fn, c, &err);
		if (!id)
			free(c);
	}
	if (!id)
		done(arg, &err, MU_SPAN(""));
	return id;
}

static uint64_t grpc_call_control(struct peer *p, enum peer_method m, struct mu_span request,
				  long timeout_ms, bool wait_for_ready, peer_done done, void *arg)
{
	return grpc_start(p, paths[m], request, timeout_ms, wait_for_ready, control_done, done,
			  arg);
}

static uint64_t grpc_run(struct peer *p, const struct peer_run *run, peer_done done, void *arg)
{
	struct run_graph_request m = {.graph = run->graph,
				      .session = run->session,
				      .step_id = run->step_id,
				      .request_id = run->request_id,
				      .record = run->record,
				      .store_errors = true,
				      .session_called = true};
	MU_AUTO_BUF b = {0};

	if (run->stream) {
		stream_run_graph(run->stream, run, done, arg);
		return STREAM_RUN_ID;
	}
	run_graph_request_write(&b, &m);
	return grpc_start(p, "/tensorflow.WorkerService/RunGraph", mu_buf_span(&b), 0, false,
			  run_done, done, arg);
}

static void grpc_cancel(struct peer *p, uint64_t id)
{
	struct rpc_channel *ch = channel(grpc_of(p), NULL);

	if (ch && id)
		rpc_out_cancel(ch, id);
}

static void grpc_cancel_run(struct peer *p, uint64_t id, int64_t step_id)
{
	if (id == STREAM_RUN_ID)
		stream_peer_cancel(p->stream, step_id);
	else
		grpc_cancel(p, id);
}

int peer_error(const struct peer *p, struct mu_err *err)
{
	struct mu_err reason = *err;

	if (strncmp(err->msg, "From /job:", 10))
		mu_fail(err, reason.code, "From %s:\n%s", p->task, reason.msg);
	return -(int)reason.code;
}

static void grpc_received(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct receive *r = arg;
	struct peer_grpc *g = r->peer;
	struct mu_tensor t = {0};
	struct mu_err peer_err;
	bool dead = false;

	pthread_mutex_lock(&g->lock);
	if (r->prev)
		r->prev->next = r->next;
	else
		g->receives = r->next;
	if (r->next)
		r->next->prev = r->prev;
	g->n_receives--;
	pthread_mutex_unlock(&g->lock);
	if (!err && recv_tensor_response_parse(rpc_bytes_flat(reply), &t, &dead, &peer_err)) {
		mu_wrap(&peer_err, "from %s", g->base.task);
		err = &peer_err;
	} else if (err && strstr(err->msg, "[[{{node")) {
		/* The step failed on the other task.  The master may receive this error first. */
		peer_err = *err;
		peer_error(&g->base, &peer_err);
		err = &peer_err;
	}
	r->done(r->arg, err, &t, dead);
	free(r);
}

void peer_grpc_request_tensor(struct peer *p, const char *method, const struct rpc_message *request,
			      int64_t step_id, rendezvous_done done, void *arg)
{
	struct peer_grpc *g = grpc_of(p);
	struct receive *r = MU_NEW(struct receive);
	struct mu_err err;
	struct rpc_channel *ch = channel(g, &err);
	uint64_t id;

	*r = (struct receive){.peer = g, .step_id = step_id, .done = done, .arg = arg};
	pthread_mutex_lock(&g->lock);
	r->next = g->receives;
	if (r->next)
		r->next->prev = r;
	g->receives = r;
	g->n_receives++;
	/* Under the lock, so that r->call is set before grpc_received or peer_grpc_drop_step reads
	 * it.  A short wait is enough for a peer that is starting or has a new address. */
	id = ch ? rpc_start(ch, method, request, 0, RPC_WAIT_SHORT, grpc_received, r, &err) : 0;
	r->call = id;
	pthread_mutex_unlock(&g->lock);
	if (!id)
		grpc_received(r, &err, NULL);
}

static void grpc_recv(struct peer *p, int64_t step_id, const char *key, rendezvous_done done,
		      void *arg)
{
	struct recv_tensor_request m = {
	    .step_id = step_id, .key = key, .request_id = (int64_t)mu_random_u64()};
	struct rpc_message out;
	MU_AUTO_BUF b = {0};

	recv_tensor_request_write(&b, &m);
	out = (struct rpc_message){.head = mu_buf_span(&b)};
	peer_grpc_request_tensor(p, "/tensorflow.WorkerService/RecvTensor", &out, step_id, done,
				 arg);
}

void peer_grpc_drop_step(struct peer *p, int64_t step_id)
{
	struct peer_grpc *g = grpc_of(p);

	if (atomic_load(&g->n_receives) == 0)
		return;
	pthread_mutex_lock(&g->lock);
	for (struct receive *r = g->receives; r; r = r->next)
		if (r->step_id == step_id && r->call)
			rpc_out_cancel(g->ch, r->call);
	pthread_mutex_unlock(&g->lock);
}

static void grpc_free(struct peer *p)
{
	struct peer_grpc *g = grpc_of(p);

	rpc_channel_close(g->ch);
	pthread_mutex_destroy(&g->lock);
	rpc_tls_unref(g->tls);
	free(g->address);
	free(g);
}

static void grpc_describe(struct peer *p, struct mu_buf *out)
{
	struct peer_grpc *g = grpc_of(p);
	struct rpc_channel *ch;
	struct mu_err why;

	pthread_mutex_lock(&g->lock);
	ch = g->ch;
	pthread_mutex_unlock(&g->lock);
	if (ch && rpc_channel_is_disconnected(ch, &why))
		mu_buf_printf(out, " (%s)", why.msg); /* includes the address */
	else
		mu_buf_printf(out, " at %s", g->address);
}

static const struct peer_ops ops = {
    .call = grpc_call_control,
    .run_graph = grpc_run,
    .cancel = grpc_cancel,
    .cancel_run = grpc_cancel_run,
    .recv_tensor = grpc_recv,
    .describe = grpc_describe,
    .free = grpc_free,
};

const char *peer_grpc_address(const struct peer *p)
{
	return MU_CONTAINER(p, struct peer_grpc, base)->address;
}

struct peer *peer_grpc_new(const char *address, struct rpc_tls *tls, struct mu_err *err)
{
	struct peer_grpc *g;

	if (mu_address_check(address, err))
		return NULL;
	g = MU_NEW(struct peer_grpc);
	g->base.ops = &ops;
	g->address = mu_xstrdup(address);
	g->tls = tls ? rpc_tls_ref(tls) : NULL;
	pthread_mutex_init(&g->lock, NULL);
	return &g->base;
}
