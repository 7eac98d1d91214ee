/* SPDX-License-Identifier: Apache-2.0 */
/* Reset while calls wait: MasterService/Reset closes the sessions of its own master and removes the
 * resources of the default container on all tasks. */
#include "task/server_internal.h"
#include "tests/cluster/fixture.h"

#include <pthread.h>

#define PS "/job:ps/task:0"

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

/* ---- calls that wait at an empty resource of the ps ---- */

static void set_types(struct mu_graph *g, struct mu_node *n, const char *name)
{
	static enum mu_dtype types[] = {MU_FLOAT};
	struct mu_attr list = {
	    .kind = (enum mu_attr_kind)(MU_ATTR_LIST + MU_ATTR_TYPE), .types = types, .n = 1};

	mu_node_set_attr(g, n, name, &list);
}

static void set_scalar_shape(struct mu_graph *g, struct mu_node *n, const char *name, int list)
{
	struct mu_pshape scalar = {.rank = 0};
	struct mu_attr shape = {.kind = MU_ATTR_SHAPE, .shape = &scalar};
	struct mu_attr shapes = {
	    .kind = (enum mu_attr_kind)(MU_ATTR_LIST + MU_ATTR_SHAPE), .shapes = &scalar, .n = 1};

	mu_node_set_attr(g, n, name, list ? &shapes : &shape);
}

/* A node named as its op, with a shared name: its resource is in the default container. */
static struct mu_node *shared_resource(struct mu_graph *g, const char *op)
{
	struct mu_node *n = node(g, op, op, PS);
	struct mu_attr name = {.kind = MU_ATTR_STRING, .s = mu_span_of(op)};

	mu_node_set_attr(g, n, "shared_name", &name);
	return n;
}

/* A node named as its op, with the resource and, if not NULL, a count as inputs. */
static struct mu_node *resource_call(struct mu_graph *g, const char *op, struct mu_node *resource,
				     struct mu_node *count)
{
	struct mu_node *n = node(g, op, op, PS);
	struct mu_input in[2] = {{resource, 0}, {count, 0}};

	mu_node_set_inputs(g, n, in, count ? 2 : 1, NULL, 0);
	return n;
}

static const struct {
	const char *target, *message;
} waiting_calls[] = {
    {"QueueDequeueV2", "ends: its queue was reset"},
    {"QueueDequeueManyV2", "ends: its queue was reset"},
    {"Unstage", "ends: its staging area was reset"},
    {"BarrierTakeMany", "ends: its queue was reset"},
    {"AccumulatorTakeGradient", "ends: its accumulator was reset"},
    {"ConsumeMutexLock", "ends: the mutex was reset"},
};

/* Returns a graph with the calls above.  ConsumeMutexLock waits for a mutex that its step holds.
 * "fetched" copies the result of QueueDequeueV2 to worker 1. */
static struct mu_graph *graph(void)
{
	struct mu_graph *g = mu_graph_new();
	int32_t value = 1;
	struct mu_tensor t;
	struct mu_node *one, *n, *locked, *second_lock;

	assert_int_equal(mu_tensor_scalar(&t, MU_INT32, &value, NULL), 0);
	one = constant(g, "one", PS, t);
	n = shared_resource(g, "FIFOQueueV2");
	set_types(g, n, "component_types");
	set_scalar_shape(g, n, "shapes", 1);
	set_types(g, resource_call(g, "QueueDequeueManyV2", n, one), "component_types");
	n = resource_call(g, "QueueDequeueV2", n, NULL);
	set_types(g, n, "component_types");
	unary(g, "fetched", "Identity", "/job:worker/task:1", n);

	set_types(g, shared_resource(g, "Unstage"), "dtypes");

	n = shared_resource(g, "Barrier");
	set_types(g, n, "component_types");
	set_scalar_shape(g, n, "shapes", 1);
	set_types(g, resource_call(g, "BarrierTakeMany", n, one), "component_types");

	n = shared_resource(g, "ConditionalAccumulator");
	set_type(g, n, "dtype", MU_FLOAT);
	set_scalar_shape(g, n, "shape", 0);
	set_type(g, resource_call(g, "AccumulatorTakeGradient", n, one), "dtype", MU_FLOAT);

	n = shared_resource(g, "MutexV2");
	locked = resource_call(g, "MutexLock", n, NULL);
	second_lock = node(g, "again", "MutexLock", PS);
	mu_node_set_inputs(g, second_lock, &(struct mu_input){n, 0}, 1,
			   &(struct mu_input){locked, MU_CONTROL}, 1);
	mu_node_add_control(g, resource_call(g, "ConsumeMutexLock", locked, NULL), second_lock);
	return g;
}

/* ---- a client that waits ---- */

struct client {
	struct fixture *fixture;
	const char *target, *partial; /* partial: the handle of a partial run, which fetches */
	char session[64];             /* of the master at worker 1 */
	struct mu_err err;
	int rc;
	_Atomic bool ended;
	pthread_t thread;
};

static void *run_step(void *arg)
{
	struct client *c = arg;
	struct task *master = &c->fixture->worker[1];
	struct step step = {.target = c->target};

	c->rc = c->partial ? run_partial(master, c->session, c->partial, "fetched:0", &c->err)
			   : run(master, c->session, &step, NULL, &c->err);
	atomic_store(&c->ended, true);
	return NULL;
}

static bool ps_runs_a_step(struct fixture *f)
{
	struct worker_counts n;

	worker_count(f->ps.server->context.worker, &n);
	return n.running > 0;
}

static bool ended_after_reset(const struct client *c, struct task *reset)
{
	MU_AUTO_BUF empty = {0};
	struct mu_err err;

	assert_ok(call(reset, "Reset", &empty, NULL, &err), &err);
	return atomic_load(&c->ended);
}

/* Runs the step and resets `reset` until the step ends. The first reset may precede the call. */
static void reset_during_step(struct client *c, struct task *reset)
{
	atomic_store(&c->ended, false);
	assert_int_equal(pthread_create(&c->thread, NULL, run_step, c), 0);
	WAIT_UNTIL(ps_runs_a_step(c->fixture) || atomic_load(&c->ended));
	WAIT_UNTIL(ended_after_reset(c, reset));
	pthread_join(c->thread, NULL);
}

static void expect_error(const struct client *c, enum mu_code code, const char *message)
{
	if (c->rc != -(int)code || !strstr(c->err.msg, message))
		fail_msg("%s ended with %d '%s', not %d '%s'", c->target ? c->target : "fetch",
			 c->rc, c->err.msg, -(int)code, message);
}

static void waiting_call__when_another_master_resets_its_resource__is_cancelled(void **state)
{
	struct client c = {.fixture = *state};
	MU_AUTO(mu_graph_free) struct mu_graph *g = graph();
	struct mu_err err;

	assert_ok(create(&c.fixture->worker[1], g, MU_SPAN(""), c.session, &err), &err);
	for (unsigned i = 0; i < MU_COUNT(waiting_calls); i++) {
		c.target = waiting_calls[i].target;
		reset_during_step(&c, &c.fixture->worker[0]);
		expect_error(&c, MU_CANCELLED, waiting_calls[i].message);
	}
}

static void waiting_call__when_its_master_is_reset__is_aborted(void **state)
{
	struct client c = {.fixture = *state};
	MU_AUTO(mu_graph_free) struct mu_graph *g = graph();
	struct mu_err err;

	for (unsigned i = 0; i < MU_COUNT(waiting_calls); i++) {
		do {
			assert_ok(create(&c.fixture->worker[1], g, MU_SPAN(""), c.session, &err),
				  &err);
			c.target = waiting_calls[i].target;
			reset_during_step(&c, &c.fixture->worker[1]);
		} while (strstr(c.err.msg, "is not found")); /* reset before the call */
		expect_error(&c, MU_ABORTED, "The session was reset");
	}
}

static void partial_run__that_waits_when_its_master_is_reset__is_aborted(void **state)
{
	static const char *const fetches[] = {"fetched:0"};
	struct client c = {.fixture = *state};
	struct task *master = &c.fixture->worker[1];
	MU_AUTO(mu_graph_free) struct mu_graph *g = graph();
	char partial[64];
	struct mu_err err;

	c.partial = partial;
	do {
		assert_ok(create(master, g, MU_SPAN(""), c.session, &err), &err);
		partial_setup(master, c.session, fetches, 1, partial);
		reset_during_step(&c, master);
	} while (strstr(c.err.msg, "is not found")); /* the session was reset before the call */
	expect_error(&c, MU_ABORTED, "The session was reset");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		waiting_call__when_another_master_resets_its_resource__is_cancelled, start, stop),
	    cmocka_unit_test_setup_teardown(waiting_call__when_its_master_is_reset__is_aborted,
					    start, stop),
	    cmocka_unit_test_setup_teardown(
		partial_run__that_waits_when_its_master_is_reset__is_aborted, start, stop),
	};

	mu_log_set_level(MU_WARN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
