/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow's WorkerService.  Methods that parse graphs or free much memory run on the offload
 * threads.  The others run on the queue thread. */
#include "lib/base/pb.h"
#include "proto/worker.pb-c.h"
#include "task/context.h"
#include "task/messages/control.h"
#include "task/messages/step_messages.h"
#include "task/peer/peer_collective.h"
#include "task/worker/worker.h"
#include "task/worker/worker_recv.h"

static struct worker *worker_of(void *ctx)
{
	return ((struct task_context *)ctx)->worker;
}

static void control(struct rpc_call *call, struct worker *w, enum peer_method m)
{
	MU_AUTO_BUF reply = {0};
	struct rpc_message out;
	struct mu_err err;

	if (worker_control(w, m, rpc_bytes_flat(rpc_request(call)), &reply, &err)) {
		rpc_reply_error(call, &err);
		return;
	}
	out = (struct rpc_message){.head = mu_buf_span(&reply)};
	rpc_reply(call, &out);
}

static void get_status(struct rpc_call *call, void *ctx)
{
	control(call, worker_of(ctx), PEER_GET_STATUS);
}

static void create_session(struct rpc_call *call, void *ctx)
{
	control(call, worker_of(ctx), PEER_CREATE_SESSION);
}

static void cleanup_graph(struct rpc_call *call, void *ctx)
{
	control(call, worker_of(ctx), PEER_CLEANUP_GRAPH);
}

/* ---- on the offload threads ---- */

struct offload_call {
	struct rpc_call *call;
	struct worker *worker;
	enum peer_method method;
};

static void run_control(void *arg)
{
	struct offload_call *l = arg;

	control(l->call, l->worker, l->method);
	free(l);
}

static void offload(struct rpc_call *call, struct worker *w, void (*fn)(void *), enum peer_method m)
{
	struct offload_call *l = MU_NEW(struct offload_call);

	*l = (struct offload_call){call, w, m};
	mu_offload_run(w->offload, fn, l);
}

static void delete_session(struct rpc_call *call, void *ctx)
{
	offload(call, worker_of(ctx), run_control, PEER_DELETE_SESSION);
}

static void deregister_graph(struct rpc_call *call, void *ctx)
{
	offload(call, worker_of(ctx), run_control, PEER_DEREGISTER_GRAPH);
}

static void cleanup_all(struct rpc_call *call, void *ctx)
{
	offload(call, worker_of(ctx), run_control, PEER_CLEANUP_ALL);
}

static int handle_register_graph(struct worker *w, struct mu_span request, struct mu_buf *reply,
				 struct mu_err *err)
{
	Muster__RegisterGraphResponse out = MUSTER__REGISTER_GRAPH_RESPONSE__INIT;
	MU_AUTO_FREE char *handle = NULL;
	Muster__RegisterGraphRequest *m;
	struct mu_graph *g;
	struct mu_arena a;
	int rc = -MU_INVALID_ARGUMENT;

	mu_arena_init(&a);
	m = control_unpack(&a, &muster__register_graph_request__descriptor, request, err);
	if (m) {
		g = mu_graph_new();
		rc = mu_graph_parse(g, control_bytes(m->graph_def), err);
		if (rc)
			mu_graph_free(g);
		else
			rc = worker_register(w, m->session_handle, m->create_worker_session_called,
					     control_bytes(m->config_proto),
					     control_bytes(m->debug_options), g, &handle, err);
	}
	if (!rc) {
		out.graph_handle = handle;
		control_pack(reply, &out);
	}
	mu_arena_fini(&a);
	return rc;
}

static void run_register(void *arg)
{
	struct offload_call *l = arg;
	MU_AUTO_BUF reply = {0};
	struct rpc_message out;
	struct mu_err err;

	if (handle_register_graph(l->worker, rpc_bytes_flat(rpc_request(l->call)), &reply, &err)) {
		rpc_reply_error(l->call, &err);
	} else {
		out = (struct rpc_message){.head = mu_buf_span(&reply)};
		rpc_reply(l->call, &out);
	}
	free(l);
}

static void register_graph(struct rpc_call *call, void *ctx)
{
	offload(call, worker_of(ctx), run_register, 0 /* not used */);
}

/* ---- steps ---- */

struct run {
	struct rpc_call *call;
	struct worker *worker;
	int64_t step_id;
	bool store_errors;
};

static void run_ended(void *arg, const struct mu_err *err, struct mu_span recorded)
{
	struct run *r = arg;
	MU_AUTO_BUF body = {0};
	struct rpc_message out;

	mu_buf_put(&body, recorded.data, recorded.len);
	if (err && r->store_errors) {
		mu_pb_put_int(&body, 5, err->code);
		mu_pb_put_str(&body, 6, err->msg);
	}
	out = (struct rpc_message){.head = mu_buf_span(&body)};
	if (err && !r->store_errors)
		rpc_reply_error(r->call, err);
	else
		rpc_reply(r->call, &out);
	free(r);
}

/* The master has cancelled the call or disconnected. */
static void run_cancelled(void *arg)
{
	struct run *r = arg;
	struct worker *w = r->worker;
	int64_t step_id = r->step_id;
	struct mu_err why;

	mu_fail(&why, MU_CANCELLED, "The master cancelled step %lld", (long long)step_id);
	worker_drop_step(w, step_id, &why);
}

static void run_graph(struct rpc_call *call, void *ctx)
{
	struct worker *w = worker_of(ctx);
	struct run_graph_request m;
	struct peer_run run;
	struct mu_arena a;
	struct mu_err err;
	struct run *r;

	mu_arena_init(&a);
	if (run_graph_request_parse(&m, rpc_bytes_flat(rpc_request(call)), &a, &err) ||
	    ((m.partial || m.has_send_or_recv) &&
	     mu_fail(&err, MU_UNIMPLEMENTED,
		     "RunGraph with tensors in the request is not supported: use RecvTensor"))) {
		rpc_reply_error(call, &err);
		mu_arena_fini(&a);
		return;
	}
	r = MU_NEW(struct run);
	*r = (struct run){call, w, m.step_id, m.store_errors};
	run = (struct peer_run){.session = m.session,
				.graph = m.graph,
				.step_id = m.step_id,
				.request_id = m.request_id,
				.record = m.record};
	rpc_on_cancel(call, run_cancelled, r);
	worker_run(w, &run, m.session_called, run_ended, r);
	mu_arena_fini(&a);
}

static void recv_tensor(struct rpc_call *call, void *ctx)
{
	worker_recv(worker_of(ctx), call);
}

static void join_collective(struct rpc_call *call, void *ctx)
{
	worker_join_collective(worker_of(ctx), call);
}

/* Replies with an empty message.  TensorFlow's workers record the times of RecvTensor calls for
 * this method; here they are part of the trace of a step. */
static void reply_empty(struct rpc_call *call, void *ctx)
{
	rpc_reply(call, NULL);
}

static void reply_unimplemented(struct rpc_call *call, void *ctx)
{
	struct mu_err err;

	mu_fail(&err, MU_UNIMPLEMENTED,
		"process traces and TensorFlow's messages of collective ops are not supported");
	rpc_reply_error(call, &err);
}

#define METHOD(name, fn)                                                                           \
	{"/tensorflow.WorkerService/" name, fn},                                                   \
	{                                                                                          \
		"/tensorflow.grpc.WorkerService/" name, fn                                         \
	}
const struct rpc_method worker_methods[] = {
    METHOD("GetStatus", get_status),
    METHOD("CreateWorkerSession", create_session),
    METHOD("DeleteWorkerSession", delete_session),
    METHOD("RegisterGraph", register_graph),
    METHOD("DeregisterGraph", deregister_graph),
    METHOD("RunGraph", run_graph),
    METHOD("CleanupGraph", cleanup_graph),
    METHOD("CleanupAll", cleanup_all),
    METHOD("RecvTensor", recv_tensor),
    METHOD("Logging", reply_empty),
    METHOD("Tracing", reply_unimplemented),
    METHOD("RecvBuf", reply_unimplemented),
    METHOD("CompleteGroup", reply_unimplemented),
    METHOD("CompleteInstance", reply_unimplemented),
    METHOD("GetStepSequence", reply_unimplemented),
    {COLLECTIVE_PATH, join_collective},
};
const unsigned worker_n_methods = MU_COUNT(worker_methods);
