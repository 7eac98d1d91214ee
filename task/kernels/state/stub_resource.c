/* SPDX-License-Identifier: Apache-2.0 */
/* Resources without content. One is TensorFlow's test resource for naming, creation and removal.
 * The others are inputs that dataset ops require although the dataset itself keeps seeds or
 * elements. */
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/state/variables.h"

static void stub_free(struct resource *r)
{
	free(r);
}

static const struct resource_type stub_type = {.name = "StubResource", .free = stub_free};

static struct resource *stub_new(void *made, struct mu_err *err)
{
	struct resource *r = MU_NEW(struct resource);

	resource_init(r, &stub_type);
	*(bool *)made = true;
	return r;
}

static int stub_handle(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF buf = {0};

	return resource_handle_out(c, 0, resource_container(c, &buf), resource_name(c),
				   stub_type.name, err);
}

static int stub_resource_create(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_handle *h;
	struct resource *r;
	bool made = false;

	MU_RETURN_IF_ERROR(resource_handle_in(c, 0, &h, err));
	MU_RETURN_IF_ERROR(resources_find_or_create(c->runtime->resources,
						    h->container ? h->container : "", h->name,
						    &stub_type, stub_new, &made, &r, err));
	resource_unref(r);
	return made ? 0
		    : mu_fail(err, MU_ALREADY_EXISTS, "Resource %s/%s/%s already exists",
			      h->container ? h->container : "", h->name, stub_type.name);
}

static const struct kernel rows[] = {
    {"StubResourceHandleOp DummySeedGenerator DummyMemoryCache", .run = stub_handle},
    {"ResourceCreateOp", .run = stub_resource_create},
};
KERNEL_TABLE(state_stub_resource, rows)
