/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, fills and copies on the compute stream. */
#include "task/device/gpu_internal.h"

enum { THREADS = 256, ELEMENTS_PER_THREAD = 4, BLOCKS_PER_PROCESSOR = 16 };

int gpu_kernel(struct gpu *g, const char *name, void **out, struct mu_err *err)
{
	void *f;
	int result = 0, rc = gpu_enter(g, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&g->lock);
	f = mu_map_get(&g->kernels, name);
	if (!f && !(result = g->api->module_function(&f, g->module, name)))
		mu_map_put(&g->kernels, name, f);
	pthread_mutex_unlock(&g->lock);
	if (result == CUDA_NOT_FOUND)
		return mu_fail(err, MU_UNIMPLEMENTED, "the GPU plug-in has no kernel '%s'", name);
	if ((rc = gpu_check(g, result, "finding a kernel", err)))
		return rc;
	*out = f;
	return 0;
}

struct gpu_grid gpu_grid_for(const struct gpu *g, int64_t n)
{
	int64_t blocks = (n + THREADS - 1) / THREADS;
	int64_t max_blocks = (int64_t)g->info.multiprocessors * BLOCKS_PER_PROCESSOR;

	if (blocks > max_blocks) {
		blocks = (n + THREADS * ELEMENTS_PER_THREAD - 1) / (THREADS * ELEMENTS_PER_THREAD);
		blocks = blocks > max_blocks ? blocks : max_blocks;
	}
	if (blocks > INT32_MAX)
		blocks = INT32_MAX;
	return (struct gpu_grid){blocks > 0 ? (unsigned)blocks : 1, THREADS};
}

int gpu_launch_sized(struct gpu *g, void *kernel, struct gpu_grid grid, const void *args,
		     size_t size, struct mu_err *err)
{
	void *list[] = {(void *)(uintptr_t)args};
	int rc = gpu_enter(g, err);

	if (rc)
		return rc;
	return gpu_check(g,
			 g->api->launch(kernel, grid.blocks, 1, 1, grid.threads, 1, 1, 0,
					g->compute, list, NULL),
			 "launching a kernel", err);
}

int gpu_fill(struct gpu *g, const struct mu_tensor *t, unsigned char byte, struct mu_err *err)
{
	size_t bytes = mu_tensor_bytes(t);
	int rc = gpu_enter(g, err);

	if (rc || !bytes)
		return rc;
	return gpu_check(g, g->api->fill(gpu_address(t), byte, bytes, g->compute), "filling memory",
			 err);
}

int gpu_copy_within(struct gpu *g, cuda_ptr to, cuda_ptr from, size_t bytes, struct mu_err *err)
{
	int rc = gpu_enter(g, err);

	if (rc || !bytes)
		return rc;
	return gpu_check(g, g->api->copy_within(to, from, bytes, g->compute),
			 "copying on the device", err);
}
