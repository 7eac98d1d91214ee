/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of what lies below the kernels: one GPU, of the stand-in or a real one, made anew for
 * each test.  Nothing of the driver's or a library's may be left in the end. */
#ifndef MU_TESTS_KERNELS_GPU_ONE_H
#define MU_TESTS_KERNELS_GPU_ONE_H

#include "task/device/gpu.h"
#include "tests/fake/cuda/fake_cuda.h"
#include "tests/kernels/gpu_compare.h"

static struct device_set *set;
static struct gpu *g;

static int begin(void **state)
{
	const struct cuda_plugin *plugin = gpu_plugin_to_test();

	fake_cuda_reset();
	if (!plugin || gpu_set_open(plugin, &(struct gpu_options){.growth = true}, &set, &err))
		return -1;
	g = gpu_at(set, 0);
	return 0;
}

static int end(void **state)
{
	struct fake_cuda_counts c;

	device_set_free(set);
	fake_cuda_count(&c);
	return c.device_bytes || c.streams || c.events || c.contexts || c.descriptions ||
	       c.libraries;
}

#endif
