/* SPDX-License-Identifier: Apache-2.0 */
/* The harness with one runtime for a group of tests:
 * cmocka_run_group_tests(tests, start_runtime, stop_runtime). */
#ifndef MU_TESTS_KERNELS_ONE_RUNTIME_H
#define MU_TESTS_KERNELS_ONE_RUNTIME_H

#include "tests/kernels/harness.c"

static struct runtime *rt;

static int start_runtime(void **state)
{
	return harness_runtime(1, &rt, NULL);
}

static int stop_runtime(void **state)
{
	runtime_free(rt);
	return 0;
}

#endif
