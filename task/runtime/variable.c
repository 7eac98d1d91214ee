/* SPDX-License-Identifier: Apache-2.0 */
/* Variables, of references and of resource handles. */
#include "task/device/device.h"
#include "task/runtime/resources.h"

static void variable_free(struct resource *r)
{
	struct variable *v = MU_CONTAINER(r, struct variable, base);

	mu_tensor_unref(&v->value);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

static size_t variable_bytes(struct resource *r)
{
	struct variable *v = MU_CONTAINER(r, struct variable, base);

	pthread_mutex_lock(&v->lock);
	size_t n = mu_tensor_is_set(&v->value) ? mu_tensor_bytes(&v->value) : 0;
	pthread_mutex_unlock(&v->lock);
	return n;
}

const struct resource_type reference_variable_type = {
    .name = "reference variable", .free = variable_free, .bytes = variable_bytes};
const struct resource_type variable_type = {
    .name = "variable", .free = variable_free, .bytes = variable_bytes};

bool resource_is_variable(const struct resource *r)
{
	return r->type == &variable_type || r->type == &reference_variable_type;
}

struct variable *variable_new(enum mu_dtype dtype, const struct mu_pshape *shape)
{
	struct variable *v = MU_NEW(struct variable);

	resource_init(&v->base, &variable_type);
	pthread_mutex_init(&v->lock, NULL);
	v->dtype = dtype;
	v->shape = *shape;
	return v;
}

static int fail_uninitialised(const struct variable *v, struct mu_err *err)
{
	return mu_fail(err, MU_FAILED_PRECONDITION, "Attempting to use uninitialized value %s",
		       v->base.name ? v->base.name : "");
}

int variable_read(struct variable *v, struct mu_tensor *out, struct mu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&v->lock);
	if (mu_tensor_is_set(&v->value))
		*out = mu_tensor_ref(&v->value);
	else
		rc = fail_uninitialised(v, err);
	pthread_mutex_unlock(&v->lock);
	return rc;
}

void variable_assign(struct variable *v, struct mu_tensor t)
{
	struct mu_tensor old;

	pthread_mutex_lock(&v->lock);
	old = v->value;
	v->value = t;
	pthread_mutex_unlock(&v->lock);
	mu_tensor_unref(&old);
}

int variable_exclusive(struct variable *v, struct mu_tensor **out, struct mu_err *err)
{
	if (!mu_tensor_is_set(&v->value))
		return fail_uninitialised(v, err);
	struct device *d = device_of_tensor(&v->value);
	if (!d->ops->is_writable(&v->value)) {
		struct mu_tensor copy;
		int rc = d->ops->tensor_copy(d, &v->value, v->base.name, &copy, err);
		if (rc)
			return rc;
		mu_tensor_unref(&v->value);
		v->value = copy;
	}
	*out = &v->value;
	return 0;
}
