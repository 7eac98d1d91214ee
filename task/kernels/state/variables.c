/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/state/variables.h"

#include <string.h>

/* Returns the name of the node's device within a container; NULL: CPU:0.  As in TensorFlow each
 * device has separate resources.  Those of CPU:0 are in the container itself, those of another
 * device in a container of the device's name within it. */
static const char *device_container(const struct kernel_call *c)
{
	const char *device;

	if (!c->runtime->devices && c->runtime->n_cpus == 1)
		return NULL;
	device = strstr(c->node->device, "/device:");
	return !device || strcmp(device, "/device:CPU:0") == 0 ? NULL : device + strlen("/device:");
}

static const char *device_of(const struct kernel_call *c)
{
	return !c->runtime ? "" : device_container(c) ? c->node->device : c->runtime->cpu_name;
}

static const char *container_of_device(const struct kernel_call *c, const char *container,
				       struct mu_buf *buf)
{
	const char *name = device_container(c);
	char *outer;

	if (!name)
		return container;
	outer = mu_xstrdup(*container ? container : resources_default(c->runtime->resources));
	mu_buf_clear(buf);
	mu_buf_printf(buf, "%s%c%s", outer, CONTAINER_SEPARATOR, name);
	free(outer);
	return buf->data;
}

const char *resource_container(const struct kernel_call *c, struct mu_buf *buf)
{
	const char *attr_container = args_attr_string(c->node, "container", "");
	const char *session = c->step ? step_container(c->step) : "";

	if (!*attr_container)
		return container_of_device(c, session, buf);
	if (!*session || strcmp(session, resources_default(c->runtime->resources)) == 0)
		return container_of_device(c, attr_container, buf);
	mu_buf_clear(buf);
	mu_buf_printf(buf, "%s%c%s", session, CONTAINER_SEPARATOR, attr_container);
	return container_of_device(c, buf->data, buf);
}

const char *resource_name(const struct kernel_call *c)
{
	const char *shared = args_attr_string(c->node, "shared_name", "");

	return *shared ? shared : c->node->name;
}

int resource_handle_out(struct kernel_call *c, unsigned o, const char *container, const char *name,
			const char *type_name, struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out_scalar(c, o, MU_RESOURCE, &out, err));
	*MU_DATA(struct mu_handle, out) = (struct mu_handle){
	    .device = mu_xstrdup(device_of(c)),
	    .container = mu_xstrdup(container),
	    .name = mu_xstrdup(name),
	    .type_name = mu_xstrdup(type_name),
	};
	return 0;
}

int resource_handle_out_named(struct kernel_call *c, const char *type_name, struct mu_err *err)
{
	MU_AUTO_BUF buf = {0};

	return resource_handle_out(c, 0, resource_container(c, &buf), resource_name(c), type_name,
				   err);
}

int resource_handle_in(const struct kernel_call *c, unsigned i, const struct mu_handle **out,
		       struct mu_err *err)
{

	const struct mu_tensor *t = kernel_in(c, i);
	const struct mu_handle *h = t->data;
	if (t->shape.count != 1 || !h->name)
		return mu_invalid(err, "input %u must be one resource handle", i);
	if (h->device && *h->device && c->runtime && strcmp(h->device, device_of(c)) != 0)
		return mu_invalid(
		    err, "Trying to access resource %s located in device %s from device %s",
		    h->name, h->device, device_of(c));
	*out = h;
	return 0;
}

/* CPU kernels cannot access a value in GPU memory. */
static bool is_accessible(const struct kernel_call *c, struct variable *v)
{
	if (!c->runtime->devices || c->runtime->kernels->find_device(c->node))
		return true;
	pthread_mutex_lock(&v->lock);
	bool is_on_device = mu_tensor_is_set(&v->value) && v->value.buf->device;
	pthread_mutex_unlock(&v->lock);
	return !is_on_device;
}

#define MISSING "Resource %s/%s/N10tensorflow3VarE does not exist."

/* The error codes are those of TensorFlow. */
static int fail_missing(const struct kernel_call *c, const struct mu_handle *h, struct mu_err *err)
{
	const char *op = c->node->op;
	const char *container =
	    h->container && *h->container ? h->container : resources_default(c->runtime->resources);

	if (strcmp(op, "ReadVariableOp") == 0)
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "Could not find variable %s. This could mean that the variable has "
			       "been deleted. In TF1, it can also mean the variable is "
			       "uninitialized. Debug info: container=%s, status error "
			       "message=" MISSING,
			       h->name, container, container, h->name);
	if (strncmp(op, "ResourceApply", strlen("ResourceApply")) == 0 ||
	    strncmp(op, "ResourceSparseApply", strlen("ResourceSparseApply")) == 0)
		return mu_fail(err, MU_INTERNAL, "Invalid variable reference. " MISSING, container,
			       h->name);
	return mu_fail(err, MU_NOT_FOUND, MISSING, container, h->name);
}

int variable_in(const struct kernel_call *c, unsigned i, struct variable **out, struct mu_err *err)
{
	const struct mu_handle *h;
	struct resource *r;

	if (i < c->n_in && c->in[i].ref) {
		resource_ref(&c->in[i].ref->base);
		*out = c->in[i].ref;
		return 0;
	}
	int rc = -MU_NOT_FOUND;

	MU_RETURN_IF_ERROR(resource_handle_in(c, i, &h, err));
	if (!h->type_name || strcmp(h->type_name, variable_type.name) == 0)
		rc = resources_find(c->runtime->resources, h->container ? h->container : "",
				    h->name, &variable_type, &r, err);
	if (rc == -MU_NOT_FOUND)
		return fail_missing(c, h, err);
	if (!rc && !is_accessible(c, MU_CONTAINER(r, struct variable, base))) {
		resource_unref(r);
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "variable %s is on %s, and %s has no GPU kernel", h->name, h->device,
			       c->node->op);
	}
	if (!rc)
		*out = MU_CONTAINER(r, struct variable, base);
	return rc;
}

/* The value to update. For a handle the buffer is made exclusive first, so earlier readers keep
 * their value. For a reference it is updated in place: TensorFlow's readers of reference variables
 * see later updates through the shared buffer. Synchronous training depends on this, because its
 * tokens carry a global step that was read before it was incremented. A value that was sent to
 * another task does not change there, so readers in this process must not see the change through
 * that path either. */
static int value_to_update(const struct kernel_call *c, unsigned i, struct variable *v,
			   struct mu_tensor **out, struct mu_err *err)
{
	if (!c->in[i].ref || !mu_tensor_is_set(&v->value) || v->value.buf->owner ||
	    mu_tensor_has_remote_refs(&v->value))
		return variable_exclusive(v, out, err);
	*out = &v->value;
	return 0;
}

static void lock_in_order(struct variables *vs)
{
	memcpy(vs->order, vs->v, sizeof vs->order);
	for (unsigned i = 1; i < vs->n; i++)
		for (unsigned k = i; k > 0 && vs->order[k - 1] > vs->order[k]; k--) {
			struct variable *swap = vs->order[k];
			vs->order[k] = vs->order[k - 1];
			vs->order[k - 1] = swap;
		}
	for (unsigned i = 0; i < vs->n; i++)
		if (!i || vs->order[i] != vs->order[i - 1])
			pthread_mutex_lock(&vs->order[i]->lock);
}

int variables_lock(const struct kernel_call *c, unsigned n, struct variables *out,
		   struct mu_err *err)
{
	struct variables vs = {0};
	int rc = 0;

	for (; vs.n < n && !rc; vs.n += !rc)
		rc = variable_in(c, vs.n, &vs.v[vs.n], err);
	if (rc) {
		while (vs.n)
			variable_put(vs.v[--vs.n]);
		return rc;
	}
	lock_in_order(&vs);
	for (unsigned i = 0; i < n && !rc; i++)
		rc = value_to_update(c, i, vs.v[i], &vs.t[i], err);
	if (rc)
		variables_unlock(&vs);
	else
		*out = vs;
	return rc;
}

void variables_unlock(struct variables *vs)
{
	for (unsigned i = 0; i < vs->n; i++)
		if (!i || vs->order[i] != vs->order[i - 1])
			pthread_mutex_unlock(&vs->order[i]->lock);
	while (vs->n)
		variable_put(vs->v[--vs->n]);
}
