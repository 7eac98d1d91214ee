/* SPDX-License-Identifier: Apache-2.0 */
/* The writes of a parallel loop are visible when it returns, both after spinning and after
 * sleeping. The elements are plain memory, so that TSan checks the synchronization. */
#include "task/runtime/thread_pool.h"

#include <pthread.h>
#include <time.h>

#include "lib/base/mem.h"
#include "tests/test.h"

enum { CALLERS = 3, ROUNDS = 2000, MAX_ELEMENTS = 40, SLOW_ROUND = 16, SLOW_NS = 200000 };

struct caller {
	struct thread_pool *pool;
	pthread_t thread;
	int64_t elements[MAX_ELEMENTS], wrong;
	bool slow;
};

static void sleep_ns(long ns)
{
	struct timespec t = {.tv_nsec = ns};

	nanosleep(&t, NULL);
}

static void increment(void *arg, int64_t from, int64_t to)
{
	struct caller *c = arg;

	if (c->slow && from)
		sleep_ns(SLOW_NS);
	for (; from < to; from++)
		c->elements[from]++;
}

static void *call(void *arg)
{
	struct caller *c = arg;

	for (int64_t round = 0; round < ROUNDS; round++) {
		int64_t want[MAX_ELEMENTS], n = 1 + round % MAX_ELEMENTS;
		c->slow = round % SLOW_ROUND == 0;
		for (int64_t i = 0; i < MAX_ELEMENTS; i++)
			want[i] = c->elements[i] + (i < n);
		thread_pool_parallel(c->pool, n, 1, increment, c);
		for (int64_t i = 0; i < MAX_ELEMENTS; i++)
			c->wrong += c->elements[i] != want[i];
	}
	return NULL;
}

static void parallel_loop__of_several_callers__runs_each_element_once(void **state)
{
	struct caller callers[CALLERS] = {0};
	struct thread_pool *pool;
	struct mu_err err;

	assert_ok(thread_pool_new(2, &pool, &err), &err);
	for (unsigned i = 0; i < CALLERS; i++) {
		callers[i].pool = pool;
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
	}
	for (unsigned i = 0; i < CALLERS; i++) {
		pthread_join(callers[i].thread, NULL);
		assert_int_equal(callers[i].wrong, 0);
	}
	thread_pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(parallel_loop__of_several_callers__runs_each_element_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
