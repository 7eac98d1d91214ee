/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/state/handles.h"

#include <string.h>

#include "task/kernels/engine/variant.h"

/* Old ops identify a resource by two strings, container and name. A reference output is a new
 * variable with these strings. */
static int output_strings(struct kernel_call *c, bool is_ref, const char *container,
			  const char *name, struct mu_err *err)
{
	struct mu_shape strings_shape = mu_shape_vec(2);
	struct mu_tensor t;

	MU_RETURN_IF_ERROR(mu_tensor_new(&t, MU_STRING, &strings_shape, err));
	mu_string_set(&MU_DATA(struct mu_string, &t)[0], container, strlen(container));
	mu_string_set(&MU_DATA(struct mu_string, &t)[1], name, strlen(name));
	if (!is_ref) {
		kernel_out_take(c, 0, t);
		return 0;
	}
	struct variable *v = variable_new(MU_STRING, &(struct mu_pshape){.rank = 1, .dim = {2}});
	variable_assign(v, t);
	kernel_out_ref(c, 0, v);
	variable_put(v);
	return 0;
}

int handle_output(struct kernel_call *c, const char *container, const char *name,
		  const struct resource_type *type, struct mu_err *err)
{
	const struct mu_arg_def *out =
	    c->node->def && c->node->def->n_outputs ? c->node->def->outputs : NULL;

	return out && out->type == MU_STRING
		   ? output_strings(c, out->is_ref, container, name, err)
		   : resource_handle_out(c, 0, container, name, type->name, err);
}

const char *handle_container(const struct kernel_call *c, struct mu_buf *buf)
{
	bool is_private = c->step && !*args_attr_string(c->node, "shared_name", "") &&
			  !args_attr_bool(c->node, "use_node_name_sharing", false);

	return is_private ? step_session(c->step) : resource_container(c, buf);
}

int handle_make(struct kernel_call *c, const struct resource_type *type,
		struct resource *(*create)(void *arg, struct mu_err *err), void *arg,
		struct resource **out, struct mu_err *err)
{
	MU_AUTO_BUF buf = {0};
	const char *container = handle_container(c, &buf);
	const char *name = resource_name(c);
	struct resource *r;
	int rc;

	MU_RETURN_IF_ERROR(resources_find_or_create(c->runtime->resources, container, name, type,
						    create, arg, &r, err));
	rc = handle_output(c, container, name, type, err);
	if (rc)
		resource_unref(r);
	else
		*out = r;
	return rc;
}

struct owned_resource {
	struct mu_object object;
	struct resource *resource;
};

static void owned_resource_free(struct mu_object *o)
{
	struct owned_resource *owned = MU_CONTAINER(o, struct owned_resource, object);

	if (owned->resource->type->close)
		owned->resource->type->close(owned->resource);
	resource_unref(owned->resource);
	free(owned);
}

static const struct mu_object_type owned_resource_type = {.name = "resource",
							  .free = owned_resource_free};

int handle_make_owned(struct kernel_call *c, struct resource *r, struct mu_err *err)
{
	static _Atomic unsigned long long next_id;
	struct owned_resource *owned = MU_NEW(struct owned_resource);

	r->container = mu_xstrdup("Anonymous");
	r->name = mu_xasprintf("Resource-%llu", atomic_fetch_add(&next_id, 1));
	mu_object_init(&owned->object, &owned_resource_type);
	owned->resource = r;
	int rc = resource_handle_out(c, 0, r->container, r->name, r->type->name, err);
	if (!rc)
		MU_DATA(struct mu_handle, &c->out[0].tensor)->owned = mu_object_ref(&owned->object);
	if (!rc && c->n_out > 1)
		rc = variant_out(c, 1, mu_object_ref(&owned->object), err);
	mu_object_unref(&owned->object);
	return rc;
}

int handle_find(const struct kernel_call *c, unsigned i, const struct resource_type *type,
		struct resource **out, struct mu_err *err)
{
	MU_AUTO_TENSOR value = {0};
	const struct mu_handle *h;
	int rc = 0;

	if (i < c->n_in && !c->in[i].ref && kernel_in(c, i)->dtype == MU_RESOURCE) {
		MU_RETURN_IF_ERROR(resource_handle_in(c, i, &h, err));
		if (h->type_name && strcmp(h->type_name, type->name))
			return mu_invalid(err,
					  "Trying to access a handle's resource using the wrong "
					  "type. The handle points to a resource (name '%s') of "
					  "type '%s' but you are trying to access the resource as "
					  "type '%s'",
					  h->name, h->type_name, type->name);
		if (h->owned) {
			*out = MU_CONTAINER(h->owned, struct owned_resource, object)->resource;
			resource_ref(*out);
			return 0;
		}
		return resources_find(c->runtime->resources, h->container ? h->container : "",
				      h->name, type, out, err);
	}
	if (i < c->n_in && c->in[i].ref)
		rc = variable_read(c->in[i].ref, &value, err);
	else if (!(rc = args_type(c, i, MU_STRING, err)))
		value = mu_tensor_ref(kernel_in(c, i));
	if (rc)
		return rc;
	if (value.dtype != MU_STRING || value.shape.count != 2)
		return mu_invalid(err, "Resource handle must have 2 elements, but had shape: %s",
				  mu_shape_str(&value.shape));
	const struct mu_string *s = value.data;
	MU_AUTO_FREE char *container = mu_xstrndup(s[0].data ? s[0].data : "", s[0].len);
	MU_AUTO_FREE char *name = mu_xstrndup(s[1].data ? s[1].data : "", s[1].len);
	return resources_find(c->runtime->resources, container, name, type, out, err);
}

int handle_remove(const struct kernel_call *c, const struct resource_type *type, struct mu_err *err)
{
	struct resource *r;
	int rc;

	MU_RETURN_IF_ERROR(handle_find(c, 0, type, &r, err));
	rc = resources_remove(c->runtime->resources, r->container, r->name, type->name, err);
	resource_unref(r);
	return rc;
}

int handle_create(struct kernel_call *c, const struct resource_type *type,
		  struct resource *(*create)(void *arg, struct mu_err *err), void *arg,
		  struct mu_err *err)
{
	const struct mu_handle *h;
	struct resource *r;

	MU_RETURN_IF_ERROR(resource_handle_in(c, 0, &h, err));
	MU_RETURN_IF_ERROR(resources_find_or_create(c->runtime->resources,
						    h->container ? h->container : "", h->name, type,
						    create, arg, &r, err));
	resource_unref(r);
	return 0;
}

int handle_put_found(struct kernel_call *c, const struct resource_type *type, struct mu_err *err)
{
	struct resource *r;
	bool found = handle_find(c, 0, type, &r, NULL) == 0;

	if (found)
		resource_unref(r);
	return kernel_out_value(c, 0, MU_BOOL, &found, err);
}
