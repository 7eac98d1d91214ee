/* SPDX-License-Identifier: Apache-2.0 */
/* How often the libraries are asked for a way when one node sees several shapes in turn.  Calls are
 * counted on the stand-in only; the numbers have to be right on a GPU, too. */
#include <pthread.h>
#include <stdlib.h>

#include "task/device/gpu_convolution.h"
#include "task/device/gpu_product.h"
#include "tests/kernels/gpu_one.h"

enum { SIDE = 64, MOST = 8 };

static unsigned long planned(void)
{
	struct fake_cuda_counts c;

	fake_cuda_count(&c);
	return c.plans;
}

#define EXPECT_PLANS(wanted)                                                                       \
	do {                                                                                       \
		if (!getenv("MUSTER_GPU_TEST"))                                                    \
			assert_int_equal(planned(), wanted);                                       \
	} while (0)

/* ---- numbers on the device and back ---- */

static struct mu_tensor ones(int64_t n)
{
	struct mu_shape s = mu_shape_vec(n);
	MU_AUTO_TENSOR t = filled(MU_FLOAT, &s, 1, 0, 1);
	struct mu_tensor there;

	assert_int_equal(gpu_bring_in(g, &t, "test", &there, &err), 0);
	return there;
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t came;
	bool done;
};

static void came(void *arg, const struct mu_err *e)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	w->done = true;
	pthread_cond_signal(&w->came);
	pthread_mutex_unlock(&w->lock);
}

static void expect_all(const struct mu_tensor *t, int64_t n, double want)
{
	struct waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
	MU_AUTO_TENSOR out = {0};

	assert_int_equal(gpu_bring_out(g, t, &out, came, &w, &err), 0);
	pthread_mutex_lock(&w.lock);
	while (!w.done)
		pthread_cond_wait(&w.came, &w.lock);
	pthread_mutex_unlock(&w.lock);
	for (int64_t i = 0; i < n; i++)
		assert_float_equal(get(&out, i), want, 0);
}

/* ---- products ---- */

/* [m, SIDE] * [SIDE, SIDE] of ones. */
static void multiply(struct gpu_plan *plan, int64_t m)
{
	MU_AUTO_TENSOR a = ones(m * SIDE), b = ones(SIDE * SIDE), out = ones(m * SIDE);
	const struct gpu_product p = {.type = MU_FLOAT,
				      .m = m,
				      .n = SIDE,
				      .k = SIDE,
				      .out = gpu_address(&out),
				      .a = gpu_address(&a),
				      .b = gpu_address(&b)};
	bool done;

	assert_ok(gpu_product(g, plan, &p, "test", &done, &err), &err);
	if (done || !getenv("MUSTER_GPU_TEST"))
		expect_all(&out, m * SIDE, SIDE);
}

static void products__of_two_shapes_in_turn__are_planned_once_each(void **state)
{
	struct gpu_plan *plan = gpu_product_plan_new();

	for (unsigned i = 0; i < 20; i++)
		multiply(plan, i & 1 ? 17 : 64);
	EXPECT_PLANS(2);
	gpu_plan_free(plan);
}

static void products__of_more_shapes_than_are_kept__forget_the_oldest(void **state)
{
	struct gpu_plan *plan = gpu_product_plan_new();

	for (int64_t m = 1; m <= 4; m++)
		multiply(plan, m);
	multiply(plan, 1);
	EXPECT_PLANS(4);
	multiply(plan, 5); /* in place of 2 */
	EXPECT_PLANS(5);
	for (int64_t m = 3; m <= 5; m++)
		multiply(plan, m);
	multiply(plan, 1);
	EXPECT_PLANS(5);
	multiply(plan, 2);
	EXPECT_PLANS(6);
	gpu_plan_free(plan);
}

/* A product that is still held back keeps what it is described by until it has gone. */
static void a_plan__that_is_forgotten__still_makes_what_was_asked(void **state)
{
	struct gpu_plan *plan = gpu_product_plan_new();

	for (unsigned round = 0; round < 6; round++)
		for (int64_t m = 1; m <= MOST; m++)
			multiply(plan, m);
	EXPECT_PLANS(6 * MOST);
	gpu_plan_free(plan);
}

/* ---- convolutions ---- */

static bool can_convolve(struct gpu_plan *plan, int64_t batch)
{
	const struct gpu_convolution_axis axis = {8, 3, 1, 1, 8, 1};
	const struct gpu_convolution what = {.type = MU_FLOAT,
					     .way = GPU_CONVOLUTION_FORWARD,
					     .batch = batch,
					     .channels = 4,
					     .filters = 4,
					     .groups = 1,
					     .row = axis,
					     .column = axis};
	bool can;

	assert_ok(gpu_convolution_plan_for(g, plan, &what, &can, &err), &err);
	return can;
}

static void convolutions__of_several_batches_in_turn__are_planned_once_each(void **state)
{
	struct gpu_plan *plan = gpu_convolution_plan_new();
	const bool can = can_convolve(plan, 1);

	assert_true(can || getenv("MUSTER_GPU_TEST"));
	for (int64_t i = 0; i < 20; i++)
		assert_int_equal(can_convolve(plan, 1 + i % 4), can);
	EXPECT_PLANS(4);
	can_convolve(plan, 5); /* in place of 1 */
	can_convolve(plan, 2);
	EXPECT_PLANS(5);
	can_convolve(plan, 1);
	EXPECT_PLANS(6);
	gpu_plan_free(plan);
}

/* [1, 8, 8, 4] of 1 × 1 taps: four times what it was, three times over. */
static void convolve(struct gpu_plan *plan, const struct mu_tensor *x,
		     const struct mu_tensor *filter)
{
	const struct gpu_convolution_axis axis = {8, 1, 1, 1, 8, 0};
	const struct gpu_convolution what = {.type = MU_FLOAT,
					     .way = GPU_CONVOLUTION_FORWARD,
					     .batch = 1,
					     .channels = 4,
					     .filters = 4,
					     .groups = 1,
					     .row = axis,
					     .column = axis};
	bool can = false, done = false;

	for (unsigned i = 0; i < 3; i++) {
		const struct gpu_convolution_at at = {gpu_address(&x[i]), gpu_address(filter),
						      gpu_address(&x[i + 1])};
		assert_ok(gpu_convolution_plan_for(g, plan, &what, &can, &err), &err);
		if (can)
			assert_ok(gpu_convolution(g, plan, &what, &at, "test", &done, &err), &err);
		if (!done && getenv("MUSTER_GPU_TEST"))
			skip(); /* no cuDNN on this machine */
		assert_true(done);
	}
}

static unsigned long graphs_launched(void)
{
	struct fake_cuda_counts c;

	fake_cuda_count(&c);
	return c.graph_launches;
}

/* Time and again, and the plan given back while what it describes is held. */
static void convolutions__in_a_segment__are_part_of_the_graph(void **state)
{
	struct gpu_plan *plan = gpu_convolution_plan_new();
	struct mu_tensor x[4] = {ones(256), ones(256), ones(256), ones(256)}, filter = ones(16);

	for (unsigned i = 0; i < 9; i++) {
		unsigned long before = graphs_launched();
		convolve(plan, x, &filter);
		expect_all(&x[3], 256, 64);
		if (!getenv("MUSTER_GPU_TEST"))
			assert_int_equal(graphs_launched() - before, i >= 2);
	}
	convolve(plan, x, &filter);
	gpu_plan_free(plan);
	expect_all(&x[3], 256, 64);
	for (unsigned i = 0; i < 4; i++)
		mu_tensor_unref(&x[i]);
	mu_tensor_unref(&filter);
}

/* Refused when a graph is recorded: they go on without. */
static void convolutions__that_cannot_be_recorded__are_launched_one_by_one(void **state)
{
	struct gpu_plan *plan = gpu_convolution_plan_new();
	struct mu_tensor x[4] = {ones(256), ones(256), ones(256), ones(256)}, filter = ones(16);

	if (getenv("MUSTER_GPU_TEST"))
		skip();
	fake_cuda.fail_call = "convolve";
	fake_cuda.fail_at =
	    7; /* after two segments: the first that is put on the recording stream */
	fake_cuda.fail_result = 3000;
	for (unsigned i = 0; i < 6; i++) {
		convolve(plan, x, &filter);
		expect_all(&x[3], 256, 64);
	}
	assert_null(fake_cuda.fail_call);
	assert_int_equal(graphs_launched(), 0);
	for (unsigned i = 0; i < 4; i++) { /* what else there is becomes graphs as before */
		convolve(plan, x, &filter);
		assert_ok(gpu_fill(g, &x[3], 0, &err), &err);
		expect_all(&x[3], 256, 0);
	}
	assert_int_equal(graphs_launched(), 2);
	gpu_plan_free(plan);
	for (unsigned i = 0; i < 4; i++)
		mu_tensor_unref(&x[i]);
	mu_tensor_unref(&filter);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
	    T(products__of_two_shapes_in_turn__are_planned_once_each),
	    T(products__of_more_shapes_than_are_kept__forget_the_oldest),
	    T(a_plan__that_is_forgotten__still_makes_what_was_asked),
	    T(convolutions__of_several_batches_in_turn__are_planned_once_each),
	    T(convolutions__in_a_segment__are_part_of_the_graph),
	    T(convolutions__that_cannot_be_recorded__are_launched_one_by_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
