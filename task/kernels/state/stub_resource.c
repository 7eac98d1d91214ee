/* SPDX-License-Identifier: Apache-2.0 */
/* Resources without content. One is TensorFlow's test resource for naming, creation and removal.
 * The others are seed generators, caches and thread pools, which dataset ops require as inputs.
 * The datasets hold their seeds and elements themselves, and run on the task's thread pool. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/handles.h"
#include "task/kernels/state/variables.h"

static void stub_free(struct resource *r)
{
	free(r);
}

static const struct resource_type stub_type = {.name = "StubResource", .free = stub_free};

static struct resource *stub_new(void *is_new, struct mu_err *err)
{
	struct resource *r = MU_NEW(struct resource);

	resource_init(r, &stub_type);
	*(bool *)is_new = true;
	return r;
}

static int stub_handle(struct kernel_call *c, struct mu_err *err)
{
	return resource_handle_out_named(c, stub_type.name, err);
}

enum { MAX_POOL_THREADS = 65535 };

static int thread_pool_handle(struct kernel_call *c, struct mu_err *err)
{
	int64_t n = args_attr_int(c->node, "num_threads", 0);

	if (n < 0)
		return mu_invalid(err, "`num_threads` must be >= 0");
	if (n > MAX_POOL_THREADS)
		return mu_invalid(err, "`num_threads` must be < %d", MAX_POOL_THREADS + 1);
	return stub_handle(c, err);
}

static int stub_resource_create(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_handle *h;
	bool is_new = false;

	MU_RETURN_IF_ERROR(resource_handle_in(c, 0, &h, err));
	MU_RETURN_IF_ERROR(handle_create(c, &stub_type, stub_new, &is_new, err));
	return is_new ? 0
		      : mu_fail(err, MU_ALREADY_EXISTS, "Resource %s/%s/%s already exists",
				h->container ? h->container : "", h->name, stub_type.name);
}

static const struct kernel rows[] = {
    {"StubResourceHandleOp DummySeedGenerator DummyMemoryCache", .run = stub_handle},
    {"ThreadPoolHandle ExperimentalThreadPoolHandle", .run = thread_pool_handle},
    {"ResourceCreateOp", .run = stub_resource_create},
};
KERNEL_TABLE(state_stub_resource, rows)
