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

/* ---- control messages ---- */

#define CONTROL(name, method)                                                                      \
	static int name(void *ctx, struct mu_span request, struct mu_buf *reply,                   \
			struct mu_err *err)                                                        \
	{                                                                                          \
		return worker_control(worker_of(ctx), method, request, reply, err);                \
	}
CONTROL(get_status, PEER_GET_STATUS)
CONTROL(create_session, PEER_CREATE_SESSION)
CONTROL(delete_session, PEER_DELETE_SESSION)
CONTROL(deregister_graph, PEER_DEREGISTER_GRAPH)
CONTROL(cleanup_graph, PEER_CLEANUP_GRAPH)
CONTROL(cleanup_all, PEER_CLEANUP_ALL)

static int register_graph(void *ctx, struct mu_span request, struct mu_buf *reply,
			  struct mu_err *err)
{
	Muster__RegisterGraphResponse out = MUSTER__REGISTER_GRAPH_RESPONSE__INIT;
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	MU_AUTO_FREE char *handle = NULL;
	MU_AUTO_ARENA a = {0};
	Muster__RegisterGraphRequest *m =
	    control_unpack(&a, &muster__register_graph_request__descriptor, request, err);

	if (!m)
		return -MU_INVALID_ARGUMENT;
	MU_RETURN_IF_ERROR(mu_graph_parse(g, control_bytes(m->graph_def), err));
	MU_RETURN_IF_ERROR(
	    worker_register(worker_of(ctx), m->session_handle, m->create_worker_session_called,
			    control_bytes(m->config_proto), control_bytes(m->debug_options),
			    mu_steal(&g), &handle, err));
	out.graph_handle = handle;
	control_pack(reply, &out);
	return 0;
}

/* ---- steps ---- */

struct run {
	struct rpc_call *call;
	struct worker *worker;
	int64_t step_id;
	bool store_errors;
};

static void run_ended(void *arg, const struct mu_err *err, struct mu_span records)
{
	struct run *r = arg;
	MU_AUTO_BUF body = {0};

	mu_buf_put(&body, records.data, records.len);
	if (err && r->store_errors) {
		mu_pb_put_int(&body, 5, err->code);
		mu_pb_put_str(&body, 6, err->msg);
	}
	if (err && !r->store_errors)
		rpc_reply_error(r->call, err);
	else
		rpc_reply(r->call, &(struct rpc_message){.head = mu_buf_span(&body)});
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
	MU_AUTO_ARENA a = {0};
	struct mu_err err;
	struct run *r;

	if (run_graph_request_parse(&m, rpc_bytes_flat(rpc_request(call)), &a, &err) ||
	    ((m.partial || m.has_send_or_recv) &&
	     mu_fail(&err, MU_UNIMPLEMENTED,
		     "RunGraph with tensors in the request is not supported: use RecvTensor"))) {
		rpc_reply_error(call, &err);
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
static int reply_empty(void *ctx, struct mu_span request, struct mu_buf *reply, struct mu_err *err)
{
	return 0;
}

static int fail_unimplemented(void *ctx, struct mu_span request, struct mu_buf *reply,
			      struct mu_err *err)
{
	return mu_fail(
	    err, MU_UNIMPLEMENTED,
	    "process traces and TensorFlow's messages of collective ops are not supported");
}

#define METHOD(name, ...)                                                                          \
	{"/tensorflow.WorkerService/" name, __VA_ARGS__},                                          \
	{                                                                                          \
		"/tensorflow.grpc.WorkerService/" name, __VA_ARGS__                                \
	}
const struct rpc_method worker_methods[] = {
    METHOD("GetStatus", .respond = get_status),
    METHOD("CreateWorkerSession", .respond_offload = create_session),
    METHOD("DeleteWorkerSession", .respond_offload = delete_session),
    METHOD("RegisterGraph", .respond_offload = register_graph),
    METHOD("DeregisterGraph", .respond_offload = deregister_graph),
    METHOD("RunGraph", .handle = run_graph),
    METHOD("CleanupGraph", .respond = cleanup_graph),
    METHOD("CleanupAll", .respond_offload = cleanup_all),
    METHOD("RecvTensor", .handle = recv_tensor),
    METHOD("Logging", .respond = reply_empty),
    METHOD("Tracing", .respond = fail_unimplemented),
    METHOD("RecvBuf", .respond = fail_unimplemented),
    METHOD("CompleteGroup", .respond = fail_unimplemented),
    METHOD("CompleteInstance", .respond = fail_unimplemented),
    METHOD("GetStepSequence", .respond = fail_unimplemented),
    {COLLECTIVE_PATH, .handle = join_collective},
};
const unsigned worker_n_methods = MU_COUNT(worker_methods);
