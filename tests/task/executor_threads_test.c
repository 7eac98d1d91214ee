/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that run the nodes of a step: the starting thread, an I/O thread, or the pool. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "task/runtime/thread_pool.h"
#include "tests/task/run_step.h"

static void store_tensor(void *arg, const struct mu_err *err, struct mu_tensor *tensor, bool dead)
{
	assert_null(err);
	*(struct mu_tensor *)arg = *tensor;
}

struct completion {
	pthread_t thread;
	_Atomic int calls;
};

static void note_thread(void *arg, const struct mu_err *err)
{
	struct completion *e = arg;

	e->thread = pthread_self();
	e->calls++;
}

static void wait_for(struct completion *e)
{
	WAIT_UNTIL(e->calls);
	assert_int_equal(e->calls, 1);
}

/* Waking another thread costs more than a small step. When a step sends the tensor of another
 * step's pending receive, it ends first. Then its thread runs the other step. */
static void step__made_ready_by_another_step__runs_on_its_thread(void **state)
{
	struct mu_graph *receiving = mu_graph_new(), *sending = mu_graph_new();
	struct completion first = {0}, second = {0};

	end(receiving, "in", "_Recv", "", "in");
	floats(receiving, "sq", "Mul", "in in", "");
	scalar(sending, "two", 2, "");
	end(sending, "send", "_Send", "two", "in");
	struct executor *w = compile(receiving), *b = compile(sending);
	struct rendezvous *r = rendezvous_table_get(rt->steps, next_step);
	struct step *s = executor_start(w, r, NULL, NULL, note_thread, &first);
	assert_int_equal(first.calls, 0);
	step_unref(executor_start(b, r, NULL, NULL, note_thread, &second));
	assert_int_equal(second.calls, 1);
	assert_int_equal(first.calls, 1);
	assert_true(pthread_equal(first.thread, pthread_self()));
	step_unref(s);
	rendezvous_unref(r);
	rendezvous_table_drop(rt->steps, next_step++, NULL);
	executor_unref(w);
	executor_unref(b);
}

static struct mu_graph *recv_graph(const char *edge, int nodes)
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

/* Inline execution is limited: steps beyond the inline budget run in the pool. */
static void steps__made_ready_by_one_step__all_end(void **state)
{
	enum { STEPS = 40, NODES = 30 };
	struct mu_graph *sending = mu_graph_new();
	struct rendezvous *r = rendezvous_table_get(rt->steps, next_step);
	struct completion done[STEPS] = {0}, sent = {0};
	struct executor *e[STEPS + 1];
	struct step *steps[STEPS];

	scalar(sending, "two", 2, "");
	for (int i = 0; i < STEPS; i++) {
		char edge[16], name[16];

		snprintf(edge, sizeof(edge), "in%d", i);
		snprintf(name, sizeof(name), "send%d", i);
		end(sending, name, "_Send", "two", edge);
		e[i] = compile(recv_graph(edge, NODES));
		steps[i] = executor_start(e[i], r, NULL, NULL, note_thread, &done[i]);
	}
	e[STEPS] = compile(sending);
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
	struct mu_node *c = node(g, name, "Const", "", "");
	struct mu_shape shape = mu_shape_scalar();
	MU_AUTO_TENSOR v = {0};
	struct mu_attr a = {.kind = MU_ATTR_TENSOR, .tensor = &v};
	struct mu_err err = {0};

	assert_ok(mu_shape_set(&shape, 2, (int64_t[]){n, n}, &err), &err);
	assert_ok(mu_tensor_new(&v, MU_FLOAT, &shape, &err), &err);
	for (int64_t i = 0; i < n * n; i++)
		MU_DATA(float, &v)[i] = 1;
	mu_node_set_attr(g, c, "value", &a);
	attr_type(g, c, "dtype", MU_FLOAT);
}

/* Two products of 64 KiB matrices are ready at once. Both end before another thread could wake. */
static void step__of_a_small_model__runs_on_the_starting_thread(void **state)
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
		struct completion done = {0};
		struct mu_tensor got = {0};

		rendezvous_recv_local(r, EDGE_KEY("out"), store_tensor, &got);
		step_unref(executor_start(e, r, NULL, NULL, note_thread, &done));
		assert_int_equal(done.calls, 1);
		assert_true(pthread_equal(done.thread, pthread_self()));
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
static bool waits_for_pool(struct mu_graph *g)
{
	struct blocker blockers[] = {{.job = {.run = block}}, {.job = {.run = block}}};
	struct rendezvous *r = rendezvous_table_get(rt->steps, next_step);
	struct executor *e = compile(g);
	struct completion done = {0};

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

/* The thread that starts a step also reads the messages of all clients, so it must not block. */
static void file_op__when_ready__runs_in_the_pool(void **state)
{
	struct mu_graph *g = mu_graph_new();

	string_constant(g, "name", "/dev/null");
	node(g, "read", "ReadFile", "name", "");
	assert_true(waits_for_pool(g));
}

static void op_with_a_shape_input__for_a_large_output__runs_in_the_pool(void **state)
{
	static const int32_t sides[] = {10, 1000};

	for (unsigned i = 0; i < MU_COUNT(sides); i++) {
		struct mu_graph *g = mu_graph_new();
		struct mu_node *n;

		constant(g, "side", MU_INT32, &sides[i], "", "");
		attr_type(g, node(g, "shape", "Pack", "side side", ""), "T", MU_INT32);
		attr_int(g, mu_graph_find(g, "shape"), "N", 2);
		n = node(g, "made", "RandomUniform", "shape", "");
		attr_type(g, n, "T", MU_INT32);
		attr_type(g, n, "dtype", MU_FLOAT);
		assert_int_equal(waits_for_pool(g), sides[i] == 1000);
	}
}

/* The output is the input, of 640 KB: its size counts once, also if the shape contains -1. */
static void reshape__of_less_than_the_limit__stays_on_its_thread(void **state)
{
	enum { SIDE = 400 };
	static const int32_t sizes[] = {-1, SIDE * SIDE};

	for (unsigned i = 0; i < MU_COUNT(sizes); i++) {
		struct mu_graph *g = mu_graph_new();

		matrix(g, "values", SIDE);
		constant(g, "size", MU_INT32, &sizes[i], "", "");
		attr_type(g, node(g, "shape", "Pack", "size", ""), "T", MU_INT32);
		attr_int(g, mu_graph_find(g, "shape"), "N", 1);
		attr_type(g, floats(g, "reshaped", "Reshape", "values shape", ""), "Tshape",
			  MU_INT32);
		assert_false(waits_for_pool(g));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(step__made_ready_by_another_step__runs_on_its_thread),
	    cmocka_unit_test(steps__made_ready_by_one_step__all_end),
	    cmocka_unit_test(step__of_a_small_model__runs_on_the_starting_thread),
	    cmocka_unit_test(file_op__when_ready__runs_in_the_pool),
	    cmocka_unit_test(op_with_a_shape_input__for_a_large_output__runs_in_the_pool),
	    cmocka_unit_test(reshape__of_less_than_the_limit__stays_on_its_thread),
	};
	return cmocka_run_group_tests(tests, start_runtime, stop_runtime);
}
