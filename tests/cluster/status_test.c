/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a task; finished steps and sessions release their memory. */
#include <malloc.h>
#include <stdatomic.h>

#include "lib/base/clock.h"
#include "lib/base/pb.h"
#include "task/server_internal.h"
#include "tests/cluster/fixture.h"

#define PS "/job:ps/task:0"
#define W0 "/job:worker/task:0"

static int start(void **state)
{
	*state = fixture_new("p01");
	return 0;
}

static int stop(void **state)
{
	fixture_free(*state);
	return 0;
}

static struct mu_graph *doubled(void)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_node *v = variable(g, "v", PS);

	binary(g, "init", "Assign", PS, v, constant(g, "k", PS, number(15)));
	binary(g, "twice", "AddV2", W0, v, v);
	return g;
}

static void assert_status_has(const struct task *t, const char *part)
{
	struct mu_http_answer a = {0};

	server_http_handle(t->server, &(struct mu_http_request){.method = "GET", .path = "/status"},
			   &a);
	assert_int_equal(a.status, 200);
	if (!strstr(a.body.data, part))
		fail_msg("no %s in %s", part, a.body.data);
	mu_buf_fini(&a.body);
}

static void status__lists_resources_and_bytes_by_task(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = doubled();
	struct step init = {.target = "init"};
	char handle[64];
	struct mu_err err;

	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_ok(run(&f->worker[0], handle, &init, NULL, &err), &err);
	assert_true(run_float(&f->worker[0], handle, "twice:0") == 30);
	assert_status_has(
	    &f->ps, "{\"container\":\"ps\",\"name\":\"v\",\"type\":\"variable\",\"bytes\":4}");
	assert_status_has(
	    &f->ps, "{\"task\":\"/job:worker/replica:0/task:0\",\"bytesIn\":0,\"bytesOut\":4}");
	assert_status_has(&f->worker[0],
			  "{\"task\":\"/job:ps/replica:0/task:0\",\"bytesIn\":4,\"bytesOut\":0}");
	assert_status_has(&f->worker[0], handle);
	assert_status_has(&f->ps, "\"pendingSteps\":[]");
	assert_ok(close_session(&f->worker[0], handle, &err), &err);
}

static int health(struct task *t, struct mu_span request, struct mu_buf *reply, struct mu_err *err)
{
	struct rpc_message m = {.head = request};

	return rpc_call(t->ch, "/grpc.health.v1.Health/Check", &m, CALL_MS, 0, reply, err);
}

static void health_service__of_a_task__lists_the_services(void **state)
{
	struct fixture *f = *state;
	MU_AUTO_BUF all = {0}, one = {0}, none = {0};
	struct mu_err err;

	assert_ok(health(&f->ps, MU_SPAN(""), &all, &err), &err);
	assert_ok(health(&f->ps, MU_SPAN("\x0a\x18tensorflow.MasterService"), &one, &err), &err);
	assert_memory_equal(all.data, "\x08\x01", 2);
	assert_memory_equal(one.data, "\x08\x01", 2);
	assert_fails(health(&f->ps,
			    MU_SPAN("\x0a\x03"
				    "abc"),
			    &none, &err),
		     &err, MU_NOT_FOUND, "unknown service 'abc'");
	assert_fails(health(&f->ps,
			    MU_SPAN("\x0a\x09"
				    "abc"),
			    &none, &err),
		     &err, MU_INVALID_ARGUMENT, "unknown service");
}

static void sessions__when_closed__release_their_memory(void **state)
{
	enum { FEW = 200, MANY = 1000, GROWTH = 512 << 10 };
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = doubled();
	struct step init = {.target = "init"};
	size_t before = 0;
	char handle[64];
	struct mu_err err;

	for (int i = 0; i < MANY; i++) {
		if (i == FEW) /* pools and caches are filled by now */
			before = mallinfo2().uordblks;
		assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
		assert_ok(run(&f->worker[0], handle, &init, NULL, &err), &err);
		assert_true(run_float(&f->worker[0], handle, "twice:0") == 30);
		assert_ok(close_session(&f->worker[0], handle, &err), &err);
	}
	assert_true(mallinfo2().uordblks < before + GROWTH);
	assert_status_has(&f->ps,
			  "\"sessions\":0,\"workerSessions\":0,\"graphs\":0,\"runningSteps\":0");
	assert_status_has(&f->worker[0], "\"sessions\":0,\"workerSessions\":0,\"graphs\":0");
	assert_status_has(&f->worker[0], "\"sessionList\":[]");
}

static double reported_cpu_use(const struct task *t)
{
	struct mu_http_answer a = {0};
	const char *at;
	double share;

	server_http_handle(t->server, &(struct mu_http_request){.method = "GET", .path = "/status"},
			   &a);
	at = strstr(a.body.data, "\"busy\":");
	share = at ? strtod(at + strlen("\"busy\":"), NULL) : -1;
	mu_buf_fini(&a.body);
	return share;
}

static void status__reports_cpu_use(void **state)
{
	struct fixture *f = *state;
	volatile uint64_t iterations = 0;
	double share = 0;

	for (uint64_t max_iterations = 1ull << 36; share == 0 && iterations < max_iterations;
	     iterations++)
		if (iterations % (1 << 24) == 0)
			share = reported_cpu_use(
			    &f->ps); /* CPU use of this process in the last second */
	assert_true(share > 0 && share <= 1);
}

/* ---- idle sessions ---- */

static bool status_has(const struct task *t, const char *part)
{
	struct mu_http_answer a = {0};
	bool found;

	server_http_handle(t->server, &(struct mu_http_request){.method = "GET", .path = "/status"},
			   &a);
	found = strstr(a.body.data, part) != NULL;
	mu_buf_fini(&a.body);
	return found;
}

static void idle_session__is_closed(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = doubled();
	struct step init = {.target = "init"};
	struct task *t = &f->worker[0];
	char handle[64];
	struct mu_err err;

	stop_task(t);
	f->session_idle_ms = 1500;
	start_task(f, t, "worker", 0);
	assert_ok(create(t, g, MU_SPAN(""), handle, &err), &err);
	for (double end = mu_clock() + 2; mu_clock() < end;)
		assert_ok(run(t, handle, &init, NULL, &err),
			  &err); /* a used session is not closed */
	assert_status_has(t, "\"sessions\":1");
	WAIT_UNTIL(status_has(t, "\"sessions\":0"));
	assert_fails(run(t, handle, &init, NULL, &err), &err, MU_ABORTED, "not found");
}

/* ---- waiting steps ---- */

/* "put" adds to a queue on the ps, "get" waits for it on the worker; plus doubled(). */
static struct mu_graph *queue_graph(void)
{
	static enum mu_dtype types[] = {MU_FLOAT};
	struct mu_graph *g = doubled();
	struct mu_node *q = node(g, "q", "FIFOQueueV2", PS),
		       *put = node(g, "put", "QueueEnqueueV2", PS);
	struct mu_node *get = node(g, "get", "QueueDequeueV2", PS);
	struct mu_node *shut = node(g, "shut", "QueueCloseV2", PS);
	struct mu_input in[2] = {{q, 0}, {NULL, 0}};
	struct mu_attr list = {
	    .kind = (enum mu_attr_kind)(MU_ATTR_LIST + MU_ATTR_TYPE), .types = types, .n = 1};
	struct mu_attr yes = {.kind = MU_ATTR_BOOL, .b = true};

	mu_node_set_attr(g, q, "component_types", &list);
	mu_node_set_inputs(g, get, in, 1, NULL, 0);
	mu_node_set_attr(g, get, "component_types", &list);
	mu_node_set_inputs(g, shut, in, 1, NULL, 0);
	mu_node_set_attr(g, shut, "cancel_pending_enqueues", &yes);
	in[1].node = constant(g, "one", PS, number(1));
	mu_node_set_inputs(g, put, in, 2, NULL, 0);
	mu_node_set_attr(g, put, "Tcomponents", &list);
	unary(g, "got", "Identity", W0, get);
	return g;
}

struct waiter {
	_Atomic int ended, failed;
};

static void on_end(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct waiter *w = arg;

	atomic_fetch_add(&w->failed, err != NULL);
	atomic_fetch_add(&w->ended, 1);
}

static void start_pending_run(struct task *t, const char *handle, struct waiter *w)
{
	static const struct step get = {.fetch = "got:0"};
	MU_AUTO_BUF request = {0};
	struct rpc_message m;
	struct mu_err err;

	step_request(&request, handle, &get);
	m = (struct rpc_message){.head = mu_buf_span(&request)};
	assert_true(
	    rpc_start(t->ch, "/tensorflow.MasterService/RunStep", &m, 0, 0, on_end, w, &err));
}

static void wait_for_count(_Atomic int *counter, int n)
{
	WAIT_UNTIL(atomic_load(counter) >= n);
	assert_int_equal(atomic_load(counter), n);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { DELAYS_FREE = 1 }; /* the sanitizer delays the release of memory, or has its own records */
#else
enum { DELAYS_FREE = 0 };
#endif

/* Resident memory of this process in bytes. */
static size_t resident_bytes(void)
{
	unsigned long all = 0, resident_pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &all, &resident_pages), 2);
	fclose(file);
	return resident_pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* MUSTER_STEPS is the number of steps. */
static void steps__beside_a_hundred_pending_ones__release_their_memory(void **state)
{
	enum { PENDING = 100, FEW = 300, GROWTH = 256 << 10 };
	const char *steps_text = getenv("MUSTER_STEPS");
	int many = steps_text ? atoi(steps_text) : 2000;
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = queue_graph();
	struct step init = {.target = "init"}, put = {.target = "put"};
	struct waiter w = {0};
	size_t before = 0, rss = 0, now;
	char handle[64], running[64];
	struct mu_err err;

	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	assert_ok(run(&f->worker[0], handle, &init, NULL, &err), &err);
	for (int i = 0; i < PENDING; i++)
		start_pending_run(&f->worker[0], handle, &w);
	snprintf(running, sizeof(running), "\"runningSteps\":%d,", PENDING);
	WAIT_UNTIL(status_has(&f->ps, running));
	for (int i = 0; i < many; i++) {
		if (i == FEW) {
			before = mallinfo2().uordblks;
			rss = resident_bytes();
		}
		assert_true(run_float(&f->worker[0], handle, "twice:0") == 30);
	}
	now = mallinfo2().uordblks;
	if (before && now > before + GROWTH)
		fail_msg("%d steps left %zu bytes", many - FEW, now - before);
	if (!DELAYS_FREE && rss && resident_bytes() > rss + 8 * GROWTH)
		fail_msg("%d steps grew the process by %zu bytes", many - FEW,
			 resident_bytes() - rss);
	assert_int_equal(atomic_load(&w.ended), 0);
	assert_status_has(&f->ps, "get (QueueDequeueV2)");
	for (int i = 0; i < PENDING; i++)
		assert_ok(run(&f->worker[0], handle, &put, NULL, &err), &err);
	wait_for_count(&w.ended, PENDING);
	assert_int_equal(atomic_load(&w.failed), 0);
	assert_ok(close_session(&f->worker[0], handle, &err), &err);
	assert_status_has(&f->ps, "\"runningSteps\":0");
}

/* ---- shutdown of a task ---- */

static void *stop_slowly(void *server)
{
	task_server_stop(server, 3000);
	return NULL;
}

static void step__during_drain__is_unavailable_immediately(void **state)
{
	struct fixture *f = *state;
	MU_AUTO(mu_graph_free) struct mu_graph *g = queue_graph();
	struct step init = {.target = "init"}, put = {.target = "put"};
	struct waiter w = {0};
	double start, duration_s;
	struct task *t = &f->worker[0];
	pthread_t stopper;
	char handle[64], other[64];
	struct mu_err err;
	int rc;

	assert_ok(create(t, g, MU_SPAN(""), handle, &err), &err);
	assert_ok(create(&f->worker[1], g, MU_SPAN(""), other, &err), &err);
	assert_ok(run(t, handle, &init, NULL, &err), &err);
	start_pending_run(t, handle, &w);
	WAIT_UNTIL(status_has(&f->ps, "get (QueueDequeueV2)"));
	assert_int_equal(pthread_create(&stopper, NULL, stop_slowly, t->server), 0);
	do {
		start = mu_clock();
		rc = run(t, handle, &init, NULL, &err);
		duration_s = mu_clock() - start;
	} while (rc == 0); /* until the shutdown has begun */
	assert_int_equal(rc, -MU_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "is shutting down"));
	assert_true(duration_s < 1);
	assert_int_equal(atomic_load(&w.ended), 0); /* running steps may end */
	assert_ok(run(&f->worker[1], other, &put, NULL, &err), &err);
	wait_for_count(&w.ended, 1);
	assert_int_equal(atomic_load(&w.failed), 0);
	pthread_join(stopper, NULL);
	rpc_channel_close(t->ch);
	*t = (struct task){0};
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(status__lists_resources_and_bytes_by_task, start, stop),
	    cmocka_unit_test_setup_teardown(status__reports_cpu_use, start, stop),
	    cmocka_unit_test_setup_teardown(health_service__of_a_task__lists_the_services, start,
					    stop),
	    cmocka_unit_test_setup_teardown(sessions__when_closed__release_their_memory, start,
					    stop),
	    cmocka_unit_test_setup_teardown(idle_session__is_closed, start, stop),
	    cmocka_unit_test_setup_teardown(
		steps__beside_a_hundred_pending_ones__release_their_memory, start, stop),
	    cmocka_unit_test_setup_teardown(step__during_drain__is_unavailable_immediately, start,
					    stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
