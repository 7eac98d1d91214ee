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

/* ---- methods that run on the offload threads ---- */

struct offload_call {
	struct rpc_call *call;
	struct master *master;
	int (*fn)(struct master *m, struct mu_span request, struct mu_buf *reply,
		  struct mu_err *err);
};

static void run_offload_call(void *arg)
{
	struct offload_call *l = arg;
	MU_AUTO_BUF reply = {0};
	struct rpc_message out;
	struct mu_err err;

	if (l->fn(l->master, rpc_bytes_flat(rpc_request(l->call)), &reply, &err)) {
		rpc_reply_error(l->call, &err);
	} else {
		out = (struct rpc_message){.head = mu_buf_span(&reply)};
		rpc_reply(l->call, &out);
	}
	free(l);
}

static void offload_call(struct rpc_call *call, void *ctx,
			 int (*fn)(struct master *, struct mu_span, struct mu_buf *,
				   struct mu_err *))
{
	struct offload_call *l = MU_NEW(struct offload_call);

	*l = (struct offload_call){call, master_of(ctx), fn};
	mu_offload_run(l->master->offload, run_offload_call, l);
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
static void get_waits(struct rpc_call *call, void *ctx)
{
	MU_AUTO_BUF text = {0};
	MU_AUTO_BUF reply = {0};
	struct rpc_message m;

	master_waits(master_of(ctx), rpc_client_id(call), &text);
	mu_buf_putc(&text, 0);
	mu_pb_put_str(&reply, 1, text.data);
	m = (struct rpc_message){.head = mu_buf_span(&reply)};
	rpc_reply(call, &m);
}

static void run_create(void *arg)
{
	struct create *c = arg;
	Muster__CreateSessionResponse m = MUSTER__CREATE_SESSION_RESPONSE__INIT;
	MU_AUTO_BUF reply = {0};
	struct rpc_message out;
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
		out = (struct rpc_message){.head = mu_buf_span(&reply)};
		rpc_reply(c->call, &out);
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

static int extend(struct master *m, struct mu_span request, struct mu_buf *reply,
		  struct mu_err *err)
{
	Muster__ExtendSessionResponse out = MUSTER__EXTEND_SESSION_RESPONSE__INIT;
	Muster__ExtendSessionRequest *req;
	struct session *s = NULL;
	struct mu_arena a;
	int rc = -MU_INVALID_ARGUMENT;

	mu_arena_init(&a);
	req = control_unpack(&a, &muster__extend_session_request__descriptor, request, err);
	if (req) {
		s = master_session(m, req->session_handle, err);
		rc = s ? session_extend(s, control_bytes(req->graph_def),
					req->current_graph_version, &out.new_graph_version, err)
		       : -MU_ABORTED;
	}
	if (!rc)
		control_pack(reply, &out);
	session_unref(s);
	mu_arena_fini(&a);
	return rc;
}

static int close_session_by_handle(struct master *m, struct mu_span request, struct mu_buf *reply,
				   struct mu_err *err)
{
	Muster__CloseSessionRequest *req;
	struct session *s = NULL;
	struct mu_arena a;
	struct mu_err why;
	int rc = -MU_INVALID_ARGUMENT;

	mu_arena_init(&a);
	req = control_unpack(&a, &muster__close_session_request__descriptor, request, err);
	if (req) {
		s = master_remove(m, req->session_handle);
		rc = s ? 0
		       : mu_fail(err, MU_ABORTED,
				 "Session %.64s is not found. Possibly, this master has restarted.",
				 req->session_handle);
	}
	mu_arena_fini(&a);
	if (rc)
		return rc;
	mu_fail(&why, MU_CANCELLED,
		"Step was cancelled by an explicit call to `Session::Close()`.");
	session_close(s, &why);
	session_unref(s);
	return 0;
}

static int reset(struct master *m, struct mu_span request, struct mu_buf *reply, struct mu_err *err)
{
	Muster__CleanupAllRequest all = MUSTER__CLEANUP_ALL_REQUEST__INIT;
	MU_AUTO_BUF message = {0};
	Muster__ResetRequest *req;
	struct fan_out g;
	struct mu_arena a;
	struct mu_err why;
	int rc = -MU_INVALID_ARGUMENT;

	mu_arena_init(&a);
	fan_out_init(&g);
	req = control_unpack(&a, &muster__reset_request__descriptor, request, err);
	if (req)
		rc = master_filter(m->peers, req->device_filters, req->n_device_filters, &g, err);
	if (!rc) {
		mu_fail(&why, MU_ABORTED, "The session was reset");
		master_close_all(m, &why);
		all.n_container = req->n_container;
		all.container = req->container;
		control_pack(&message, &all);
		fan_out_run(&g, PEER_CLEANUP_ALL, mu_buf_span(&message), LIST_TIMEOUT_MS, false,
			    "Reset");
		rc = fan_out_error(&g, err);
	}
	fan_out_fini(&g);
	mu_arena_fini(&a);
	return rc;
}

static int list_devices_reply(struct master *m, struct mu_span request, struct mu_buf *reply,
			      struct mu_err *err)
{
	Muster__ListDevicesRequest *req;
	struct session *s = NULL;
	struct fan_out g;
	struct mu_arena a;
	int rc = -MU_INVALID_ARGUMENT;

	mu_arena_init(&a);
	fan_out_init(&g);
	req = control_unpack(&a, &muster__list_devices_request__descriptor, request, err);
	if (req && *req->session_handle) {
		s = master_session(m, req->session_handle, err);
		rc = s ? 0 : -MU_ABORTED;
		for (unsigned i = 0; s && i < s->n_peers; i++)
			fan_out_add(&g, s->peers[i]);
	} else if (req) {
		rc = master_filter(m->peers, NULL, 0, &g, err);
	}
	if (!rc) {
		fan_out_run(&g, PEER_GET_STATUS, MU_SPAN(""), LIST_TIMEOUT_MS, false,
			    "ListDevices");
		rc = list_devices(s, &g, reply, err);
	}
	session_unref(s);
	fan_out_fini(&g);
	mu_arena_fini(&a);
	return rc;
}

static int master_make_callable(struct master *m, struct mu_span request, struct mu_buf *reply,
				struct mu_err *err)
{
	Muster__MakeCallableResponse out = MUSTER__MAKE_CALLABLE_RESPONSE__INIT;
	Muster__ListDevicesRequest *named; /* the handle is field 1 of both */
	struct session *s = NULL;
	struct mu_arena a;
	int rc = -MU_INVALID_ARGUMENT;

	mu_arena_init(&a);
	named = control_unpack(&a, &muster__list_devices_request__descriptor, request, err);
	if (named) {
		s = master_session(m, named->session_handle, err);
		rc = s ? callable_make(s, request, &out.handle, err) : -MU_ABORTED;
	}
	if (!rc)
		control_pack(reply, &out);
	session_unref(s);
	mu_arena_fini(&a);
	return rc;
}

static int release_callable(struct master *m, struct mu_span request, struct mu_buf *reply,
			    struct mu_err *err)
{
	Muster__ReleaseCallableRequest *req;
	struct session *s = NULL;
	struct mu_arena a;
	int rc = -MU_INVALID_ARGUMENT;

	mu_arena_init(&a);
	req = control_unpack(&a, &muster__release_callable_request__descriptor, request, err);
	if (req) {
		s = master_session(m, req->session_handle, err);
		rc = s ? callable_release(s, req->handle, err) : -MU_ABORTED;
	}
	session_unref(s);
	mu_arena_fini(&a);
	return rc;
}

#define OFFLOADED(name, fn)                                                                        \
	static void name(struct rpc_call *call, void *ctx)                                         \
	{                                                                                          \
		offload_call(call, ctx, fn);                                                       \
	}
OFFLOADED(extend_session, extend)
OFFLOADED(close_session, close_session_by_handle)
OFFLOADED(reset_all, reset)
OFFLOADED(list_all_devices, list_devices_reply)
OFFLOADED(make_a_callable, master_make_callable)
OFFLOADED(release_a_callable, release_callable)
OFFLOADED(partial_run_setup, partial_setup)

#define METHOD(name, fn)                                                                           \
	{"/tensorflow.MasterService/" name, fn},                                                   \
	{                                                                                          \
		"/tensorflow.grpc.MasterService/" name, fn                                         \
	}
const struct rpc_method master_methods[] = {
    METHOD("CreateSession", create_session),
    METHOD("ExtendSession", extend_session),
    METHOD("PartialRunSetup", partial_run_setup),
    METHOD("RunStep", run_step),
    METHOD("CloseSession", close_session),
    METHOD("ListDevices", list_all_devices),
    METHOD("Reset", reset_all),
    METHOD("MakeCallable", make_a_callable),
    METHOD("RunCallable", run_callable),
    METHOD("ReleaseCallable", release_a_callable),
    {"/muster.MasterService/Waits", get_waits},
};
const unsigned master_n_methods = MU_COUNT(master_methods);
