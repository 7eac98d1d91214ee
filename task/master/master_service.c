/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow's MasterService under both of its names.  TensorFlow's own clients call
 * tensorflow.MasterService; clients generated from the published .proto files call
 * tensorflow.grpc.MasterService. */
#include "lib/base/log.h"
#include "lib/base/pb.h"
#include "proto/master.pb-c.h"
#include "proto/worker.pb-c.h"
#include "task/context.h"
#include "task/master/master.h"
#include "task/master/partial.h"
#include "task/master/session_devices.h"
#include "task/messages/control.h"

enum { LIST_TIMEOUT_MS = 5000 };

static struct master *master_of(void *ctx)
{
	return ((struct task_context *)ctx)->master;
}

static void run_step(struct rpc_call *call, void *ctx)
{
	if (!run_step_start(master_of(ctx), call, false))
		partial_run(master_of(ctx), call, rpc_bytes_flat(rpc_request(call)));
}

static void run_callable(struct rpc_call *call, void *ctx)
{
	run_step_start(master_of(ctx), call, true);
}

/* The client may cancel CreateSession while it waits for missing tasks. */
struct create {
	struct rpc_call *call;
	struct master *master;
	struct fan_out fan_out;
};

static void on_create_cancelled(void *arg)
{
	fan_out_cancel(&((struct create *)arg)->fan_out);
}

/* An extension: a client that waits for CreateSession can ask for the reason.  The reply has a text
 * in field 1. */
static void get_session_wait_reason(struct rpc_call *call, void *ctx)
{
	MU_AUTO_BUF text = {0};
	MU_AUTO_BUF reply = {0};

	master_describe_waits(master_of(ctx), rpc_client_id(call), &text);
	mu_buf_putc(&text, 0);
	mu_pb_put_str(&reply, 1, text.data);
	rpc_reply(call, &(struct rpc_message){.head = mu_buf_span(&reply)});
}

static void run_create(void *arg)
{
	struct create *c = arg;
	Muster__CreateSessionResponse m = MUSTER__CREATE_SESSION_RESPONSE__INIT;
	MU_AUTO_BUF reply = {0};
	struct session *s;
	struct mu_err err;
	int rc;

	c->fan_out.client_id = rpc_client_id(c->call);
	master_add_waiting(c->master, &c->fan_out);
	rc = session_create(c->master, rpc_bytes_flat(rpc_request(c->call)), &c->fan_out, &s, &err);
	master_remove_waiting(c->master, &c->fan_out);
	if (rc) {
		mu_warn("master", "CreateSession: %s: %s", mu_code_name(err.code), err.msg);
		rpc_reply_error(c->call, &err);
	} else {
		m.session_handle = s->handle;
		control_pack(&reply, &m);
		rpc_reply(c->call, &(struct rpc_message){.head = mu_buf_span(&reply)});
		if (c->fan_out.cancelled && master_remove(c->master, s->handle)) {
			mu_fail(&err, MU_CANCELLED,
				"The client cancelled the creation of the session");
			session_close(s, &err);
			session_unref(s);
		}
		session_unref(s);
	}
	fan_out_fini(&c->fan_out);
	free(c);
}

static void create_session(struct rpc_call *call, void *ctx)
{
	struct create *c = MU_NEW(struct create);

	c->call = call;
	c->master = master_of(ctx);
	fan_out_init(&c->fan_out);
	rpc_on_cancel(call, on_create_cancelled, c);
	mu_offload_run(c->master->offload, run_create, c);
}

/* ---- methods that run on the offload threads ---- */

static int extend(void *ctx, struct mu_span request, struct mu_buf *reply, struct mu_err *err)
{
	Muster__ExtendSessionResponse out = MUSTER__EXTEND_SESSION_RESPONSE__INIT;
	MU_AUTO(session_unref) struct session *s = NULL;
	MU_AUTO_ARENA a = {0};
	Muster__ExtendSessionRequest *m =
	    control_unpack(&a, &muster__extend_session_request__descriptor, request, err);

	if (!m || !(s = master_session(master_of(ctx), m->session_handle, err)))
		return -(int)err->code;
	MU_RETURN_IF_ERROR(session_extend(s, control_bytes(m->graph_def), m->current_graph_version,
					  &out.new_graph_version, err));
	control_pack(reply, &out);
	return 0;
}

static int close_session(void *ctx, struct mu_span request, struct mu_buf *reply,
			 struct mu_err *err)
{
	MU_AUTO(session_unref) struct session *s = NULL;
	MU_AUTO_ARENA a = {0};
	Muster__CloseSessionRequest *m =
	    control_unpack(&a, &muster__close_session_request__descriptor, request, err);
	struct mu_err why;

	if (!m)
		return -MU_INVALID_ARGUMENT;
	s = master_remove(master_of(ctx), m->session_handle);
	if (!s)
		return mu_fail(err, MU_ABORTED,
			       "Session %.64s is not found. Possibly, this master has restarted.",
			       m->session_handle);
	mu_fail(&why, MU_CANCELLED,
		"Step was cancelled by an explicit call to `Session::Close()`.");
	session_close(s, &why);
	return 0;
}

static int reset(void *ctx, struct mu_span request, struct mu_buf *reply, struct mu_err *err)
{
	Muster__CleanupAllRequest all = MUSTER__CLEANUP_ALL_REQUEST__INIT;
	struct master *master = master_of(ctx);
	MU_AUTO_BUF message = {0};
	MU_AUTO_ARENA a = {0};
	Muster__ResetRequest *m =
	    control_unpack(&a, &muster__reset_request__descriptor, request, err);
	struct fan_out g;
	struct mu_err why;
	int rc;

	if (!m)
		return -MU_INVALID_ARGUMENT;
	fan_out_init(&g);
	rc = master_add_filtered_peers(master->peers, m->device_filters, m->n_device_filters, &g,
				       err);
	if (!rc) {
		mu_fail(&why, MU_ABORTED, "The session was reset");
		master_close_all(master, &why);
		all.n_container = m->n_container;
		all.container = m->container;
		control_pack(&message, &all);
		fan_out_run(&g, PEER_CLEANUP_ALL, mu_buf_span(&message), LIST_TIMEOUT_MS, false,
			    "Reset");
		rc = fan_out_error(&g, err);
	}
	fan_out_fini(&g);
	return rc;
}

static int list_all_devices(void *ctx, struct mu_span request, struct mu_buf *reply,
			    struct mu_err *err)
{
	MU_AUTO(session_unref) struct session *s = NULL;
	MU_AUTO_ARENA a = {0};
	Muster__ListDevicesRequest *m =
	    control_unpack(&a, &muster__list_devices_request__descriptor, request, err);
	struct fan_out g;
	int rc = 0;

	if (!m ||
	    (*m->session_handle && !(s = master_session(master_of(ctx), m->session_handle, err))))
		return -(int)err->code;
	fan_out_init(&g);
	for (unsigned i = 0; s && i < s->n_peers; i++)
		fan_out_add(&g, s->peers[i]);
	if (!s)
		rc = master_add_filtered_peers(master_of(ctx)->peers, NULL, 0, &g, err);
	if (!rc) {
		fan_out_run(&g, PEER_GET_STATUS, MU_SPAN(""), LIST_TIMEOUT_MS, false,
			    "ListDevices");
		rc = list_devices(s, &g, reply, err);
	}
	fan_out_fini(&g);
	return rc;
}

static int make_callable(void *ctx, struct mu_span request, struct mu_buf *reply,
			 struct mu_err *err)
{
	Muster__MakeCallableResponse out = MUSTER__MAKE_CALLABLE_RESPONSE__INIT;
	MU_AUTO(session_unref) struct session *s = NULL;
	MU_AUTO_ARENA a = {0};
	Muster__MakeCallableRequest *m =
	    control_unpack(&a, &muster__make_callable_request__descriptor, request, err);

	if (!m || !(s = master_session(master_of(ctx), m->session_handle, err)))
		return -(int)err->code;
	MU_RETURN_IF_ERROR(callable_make(s, request, &out.handle, err));
	control_pack(reply, &out);
	return 0;
}

static int release_callable(void *ctx, struct mu_span request, struct mu_buf *reply,
			    struct mu_err *err)
{
	MU_AUTO(session_unref) struct session *s = NULL;
	MU_AUTO_ARENA a = {0};
	Muster__ReleaseCallableRequest *m =
	    control_unpack(&a, &muster__release_callable_request__descriptor, request, err);

	if (!m || !(s = master_session(master_of(ctx), m->session_handle, err)))
		return -(int)err->code;
	return callable_release(s, m->handle, err);
}

static int partial_run_setup(void *ctx, struct mu_span request, struct mu_buf *reply,
			     struct mu_err *err)
{
	return partial_setup(master_of(ctx), request, reply, err);
}

#define METHOD(name, ...)                                                                          \
	{"/tensorflow.MasterService/" name, __VA_ARGS__},                                          \
	{                                                                                          \
		"/tensorflow.grpc.MasterService/" name, __VA_ARGS__                                \
	}
const struct rpc_method master_methods[] = {
    METHOD("CreateSession", .handle = create_session),
    METHOD("ExtendSession", .respond_offload = extend),
    METHOD("PartialRunSetup", .respond_offload = partial_run_setup),
    METHOD("RunStep", .handle = run_step),
    METHOD("CloseSession", .respond_offload = close_session),
    METHOD("ListDevices", .respond_offload = list_all_devices),
    METHOD("Reset", .respond_offload = reset),
    METHOD("MakeCallable", .respond_offload = make_callable),
    METHOD("RunCallable", .handle = run_callable),
    METHOD("ReleaseCallable", .respond_offload = release_callable),
    {"/muster.MasterService/Waits", .handle = get_session_wait_reason},
};
const unsigned master_n_methods = MU_COUNT(master_methods);
