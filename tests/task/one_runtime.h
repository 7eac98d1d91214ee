/* SPDX-License-Identifier: Apache-2.0 */
/* One runtime for a group of tests:
 * cmocka_run_group_tests(tests, start_runtime, stop_runtime). */
#ifndef MU_TESTS_TASK_ONE_RUNTIME_H
#define MU_TESTS_TASK_ONE_RUNTIME_H

#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/runtime.h"

static struct runtime *rt;

static int start_runtime(void **state)
{
	return runtime_new("w", 0, 2, &task_kernels, NULL, &rt, NULL);
}

static int stop_runtime(void **state)
{
	runtime_free(rt);
	return 0;
}

#endif
