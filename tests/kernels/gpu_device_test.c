/* SPDX-License-Identifier: Apache-2.0 */
/* GPU devices on a fake CUDA in host memory (tests/fake/cuda): memory, copies, order and faults. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "task/device/gpu.h"
#include "task/kernels/engine/cuda/args.h"
#include "tests/fake/cuda/fake_cuda.h"
#include "tests/test.h"

enum { N = 4096 };

static struct device_set *set;
static struct mu_err err;

static struct gpu *open_with(const struct gpu_options *o)
{
	assert_int_equal(gpu_set_open(fake_cuda_plugin(), o, &set, &err), 0);
	return gpu_at(set, 0);
}

static int setup(void **state)
{
	fake_cuda_reset();
	set = NULL;
	return 0;
}

/* Fails if driver objects leak. */
static int teardown(void **state)
{
	struct fake_cuda_counts c;

	device_set_free(set);
	fake_cuda_count(&c);
	return c.device_bytes || c.streams || c.events || c.contexts;
}

/* ---- waiting for asynchronous copies ---- */

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t on_done;
	bool done;
	struct mu_err err;
};
#define WAITER                                                                                     \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .on_done = PTHREAD_COND_INITIALIZER             \
	}

static void on_done(void *arg, const struct mu_err *e)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	w->done = true;
	if (e)
		w->err = *e;
	pthread_cond_signal(&w->on_done);
	pthread_mutex_unlock(&w->lock);
}

static int wait_for(struct waiter *w)
{
	pthread_mutex_lock(&w->lock);
	while (!w->done)
		pthread_cond_wait(&w->on_done, &w->lock);
	pthread_mutex_unlock(&w->lock);
	return (int)w->err.code;
}

static struct mu_tensor floats(int64_t n, float first)
{
	struct mu_shape s = mu_shape_vec(n);
	struct mu_tensor t;

	assert_int_equal(mu_tensor_new(&t, MU_FLOAT, &s, &err), 0);
	for (int64_t i = 0; i < n; i++)
		MU_DATA(float, &t)[i] = first + (float)i;
	return t;
}

static struct mu_tensor copy_to_device(struct gpu *g, int64_t n, float first)
{
	MU_AUTO_TENSOR t = floats(n, first);
	struct mu_tensor on_device;

	assert_int_equal(gpu_copy_to_device(g, &t, "test", &on_device, &err), 0);
	return on_device;
}

static void expect_on_device(struct gpu *g, const struct mu_tensor *t, float first)
{
	struct waiter w = WAITER;
	MU_AUTO_TENSOR out = {0};

	assert_int_equal(gpu_copy_to_host(g, t, &out, on_done, &w, &err), 0);
	assert_int_equal(wait_for(&w), 0);
	for (int64_t i = 0; i < t->shape.count; i++)
		assert_float_equal(MU_DATA(float, &out)[i], first + (float)i, 0);
}

/* t[i] += one[i], on the device, in place */
static int add_one(struct gpu *g, const struct mu_tensor *t, const struct mu_tensor *one)
{
	struct binary_args a = {.out = gpu_address(t),
				.a = gpu_address(t),
				.b = gpu_address(one),
				.n = t->shape.count,
				.by = {.rank = 1, .dim = {t->shape.count}, .stride = {{1}}}};
	void *kernel;
	int rc = gpu_kernel(g, "AddV2_f32", &kernel, &err);

	return rc ? rc : gpu_launch(g, kernel, gpu_grid_for(g, a.n), &a, &err);
}

/* ---- devices ---- */

static void opening__with_two_gpus__reports_their_properties(void **state)
{
	struct gpu_info f;
	struct gpu *g = open_with(&(struct gpu_options){0});

	assert_int_equal(device_count(set), 2);
	gpu_get_info(g, &f);
	assert_string_equal(f.name, "Fake GPU 0");
	assert_int_equal(f.major * 10 + f.minor, 90);
	assert_int_equal(f.memory, 256 << 20);
	assert_true(f.limit <= f.memory && f.limit > f.memory / 2);
	assert_string_equal(f.broken, "");
}

static void visible_devices__in_another_order__are_numbered_in_that_order(void **state)
{
	struct gpu_options o = {.visible = "1,0"};
	struct gpu_info f;

	gpu_get_info(open_with(&o), &f);
	assert_string_equal(f.name, "Fake GPU 1");
}

static void device_count__limits_the_gpus_that_are_opened(void **state)
{
	struct gpu_options o = {.visible = "1,0", .max_gpus = 1};

	open_with(&o);
	assert_int_equal(set->n, 1);
	assert_string_equal(set->at[0]->name, "GPU:0");
}

static void visible_devices__that_do_not_exist__are_invalid(void **state)
{
	static const char *const wrong[] = {"2", "0,0", "x", "-1", "0;1", "0,,1"};

	for (unsigned i = 0; i < MU_COUNT(wrong); i++) {
		struct gpu_options o = {0};
		snprintf(o.visible, sizeof o.visible, "%s", wrong[i]);
		assert_int_equal(gpu_set_open(fake_cuda_plugin(), &o, &set, &err),
				 -MU_INVALID_ARGUMENT);
		assert_non_null(strstr(err.msg, wrong[i]));
	}
}

static void opening__when_no_kernel_image_fits_the_gpu__names_the_next_step(void **state)
{
	fake_cuda.fail_call = "module_load";
	fake_cuda.fail_at = 1;
	fake_cuda.fail_result = CUDA_NO_IMAGE_FOR_GPU;
	assert_int_equal(gpu_set_open(fake_cuda_plugin(), &(struct gpu_options){0}, &set, &err),
			 -MU_FAILED_PRECONDITION);
	assert_non_null(strstr(err.msg, "sm_90"));
}

/* Nothing leaks if any driver call fails while a GPU is opened. */
static void opening__when_any_driver_call_fails__leaks_nothing(void **state)
{
	static const char *const calls[] = {"context_retain", "module_load", "stream_new"};

	for (unsigned i = 0; i < MU_COUNT(calls); i++)
		for (int at = 1; at <= 6; at++) {
			fake_cuda.fail_call = calls[i];
			fake_cuda.fail_at = at;
			fake_cuda.fail_result = 1;
			if (!gpu_set_open(fake_cuda_plugin(), &(struct gpu_options){0}, &set, &err))
				device_set_free(set);
			set = NULL;
			assert_int_equal(teardown(NULL), 0);
			fake_cuda.fail_call = NULL;
		}
}

/* ---- memory ---- */

static void memory__without_growth__is_allocated_at_once(void **state)
{
	struct gpu_options o = {.limit = 8 << 20, .visible = "0"};
	struct mu_tensor t = copy_to_device(open_with(&o), 1, 0);
	struct fake_cuda_counts c;

	mu_tensor_unref(&t);
	fake_cuda_count(&c);
	assert_int_equal(c.allocations, 1);
	assert_int_equal(c.device_bytes, 8 << 20);
}

static void memory__that_is_freed__is_reused(void **state)
{
	struct gpu_options o = {.limit = 8 << 20};
	struct gpu *g = open_with(&o);
	struct mu_shape s = mu_shape_vec(1 << 20);

	for (int i = 0; i < 100; i++) {
		struct mu_tensor t;
		assert_int_equal(gpu_tensor_new(g, MU_FLOAT, &s, "x", &t, &err), 0);
		assert_ptr_equal(gpu_of_tensor(&t), g);
		mu_tensor_unref(&t);
	}
	struct gpu_info f;
	gpu_get_info(g, &f);
	assert_int_equal(f.used, 0);
	assert_int_equal(f.peak, 4 << 20);
}

/* Blocks of random sizes, freed in random order, never overlap and are merged in the end. */
static void memory__in_blocks_of_random_sizes__never_overlaps(void **state)
{
	enum { HELD = 64, ROUNDS = 4000 };
	struct gpu_options o = {.limit = 16 << 20, .growth = true};
	struct gpu *g = open_with(&o);
	struct mu_tensor held[HELD] = {0};
	unsigned seed = 7;

	for (int i = 0; i < ROUNDS; i++) {
		struct mu_tensor *t = &held[(seed = seed * 1664525 + 1013904223) >> 8 & (HELD - 1)];
		struct mu_shape s = mu_shape_vec((seed >> 14) % 200000);
		mu_tensor_unref(t);
		if (gpu_tensor_new(g, MU_UINT8, &s, "x", t, &err))
			continue;
		for (int k = 0; k < HELD; k++) {
			const char *a = t->data, *b = held[k].data;
			if (&held[k] != t && mu_tensor_is_set(&held[k]))
				assert_true(a + s.count <= b || b + held[k].shape.count <= a);
		}
	}
	for (int k = 0; k < HELD; k++)
		mu_tensor_unref(&held[k]);
	struct mu_shape all = mu_shape_vec(16 << 20);
	struct mu_tensor t;
	assert_int_equal(gpu_tensor_new(g, MU_UINT8, &all, "x", &t, &err), 0);
	mu_tensor_unref(&t);
}

static void memory__when_it_is_full__names_the_requester_and_the_largest_holders(void **state)
{
	struct gpu_options o = {.limit = 10 << 20};
	struct gpu *g = open_with(&o);
	struct mu_shape s = mu_shape_vec(1 << 20), small = mu_shape_vec(1 << 18);
	struct mu_tensor a, b, more;

	assert_int_equal(gpu_tensor_new(g, MU_FLOAT, &s, "weights", &a, &err), 0);
	assert_int_equal(gpu_tensor_new(g, MU_FLOAT, &small, "bias", &b, &err), 0);
	assert_int_equal(gpu_tensor_new(g, MU_DOUBLE, &s, "huge", &more, &err),
			 -MU_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(err.msg, "GPU:0 is out of memory: huge wants 8.0 MiB"));
	assert_non_null(strstr(err.msg, "held most by weights (4.0 MiB), bias (1.0 MiB)"));
	assert_non_null(strstr(err.msg, "[1048576]"));
	mu_tensor_unref(&a);
	mu_tensor_unref(&b);
}

static void memory__when_the_driver_has_less_than_the_limit__uses_all_of_it(void **state)
{
	struct gpu_options o = {.limit = 300 << 20}; /* the device has 256 MiB */
	struct mu_tensor t = copy_to_device(open_with(&o), N, 0);

	expect_on_device(gpu_at(set, 0), &t, 0);
	mu_tensor_unref(&t);
}

/* ---- copies and order ---- */

static void copies__to_the_device_and_back__preserve_every_byte(void **state)
{
	static const int64_t sizes[] = {0, 1, 1000, 16 << 10, 300000};
	struct gpu *g = open_with(&(struct gpu_options){0});

	fake_cuda.slow = 300;
	for (unsigned i = 0; i < MU_COUNT(sizes); i++) {
		struct mu_tensor t = copy_to_device(g, sizes[i], (float)i);
		expect_on_device(g, &t, (float)i);
		mu_tensor_unref(&t);
	}
}

/* Tensors are copied in, processed twice and copied out, while buffers are reused and every stream
 * is delayed. */
static void order__with_slow_streams__is_that_of_the_calls(void **state)
{
	enum { DEEP = 6, ROUNDS = 40 };
	struct gpu_options o = {.limit = (DEEP + 2) * N * 4};
	struct gpu *g = open_with(&o);
	struct mu_tensor one = copy_to_device(g, 1, 1), out[DEEP] = {0};
	struct waiter w[DEEP];

	fake_cuda.slow = 200;
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < DEEP; i++) {
			struct mu_tensor t = copy_to_device(g, N, (float)(r + i));
			w[i] = (struct waiter)WAITER;
			assert_int_equal(add_one(g, &t, &one), 0);
			assert_int_equal(add_one(g, &t, &one), 0);
			assert_int_equal(gpu_copy_to_host(g, &t, &out[i], on_done, &w[i], &err), 0);
			mu_tensor_unref(&t); /* the block is free when the tensor is unreferenced */
		}
		for (int i = 0; i < DEEP; i++) {
			assert_int_equal(wait_for(&w[i]), 0);
			for (int k = 0; k < N; k += 97)
				assert_float_equal(MU_DATA(float, &out[i])[k],
						   (float)(r + i + 2 + k), 0);
			mu_tensor_unref(&out[i]);
		}
	}
	mu_tensor_unref(&one);
}

/* A block is freed while a kernel still reads it, and is reused at once by a copy from the host. */
static void order__of_a_copy_into_memory_still_read__is_after_the_reader(void **state)
{
	struct gpu_options o = {.limit = 2 * N * 4 + 512};
	struct gpu *g = open_with(&o);
	struct mu_tensor one = copy_to_device(g, 1, 1);

	fake_cuda.slow = 500;
	for (int r = 0; r < 50; r++) {
		struct mu_tensor a = copy_to_device(g, N, 0), sum;
		struct binary_args args = {.a = gpu_address(&a),
					   .b = gpu_address(&one),
					   .n = N,
					   .by = {.rank = 1, .dim = {N}, .stride = {{1}}}};
		void *kernel;
		assert_int_equal(gpu_kernel(g, "AddV2_f32", &kernel, &err), 0);
		assert_int_equal(gpu_tensor_new(g, MU_FLOAT, &a.shape, "sum", &sum, &err), 0);
		args.out = gpu_address(&sum);
		assert_int_equal(gpu_launch(g, kernel, gpu_grid_for(g, N), &args, &err), 0);
		mu_tensor_unref(&a);
		struct mu_tensor b = copy_to_device(g, N, 1000); /* in the block of a */
		expect_on_device(g, &sum, 1);
		mu_tensor_unref(&sum);
		mu_tensor_unref(&b);
	}
	mu_tensor_unref(&one);
}

static void two_gpus__with_their_own_tensors__do_not_interfere(void **state)
{
	struct gpu *g = open_with(&(struct gpu_options){0}), *h = gpu_at(set, 1);
	struct mu_tensor a = copy_to_device(g, N, 0), b = copy_to_device(h, N, 5),
			 one = copy_to_device(h, 1, 1);

	assert_ptr_equal(gpu_of_tensor(&b), h);
	assert_int_equal(add_one(h, &b, &one), 0);
	expect_on_device(g, &a, 0);
	expect_on_device(h, &b, 6);
	mu_tensor_unref(&a);
	mu_tensor_unref(&b);
	mu_tensor_unref(&one);
}

/* ---- faults ---- */

/* Threads outlive a set of GPUs, and a new context may have the handle of an old one. */
struct user {
	pthread_barrier_t barrier;
	int rc;
};

static void *use_twice(void *arg)
{
	struct user *u = arg;

	for (unsigned i = 0; i < 2; i++) {
		struct mu_tensor t;
		struct mu_shape s = mu_shape_vec(N);
		struct mu_err e;
		pthread_barrier_wait(&u->barrier);
		u->rc |= gpu_tensor_new(gpu_at(set, 0), MU_FLOAT, &s, "test", &t, &e);
		if (!u->rc) {
			u->rc |= gpu_fill(gpu_at(set, 0), &t, 0, &e);
			mu_tensor_unref(&t);
		}
		pthread_barrier_wait(&u->barrier);
	}
	return NULL;
}

static void thread__that_used_closed_gpus__can_use_reopened_gpus(void **state)
{
	struct user u = {.rc = 0};
	pthread_t thread;

	pthread_barrier_init(&u.barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, use_twice, &u), 0);
	for (unsigned i = 0; i < 2; i++) {
		device_set_free(set);
		open_with(&(struct gpu_options){.growth = true});
		pthread_barrier_wait(&u.barrier);
		pthread_barrier_wait(&u.barrier);
	}
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&u.barrier);
	assert_int_equal(u.rc, 0);
}

static void launch__that_fails__does_not_affect_the_next(void **state)
{
	struct gpu *g = open_with(&(struct gpu_options){0});
	struct mu_tensor one = copy_to_device(g, 1, 1), t = copy_to_device(g, N, 0);

	fake_cuda.fail_call = "launch";
	fake_cuda.fail_at = 1;
	fake_cuda.fail_result = 701; /* CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES */
	assert_int_equal(add_one(g, &t, &one), -MU_INTERNAL);
	assert_non_null(strstr(err.msg, "launching a kernel"));
	assert_true(gpu_is_usable(g));
	assert_int_equal(add_one(g, &t, &one), 0);
	expect_on_device(g, &t, 1);
	mu_tensor_unref(&t);
	mu_tensor_unref(&one);
}

/* The kernel faults after its launch; all waiting and later calls get the error. */
static void kernel_fault__after_its_launch__disables_the_gpu_and_is_logged(void **state)
{
	struct gpu *g = open_with(&(struct gpu_options){0});
	struct mu_tensor one = copy_to_device(g, 1, 1), t = copy_to_device(g, N, 0);
	MU_AUTO_TENSOR out = {0};
	MU_AUTO_TENSOR host = floats(1, 0);
	struct waiter w = WAITER;
	struct mu_tensor more;
	struct gpu_info f;

	expect_on_device(g, &t, 0);
	fake_cuda.fault_kernel = "AddV2_f32";
	assert_int_equal(add_one(g, &t, &one), 0);
	if (gpu_copy_to_host(g, &t, &out, on_done, &w, &err) == 0)
		assert_int_equal(wait_for(&w), MU_UNAVAILABLE);
	assert_false(mu_tensor_is_set(&out));
	assert_false(gpu_is_usable(g));
	gpu_get_info(g, &f);
	assert_non_null(strstr(f.broken, "illegal memory access"));
	assert_int_equal(gpu_copy_to_device(g, &host, "x", &more, &err), -MU_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "GPU:0 is out of service"));
	assert_non_null(strstr(err.msg, "Restart the task"));
	assert_int_equal(add_one(g, &t, &one), -MU_UNAVAILABLE);
	assert_true(gpu_is_usable(gpu_at(set, 1))); /* the other GPU is still usable */
	mu_tensor_unref(&t);
	mu_tensor_unref(&one);
}

/* An allocation is the first call that returns the device error. */
static void device_fault__seen_by_an_allocation__disables_the_gpu(void **state)
{
	static const char *const calls[] = {"memory_alloc"};
	MU_AUTO_TENSOR host = floats(N, 0);

	for (unsigned i = 0; i < MU_COUNT(calls); i++) {
		struct gpu *g = open_with(&(struct gpu_options){.growth = true});
		struct mu_tensor on_device;
		fake_cuda.fail_call = calls[i];
		fake_cuda.fail_at = 1;
		fake_cuda.fail_result = 700;
		assert_int_not_equal(gpu_copy_to_device(g, &host, "x", &on_device, &err), 0);
		assert_false(gpu_is_usable(g));
		assert_int_equal(teardown(NULL), 0);
		set = NULL;
	}
}

/* Nothing leaks if any driver call of a copy fails; teardown checks this. */
static void copies__when_any_driver_call_fails__leak_nothing(void **state)
{
	static const char *const calls[] = {"memory_alloc", "copy_in",      "copy_out",
					    "event_new",    "event_record", "stream_wait",
					    "stream_sync"};
	MU_AUTO_TENSOR host = floats(N, 0);

	for (unsigned i = 0; i < MU_COUNT(calls); i++)
		for (int at = 1; at <= 5; at++) {
			struct gpu *g = open_with(&(struct gpu_options){.limit = 1 << 20});
			MU_AUTO_TENSOR on_device = {0};
			MU_AUTO_TENSOR back = {0};
			struct waiter w = WAITER;
			fake_cuda.fail_call = calls[i];
			fake_cuda.fail_at = at;
			fake_cuda.fail_result = 2;
			if (!gpu_copy_to_device(g, &host, "x", &on_device, &err) &&
			    !gpu_copy_to_host(g, &on_device, &back, on_done, &w, &err))
				wait_for(&w);
			fake_cuda.fail_call = NULL;
			mu_tensor_unref(&on_device);
			mu_tensor_unref(&back);
			assert_int_equal(teardown(NULL), 0);
			set = NULL;
		}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(opening__with_two_gpus__reports_their_properties),
	    T(visible_devices__in_another_order__are_numbered_in_that_order),
	    T(device_count__limits_the_gpus_that_are_opened),
	    T(visible_devices__that_do_not_exist__are_invalid),
	    T(opening__when_no_kernel_image_fits_the_gpu__names_the_next_step),
	    T(opening__when_any_driver_call_fails__leaks_nothing),
	    T(memory__without_growth__is_allocated_at_once),
	    T(memory__that_is_freed__is_reused),
	    T(memory__in_blocks_of_random_sizes__never_overlaps),
	    T(memory__when_it_is_full__names_the_requester_and_the_largest_holders),
	    T(memory__when_the_driver_has_less_than_the_limit__uses_all_of_it),
	    T(copies__to_the_device_and_back__preserve_every_byte),
	    T(order__with_slow_streams__is_that_of_the_calls),
	    T(order__of_a_copy_into_memory_still_read__is_after_the_reader),
	    T(two_gpus__with_their_own_tensors__do_not_interfere),
	    T(thread__that_used_closed_gpus__can_use_reopened_gpus),
	    T(launch__that_fails__does_not_affect_the_next),
	    T(kernel_fault__after_its_launch__disables_the_gpu_and_is_logged),
	    T(device_fault__seen_by_an_allocation__disables_the_gpu),
	    T(copies__when_any_driver_call_fails__leak_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
