/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "task/device_choice.h"
#include "task/runtime/resources.h"
#include "task/runtime/thread_pool.h"
#include "tests/test.h"

static struct mu_err err;
static const struct mu_pshape scalar = {.rank = 0};
static const struct resource_type queue_type = {.name = "queue"};

static struct resource *make(void *arg, struct mu_err *e)
{
	++*(int *)arg;
	return &variable_new(MU_FLOAT, &scalar)->base;
}

static struct mu_tensor number(float v)
{
	struct mu_tensor t;

	assert_ok(mu_tensor_scalar(&t, MU_FLOAT, &v, &err), &err);
	return t;
}

static void resource__looked_up_by_name__is_created_once_and_shared(void **state)
{
	struct resources *rs = resources_new("ps");
	struct resource *a, *b, *c;
	int n_created = 0;

	assert_ok(resources_find_or_create(rs, "", "v", &variable_type, make, &n_created, &a, &err),
		  &err);
	assert_ok(resources_find(rs, "ps", "v", &variable_type, &b, &err), &err);
	assert_ptr_equal(a, b);
	assert_ok(
	    resources_find_or_create(rs, "other", "v", &variable_type, make, &n_created, &c, &err),
	    &err);
	assert_ptr_not_equal(a, c);
	assert_int_equal(n_created, 2);
	struct resource *x;
	assert_fails(resources_find(rs, "", "v", &queue_type, &x, &err), &err, MU_NOT_FOUND,
		     "ps/v/queue");
	assert_fails(resources_remove(rs, "", "v", "queue", &err), &err, MU_NOT_FOUND,
		     "ps/v/queue");
	assert_fails(resources_find(rs, "", "w", &variable_type, &x, &err), &err, MU_NOT_FOUND,
		     "ps/w");
	resources_clear(rs, "");
	assert_fails(resources_find(rs, "", "v", &variable_type, &x, &err), &err, MU_NOT_FOUND,
		     "does not exist");
	assert_ok(resources_remove(rs, "other", "v", "variable", &err), &err);
	resource_unref(a); /* a reference outlives the entry in the table */
	resource_unref(b);
	resource_unref(c);
	resources_free(rs);
}

static void reader__of_a_variable__never_sees_a_partial_update(void **state)
{
	struct variable *v = variable_new(MU_FLOAT, &scalar);
	MU_AUTO_TENSOR before = {0};
	struct mu_tensor *mine;

	assert_fails(variable_read(v, &before, &err), &err, MU_FAILED_PRECONDITION,
		     "Attempting to use uninitialized value");
	variable_assign(v, number(1));
	assert_ok(variable_read(v, &before, &err), &err);
	pthread_mutex_lock(&v->lock);
	assert_ok(variable_exclusive(v, &mine, &err), &err);
	MU_DATA(float, mine)[0] = 2;
	void *where = mine->data;
	pthread_mutex_unlock(&v->lock);
	assert_true(MU_DATA(float, &before)[0] == 1);
	pthread_mutex_lock(&v->lock); /* no reader is left: update in place */
	assert_ok(variable_exclusive(v, &mine, &err), &err);
	assert_ptr_equal(mine->data, where);
	pthread_mutex_unlock(&v->lock);
	resource_unref(&v->base);
}

static void add(void *arg, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++)
		atomic_fetch_add((_Atomic int64_t *)arg, i);
}

struct nested {
	struct pool_job job;
	struct thread_pool *pool;
	_Atomic int64_t sum;
	_Atomic bool done;
};

static void nest(struct pool_job *job)
{
	struct nested *n = MU_CONTAINER(job, struct nested, job);

	thread_pool_parallel(n->pool, 1000, 10, add, &n->sum);
	n->done = true;
}

static void parallel_loops__nested_in_busy_threads__still_end(void **state)
{
	struct thread_pool *p;
	struct nested jobs[16] = {0};

	assert_ok(thread_pool_new(2, &p, &err), &err);
	for (int i = 0; i < 16; i++) {
		jobs[i].job.run = nest;
		jobs[i].pool = p;
		thread_pool_add(p, &jobs[i].job);
	}
	_Atomic int64_t sum = 0;
	thread_pool_parallel(p, 100000, 100, add, &sum);
	assert_int_equal(sum, 99999LL * 100000 / 2);
	thread_pool_free(p);
	for (int i = 0; i < 16; i++)
		assert_int_equal(jobs[i].sum, 999 * 1000 / 2);
}

static void device__missing_from_the_machine__fails_to_open(void **state)
{
	struct device_choice c;

	assert_ok(device_open("cpu-generic", NULL, &c, &err), &err);
	assert_string_equal(c.chosen, "cpu-generic");
	assert_ok(device_open("auto", NULL, &c, &err), &err);
	assert_string_equal(c.chosen, c.probed);
	assert_true(c.blas[0]); /* OpenBLAS's core type */
	assert_fails(device_open("cpu-z80", NULL, &c, &err), &err, MU_INVALID_ARGUMENT, "cpu-z80");
	assert_fails(device_open("tpu", NULL, &c, &err), &err, MU_INVALID_ARGUMENT, "'tpu'");
#if defined(__x86_64__)
	assert_fails(device_open("arm64", NULL, &c, &err), &err, MU_FAILED_PRECONDITION,
		     "this processor has only");
#endif
	setenv("MUSTER_CUDA_PLUGIN", "/nowhere/libmuster-cuda.so", 1);
	assert_fails(device_open("gpu", NULL, &c, &err), &err, MU_FAILED_PRECONDITION,
		     "the GPU plug-in cannot be loaded");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(resource__looked_up_by_name__is_created_once_and_shared),
	    cmocka_unit_test(reader__of_a_variable__never_sees_a_partial_update),
	    cmocka_unit_test(parallel_loops__nested_in_busy_threads__still_end),
	    cmocka_unit_test(device__missing_from_the_machine__fails_to_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
