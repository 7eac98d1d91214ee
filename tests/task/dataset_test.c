/* SPDX-License-Identifier: Apache-2.0 */
/* Iterators that are deleted while their thread runs, and datasets that TensorFlow 2.15 does not
 * have.  tests/compat compares the elements of pipelines with TensorFlow's. */
#include <pthread.h>
#include <stdatomic.h>

#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/runtime.h"
#include "task/runtime/thread_pool.h"
#include "tests/task/function_graph.h"
#include "tests/task/step_end.h"
#include "tests/wait.h"

static struct runtime *rt;

/* Elements of one int64, of any shape. */
static void set_int64_outputs(struct mu_graph *g, struct mu_node *n)
{
	struct mu_pshape any = {.rank = -1};
	struct mu_attr shapes = {.kind = MU_ATTR_LIST + MU_ATTR_SHAPE, .n = 1, .shapes = &any};

	attr_types(g, n, "output_types", MU_INT64);
	mu_node_set_attr(g, n, "output_shapes", &shapes);
}

static void number(struct mu_graph *g, const char *name, int64_t v)
{
	constant(g, name, MU_INT64, &v, "", NULL);
}

/* Node "applied": an endless dataset of zeros, to which `op` applies the function f. */
static struct mu_graph *function_dataset(const char *op, const char *attr, struct mu_graph *body,
					 enum mu_dtype output_type, const char *last)
{
	struct mu_attr none = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE};
	struct mu_graph *g = mu_graph_new();

	add_function(g, "f", output_type, body, last);
	mu_graph_free(body);
	number(g, "zero", 0);
	number(g, "one", 1);
	number(g, "ever", -1);
	set_int64_outputs(g, node(g, "range", "RangeDataset", "zero one one", NULL));
	set_int64_outputs(g, node(g, "repeat", "RepeatDataset", "range ever", NULL));
	struct mu_node *n = node(g, "applied", op, "repeat", NULL);
	set_int64_outputs(g, n);
	mu_node_set_attr(g, n, "Targuments", &none);
	attr_func(g, n, attr, "f");
	return g;
}

/* Node "generated": a GeneratorDataset whose init, next and finalize functions are f. */
static struct mu_graph *generator_dataset(struct mu_graph *g)
{
	static const char *const lists[] = {"Tnext_func_args", "Tfinalize_func_args"};
	static const char *const functions[] = {"init_func", "next_func", "finalize_func"};
	struct mu_attr none = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE};
	struct mu_node *n = node(g, "generated", "GeneratorDataset", "one", NULL);

	set_int64_outputs(g, n);
	attr_types(g, n, "Tinit_func_args", MU_INT64);
	for (unsigned i = 0; i < MU_COUNT(lists); i++)
		mu_node_set_attr(g, n, lists[i], &none);
	for (unsigned i = 0; i < MU_COUNT(functions); i++)
		attr_func(g, n, functions[i], "f");
	return g;
}

/* Adds an iterator over the dataset; node "get" returns the next element. */
static struct mu_graph *add_iterator_op(struct mu_graph *g, const char *op, const char *dataset)
{
	struct mu_node *n = node(g, "iterator", op, "", NULL);

	if (strcmp(op, "IteratorV2") == 0) {
		attr_string(g, n, "shared_name", "iterator");
		attr_string(g, n, "container", "");
	}
	set_int64_outputs(g, n);
	MU_AUTO_FREE char *inputs = mu_xasprintf("%s iterator", dataset);
	node(g, "make", "MakeIterator", inputs, NULL);
	set_int64_outputs(g, node(g, "get", "IteratorGetNext", "iterator ^make", NULL));
	return g;
}

static struct mu_graph *add_iterator(struct mu_graph *g, const char *dataset)
{
	return add_iterator_op(g, "IteratorV2", dataset);
}

static struct mu_graph *dequeue_dataset(void)
{
	struct mu_graph *body = mu_graph_new();
	struct mu_node *n = node(body, "queue", "FIFOQueueV2", "", NULL);

	attr_string(body, n, "shared_name", "queue");
	attr_string(body, n, "container", "elsewhere");
	attr_types(body, n, "component_types", MU_INT64);
	attr_types(body, node(body, "take", "QueueDequeueV2", "queue", NULL), "component_types",
		   MU_INT64);
	return function_dataset("MapDataset", "f", body, MU_INT64, "take:components:0");
}

/* Adds DatasetToSingleElement, which reads the dataset without an iterator resource. */
static struct mu_graph *add_single_element(struct mu_graph *g)
{
	set_int64_outputs(g, node(g, "single", "DatasetToSingleElement", "applied", NULL));
	return g;
}

static struct mu_graph *empty_filter_dataset(void)
{
	struct mu_graph *body = mu_graph_new();
	bool no = false;

	constant(body, "no", MU_BOOL, &no, "", NULL);
	return function_dataset("FilterDataset", "predicate", body, MU_BOOL, "no:output:0");
}

static struct mu_graph *read_file_dataset(void)
{
	struct mu_graph *body = mu_graph_new();

	string_constant(body, "name", "/dev/null");
	node(body, "read", "ReadFile", "name", NULL);
	attr_type(body, node(body, "decoded", "DecodeRaw", "read", NULL), "out_type", MU_INT64);
	return function_dataset("MapDataset", "f", body, MU_INT64, "decoded:output:0");
}

/* ---- cancellation and removal ---- */

static void *clear_resources(void *ended)
{
	resources_clear(rt->resources, "");
	atomic_store((_Atomic bool *)ended, true);
	return NULL;
}

/* Runs a step of g, cancels it when the resource exists (NULL: at once), and clears the
 * iterator's container. Consumes g. */
static void cancel_and_clear(struct mu_graph *g, const char *resource)
{
	struct mu_err err, why = {MU_CANCELLED, "the step has waited long enough"};
	_Atomic int end_code = 0;
	_Atomic bool ended = false;
	struct executor *e;
	pthread_t t;

	assert_ok(runtime_new("local", 0, 2, &task_kernels, NULL, &rt, &err), &err);
	assert_ok(executor_new(rt, g, "", &e, &err), &err);
	struct rendezvous *r = rendezvous_table_get(rt->steps, 1);
	struct step *s = executor_start(e, r, NULL, NULL, on_done, &end_code);
	WAIT_UNTIL(!resource || has_resource(rt, resource));
	wait_ms(POLL_INTERVAL_MS); /* varies the state in which the step is cancelled */
	step_cancel(s, &why);
	WAIT_UNTIL(atomic_load(&end_code) == MU_CANCELLED);
	step_unref(s);
	rendezvous_table_drop(rt->steps, 1, NULL);
	rendezvous_unref(r);
	executor_unref(e);
	assert_int_equal(pthread_create(&t, NULL, clear_resources, &ended), 0);
	WAIT_UNTIL(atomic_load(&ended));
	pthread_join(t, NULL);
	assert_false(has_resource(rt, "iterator"));
	runtime_free(rt);
}

static void iterator__removed_while_its_function_waits__does_not_wait_for_it(void **state)
{
	/* the cleared container is not the queue's, so the function keeps running */
	cancel_and_clear(add_iterator(dequeue_dataset(), "applied"), "queue");
}

static void iterator__removed_while_its_filter_drops_every_element__ends(void **state)
{
	cancel_and_clear(add_iterator(empty_filter_dataset(), "applied"), "iterator");
}

static void iterator__removed_while_its_generator_waits__does_not_wait_for_it(void **state)
{
	cancel_and_clear(add_iterator(generator_dataset(dequeue_dataset()), "generated"), "queue");
}

static void anonymous_iterator__when_its_step_is_cancelled__ends(void **state)
{
	cancel_and_clear(add_iterator_op(dequeue_dataset(), "AnonymousIteratorV3", "applied"),
			 "queue");
}

static void step__cancelled_while_a_dataset_function_waits__ends(void **state)
{
	cancel_and_clear(add_single_element(dequeue_dataset()), "queue");
}

static void step__cancelled_while_a_filter_drops_every_element__ends(void **state)
{
	cancel_and_clear(add_single_element(empty_filter_dataset()), NULL);
}

struct clear_job {
	struct pool_job job;
	_Atomic bool may_start, ended;
};

static void clear_on_this_thread(struct pool_job *job)
{
	struct clear_job *c = MU_CONTAINER(job, struct clear_job, job);

	WAIT_UNTIL(atomic_load(&c->may_start));
	resources_clear(rt->resources, "");
	atomic_store(&c->ended, true);
}

static void iterator__freed_by_the_thread_that_its_function_needs__does_not_block_it(void **state)
{
	struct clear_job clear_job = {.job = {.run = clear_on_this_thread}};
	struct mu_graph *g = add_iterator(read_file_dataset(), "applied");
	_Atomic int end_code = 0;
	struct executor *e;
	struct mu_err err;

	assert_ok(runtime_new("local", 0, 1, &task_kernels, NULL, &rt, &err), &err);
	assert_ok(executor_new(rt, g, "", &e, &err), &err);
	struct rendezvous *r = rendezvous_table_get(rt->steps, 1);
	thread_pool_add(rt->pool, &clear_job.job);
	step_unref(executor_start(e, r, NULL, NULL, on_done, &end_code));
	WAIT_UNTIL(has_resource(rt, "iterator"));
	wait_ms(POLL_INTERVAL_MS); /* long enough for the function to queue its op */
	atomic_store(&clear_job.may_start, true);
	WAIT_UNTIL(atomic_load(&clear_job.ended) && atomic_load(&end_code) == MU_CANCELLED);
	rendezvous_table_drop(rt->steps, 1, NULL);
	rendezvous_unref(r);
	executor_unref(e);
	runtime_free(rt);
}

/* Sums input `in`, of int64, along its first dimension. */
static void sum_rows(struct mu_graph *g, const char *name, const char *in)
{
	MU_AUTO_FREE char *inputs = mu_xasprintf("%s zero", in);
	struct mu_node *n = node(g, name, "Sum", inputs, NULL);

	attr_type(g, n, "T", MU_INT64);
	attr_type(g, n, "Tidx", MU_INT64);
}

/* A function that returns 7, in batches of three, in windows of two batches. */
static void datasets_of_tensorflow_1_12__yield_batches_and_windows(void **state)
{
	static const char *const inputs[] = {"repeat", "three", "one", "no"};
	struct mu_input in[MU_COUNT(inputs)];
	struct mu_graph *body = mu_graph_new();
	bool no = false;
	_Atomic int end_code = 0;
	struct executor *e;
	struct mu_err err;

	number(body, "seven", 7);
	struct mu_graph *g =
	    function_dataset("MapAndBatchDatasetV2", "f", body, MU_INT64, "seven:output:0");
	number(g, "two", 2);
	number(g, "three", 3);
	number(g, "expected", 2 * 3 * 7);
	constant(g, "no", MU_BOOL, &no, "", NULL);
	for (unsigned i = 0; i < MU_COUNT(inputs); i++)
		assert_ok(mu_graph_resolve(g, inputs[i], &in[i], &err), &err);
	mu_node_set_inputs(g, mu_graph_find(g, "applied"), in, MU_COUNT(in), NULL, 0);
	set_int64_outputs(g, node(g, "windows", "SlideDataset", "applied two one one", NULL));
	set_int64_outputs(g, node(g, "first", "TakeDataset", "windows one", NULL));
	set_int64_outputs(g, node(g, "window", "DatasetToSingleElement", "first", NULL));
	sum_rows(g, "columns", "window");
	sum_rows(g, "sum", "columns");
	attr_type(g, node(g, "equal", "Equal", "sum expected", NULL), "T", MU_INT64);
	attr_types(g, node(g, "assert", "Assert", "equal sum", NULL), "T", MU_INT64);

	assert_ok(runtime_new("local", 0, 2, &task_kernels, NULL, &rt, &err), &err);
	assert_ok(executor_new(rt, g, "", &e, &err), &err);
	struct rendezvous *r = rendezvous_table_get(rt->steps, 1);
	struct step *s = executor_start(e, r, NULL, NULL, on_done, &end_code);
	WAIT_UNTIL(atomic_load(&end_code) != 0);
	assert_int_equal(atomic_load(&end_code), -1);
	step_unref(s);
	rendezvous_table_drop(rt->steps, 1, NULL);
	rendezvous_unref(r);
	executor_unref(e);
	runtime_free(rt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(iterator__removed_while_its_function_waits__does_not_wait_for_it),
	    cmocka_unit_test(iterator__removed_while_its_generator_waits__does_not_wait_for_it),
	    cmocka_unit_test(iterator__removed_while_its_filter_drops_every_element__ends),
	    cmocka_unit_test(anonymous_iterator__when_its_step_is_cancelled__ends),
	    cmocka_unit_test(step__cancelled_while_a_dataset_function_waits__ends),
	    cmocka_unit_test(step__cancelled_while_a_filter_drops_every_element__ends),
	    cmocka_unit_test(
		iterator__freed_by_the_thread_that_its_function_needs__does_not_block_it),
	    cmocka_unit_test(datasets_of_tensorflow_1_12__yield_batches_and_windows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
