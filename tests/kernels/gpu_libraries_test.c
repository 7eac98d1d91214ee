/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of cuBLAS and cuDNN without a graph. */
#include <pthread.h>
#include <stdlib.h>

#include "task/device/gpu_convolution.h"
#include "task/device/gpu_product.h"
#include "tests/kernels/gpu_one.h"

enum { SIDE = 64 };

/* ---- copies to the device and back ---- */

static struct mu_tensor ones(int64_t n)
{
	struct mu_shape s = mu_shape_vec(n);
	MU_AUTO_TENSOR t = filled(MU_FLOAT, &s, 1, 0, 1);
	struct mu_tensor on_device;

	assert_int_equal(gpu_copy_to_device(g, &t, "test", &on_device, &err), 0);
	return on_device;
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t on_done;
	bool done;
};

static void on_done(void *arg, const struct mu_err *e)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	w->done = true;
	pthread_cond_signal(&w->on_done);
	pthread_mutex_unlock(&w->lock);
}

static void expect_all(const struct mu_tensor *t, int64_t n, double want)
{
	struct waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER, .on_done = PTHREAD_COND_INITIALIZER};
	MU_AUTO_TENSOR out = {0};

	assert_int_equal(gpu_copy_to_host(g, t, &out, on_done, &w, &err), 0);
	pthread_mutex_lock(&w.lock);
	while (!w.done)
		pthread_cond_wait(&w.on_done, &w.lock);
	pthread_mutex_unlock(&w.lock);
	for (int64_t i = 0; i < n; i++)
		assert_float_equal(get(&out, i), want, 0);
}

/* ---- products ---- */

/* [m, SIDE] * [SIDE, SIDE] of ones. */
static void multiply(int64_t m)
{
	MU_AUTO_TENSOR a = ones(m * SIDE), b = ones(SIDE * SIDE), out = ones(m * SIDE);
	const struct gpu_product p = {.type = MU_FLOAT,
				      .m = m,
				      .n = SIDE,
				      .k = SIDE,
				      .batch = 1,
				      .out = gpu_address(&out),
				      .a = gpu_address(&a),
				      .b = gpu_address(&b)};
	bool done;

	assert_ok(gpu_product(g, &p, &done, &err), &err);
	if (done || !getenv("MUSTER_GPU_TEST"))
		expect_all(&out, m * SIDE, SIDE);
}

static void products__of_several_shapes__have_the_right_results(void **state)
{
	for (unsigned i = 0; i < 20; i++)
		multiply(i & 1 ? 17 : 64);
}

/* ---- convolutions ---- */

/* Three 1 × 1 convolutions of a [1, 8, 8, 4] tensor; each multiplies the values by 4. */
static void convolve(const struct mu_tensor *x, const struct mu_tensor *filter)
{
	const struct gpu_convolution_axis axis = {8, 1, 1, 1, 8, 0};
	const struct gpu_convolution what = {.type = MU_FLOAT,
					     .direction = GPU_CONVOLUTION_FORWARD,
					     .batch = 1,
					     .channels = 4,
					     .filters = 4,
					     .groups = 1,
					     .row = axis,
					     .column = axis};
	bool done = false;

	for (unsigned i = 0; i < 3; i++) {
		const struct gpu_convolution_at at = {gpu_address(&x[i]), gpu_address(filter),
						      gpu_address(&x[i + 1])};
		if (gpu_convolution_is_available(g))
			assert_ok(gpu_convolution(g, &what, &at, "test", &done, &err), &err);
		if (!done && getenv("MUSTER_GPU_TEST"))
			skip(); /* no cuDNN on this machine */
		assert_true(done);
	}
}

static void convolutions__in_sequence__have_the_right_results(void **state)
{
	struct mu_tensor x[4] = {ones(256), ones(256), ones(256), ones(256)}, filter = ones(16);

	convolve(x, &filter);
	expect_all(&x[3], 256, 64);
	for (unsigned i = 0; i < 4; i++)
		mu_tensor_unref(&x[i]);
	mu_tensor_unref(&filter);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_one_gpu, close_one_gpu)
	const struct CMUnitTest tests[] = {
	    T(products__of_several_shapes__have_the_right_results),
	    T(convolutions__in_sequence__have_the_right_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
