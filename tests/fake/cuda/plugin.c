/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in as a plug-in: MUSTER_CUDA_PLUGIN=…/libmuster-fake-cuda.so gives any muster-task GPUs in
 * host memory. */
#include "tests/fake/cuda/fake_cuda.h"

__attribute__((visibility("default"))) cuda_plugin_fn muster_cuda_plugin;

int muster_cuda_plugin(const struct cuda_plugin **out, char *why, size_t n)
{
	fake_cuda_reset();
	*out = fake_cuda_plugin();
	return 0;
}
