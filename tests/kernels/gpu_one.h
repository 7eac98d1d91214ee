/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the layers below the kernels: one GPU, fake or real, opened for each test.  The
 * teardown fails if driver or library objects leak. */
#ifndef MU_TESTS_KERNELS_GPU_ONE_H
#define MU_TESTS_KERNELS_GPU_ONE_H

#include "task/device/gpu.h"
#include "tests/fake/cuda/fake_cuda.h"
#include "tests/kernels/gpu_compare.h"

static struct device_set *set;
static struct gpu *g;

static int open_one_gpu(void **state)
{
	const struct cuda_plugin *plugin = gpu_plugin_to_test();

	fake_cuda_reset();
	if (!plugin || gpu_set_open(plugin, &(struct gpu_options){.growth = true}, &set, &err))
		return -1;
	g = gpu_at(set, 0);
	return 0;
}

static int close_one_gpu(void **state)
{
	struct fake_cuda_counts c;

	device_set_free(set);
	fake_cuda_count(&c);
	return c.device_bytes || c.streams || c.events || c.contexts || c.descriptions ||
	       c.libraries;
}

#endif
