/* SPDX-License-Identifier: Apache-2.0 */
/* Life cycle of sessions with one ps and two workers in one process. */
#include "tests/cluster/fixture.h"

#include <pthread.h>
#include <sys/mman.h>

#define PS "/job:ps/task:0"
#define W0 "/job:worker/task:0"
#define W1 "/job:worker/task:1"

static int start(void **state)
{
	*state = fixture_new("p01");
	return 0;
}

static int start_all_but_ps(void **state)
{
	*state = fixture_new("01-");
	return 0;
}

static int stop(void **state)
{
	fixture_free(*state);
	return 0;
}

/* k on the ps; s0 = k + k on worker 0; s1 = s0 * k on worker 1; v on the ps, initialised by init.
 */
static struct mu_graph *sums(void)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_node *k = constant(g, "k", PS, number(15));
	struct mu_node *s0 = binary(g, "s0", "AddV2", W0, k, k), *v;

	binary(g, "s1", "Mul", W1, s0, k);
	v = variable(g, "v", PS);
	binary(g, "init", "Assign", PS, v, k);
	unary(g, "read", "Identity", PS, v);
	return g;
}

static void string_constant__is_fetched(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct step s = {.fetch = "c:0"};
	MU_AUTO_TENSOR out = {0};
	struct mu_tensor hello;
	char handle[64];
	struct mu_err err;

	assert_int_equal(mu_tensor_string(&hello, "hello", 5, &err), 0);
	constant(g, "c", "", hello);
	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_ok(run(&f->worker[0], handle, &s, &out, &err), &err);
	assert_int_equal(out.dtype, MU_STRING);
	assert_memory_equal(MU_DATA(struct mu_string, &out)->data, "hello", 5);
	assert_ok(close_session(&f->worker[0], handle, &err), &err);
}

static void step__over_three_tasks__sends_tensors(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	char handle[64];
	struct mu_err err;

	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	for (int i = 0; i < 50; i++)
		assert_true(run_float(&f->worker[0], handle, "s1:0") == 450);
	/* a fetch without a port means port 0 */
	assert_true(run_float(&f->worker[0], handle, "s0") == 30);
	assert_ok(close_session(&f->worker[0], handle, &err), &err);
}

static void sessions__share_variables_unless_isolated(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	struct step init = {.target = "init"}, read = {.fetch = "read:0"};
	char one[64], two[64], alone[64];
	struct mu_err err;

	assert_ok(create(&f->worker[0], g, MU_SPAN(""), one, &err), &err);
	assert_ok(create(&f->worker[1], g, MU_SPAN(""), two, &err), &err);
	assert_ok(create(&f->worker[0], g, MU_SPAN("\x78\x01"), alone, &err), &err);
	assert_fails(run(&f->worker[1], two, &read, NULL, &err), &err, MU_FAILED_PRECONDITION,
		     "uninitialized value v");
	assert_ok(run(&f->worker[0], one, &init, NULL, &err), &err);
	assert_true(run_float(&f->worker[1], two, "read:0") == 15);
	assert_fails(run(&f->worker[0], alone, &read, NULL, &err), &err, MU_FAILED_PRECONDITION,
		     "uninitialized value v");
	assert_ok(close_session(&f->worker[0], one, &err), &err);
	assert_true(run_float(&f->worker[1], two, "read:0") == 15); /* state outlives sessions */
	assert_ok(close_session(&f->worker[1], two, &err), &err);
	assert_ok(close_session(&f->worker[0], alone, &err), &err);
}

/* A queue on the ps; "put" adds to it, "size" is its size. */
static struct mu_graph *queue(const char *shared_name)
{
	enum mu_dtype type = MU_FLOAT;
	struct mu_attr types = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE, .n = 1, .types = &type};
	struct mu_attr name = {.kind = MU_ATTR_STRING, .s = mu_span_of(shared_name)};
	struct mu_graph *g = mu_graph_new();
	struct mu_node *q = node(g, "q", "FIFOQueueV2", PS), *put, *size;
	struct mu_input in[2] = {{q, 0}, {constant(g, "k", PS, number(1)), 0}};

	mu_node_set_attr(g, q, "component_types", &types);
	mu_node_set_attr(g, q, "shared_name", &name);
	put = node(g, "put", "QueueEnqueueV2", PS);
	mu_node_set_inputs(g, put, in, 2, NULL, 0);
	mu_node_set_attr(g, put, "Tcomponents", &types);
	size = node(g, "size", "QueueSizeV2", PS);
	mu_node_set_inputs(g, size, in, 1, NULL, 0);
	return g;
}

static int32_t queue_size(struct task *t, const char *handle)
{
	struct step size = {.fetch = "size:0"};
	MU_AUTO_TENSOR out = {0};
	struct mu_err err;

	assert_ok(run(t, handle, &size, &out, &err), &err);
	return MU_DATA(int32_t, &out)[0];
}

/* Queue sizes in a second session while the first is open, and in a third after the first was
 * closed. */
static void two_sessions_with_a_queue(struct fixture *f, const char *shared_name, int32_t sizes[2])
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = queue(shared_name);
	struct step put = {.target = "put"};
	char first[64], handle[64];
	struct mu_err err;

	assert_ok(create(&f->worker[0], g, MU_SPAN(""), first, &err), &err);
	assert_ok(run(&f->worker[0], first, &put, NULL, &err), &err);
	assert_ok(run(&f->worker[0], first, &put, NULL, &err), &err);
	assert_int_equal(queue_size(&f->worker[0], first), 2);
	for (int i = 0; i < 2; i++) {
		assert_ok(create(&f->worker[1], g, MU_SPAN(""), handle, &err), &err);
		sizes[i] = queue_size(&f->worker[1], handle);
		assert_ok(close_session(&f->worker[1], handle, &err), &err);
		if (i == 0)
			assert_ok(close_session(&f->worker[0], first, &err), &err);
	}
}

static void queue_without_a_shared_name__belongs_to_its_session(void **state)
{
	int32_t sizes[2];

	two_sessions_with_a_queue(*state, "", sizes);
	assert_int_equal(sizes[0], 0);
	assert_int_equal(sizes[1], 0);
	two_sessions_with_a_queue(*state, "shared", sizes);
	assert_int_equal(sizes[0], 2);
	assert_int_equal(sizes[1], 2);
}

static void variable__keeps_its_device_in_later_steps(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_node *k = constant(g, "k", "", number(3)), *v = variable(g, "v", "");
	char handle[64];
	struct mu_err err;

	binary(g, "init", "Assign", "", v, k);
	unary(g, "read", "Identity", "", v);
	binary(g, "push", "AssignAdd", PS, v, k); /* the only op with an explicit device */
	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_ok(run(&f->worker[0], handle, &(struct step){.target = "init"}, NULL, &err), &err);
	assert_ok(run(&f->worker[0], handle, &(struct step){.target = "push"}, NULL, &err), &err);
	assert_true(run_float(&f->worker[0], handle, "read:0") == 6);
	assert_ok(close_session(&f->worker[0], handle, &err), &err);
}

/* Captures the log of the servers of this process in `text`. */
static void capture_step_log(struct task *t, const struct mu_graph *g, struct mu_span config,
			     char *text, size_t size)
{
	int log_fd = memfd_create("log", MFD_CLOEXEC), before = dup(STDERR_FILENO);
	char handle[64];
	struct mu_err err;
	ssize_t n;

	mu_log_set_level(MU_INFO);
	dup2(log_fd, STDERR_FILENO);
	int rc = create(t, g, config, handle, &err);
	if (!rc)
		rc = run(t, handle, &(struct step){.target = "init"}, NULL, &err);
	dup2(before, STDERR_FILENO);
	close(before);
	mu_log_set_level(MU_WARN);
	assert_ok(rc, &err);
	assert_ok(close_session(t, handle, &err), &err);
	n = pread(log_fd, text, size - 1, 0);
	assert_true(n >= 0);
	text[n] = 0;
	close(log_fd);
}

static void session_with_log_device_placement__logs_the_device_of_each_op(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	char text[8192];

	capture_step_log(&f->worker[0], g, MU_SPAN("\x40\x01"), text, sizeof(text));
	assert_non_null(strstr(text, "init: (Assign): /job:ps/replica:0/task:0/device:CPU:0"));
	capture_step_log(&f->worker[0], g, MU_SPAN(""), text, sizeof(text));
	assert_null(strstr(text, "(Assign)"));
}

static void reset__clears_the_default_container(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	struct step init = {.target = "init"}, read = {.fetch = "read:0"};
	MU_AUTO_BUF empty = {0};
	char handle[64];
	struct mu_err err;

	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_ok(run(&f->worker[0], handle, &init, NULL, &err), &err);
	assert_ok(call(&f->worker[0], "Reset", &empty, NULL, &err), &err);
	assert_fails(run(&f->worker[0], handle, &read, NULL, &err), &err, MU_ABORTED, "not found");
	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_fails(run(&f->worker[0], handle, &read, NULL, &err), &err, MU_FAILED_PRECONDITION,
		     "uninitialized");
}

static void feed__replaces_a_tensor(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	struct step s = {.fetch = "s1:0", .feed = "k:0", .value = 2};
	MU_AUTO_TENSOR out = {0};
	char handle[64];
	struct mu_err err;

	assert_ok(create(&f->worker[1], g, MU_SPAN(""), handle, &err), &err);
	assert_ok(run(&f->worker[1], handle, &s, &out, &err), &err);
	assert_true(MU_DATA(float, &out)[0] == 8);
}

static void extend_session__checks_version_and_names(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	MU_AUTO(mu_graph_free) struct mu_graph *extension = mu_graph_new();
	char handle[64];
	struct mu_err err;

	constant(extension, "x", "", number(7));
	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_fails(extend(&f->worker[0], handle, extension, 9, &err), &err, MU_ABORTED,
		     "Current version is 0 but caller expected 9");
	assert_fails(extend(&f->worker[0], handle, g, 0, &err), &err, MU_INVALID_ARGUMENT, "k");
	assert_ok(extend(&f->worker[0], handle, extension, 0, &err), &err);
	assert_true(run_float(&f->worker[0], handle, "x:0") == 7);
}

static void missing_node_or_session__is_named(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	struct step unknown_fetch = {.fetch = "nope:0"}, target = {.target = "nope"},
		    port = {.fetch = "k:3"};
	char handle[64];
	struct mu_err err;

	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_fails(run(&f->worker[0], handle, &unknown_fetch, NULL, &err), &err, MU_NOT_FOUND,
		     "nope");
	assert_fails(run(&f->worker[0], handle, &target, NULL, &err), &err, MU_NOT_FOUND, "nope");
	assert_fails(run(&f->worker[0], handle, &port, NULL, &err), &err, MU_INVALID_ARGUMENT,
		     "k:3");
	assert_fails(run(&f->worker[0], "0123456789abcdef", &unknown_fetch, NULL, &err), &err,
		     MU_ABORTED, "Session 0123456789abcdef is not found");
	assert_fails(close_session(&f->worker[0], "none", &err), &err, MU_ABORTED, "not found");
}

static void error_of_a_step__names_the_task(void **state)
{
	static const char *const devices[] = {W0, W1, PS};
	static const char *const texts[] = {"From /job:worker/replica:0/task:0:\nAttempting",
					    "From /job:worker/replica:0/task:1:\nAttempting",
					    "From /job:ps/replica:0/task:0:\nAttempting"};
	struct fixture *f = *state;
	struct step read = {.fetch = "read:0"};
	char handle[64];
	struct mu_err err;

	for (int i = 0; i < 3; i++) {
		MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();

		unary(g, "read", "Identity", devices[i], variable(g, "unset", devices[i]));
		assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
		assert_fails(run(&f->worker[0], handle, &read, NULL, &err), &err,
			     MU_FAILED_PRECONDITION, texts[i]);
		assert_ok(close_session(&f->worker[0], handle, &err), &err);
	}
}

static void duplicate_request__runs_once(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	struct step s = {.target = "init", .request_id = 4711};
	char handle[64];
	struct mu_err err;

	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_ok(run(&f->worker[0], handle, &s, NULL, &err), &err);
	assert_fails(run(&f->worker[0], handle, &s, NULL, &err), &err, MU_ABORTED,
		     "received twice");
}

static void session__with_a_missing_task__names_the_task(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	char handle[64];
	struct mu_err err;

	assert_fails(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err,
		     MU_DEADLINE_EXCEEDED, "/job:ps/replica:0/task:0");
	/* device filters without the ps make it unnecessary */
	assert_ok(create(&f->worker[0], g, MU_SPAN("\x22\x0b/job:worker"), handle, &err), &err);
}

/* A restarted ps has another incarnation: its state is gone, and the session reports it. */
static void session__after_a_task_restart__is_aborted(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	struct step init = {.target = "init"};
	char handle[64];
	struct mu_err err = {0};

	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_ok(run(&f->worker[0], handle, &init, NULL, &err), &err);
	stop_task(&f->ps);
	assert_fails(run(&f->worker[0], handle, &init, NULL, &err), &err, MU_UNAVAILABLE,
		     "From /job:ps/replica:0/task:0");
	start_task(f, &f->ps, "ps", 0);
	WAIT_UNTIL(run(&f->worker[0], handle, &init, NULL, &err) && err.code != MU_UNAVAILABLE);
	assert_int_equal(err.code, MU_ABORTED);
	assert_ok(close_session(&f->worker[0], handle, &err), &err);
	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_ok(run(&f->worker[0], handle, &init, NULL, &err), &err);
}

static void callable__runs_by_its_handle(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	MU_AUTO_BUF make = {0};
	MU_AUTO_BUF request = {0};
	MU_AUTO_BUF body = {0};
	MU_AUTO_BUF reply = {0};
	MU_AUTO_TENSOR two = number(2);
	MU_AUTO_TENSOR out = {0};
	struct mu_pb_field field;
	struct mu_pb m;
	char handle[64];
	struct mu_err err;
	size_t at;

	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	mu_pb_put_str(&make, 1, handle);
	at = mu_pb_begin(&make, 2);
	mu_pb_put_str(&make, 1, "k:0");
	mu_pb_put_str(&make, 2, "s1:0");
	mu_pb_end(&make, at);
	assert_ok(call(&f->worker[0], "MakeCallable", &make, &reply, &err), &err);
	assert_memory_equal(reply.data, "\x08\x01", 2);
	mu_tensor_write(&body, &two);
	mu_pb_put_str(&request, 1, handle);
	mu_pb_put_int(&request, 2, 1);
	assert_fails(call(&f->worker[0], "RunCallable", &request, &reply, &err), &err,
		     MU_INVALID_ARGUMENT, "1 feeds, but the request has 0");
	mu_pb_put_bytes(&request, 3, mu_buf_span(&body));
	assert_ok(call(&f->worker[0], "RunCallable", &request, &reply, &err), &err);
	m = mu_pb_of(mu_buf_span(&reply));
	assert_true(mu_pb_next(&m, &field) && field.number == 1);
	assert_ok(mu_tensor_parse(&out, field.bytes, &err), &err);
	assert_true(MU_DATA(float, &out)[0] == 8);
	mu_buf_clear(&request);
	mu_pb_put_str(&request, 1, handle);
	mu_pb_put_int(&request, 2, 1);
	assert_ok(call(&f->worker[0], "ReleaseCallable", &request, &reply, &err), &err);
	assert_fails(call(&f->worker[0], "RunCallable", &request, &reply, &err), &err,
		     MU_INVALID_ARGUMENT, "No such callable");
}

struct client {
	struct fixture *f;
	char handle[64];
	int index;
};

static void *run_many_steps(void *arg)
{
	struct client *c = arg;

	for (int i = 0; i < 100; i++)
		if (run_float(&c->f->worker[c->index], c->handle, "s1:0") != 450)
			return arg;
	return NULL;
}

static void clients__run_steps_concurrently(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = sums();
	struct client c[4];
	pthread_t t[4];
	struct mu_err err;
	void *bad;

	for (int i = 0; i < 4; i++) {
		c[i] = (struct client){.f = f, .index = i % 2};
		assert_ok(create(&f->worker[i % 2], g, MU_SPAN(""), c[i].handle, &err), &err);
		assert_int_equal(pthread_create(&t[i], NULL, run_many_steps, &c[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
}

static void partial_run__with_a_fetch_named_twice__ends_after_one_fetch(void **state)
{
	static const char *const fetches[] = {"i:0", "i:0"};
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	char session[64], partial[64];
	struct mu_err err;

	unary(g, "i", "Identity", "", constant(g, "c", "", number(1)));
	assert_ok(create(&f->worker[0], g, MU_SPAN(""), session, &err), &err);
	partial_setup(&f->worker[0], session, fetches, 2, partial);
	assert_ok(run_partial(&f->worker[0], session, partial, "i:0", &err), &err);
	assert_fails(run_partial(&f->worker[0], session, partial, "i:0", &err), &err,
		     MU_INVALID_ARGUMENT, "Must run PartialRunSetup");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(string_constant__is_fetched, start, stop),
	    cmocka_unit_test_setup_teardown(step__over_three_tasks__sends_tensors, start, stop),
	    cmocka_unit_test_setup_teardown(sessions__share_variables_unless_isolated, start, stop),
	    cmocka_unit_test_setup_teardown(queue_without_a_shared_name__belongs_to_its_session,
					    start, stop),
	    cmocka_unit_test_setup_teardown(variable__keeps_its_device_in_later_steps, start, stop),
	    cmocka_unit_test_setup_teardown(
		session_with_log_device_placement__logs_the_device_of_each_op, start, stop),
	    cmocka_unit_test_setup_teardown(reset__clears_the_default_container, start, stop),
	    cmocka_unit_test_setup_teardown(feed__replaces_a_tensor, start, stop),
	    cmocka_unit_test_setup_teardown(extend_session__checks_version_and_names, start, stop),
	    cmocka_unit_test_setup_teardown(missing_node_or_session__is_named, start, stop),
	    cmocka_unit_test_setup_teardown(error_of_a_step__names_the_task, start, stop),
	    cmocka_unit_test_setup_teardown(duplicate_request__runs_once, start, stop),
	    cmocka_unit_test_setup_teardown(session__with_a_missing_task__names_the_task,
					    start_all_but_ps, stop),
	    cmocka_unit_test_setup_teardown(session__after_a_task_restart__is_aborted, start, stop),
	    cmocka_unit_test_setup_teardown(callable__runs_by_its_handle, start, stop),
	    cmocka_unit_test_setup_teardown(
		partial_run__with_a_fetch_named_twice__ends_after_one_fetch, start, stop),
	    cmocka_unit_test_setup_teardown(clients__run_steps_concurrently, start, stop),
	};

	mu_log_set_level(MU_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
