/* SPDX-License-Identifier: Apache-2.0 */
/* Callers in the task's own process. One waiting caller at a time reads the streams for all. Each
 * caller continues when its own step ends. */
#include <pthread.h>

#include "task/peer/peer_stream.h"
#include "task/server_internal.h"
#include "tests/cluster/fixture.h"

#define PS     "/job:ps/task:0"
#define WORKER "/job:worker/task:0"

enum { CALLERS = 4, STEPS = 300, SHORT_WAIT_MS = 50 };

/* A queue on `device`; NAME_put adds to it, NAME_get waits for an element, NAME_got fetches it to
 * this task. */
static void add_queue(struct mu_graph *g, const char *name, const char *device)
{
	static enum mu_dtype types[] = {MU_FLOAT};
	struct mu_attr list = {
	    .kind = (enum mu_attr_kind)(MU_ATTR_LIST + MU_ATTR_TYPE), .types = types, .n = 1};
	MU_AUTO_FREE char *put_name = mu_xasprintf("%s_put", name);
	MU_AUTO_FREE char *get_name = mu_xasprintf("%s_get", name);
	MU_AUTO_FREE char *got_name = mu_xasprintf("%s_got", name);
	MU_AUTO_FREE char *one_name = mu_xasprintf("%s_one", name);
	struct mu_node *q = node(g, name, "FIFOQueueV2", device);
	struct mu_node *put = node(g, put_name, "QueueEnqueueV2", device);
	struct mu_node *get = node(g, get_name, "QueueDequeueV2", device);
	struct mu_input in[2] = {{q, 0}, {constant(g, one_name, device, number(1)), 0}};

	mu_node_set_attr(g, q, "component_types", &list);
	mu_node_set_inputs(g, get, in, 1, NULL, 0);
	mu_node_set_attr(g, get, "component_types", &list);
	mu_node_set_inputs(g, put, in, 2, NULL, 0);
	mu_node_set_attr(g, put, "Tcomponents", &list);
	unary(g, got_name, "Identity", WORKER, get);
}

/* "add" makes two round trips to the ps: it adds a value of the worker to the variable v. */
static struct mu_graph *graph(void)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_node *v = variable(g, "v", PS), *one = constant(g, "one", WORKER, number(1));
	struct mu_node *on_ps = unary(g, "there", "Neg", PS, one);

	binary(g, "init", "Assign", PS, v, constant(g, "zero", PS, number(0)));
	binary(g, "add", "AssignAdd", PS, v, unary(g, "back", "Neg", WORKER, on_ps));
	unary(g, "read", "Identity", WORKER, v);
	add_queue(g, "far", PS);
	add_queue(g, "near", WORKER);
	return g;
}

static int run_local_step(struct task *t, const char *handle, const struct step *s, long timeout_ms,
			  struct mu_tensor *out, struct mu_err *err)
{
	MU_AUTO_BUF request = {0};
	MU_AUTO_BUF reply = {0};
	struct rpc_message m;
	int rc;

	step_request(&request, handle, s);
	m = (struct rpc_message){.head = mu_buf_span(&request)};
	rc = task_server_call(t->server, "/tensorflow.MasterService/RunStep", &m, timeout_ms,
			      &reply, err);
	return rc ? rc : step_reply(&reply, out, err);
}

static void run_target(struct task *t, const char *handle, const char *name)
{
	struct mu_err err;

	assert_ok(run_local_step(t, handle, &(struct step){.target = name}, CALL_MS, NULL, &err),
		  &err);
}

/* Waits for the stream to the ps and initialises v. */
static struct fixture *open_session(char handle[64])
{
	struct fixture *f = fixture_new("p01");
	MU_AUTO(mu_graph_free) struct mu_graph *g = graph();
	struct peer *ps = peers_find(f->worker[0].server->peers, "/job:ps/replica:0/task:0");
	struct mu_err err;

	assert_ok(create(&f->worker[0], g, MU_SPAN(""), handle, &err), &err);
	WAIT_UNTIL(stream_peer_live(ps->stream));
	run_target(&f->worker[0], handle, "init");
	return f;
}

struct caller {
	struct task *task;
	const char *handle;
	struct step step;
	int n, rc;
	long timeout_ms;
	struct mu_err err;
	_Atomic bool has_ended;
	pthread_t thread;
};

static void *run_steps(void *arg)
{
	struct caller *c = arg;

	for (int i = 0; i < c->n && !c->rc; i++)
		c->rc = run_local_step(c->task, c->handle, &c->step, c->timeout_ms, NULL, &c->err);
	atomic_store(&c->has_ended, true);
	return NULL;
}

static void start_caller(struct caller *c)
{
	assert_int_equal(pthread_create(&c->thread, NULL, run_steps, c), 0);
}

static void join_caller(struct caller *c)
{
	pthread_join(c->thread, NULL);
	assert_ok(c->rc, &c->err);
}

static void callers__each_get_their_own_results(void **state)
{
	char handle[64];
	struct fixture *f = open_session(handle);
	struct caller c[CALLERS];

	for (int i = 0; i < CALLERS; i++) {
		c[i] = (struct caller){.task = &f->worker[0],
				       .handle = handle,
				       .step = {.target = "add"},
				       .n = STEPS,
				       .timeout_ms = i % 2 ? CALL_MS : 0};
		start_caller(&c[i]);
	}
	for (int i = 0; i < CALLERS; i++)
		join_caller(&c[i]);
	assert_true(run_float(&f->worker[0], handle, "read:0") == CALLERS * STEPS);
	fixture_free(f);
}

/* One caller waits at a remote queue and one at a local queue. Meanwhile steps of another caller
 * continue, and so do steps of a gRPC client, for which no caller of this process waits. */
static void long_wait__does_not_block_other_callers(void **state)
{
	char handle[64];
	struct fixture *f = open_session(handle);
	struct caller remote = {
	    .task = &f->worker[0], .handle = handle, .step = {.fetch = "far_got:0"}, .n = 1};
	struct caller local = remote;

	local.step.fetch = "near_got:0";
	start_caller(&remote);
	start_caller(&local);
	wait_ms(SHORT_WAIT_MS); /* both callers probably wait now; the test passes in any case */
	for (int i = 0; i < STEPS; i++)
		run_target(&f->worker[0], handle, "add");
	assert_true(run_float(&f->worker[0], handle, "read:0") == STEPS);
	assert_false(atomic_load(&remote.has_ended) || atomic_load(&local.has_ended));
	run_target(&f->worker[0], handle, "near_put");
	join_caller(&local);
	run_target(&f->worker[0], handle, "far_put");
	join_caller(&remote);
	fixture_free(f);
}

/* The step of a gRPC client, on another thread, completes the step while the caller waits for a
 * stream. */
static void step__completed_by_another_thread__returns_to_its_caller(void **state)
{
	char handle[64];
	struct fixture *f = open_session(handle);

	for (int i = 0; i < STEPS / 10; i++) {
		struct caller local = {.task = &f->worker[0],
				       .handle = handle,
				       .step = {.fetch = "near_got:0"},
				       .n = 1};
		struct mu_err err;

		start_caller(&local);
		wait_ms(i % 3);
		assert_ok(
		    run(&f->worker[0], handle, &(struct step){.target = "near_put"}, NULL, &err),
		    &err);
		join_caller(&local);
	}
	fixture_free(f);
}

static void deadline__ends_the_wait(void **state)
{
	char handle[64];
	struct fixture *f = open_session(handle);
	struct step remote = {.fetch = "far_got:0"};
	struct mu_err err;

	assert_int_equal(run_local_step(&f->worker[0], handle, &remote, SHORT_WAIT_MS, NULL, &err),
			 -MU_DEADLINE_EXCEEDED);
	run_target(&f->worker[0], handle, "add");
	fixture_free(f);
}

static void lost_ps__fails_the_steps_that_wait_for_it(void **state)
{
	char handle[64];
	struct fixture *f = open_session(handle);
	struct caller remote = {
	    .task = &f->worker[0], .handle = handle, .step = {.fetch = "far_got:0"}, .n = 1};

	start_caller(&remote);
	wait_ms(SHORT_WAIT_MS);
	stop_task(&f->ps);
	pthread_join(remote.thread, NULL);
	assert_true(remote.rc != 0);
	fixture_free(f);
}

static void stopped_server__returns_to_its_callers(void **state)
{
	char handle[64];
	struct fixture *f = open_session(handle);
	struct caller local = {
	    .task = &f->worker[0], .handle = handle, .step = {.fetch = "near_got:0"}, .n = 1};
	struct worker_counts running = {0};

	start_caller(&local);
	WAIT_UNTIL(
	    (worker_count(f->worker[0].server->context.worker, &running), running.running > 0));
	stop_task(&f->worker[0]);
	pthread_join(local.thread, NULL);
	assert_true(local.rc != 0);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(callers__each_get_their_own_results),
	    cmocka_unit_test(long_wait__does_not_block_other_callers),
	    cmocka_unit_test(step__completed_by_another_thread__returns_to_its_caller),
	    cmocka_unit_test(deadline__ends_the_wait),
	    cmocka_unit_test(lost_ps__fails_the_steps_that_wait_for_it),
	    cmocka_unit_test(stopped_server__returns_to_its_callers),
	};

	mu_log_set_level(MU_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
