/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA fake as a plug-in: MUSTER_CUDA_PLUGIN=…/libmuster-fake-cuda.so gives any muster-task
 * GPUs in host memory. */
#include <pthread.h>

#include "tests/fake/cuda/fake_cuda.h"

__attribute__((visibility("default"))) cuda_plugin_fn muster_cuda_plugin;

int muster_cuda_plugin(const struct cuda_plugin **out, char *why, size_t n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fake_cuda_reset); /* a second task of the process shares the GPUs */
	*out = fake_cuda_plugin();
	return 0;
}
