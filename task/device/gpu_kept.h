/* SPDX-License-Identifier: Apache-2.0 */
/* A node that sees a few shapes in turn (training and evaluation, a last batch that is not full)
 * keeps a plan for each; one more takes the place of what went unused the longest. */
#ifndef MU_TASK_DEVICE_GPU_KEPT_H
#define MU_TASK_DEVICE_GPU_KEPT_H

#include <stdint.h>

enum { GPU_KEPT = 4 };
struct gpu_kept {
	uint64_t turn, used[GPU_KEPT]; /* 0: never */
};

static inline void gpu_kept_use(struct gpu_kept *k, unsigned i)
{
	k->used[i] = ++k->turn;
}

static inline unsigned gpu_kept_oldest(const struct gpu_kept *k)
{
	unsigned oldest = 0;

	for (unsigned i = 1; i < GPU_KEPT; i++)
		if (k->used[i] < k->used[oldest])
			oldest = i;
	return oldest;
}

#endif
