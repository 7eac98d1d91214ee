/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on a server in the same process, without a connection. */
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "muster/grad.h"
#include "muster/session.h"
#include "task/rpc/channel.h"
#include "tests/client/server.h"
#include "tests/wait.h"

enum { THREADS = 4, RUNS = 200 };

static struct mu_err err;

static _Atomic unsigned calls;

static int counted_call(void *server, const char *method, const struct rpc_message *request,
			long timeout_ms, struct mu_buf *reply, struct mu_err *e)
{
	atomic_fetch_add(&calls, 1);
	return task_server_call(server, method, request, timeout_ms, reply, e);
}

static struct mu_session *open_local(struct mu_builder *b)
{
	struct mu_session *s;

	test_server();
	assert_ok(
	    mu_session_open(&s, "nowhere:1", b,
			    &(struct mu_session_options){
				.transport = {.call = counted_call, .ctx = test_server_running}},
			    &err),
	    &err);
	return s;
}

static void session__with_a_transport__needs_no_connection(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out sum = mu_add(b, mu_const_float(b, 1), mu_const_float(b, 2));
	struct mu_session *s = open_local(b);
	MU_AUTO_TENSOR v = {0};

	atomic_store(&calls, 0);
	assert_ok(mu_session_get(s, sum, &v, &err), &err);
	assert_float_equal(*MU_DATA(float, &v), 3, 0);
	mu_session_close(s);
	assert_int_equal(atomic_load(&calls), 3); /* create, run, close */
}

static void session__with_a_large_feed__returns_it(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(-1));
	struct mu_out y = mu_neg(b, x);
	struct mu_session *s = open_local(b);
	int64_t n = 100000;
	struct mu_shape shape;
	MU_AUTO_TENSOR t = {0};
	MU_AUTO_TENSOR v = {0};

	assert_ok(mu_shape_set(&shape, 1, &n, &err), &err);
	assert_ok(mu_tensor_new(&t, MU_FLOAT, &shape, &err), &err);
	for (int64_t i = 0; i < n; i++)
		MU_DATA(float, &t)[i] = (float)i;
	struct mu_feed feed = {x, &t};
	assert_ok(mu_session_run(
		      s,
		      &(struct mu_run){.feeds = &feed, .n_feeds = 1, .fetches = &y, .n_fetches = 1},
		      &v, &err),
		  &err);
	assert_int_equal(v.shape.count, n);
	assert_float_equal(MU_DATA(float, &v)[n - 1], -(float)(n - 1), 0);
	mu_session_close(s);
}

/* A variable keeps its value when the fed tensor is freed. */
static void session__with_a_feed_for_a_variable__shares_it(void **state)
{
	enum { N = 50000 };
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_pshape wide = MU_SHAPE(N);
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(N));
	struct mu_out v = mu_op(b, "VariableV2", .name = "kept",
				MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT), MU_A_SHAPE("shape", &wide)));
	struct mu_out keep = mu_op(b, "Assign", MU_IN(v, x));
	struct mu_out y = mu_neg(b, x);
	struct mu_session *s = open_local(b);
	struct mu_shape shape = mu_shape_vec(N);
	MU_AUTO_TENSOR t = {0};
	MU_AUTO_TENSOR got = {0};
	struct mu_feed feed = {x, &t};

	assert_ok(mu_tensor_new(&t, MU_FLOAT, &shape, &err), &err);
	for (int i = 0; i < N; i++)
		MU_DATA(float, &t)[i] = (float)i;
	assert_ok(mu_session_run(
		      s,
		      &(struct mu_run){.feeds = &feed, .n_feeds = 1, .fetches = &y, .n_fetches = 1},
		      &got, &err),
		  &err);
	WAIT_UNTIL(mu_tensor_is_sole(&t)); /* the server releases its references after its reply */
	mu_tensor_unref(&got);
	assert_ok(
	    mu_session_run(
		s, &(struct mu_run){.feeds = &feed, .n_feeds = 1, .targets = &keep, .n_targets = 1},
		NULL, &err),
	    &err);
	mu_tensor_unref(&t);
	assert_ok(mu_session_get(s, v, &got, &err), &err);
	assert_float_equal(MU_DATA(float, &got)[N - 1], N - 1, 0);
	mu_session_close(s);
}

/* A non-zero byte means true on the wire, so a feed of booleans is decoded, not shared. */
static void session__with_a_large_feed_of_booleans__decodes_it(void **state)
{
	enum { N = 50000 };
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_BOOL, MU_SHAPE(N));
	struct mu_out y = mu_op(b, "LogicalNot", MU_IN(x));
	struct mu_session *s = open_local(b);
	struct mu_shape shape = mu_shape_vec(N);
	MU_AUTO_TENSOR t = {0};
	MU_AUTO_TENSOR got = {0};
	struct mu_feed feed = {x, &t};

	assert_ok(mu_tensor_new(&t, MU_BOOL, &shape, &err), &err);
	for (int i = 0; i < N; i++)
		MU_DATA(bool, &t)[i] = i % 3 == 0;
	assert_ok(mu_session_run(
		      s,
		      &(struct mu_run){.feeds = &feed, .n_feeds = 1, .fetches = &y, .n_fetches = 1},
		      &got, &err),
		  &err);
	for (int i = 0; i < N; i++)
		assert_int_equal(MU_DATA(bool, &got)[i], i % 3 != 0);
	mu_session_close(s);
}

static void step__that_fails_or_times_out__reports_it(void **state)
{
	static enum mu_dtype types[] = {MU_FLOAT};
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SCALAR);
	struct mu_out q =
	    mu_op(b, "FIFOQueueV2", .name = "q", MU_ATTRS(MU_A_TYPES("component_types", types, 1)));
	struct mu_out never =
	    mu_op(b, "QueueDequeueV2", MU_IN(q), MU_ATTRS(MU_A_TYPES("component_types", types, 1)));
	struct mu_session *s = open_local(b);
	MU_AUTO_TENSOR v = {0};

	assert_fails(mu_session_get(s, x, &v, &err), &err, MU_INVALID_ARGUMENT, "x");
	assert_fails(
	    mu_session_run(s, &(struct mu_run){.fetches = &never, .n_fetches = 1, .timeout_ms = 50},
			   &v, &err),
	    &err, MU_DEADLINE_EXCEEDED, "");
	mu_session_close(s);
}

static void call__of_an_unknown_method__fails(void **state)
{
	MU_AUTO_BUF reply = {0};
	struct rpc_message m = {.head = MU_SPAN("")};

	test_server();
	assert_fails(task_server_call(test_server_running, "/none", &m, 0, &reply, &err), &err,
		     MU_UNIMPLEMENTED, "/none");
}

struct runner {
	struct mu_session *session;
	struct mu_out sum;
	int failures;
};

static void *run_many(void *arg)
{
	struct runner *r = arg;
	struct mu_err e;

	for (int i = 0; i < RUNS; i++) {
		MU_AUTO_TENSOR v = {0};

		r->failures += mu_session_get(r->session, r->sum, &v, &e) != 0;
	}
	return NULL;
}

static void session__with_several_threads__answers_each(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out sum = mu_add(b, mu_const_float(b, 1), mu_const_float(b, 2));
	struct runner r[THREADS];
	struct mu_session *s = open_local(b);
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++) {
		r[i] = (struct runner){.session = s, .sum = sum};
		assert_int_equal(pthread_create(&t[i], NULL, run_many, &r[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(r[i].failures, 0);
	}
	mu_session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(session__with_a_transport__needs_no_connection),
	    cmocka_unit_test(session__with_a_large_feed__returns_it),
	    cmocka_unit_test(session__with_a_feed_for_a_variable__shares_it),
	    cmocka_unit_test(session__with_a_large_feed_of_booleans__decodes_it),
	    cmocka_unit_test(step__that_fails_or_times_out__reports_it),
	    cmocka_unit_test(call__of_an_unknown_method__fails),
	    cmocka_unit_test(session__with_several_threads__answers_each),
	};

	if (getenv("MUSTER_TEST_TARGET"))
		return 0; /* these tests are only for our server */
	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
