/* SPDX-License-Identifier: Apache-2.0 */
#include "task/runtime/gpu_kernel.h"

#include <stdlib.h>
#include <string.h>

#include "task/runtime/runtime.h"

static bool has(uint32_t set, unsigned i)
{
	return i < 32 && set >> i & 1;
}

bool gpu_kernel_in_on_device(const struct gpu_kernel *k, unsigned port, enum mu_dtype t)
{
	return k && !has(k->host_in, port) && !has(k->host_types, mu_dtype_base(t)) &&
	       (has(k->device_in, port) || has(GPU_PLAIN, mu_dtype_base(t)));
}

bool gpu_kernel_out_on_device(const struct gpu_kernel *k, unsigned port, enum mu_dtype t)
{
	return k && !has(k->host_out, port) &&
	       (has(k->device_out, port) || has(GPU_PLAIN, mu_dtype_base(t)));
}

bool gpu_kernel_has_type(const struct gpu_kernel *k, enum mu_dtype t)
{
	return has(k->types, mu_dtype_base(t));
}

struct gpu *gpu_of_node(const struct mu_node *n, const struct runtime *rt)
{
	unsigned count = rt ? gpu_count(rt->gpus) : 0;
	const char *at = count ? strstr(n->device, "GPU:") : NULL;
	long number;

	if (!at)
		return NULL;
	number = strtol(at + 4, NULL, 10);
	return number >= 0 && number < (long)count ? gpu_at(rt->gpus, (unsigned)number) : NULL;
}
