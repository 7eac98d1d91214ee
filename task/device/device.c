/* SPDX-License-Identifier: Apache-2.0 */
/* The host as a device, and sets of devices. */
#include "task/device/device.h"

#include <stdlib.h>

static void host_free(struct device *d)
{
}

static bool host_works(struct device *d)
{
	return true;
}

static int host_tensor_new(struct device *d, enum mu_dtype dtype, const struct mu_shape *shape,
			   const char *holder, struct mu_tensor *out, struct mu_err *err)
{
	return mu_tensor_new(out, dtype, shape, err);
}

static int host_tensor_copy(struct device *d, const struct mu_tensor *from, const char *holder,
			    struct mu_tensor *out, struct mu_err *err)
{
	return mu_tensor_copy(out, from, err);
}

/* Wrapped memory, such as a received message, must not be written. */
static bool host_is_writable(const struct mu_tensor *t)
{
	return mu_tensor_is_own(t);
}

static int host_copy_in(struct device *d, const struct mu_tensor *from, const char *holder,
			struct mu_tensor *out, struct mu_err *err)
{
	*out = mu_tensor_ref(from);
	return 0;
}

static int host_copy_out(struct device *d, const struct mu_tensor *from, struct mu_tensor *out,
			 device_done done, void *arg, struct mu_err *err)
{
	int rc = mu_tensor_copy(out, from, err);

	if (!rc)
		done(arg, NULL);
	return rc;
}

static const struct device_ops host_ops = {.free = host_free,
					   .works = host_works,
					   .tensor_new = host_tensor_new,
					   .tensor_copy = host_tensor_copy,
					   .is_writable = host_is_writable,
					   .copy_in = host_copy_in,
					   .copy_out = host_copy_out};
struct device host_device = {&host_ops, "CPU", 0};

struct device *device_of_tensor(const struct mu_tensor *t)
{
	return t->buf && t->buf->device ? *(struct device **)t->buf->owner : &host_device;
}

void device_set_free(struct device_set *s)
{
	for (unsigned i = 0; s && i < s->n; i++)
		s->at[i]->ops->free(s->at[i]);
	free(s);
}
