/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a step as an error code, and the existence of resources. */
#ifndef MU_TESTS_TASK_STEP_END_H
#define MU_TESTS_TASK_STEP_END_H

#include <stdatomic.h>

#include "task/runtime/runtime.h"

/* Stores the error code of the step, or -1 if it succeeded. */
static void on_done(void *arg, const struct mu_err *err)
{
	atomic_store((_Atomic int *)arg, err ? (int)err->code : -1);
}

static void match_name(void *arg, struct resource *r)
{
	const char **unmatched_name = arg;

	if (*unmatched_name && strcmp(r->name, *unmatched_name) == 0)
		*unmatched_name = NULL;
}

static bool has_resource(const struct runtime *rt, const char *name)
{
	resources_each(rt->resources, match_name, &name);
	return !name;
}

#endif
