/* SPDX-License-Identifier: Apache-2.0 */
/* Several task servers in one process, and a client that sends raw messages. */
#ifndef MU_TESTS_CLUSTER_FIXTURE_H
#define MU_TESTS_CLUSTER_FIXTURE_H

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/pb.h"
#include "lib/graph/graph.h"
#include "lib/tensor/tensor_proto.h"
#include "task/rpc/channel.h"
#include "task/server.h"
#include "tests/ports.h"
#include "tests/test.h"
#include "tests/wait.h"

enum {
	CALL_MS = TEST_TIMEOUT_S * 1000,
	MISSING_TASK_TIMEOUT_MS = 500, /* CreateSession timeout of a test with a missing task */
};

struct task {
	struct task_server *server;
	struct rpc_channel *ch;
};
struct fixture {
	struct mu_cluster cluster;
	struct task ps, worker[2];
	char address[3][64];
	long connect_ms;      /* CreateSession timeout for missing tasks */
	long session_idle_ms; /* 0: idle sessions stay open */
};

static inline void start_task(struct fixture *f, struct task *t, const char *job, int index)
{
	struct task_server_options o = {.cluster = &f->cluster,
					.job = job,
					.index = index,
					.threads = 2,
					.local = "127.0.0.1:0",
					.session_idle_ms = f->session_idle_ms,
					.connect_timeout_ms = f->connect_ms};
	struct mu_err err;

	assert_ok(task_server_start(&o, &t->server, &err), &err);
	assert_ok(rpc_channel_open(task_server_target(t->server), &t->ch, &err), &err);
}

static inline void stop_task(struct task *t)
{
	rpc_channel_close(t->ch);
	task_server_stop(t->server, 100);
	*t = (struct task){0};
}

/* One ps and two workers. `started` selects the running tasks: 'p', '0', '1'; with '-' the timeout
 * for missing tasks is short. */
static inline struct fixture *fixture_new(const char *started)
{
	static const struct {
		const char *job;
		int index;
	} who[3] = {{"ps", 0}, {"worker", 0}, {"worker", 1}};
	struct fixture *f = MU_NEW(struct fixture);
	struct mu_err err;

	f->connect_ms = strchr(started, '-') ? MISSING_TASK_TIMEOUT_MS : CALL_MS;
	for (int i = 0; i < 3; i++) {
		snprintf(f->address[i], sizeof(f->address[i]), "127.0.0.1:%d", free_port());
		assert_ok(
		    mu_cluster_add(&f->cluster, who[i].job, who[i].index, f->address[i], &err),
		    &err);
	}
	if (strchr(started, 'p'))
		start_task(f, &f->ps, "ps", 0);
	if (strchr(started, '0'))
		start_task(f, &f->worker[0], "worker", 0);
	if (strchr(started, '1'))
		start_task(f, &f->worker[1], "worker", 1);
	return f;
}

static inline void fixture_free(struct fixture *f)
{
	if (f->worker[1].server)
		stop_task(&f->worker[1]);
	if (f->worker[0].server)
		stop_task(&f->worker[0]);
	if (f->ps.server)
		stop_task(&f->ps);
	mu_cluster_fini(&f->cluster);
	free(f);
}

static inline int call(struct task *t, const char *method, const struct mu_buf *request,
		       struct mu_buf *reply, struct mu_err *err)
{
	MU_AUTO_FREE char *path = mu_xasprintf("/tensorflow.MasterService/%s", method);
	struct rpc_message m = {.head = mu_buf_span(request)};

	if (reply)
		mu_buf_clear(reply);
	return rpc_call(t->ch, path, &m, CALL_MS, 0, reply, err);
}

/* ---- graphs ---- */

static inline struct mu_node *node(struct mu_graph *g, const char *name, const char *op,
				   const char *device)
{
	struct mu_node *n;
	struct mu_err err;

	assert_ok(mu_graph_add(g, name, op, &n, &err), &err);
	mu_node_set_device(g, n, device);
	return n;
}

static inline void set_type(struct mu_graph *g, struct mu_node *n, const char *name,
			    enum mu_dtype t)
{
	struct mu_attr a = {.kind = MU_ATTR_TYPE, .type = t};

	mu_node_set_attr(g, n, name, &a);
}

static inline struct mu_node *constant(struct mu_graph *g, const char *name, const char *device,
				       struct mu_tensor t)
{
	struct mu_node *n = node(g, name, "Const", device);
	struct mu_attr a = {.kind = MU_ATTR_TENSOR, .tensor = &t};

	set_type(g, n, "dtype", t.dtype);
	mu_node_set_attr(g, n, "value", &a);
	mu_tensor_unref(&t);
	return n;
}

static inline struct mu_tensor number(float v)
{
	struct mu_tensor t;

	assert_int_equal(mu_tensor_scalar(&t, MU_FLOAT, &v, NULL), 0);
	return t;
}

static inline struct mu_node *binary(struct mu_graph *g, const char *name, const char *op,
				     const char *device, struct mu_node *a, struct mu_node *b)
{
	struct mu_node *n = node(g, name, op, device);
	struct mu_input in[2] = {{a, 0}, {b, 0}};

	mu_node_set_inputs(g, n, in, 2, NULL, 0);
	set_type(g, n, "T", MU_FLOAT);
	return n;
}

static inline struct mu_node *variable(struct mu_graph *g, const char *name, const char *device)
{
	struct mu_node *n = node(g, name, "VariableV2", device);
	struct mu_pshape scalar = {.rank = 0};
	struct mu_attr a = {.kind = MU_ATTR_SHAPE, .shape = &scalar};

	set_type(g, n, "dtype", MU_FLOAT);
	mu_node_set_attr(g, n, "shape", &a);
	return n;
}

static inline struct mu_node *unary(struct mu_graph *g, const char *name, const char *op,
				    const char *device, struct mu_node *a)
{
	struct mu_node *n = node(g, name, op, device);
	struct mu_input in = {a, 0};

	mu_node_set_inputs(g, n, &in, 1, NULL, 0);
	set_type(g, n, "T", MU_FLOAT);
	return n;
}

/* ---- sessions ---- */

static inline int create(struct task *t, const struct mu_graph *g, struct mu_span config,
			 char handle[64], struct mu_err *err)
{
	MU_AUTO_BUF request = {0};
	MU_AUTO_BUF reply = {0};
	MU_AUTO_BUF def = {0};
	struct mu_pb_field f;
	struct mu_pb m;
	int rc;

	mu_graph_write(g, &def);
	mu_pb_put_bytes(&request, 1, mu_buf_span(&def));
	mu_pb_put_bytes(&request, 2, config);
	rc = call(t, "CreateSession", &request, &reply, err);
	if (rc)
		return rc;
	m = mu_pb_of(mu_buf_span(&reply));
	handle[0] = 0;
	while (mu_pb_next(&m, &f))
		if (f.number == 1)
			snprintf(handle, 64, "%.*s", (int)f.bytes.len, f.bytes.data);
	assert_int_equal(strlen(handle), 16);
	return 0;
}

static inline int extend(struct task *t, const char *handle, const struct mu_graph *g,
			 int64_t version, struct mu_err *err)
{
	MU_AUTO_BUF request = {0};
	MU_AUTO_BUF def = {0};

	mu_graph_write(g, &def);
	mu_pb_put_str(&request, 1, handle);
	mu_pb_put_bytes(&request, 2, mu_buf_span(&def));
	mu_pb_put_int(&request, 3, version);
	return call(t, "ExtendSession", &request, NULL, err);
}

static inline int close_session(struct task *t, const char *handle, struct mu_err *err)
{
	MU_AUTO_BUF request = {0};

	mu_pb_put_str(&request, 1, handle);
	return call(t, "CloseSession", &request, NULL, err);
}

struct step {
	const char *fetch, *target, *feed;
	float value; /* value of the feed */
	long timeout_ms;
	int64_t request_id;
};

static inline void step_request(struct mu_buf *request, const char *handle, const struct step *s)
{
	MU_AUTO_BUF body = {0};
	size_t at;

	mu_pb_put_str(request, 1, handle);
	if (s->feed) {
		MU_AUTO_TENSOR t = number(s->value);

		mu_tensor_write(&body, &t);
		at = mu_pb_begin(request, 2);
		mu_pb_put_str(request, 1, s->feed);
		mu_pb_put_bytes(request, 2, mu_buf_span(&body));
		mu_pb_end(request, at);
	}
	if (s->fetch)
		mu_pb_put_str(request, 3, s->fetch);
	if (s->target)
		mu_pb_put_str(request, 4, s->target);
	at = mu_pb_begin(request, 5);
	mu_pb_put_int(request, 2, s->timeout_ms);
	mu_pb_end(request, at);
	mu_pb_put_int(request, 7, 1);
	mu_pb_put_int(request, 8, s->request_id);
}

/* The result of a step; *out gets the first tensor if there is one. */
static inline int step_reply(const struct mu_buf *reply, struct mu_tensor *out, struct mu_err *err)
{
	struct mu_span output = MU_SPAN(""), proto = MU_SPAN("");
	struct mu_pb m = mu_pb_of(mu_buf_span(reply));
	struct mu_pb_field f;
	int code = 0;

	while (mu_pb_next(&m, &f)) {
		if (f.number == 3)
			code = (int)f.value;
		else if (f.number == 4)
			output = f.bytes;
		else if (f.number == 1 && proto.len == 0) {
			struct mu_pb named = mu_pb_of(f.bytes);
			struct mu_pb_field in;

			while (mu_pb_next(&named, &in))
				if (in.number == 2)
					proto = in.bytes;
		}
	}
	assert_false(m.bad);
	if (code)
		return mu_fail(err, mu_code_from(code), "%.*s", (int)output.len, output.data);
	if (out) {
		assert_true(proto.len > 0);
		assert_ok(mu_tensor_parse(out, proto, err), err);
	}
	return 0;
}

static inline int run(struct task *t, const char *handle, const struct step *s,
		      struct mu_tensor *out, struct mu_err *err)
{
	MU_AUTO_BUF request = {0};
	MU_AUTO_BUF reply = {0};
	int rc;

	step_request(&request, handle, s);
	rc = call(t, "RunStep", &request, &reply, err);
	return rc ? rc : step_reply(&reply, out, err);
}

/* Sets up a partial run without feeds or targets. */
static inline void partial_setup(struct task *t, const char *session, const char *const *fetches,
				 unsigned n, char partial[64])
{
	MU_AUTO_BUF request = {0};
	MU_AUTO_BUF reply = {0};
	struct mu_pb_field field = {0};
	struct mu_err err;
	struct mu_pb m;

	mu_pb_put_str(&request, 1, session);
	for (unsigned i = 0; i < n; i++)
		mu_pb_put_str(&request, 3, fetches[i]);
	assert_ok(call(t, "PartialRunSetup", &request, &reply, &err), &err);
	m = mu_pb_of(mu_buf_span(&reply));
	assert_true(mu_pb_next(&m, &field));
	snprintf(partial, 64, "%.*s", (int)field.bytes.len, field.bytes.data);
}

static inline int run_partial(struct task *t, const char *session, const char *partial,
			      const char *fetch, struct mu_err *err)
{
	MU_AUTO_BUF request = {0};
	MU_AUTO_BUF reply = {0};

	mu_pb_put_str(&request, 1, session);
	mu_pb_put_str(&request, 3, fetch);
	mu_pb_put_str(&request, 6, partial);
	return call(t, "RunStep", &request, &reply, err);
}

static inline float run_float(struct task *t, const char *handle, const char *fetch)
{
	struct step s = {.fetch = fetch};
	MU_AUTO_TENSOR out = {0};
	struct mu_err err;

	assert_ok(run(t, handle, &s, &out, &err), &err);
	assert_int_equal(out.dtype, MU_FLOAT);
	return MU_DATA(float, &out)[0];
}

#endif
