/* SPDX-License-Identifier: Apache-2.0 */
/* Steps whose calls share a batch, are cancelled in one, lose its queue, or do not fit into it.
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

static void numbers(struct mu_graph *g, const char *name, int64_t n)
{
	zeros(g, name, 1, &n);
}

/* A row through function f, in batches of two rows that wait for half an hour. */
static struct mu_graph *batched(struct mu_graph *body, const char *last)
{
	struct mu_attr none = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE};
	struct mu_graph *g = mu_graph_new();

	add_function(g, "f", MU_INT64, body, last);
	mu_graph_free(body);
	numbers(g, "row", 1);
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

static struct mu_graph *gives_two_rows(void)
{
	struct mu_graph *body = mu_graph_new();

	numbers(body, "two", 2);
	return body;
}

static struct mu_graph *waits(void)
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

struct running {
	_Atomic int how; /* 0: it runs; -1: it has succeeded */
	struct rendezvous *r;
	struct step *s;
};

static void begin(struct running *s, struct executor *e, uint64_t id)
{
	atomic_init(&s->how, 0);
	s->r = rendezvous_table_get(rt->steps, id);
	s->s = executor_start(e, s->r, NULL, NULL, on_done, &s->how);
}

static void finish(struct running *s, uint64_t id, int how)
{
	WAIT_UNTIL(atomic_load(&s->how) != 0);
	assert_int_equal(atomic_load(&s->how), how);
	step_unref(s->s);
	rendezvous_table_drop(rt->steps, id, NULL);
	rendezvous_unref(s->r);
}

static struct executor *runs(struct mu_graph *g)
{
	struct executor *e;
	struct mu_err err;

	assert_ok(runtime_new("local", 0, 2, &task_kernels, NULL, &rt, &err), &err);
	assert_ok(executor_new(rt, g, "", &e, &err), &err);
	return e;
}

static void steps__that_fill_batches__end_without_a_timeout(void **state)
{
	struct executor *e = runs(batched(gives_two_rows(), "two:output:0"));
	struct running s[STEPS];

	for (uint64_t i = 0; i < STEPS; i++)
		begin(&s[i], e, i + 1);
	for (uint64_t i = 0; i < STEPS; i++)
		finish(&s[i], i + 1, -1);
	executor_unref(e);
	runtime_free(rt);
}

static void step__cancelled_while_it_waits_for_a_batch__leaves_its_row(void **state)
{
	struct mu_err why = {MU_CANCELLED, "the step has waited long enough"};
	struct executor *e = runs(batched(gives_two_rows(), "two:output:0"));
	struct running first, second;

	begin(&first, e, 1);
	WAIT_UNTIL(has_resource(rt, "batches/"));
	step_cancel(first.s, &why);
	finish(&first, 1, MU_CANCELLED);
	begin(&second, e, 2); /* fills the batch, if the first had joined it */
	wait_ms(POLL_INTERVAL_MS);
	resources_clear(rt->resources, "");
	WAIT_UNTIL(atomic_load(&second.how) != 0);
	finish(&second, 2, atomic_load(&second.how));
	executor_unref(e);
	runtime_free(rt);
}

static void function__with_outputs_of_another_type__fails_the_calls(void **state)
{
	struct mu_graph *g = batched(gives_two_rows(), "two:output:0");
	struct running s[2];

	attr_types(g, mu_graph_find(g, "batch"), "Tout", MU_INT32);
	struct executor *e = runs(g);
	for (uint64_t i = 0; i < 2; i++)
		begin(&s[i], e, i + 1);
	for (uint64_t i = 0; i < 2; i++)
		finish(&s[i], i + 1, MU_INVALID_ARGUMENT);
	executor_unref(e);
	runtime_free(rt);
}

static void call__with_other_inputs_than_the_open_batch__is_rejected(void **state)
{
	struct mu_graph *other = batched(gives_two_rows(), "two:output:0");
	struct executor *e = runs(batched(gives_two_rows(), "two:output:0")), *differs;
	struct running first, second;
	struct mu_shape shape = mu_shape_vec(1);
	MU_AUTO_TENSOR row = {0};
	struct mu_err err;

	assert_int_equal(mu_tensor_new(&row, MU_INT32, &shape, NULL), 0);
	memset(row.data, 0, sizeof(int32_t));
	mu_node_set_attr(other, mu_graph_find(other, "row"), "value",
			 &(struct mu_attr){.kind = MU_ATTR_TENSOR, .tensor = &row});
	attr_type(other, mu_graph_find(other, "row"), "dtype", MU_INT32);
	attr_types(other, mu_graph_find(other, "batch"), "Tin", MU_INT32);
	assert_ok(executor_new(rt, other, "", &differs, &err), &err);
	begin(&first, e, 1);
	WAIT_UNTIL(has_resource(rt, "batches/"));
	wait_ms(POLL_INTERVAL_MS);
	begin(&second, differs, 2);
	finish(&second, 2, MU_INVALID_ARGUMENT);
	resources_clear(rt->resources, "");
	WAIT_UNTIL(atomic_load(&first.how) != 0);
	finish(&first, 1, atomic_load(&first.how));
	executor_unref(differs);
	executor_unref(e);
	runtime_free(rt);
}

static void queue__removed_while_its_function_waits__ends_the_calls(void **state)
{
	struct executor *e = runs(batched(waits(), "take:components:0"));
	struct running s[4]; /* two in the batch that runs, two in one that waits for a thread */

	for (uint64_t i = 0; i < 4; i++)
		begin(&s[i], e, i + 1);
	WAIT_UNTIL(has_resource(rt, "queue"));
	resources_clear(rt->resources, "");
	for (uint64_t i = 0; i < 4; i++)
		finish(&s[i], i + 1, MU_CANCELLED);
	executor_unref(e);
	runtime_free(rt);
}

/* Waits for the rows of id 0, which no batch brings. */
static struct mu_graph *unbatched(void)
{
	struct mu_graph *g = mu_graph_new();

	numbers(g, "row", 1);
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
	struct executor *e = runs(unbatched());
	struct running first, second;

	begin(&first, e, 1);
	WAIT_UNTIL(has_resource(rt, "rows"));
	step_cancel(first.s, &why);
	finish(&first, 1, MU_CANCELLED);
	begin(&second, e, 2); /* the id is free again */
	wait_ms(POLL_INTERVAL_MS);
	assert_int_equal(atomic_load(&second.how), 0);
	resources_clear(rt->resources, "");
	finish(&second, 2, MU_CANCELLED);
	executor_unref(e);
	runtime_free(rt);
}

static void unbatch__of_an_id_that_another_call_waits_for__is_rejected(void **state)
{
	struct executor *e = runs(unbatched());
	struct running first, second;

	begin(&first, e, 1);
	WAIT_UNTIL(has_resource(rt, "rows"));
	wait_ms(POLL_INTERVAL_MS);
	begin(&second, e, 2);
	finish(&second, 2, MU_ALREADY_EXISTS);
	assert_int_equal(atomic_load(&first.how), 0);
	resources_clear(rt->resources, "");
	finish(&first, 1, MU_CANCELLED);
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
