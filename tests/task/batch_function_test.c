/* SPDX-License-Identifier: Apache-2.0 */
/* BatchFunction and Unbatch: full batches, cancelled steps, removed queues, rejected calls.
 * tests/compat compares the values with TensorFlow's. */
#include <pthread.h>
#include <stdatomic.h>

#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/runtime.h"
#include "tests/task/function_graph.h"
#include "tests/task/step_end.h"
#include "tests/wait.h"

enum { TIMEOUT_US = 2000000000, STEPS = 8 };
static struct runtime *rt;

static void zeros(struct mu_graph *g, const char *name, int rank, const int64_t *dims)
{
	struct mu_node *c = node(g, name, "Const", "", NULL);
	struct mu_shape shape;
	MU_AUTO_TENSOR t = {0};

	assert_int_equal(mu_shape_set(&shape, rank, dims, NULL), 0);
	assert_int_equal(mu_tensor_new(&t, MU_INT64, &shape, NULL), 0);
	memset(t.data, 0, (size_t)shape.count * sizeof(int64_t));
	mu_node_set_attr(g, c, "value", &(struct mu_attr){.kind = MU_ATTR_TENSOR, .tensor = &t});
	attr_type(g, c, "dtype", MU_INT64);
}

static void zero_vector(struct mu_graph *g, const char *name, int64_t n)
{
	zeros(g, name, 1, &n);
}

/* Calls f with one row, in batches of two rows. An incomplete batch waits for half an
 * hour. */
static struct mu_graph *batch_graph(struct mu_graph *body, const char *last)
{
	struct mu_attr none = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE};
	struct mu_graph *g = mu_graph_new();

	add_function(g, "f", MU_INT64, body, last);
	mu_graph_free(body);
	zero_vector(g, "row", 1);
	struct mu_node *n = node(g, "batch", "BatchFunction", "row", NULL);
	attr_func(g, n, "f", "f");
	attr_types(g, n, "Tin", MU_INT64);
	attr_types(g, n, "Tout", MU_INT64);
	mu_node_set_attr(g, n, "Tcaptured", &none);
	attr_int(g, n, "num_batch_threads", 1);
	attr_int(g, n, "max_batch_size", 2);
	attr_int(g, n, "batch_timeout_micros", TIMEOUT_US);
	attr_string(g, n, "shared_name", "batches");
	return g;
}

static struct mu_graph *two_row_body(void)
{
	struct mu_graph *body = mu_graph_new();

	zero_vector(body, "two", 2);
	return body;
}

static struct mu_graph *dequeue_body(void)
{
	struct mu_graph *body = mu_graph_new();
	struct mu_node *n = node(body, "queue", "FIFOQueueV2", "", NULL);

	attr_string(body, n, "shared_name", "queue");
	attr_string(body, n, "container", "elsewhere");
	attr_types(body, n, "component_types", MU_INT64);
	attr_types(body, node(body, "take", "QueueDequeueV2", "queue", NULL), "component_types",
		   MU_INT64);
	return body;
}

struct running_step {
	_Atomic int end_code; /* 0: running; -1: succeeded */
	struct rendezvous *r;
	struct step *s;
};

static void begin_step(struct running_step *s, struct executor *e, uint64_t id)
{
	atomic_init(&s->end_code, 0);
	s->r = rendezvous_table_get(rt->steps, id);
	s->s = executor_start(e, s->r, NULL, NULL, on_done, &s->end_code);
}

static void finish_step(struct running_step *s, uint64_t id, int end_code)
{
	WAIT_UNTIL(atomic_load(&s->end_code) != 0);
	assert_int_equal(atomic_load(&s->end_code), end_code);
	step_unref(s->s);
	rendezvous_table_drop(rt->steps, id, NULL);
	rendezvous_unref(s->r);
}

static struct executor *open_executor(struct mu_graph *g)
{
	struct executor *e;
	struct mu_err err;

	assert_ok(runtime_new("local", 0, 2, &task_kernels, NULL, &rt, &err), &err);
	assert_ok(executor_new(rt, g, "", &e, &err), &err);
	return e;
}

static void steps__that_fill_batches__end_without_a_timeout(void **state)
{
	struct executor *e = open_executor(batch_graph(two_row_body(), "two:output:0"));
	struct running_step s[STEPS];

	for (uint64_t i = 0; i < STEPS; i++)
		begin_step(&s[i], e, i + 1);
	for (uint64_t i = 0; i < STEPS; i++)
		finish_step(&s[i], i + 1, -1);
	executor_unref(e);
	runtime_free(rt);
}

static void step__cancelled_while_it_waits_for_a_batch__leaves_its_row(void **state)
{
	struct mu_err why = {MU_CANCELLED, "the step has waited long enough"};
	struct executor *e = open_executor(batch_graph(two_row_body(), "two:output:0"));
	struct running_step first, second;

	begin_step(&first, e, 1);
	WAIT_UNTIL(has_resource(rt, "batches/"));
	step_cancel(first.s, &why);
	finish_step(&first, 1, MU_CANCELLED);
	begin_step(&second, e, 2); /* completes the batch if the first row has joined it */
	wait_ms(POLL_INTERVAL_MS);
	resources_clear(rt->resources, "");
	WAIT_UNTIL(atomic_load(&second.end_code) != 0);
	finish_step(&second, 2, atomic_load(&second.end_code));
	executor_unref(e);
	runtime_free(rt);
}

static void function__with_outputs_of_another_type__fails_the_calls(void **state)
{
	struct mu_graph *g = batch_graph(two_row_body(), "two:output:0");
	struct running_step s[2];

	attr_types(g, mu_graph_find(g, "batch"), "Tout", MU_INT32);
	struct executor *e = open_executor(g);
	for (uint64_t i = 0; i < 2; i++)
		begin_step(&s[i], e, i + 1);
	for (uint64_t i = 0; i < 2; i++)
		finish_step(&s[i], i + 1, MU_INVALID_ARGUMENT);
	executor_unref(e);
	runtime_free(rt);
}

static void call__with_other_inputs_than_the_open_batch__is_rejected(void **state)
{
	struct mu_graph *other = batch_graph(two_row_body(), "two:output:0");
	struct executor *e = open_executor(batch_graph(two_row_body(), "two:output:0")),
			*other_executor;
	struct running_step first, second;
	struct mu_shape shape = mu_shape_vec(1);
	MU_AUTO_TENSOR row = {0};
	struct mu_err err;

	assert_int_equal(mu_tensor_new(&row, MU_INT32, &shape, NULL), 0);
	memset(row.data, 0, sizeof(int32_t));
	mu_node_set_attr(other, mu_graph_find(other, "row"), "value",
			 &(struct mu_attr){.kind = MU_ATTR_TENSOR, .tensor = &row});
	attr_type(other, mu_graph_find(other, "row"), "dtype", MU_INT32);
	attr_types(other, mu_graph_find(other, "batch"), "Tin", MU_INT32);
	assert_ok(executor_new(rt, other, "", &other_executor, &err), &err);
	begin_step(&first, e, 1);
	WAIT_UNTIL(has_resource(rt, "batches/"));
	wait_ms(POLL_INTERVAL_MS);
	begin_step(&second, other_executor, 2);
	finish_step(&second, 2, MU_INVALID_ARGUMENT);
	resources_clear(rt->resources, "");
	WAIT_UNTIL(atomic_load(&first.end_code) != 0);
	finish_step(&first, 1, atomic_load(&first.end_code));
	executor_unref(other_executor);
	executor_unref(e);
	runtime_free(rt);
}

static void queue__removed_while_its_function_waits__ends_the_calls(void **state)
{
	struct executor *e = open_executor(batch_graph(dequeue_body(), "take:components:0"));
	struct running_step s[4]; /* two in the running batch, two in one that waits for a thread */

	for (uint64_t i = 0; i < 4; i++)
		begin_step(&s[i], e, i + 1);
	WAIT_UNTIL(has_resource(rt, "queue"));
	resources_clear(rt->resources, "");
	for (uint64_t i = 0; i < 4; i++)
		finish_step(&s[i], i + 1, MU_CANCELLED);
	executor_unref(e);
	runtime_free(rt);
}

/* The Unbatch node waits for the rows of id 0, which no batch has. */
static struct mu_graph *unbatch_graph(void)
{
	struct mu_graph *g = mu_graph_new();

	zero_vector(g, "row", 1);
	zeros(g, "index", 2, (int64_t[]){0, 3});
	zeros(g, "id", 0, NULL);
	struct mu_node *n = node(g, "unbatch", "Unbatch", "row index id", NULL);
	attr_type(g, n, "T", MU_INT64);
	attr_int(g, n, "timeout_micros", TIMEOUT_US);
	attr_string(g, n, "shared_name", "rows");
	return g;
}

static void unbatch__cancelled_or_removed_while_it_waits__ends(void **state)
{
	struct mu_err why = {MU_CANCELLED, "the step has waited long enough"};
	struct executor *e = open_executor(unbatch_graph());
	struct running_step first, second;

	begin_step(&first, e, 1);
	WAIT_UNTIL(has_resource(rt, "rows"));
	step_cancel(first.s, &why);
	finish_step(&first, 1, MU_CANCELLED);
	begin_step(&second, e, 2); /* the id is free again */
	wait_ms(POLL_INTERVAL_MS);
	assert_int_equal(atomic_load(&second.end_code), 0);
	resources_clear(rt->resources, "");
	finish_step(&second, 2, MU_CANCELLED);
	executor_unref(e);
	runtime_free(rt);
}

static void unbatch__of_an_id_that_another_call_waits_for__is_rejected(void **state)
{
	struct executor *e = open_executor(unbatch_graph());
	struct running_step first, second;

	begin_step(&first, e, 1);
	WAIT_UNTIL(has_resource(rt, "rows"));
	wait_ms(POLL_INTERVAL_MS);
	begin_step(&second, e, 2);
	finish_step(&second, 2, MU_ALREADY_EXISTS);
	assert_int_equal(atomic_load(&first.end_code), 0);
	resources_clear(rt->resources, "");
	finish_step(&first, 1, MU_CANCELLED);
	executor_unref(e);
	runtime_free(rt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(steps__that_fill_batches__end_without_a_timeout),
	    cmocka_unit_test(step__cancelled_while_it_waits_for_a_batch__leaves_its_row),
	    cmocka_unit_test(function__with_outputs_of_another_type__fails_the_calls),
	    cmocka_unit_test(call__with_other_inputs_than_the_open_batch__is_rejected),
	    cmocka_unit_test(queue__removed_while_its_function_waits__ends_the_calls),
	    cmocka_unit_test(unbatch__cancelled_or_removed_while_it_waits__ends),
	    cmocka_unit_test(unbatch__of_an_id_that_another_call_waits_for__is_rejected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
