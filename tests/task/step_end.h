/* SPDX-License-Identifier: Apache-2.0 */
/* How a step has ended, and whether a resource of it exists. */
#ifndef MU_TESTS_TASK_STEP_END_H
#define MU_TESTS_TASK_STEP_END_H

#include <stdatomic.h>

#include "task/runtime/runtime.h"

/* The error's code, or -1: the step has succeeded. */
static void on_done(void *arg, const struct mu_err *err)
{
	atomic_store((_Atomic int *)arg, err ? (int)err->code : -1);
}

static void see_name(void *arg, struct resource *r)
{
	const char **wanted = arg;

	if (*wanted && strcmp(r->name, *wanted) == 0)
		*wanted = NULL;
}

static bool has_resource(const struct runtime *rt, const char *name)
{
	resources_each(rt->resources, see_name, &name);
	return !name;
}

#endif
