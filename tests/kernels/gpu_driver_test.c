/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the fake driver. With a GPU, the same tests run on the real driver, so that the fake is
 * neither stricter nor more lenient. */
#include <pthread.h>
#include <stdlib.h>

#include "task/device/gpu_internal.h"
#include "task/kernels/engine/cuda/args.h"
#include "tests/kernels/gpu_one.h"

enum { NO_VALUE = 1, NO_CONTEXT = 201, BYTES = 4096 };

static cuda_ptr some_memory(void)
{
	cuda_ptr at = 0;

	assert_ok(gpu_enter(g, &err), &err);
	assert_int_equal(g->api->memory_alloc(&at, BYTES, g->compute), 0);
	return at;
}

/* Launches a kernel with nothing to fill. */
static int launch(unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
		  unsigned shared)
{
	struct fill_args args = {.n = 0};
	void *list[] = {&args}, *kernel;

	assert_ok(gpu_kernel(g, "fill_32", &kernel, &err), &err);
	return g->api->launch(kernel, x, y, z, tx, ty, tz, shared, g->compute, list, NULL);
}

static void launches__beyond_the_limits_of_the_gpu__are_invalid(void **state)
{
	static const unsigned invalid[][7] = {
	    {0, 1, 1, 64, 1, 1, 0},     {1, 1, 1, 0, 1, 1, 0},        {1, 1, 1, 1025, 1, 1, 0},
	    {1, 1, 1, 64, 64, 1, 0},    {1, 1, 1, 1, 1, 65, 0},       {1, 65536, 1, 64, 1, 1, 0},
	    {1, 1, 65536, 64, 1, 1, 0}, {1u << 31, 1, 1, 1, 1, 1, 0}, {1, 1, 1, 64, 1, 1, 1 << 20},
	};

	for (unsigned i = 0; i < MU_COUNT(invalid); i++) {
		const unsigned *r = invalid[i];
		assert_int_equal(launch(r[0], r[1], r[2], r[3], r[4], r[5], r[6]), NO_VALUE);
	}
	assert_int_equal(launch(1, 1, 1, 1024, 1, 1, 0), 0);
	assert_int_equal(g->api->stream_sync(g->compute), 0);
}

static void *without_a_context(void *arg)
{
	cuda_ptr at = 0;
	size_t left, all;
	void *made;
	int *wrong = arg;

	*wrong += g->api->memory_alloc(&at, BYTES, g->compute) != NO_CONTEXT;
	*wrong += g->api->memory_info(&left, &all) != NO_CONTEXT;
	*wrong += g->api->stream_new(&made, CUDA_STREAM_NON_BLOCKING) != NO_CONTEXT;
	*wrong += g->api->event_new(&made, CUDA_EVENT_NO_TIMING) != NO_CONTEXT;
	return NULL;
}

static void calls__on_a_thread_without_a_context__fail(void **state)
{
	pthread_t thread;
	int wrong = 0;

	assert_int_equal(pthread_create(&thread, NULL, without_a_context, &wrong), 0);
	pthread_join(thread, NULL);
	assert_int_equal(wrong, 0);
}

static void access__beyond_an_allocation__is_invalid(void **state)
{
	cuda_ptr at = some_memory();
	void *stream = g->compute;
	int host_memory = 0;

	assert_int_equal(g->api->fill(at, 1, BYTES, stream), 0);
	assert_int_equal(g->api->stream_sync(stream), 0);
	if (!getenv("MUSTER_GPU_TEST")) { /* on a real GPU the memory after it may belong to
					     another process */
		assert_int_equal(g->api->fill(at + 1, 1, BYTES, stream), NO_VALUE);
		assert_int_equal(g->api->copy_within(at, at + BYTES / 2, BYTES, stream), NO_VALUE);
	}
	assert_int_equal(
	    g->api->fill((cuda_ptr)(uintptr_t)&host_memory, 1, sizeof host_memory, stream),
	    NO_VALUE);
	assert_int_equal(host_memory, 0);
	assert_int_equal(g->api->memory_free(at, stream), 0);
	assert_int_equal(g->api->memory_free((cuda_ptr)(uintptr_t)&host_memory, stream), NO_VALUE);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_one_gpu, close_one_gpu)
	const struct CMUnitTest tests[] = {
	    T(launches__beyond_the_limits_of_the_gpu__are_invalid),
	    T(calls__on_a_thread_without_a_context__fail),
	    T(access__beyond_an_allocation__is_invalid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
