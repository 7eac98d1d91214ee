/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread goes on with what. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "task/runtime/thread_pool.h"
#include "tests/task/run_step.h"

static void take(void *arg, const struct mu_err *err, struct mu_tensor *tensor, bool dead)
{
	assert_null(err);
	*(struct mu_tensor *)arg = *tensor;
}

struct ended {
	pthread_t by;
	_Atomic int calls;
};

static void note_thread(void *arg, const struct mu_err *err)
{
	struct ended *e = arg;

	e->by = pthread_self();
	e->calls++;
}

static void wait_for(struct ended *e)
{
	WAIT_UNTIL(e->calls);
	assert_int_equal(e->calls, 1);
}

/* Waking another thread costs more than a small step: who brings what a pending step waits for runs
 * on with that one, after its own. */
static void step__that_another_one_ends_the_wait_of__goes_on_in_the_same_thread(void **state)
{
	struct mu_graph *waits = mu_graph_new(), *brings = mu_graph_new();
	struct ended first = {0}, second = {0};

	end(waits, "in", "_Recv", "", "in");
	floats(waits, "sq", "Mul", "in in", "");
	scalar(brings, "two", 2, "");
	end(brings, "send", "_Send", "two", "in");
	struct executor *w = compile(waits), *b = compile(brings);
	struct rendezvous *r = rendezvous_table_get(rt->steps, next_step);
	struct step *s = executor_start(w, r, NULL, NULL, note_thread, &first);
	assert_int_equal(first.calls, 0);
	step_unref(executor_start(b, r, NULL, NULL, note_thread, &second));
	assert_int_equal(second.calls, 1);
	assert_int_equal(first.calls, 1);
	assert_true(pthread_equal(first.by, pthread_self()));
	step_unref(s);
	rendezvous_unref(r);
	rendezvous_table_drop(rt->steps, next_step++, NULL);
	executor_unref(w);
	executor_unref(b);
}

static struct mu_graph *graph_that_waits(const char *edge, int nodes)
{
	struct mu_graph *g = mu_graph_new();
	char last[16] = "in";

	end(g, "in", "_Recv", "", edge);
	for (int i = 0; i < nodes; i++) {
		char name[16], inputs[40];

		snprintf(name, sizeof(name), "n%d", i);
		snprintf(inputs, sizeof(inputs), "%s %s", last, last);
		floats(g, name, "Add", inputs, "");
		strcpy(last, name);
	}
	return g;
}

/* But no longer than a guest may stay: what is too much goes to the pool. */
static void steps__that_one_ends_the_wait_of__do_not_all_keep_its_thread(void **state)
{
	enum { STEPS = 40, NODES = 30 };
	struct mu_graph *brings = mu_graph_new();
	struct rendezvous *r = rendezvous_table_get(rt->steps, next_step);
	struct ended done[STEPS] = {0}, sent = {0};
	struct executor *e[STEPS + 1];
	struct step *steps[STEPS];

	scalar(brings, "two", 2, "");
	for (int i = 0; i < STEPS; i++) {
		char edge[16], name[16];

		snprintf(edge, sizeof(edge), "in%d", i);
		snprintf(name, sizeof(name), "send%d", i);
		end(brings, name, "_Send", "two", edge);
		e[i] = compile(graph_that_waits(edge, NODES));
		steps[i] = executor_start(e[i], r, NULL, NULL, note_thread, &done[i]);
	}
	e[STEPS] = compile(brings);
	step_unref(executor_start(e[STEPS], r, NULL, NULL, note_thread, &sent));
	wait_for(&sent);
	for (int i = 0; i < STEPS; i++) {
		wait_for(&done[i]);
		step_unref(steps[i]);
	}
	for (int i = 0; i <= STEPS; i++)
		executor_unref(e[i]);
	rendezvous_unref(r);
	rendezvous_table_drop(rt->steps, next_step++, NULL);
}

static void matrix(struct mu_graph *g, const char *name, int64_t n)
{
	struct mu_node *made = node(g, name, "Const", "", "");
	struct mu_shape shape = mu_shape_scalar();
	MU_AUTO_TENSOR v = {0};
	struct mu_attr a = {.kind = MU_ATTR_TENSOR, .tensor = &v};
	struct mu_err err = {0};

	assert_ok(mu_shape_set(&shape, 2, (int64_t[]){n, n}, &err), &err);
	assert_ok(mu_tensor_new(&v, MU_FLOAT, &shape, &err), &err);
	for (int64_t i = 0; i < n * n; i++)
		MU_DATA(float, &v)[i] = 1;
	mu_node_set_attr(g, made, "value", &a);
	attr_type(g, made, "dtype", MU_FLOAT);
}

/* Two products of 128 KB are ready at once: another thread would not be awake before they are
 * done. */
static void step__of_a_small_model__stays_in_the_thread_that_began_it(void **state)
{
	enum { SIDE = 128, TIMES = 50 };
	struct mu_graph *g = mu_graph_new();
	struct executor *e;

	matrix(g, "a", SIDE);
	matrix(g, "b", SIDE);
	floats(g, "ab", "MatMul", "a b", "");
	floats(g, "ba", "MatMul", "b a", "");
	floats(g, "sum", "Add", "ab ba", "");
	end(g, "send", "_Send", "sum", "out");
	e = compile(g);
	for (int i = 0; i < TIMES; i++) {
		struct rendezvous *r = rendezvous_table_get(rt->steps, next_step);
		struct ended done = {0};
		struct mu_tensor got = {0};

		rendezvous_recv_local(r, EDGE_KEY("out"), take, &got);
		step_unref(executor_start(e, r, NULL, NULL, note_thread, &done));
		assert_int_equal(done.calls, 1);
		assert_true(pthread_equal(done.by, pthread_self()));
		assert_float_equal(MU_DATA(float, &got)[0], 2 * SIDE, 0);
		mu_tensor_unref(&got);
		rendezvous_unref(r);
		rendezvous_table_drop(rt->steps, next_step++, NULL);
	}
	executor_unref(e);
}

struct blocker {
	struct pool_job job;
	_Atomic bool started, may_end, ended;
};

static void block(struct pool_job *job)
{
	struct blocker *b = MU_CONTAINER(job, struct blocker, job);

	atomic_store(&b->started, true);
	WAIT_UNTIL(atomic_load(&b->may_end));
	atomic_store(&b->ended, true);
}

/* Runs g while the threads of the pool are busy.  Returns true if the step waits for them. */
static bool needs_the_pool(struct mu_graph *g)
{
	struct blocker blockers[] = {{.job = {.run = block}}, {.job = {.run = block}}};
	struct rendezvous *r = rendezvous_table_get(rt->steps, next_step);
	struct executor *e = compile(g);
	struct ended done = {0};

	assert_int_equal(thread_pool_size(rt->pool), MU_COUNT(blockers));
	for (unsigned i = 0; i < MU_COUNT(blockers); i++)
		thread_pool_add(rt->pool, &blockers[i].job);
	WAIT_UNTIL(blockers[0].started && blockers[1].started);
	step_unref(executor_start(e, r, NULL, NULL, note_thread, &done));
	bool waits = done.calls == 0;
	for (unsigned i = 0; i < MU_COUNT(blockers); i++)
		atomic_store(&blockers[i].may_end, true);
	wait_for(&done);
	WAIT_UNTIL(blockers[0].ended && blockers[1].ended);
	rendezvous_unref(r);
	rendezvous_table_drop(rt->steps, next_step++, NULL);
	executor_unref(e);
	return waits;
}

/* The thread that starts a step reads the messages of all clients. */
static void file_op__runs_in_the_pool(void **state)
{
	struct mu_graph *g = mu_graph_new();

	string_constant(g, "name", "/dev/null");
	node(g, "read", "ReadFile", "name", "");
	assert_true(needs_the_pool(g));
}

static void op_with_the_shape_of_its_output__runs_in_the_pool_if_that_is_large(void **state)
{
	static const int32_t sides[] = {10, 1000};

	for (unsigned i = 0; i < MU_COUNT(sides); i++) {
		struct mu_graph *g = mu_graph_new();
		struct mu_node *made;

		constant(g, "side", MU_INT32, &sides[i], "", "");
		attr_type(g, node(g, "shape", "Pack", "side side", ""), "T", MU_INT32);
		attr_int(g, mu_graph_find(g, "shape"), "N", 2);
		made = node(g, "made", "RandomUniform", "shape", "");
		attr_type(g, made, "T", MU_INT32);
		attr_type(g, made, "dtype", MU_FLOAT);
		assert_int_equal(needs_the_pool(g), sides[i] == 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(step__that_another_one_ends_the_wait_of__goes_on_in_the_same_thread),
	    cmocka_unit_test(steps__that_one_ends_the_wait_of__do_not_all_keep_its_thread),
	    cmocka_unit_test(step__of_a_small_model__stays_in_the_thread_that_began_it),
	    cmocka_unit_test(file_op__runs_in_the_pool),
	    cmocka_unit_test(op_with_the_shape_of_its_output__runs_in_the_pool_if_that_is_large),
	};
	return cmocka_run_group_tests(tests, start_runtime, stop_runtime);
}
