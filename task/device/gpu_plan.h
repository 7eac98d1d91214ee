/* SPDX-License-Identifier: Apache-2.0 */
/* How a library goes about what a node wants of it, kept from one run to the next: it takes longer
 * to choose an algorithm than a small product runs.  A node that sees a few shapes in turn
 * (training and evaluation, a last batch that is not full) keeps a way for each; one more takes the
 * place of what went unused the longest. */
#ifndef MU_TASK_DEVICE_GPU_PLAN_H
#define MU_TASK_DEVICE_GPU_PLAN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu;

enum { GPU_WAYS = 4 };

struct gpu_way {         /* for one shape; what a kind needs for it follows */
	struct gpu *gpu; /* NULL: for none yet */
	uint64_t serial; /* no other way ever had it */
	uint64_t used;
	bool possible;
};

struct gpu_plan_kind {
	size_t size; /* of a way */
	bool (*is_for)(const struct gpu_way *way, const void *what);
	/* Of an empty one: whether it is possible. */
	bool (*make)(struct gpu_way *way, const void *what);
	/* Frees its descriptors; some may not have been made. */
	void (*forget)(struct gpu_way *way);
};

struct gpu_plan {
	pthread_mutex_t lock; /* held while a way is in use */
	const struct gpu_plan_kind *kind;
	uint64_t turn;
	struct gpu_way *ways[GPU_WAYS];
};

struct gpu_plan *gpu_plan_new(const struct gpu_plan_kind *kind);
void gpu_plan_free(struct gpu_plan *p);
/* The way for this, made when there is none yet; with the plan's lock. */
struct gpu_way *gpu_plan_way(struct gpu_plan *p, struct gpu *g, const void *what);

#endif
