/* SPDX-License-Identifier: Apache-2.0 */
#include "task/runtime/device_kernel.h"

#include <string.h>

#include "task/runtime/runtime.h"

static bool bit_is_set(uint32_t set, unsigned i)
{
	return i < 32 && set >> i & 1;
}

bool device_kernel_in_on_device(const struct device_kernel *k, unsigned port, enum mu_dtype t)
{
	return k && !bit_is_set(k->host_in, port) &&
	       !bit_is_set(k->host_in_types, mu_dtype_base(t)) &&
	       (bit_is_set(k->device_in, port) || bit_is_set(DEVICE_PLAIN, mu_dtype_base(t)));
}

bool device_kernel_out_on_device(const struct device_kernel *k, unsigned port, enum mu_dtype t)
{
	return k && !bit_is_set(k->host_out, port) &&
	       (bit_is_set(k->device_out, port) || bit_is_set(DEVICE_PLAIN, mu_dtype_base(t)));
}

bool device_kernel_has_type(const struct device_kernel *k, enum mu_dtype t)
{
	return bit_is_set(k->types, mu_dtype_base(t));
}

struct device *device_of_node(const struct mu_node *n, const struct runtime *rt)
{
	const char *colon = rt ? strstr(n->device, "/device:") : NULL;

	for (unsigned i = 0; colon && i < device_count(rt->devices); i++)
		if (strcmp(colon + strlen("/device:"), rt->devices->at[i]->name) == 0)
			return rt->devices->at[i];
	return NULL;
}
