/* SPDX-License-Identifier: Apache-2.0 */
/* Plan of a library call: the descriptors and the algorithm for one node, kept for its last shape.
 * Choosing an algorithm takes longer than a small product runs.  Each step signature has nodes of
 * its own, so a node rarely sees more than one shape. */
#ifndef MU_TASK_DEVICE_GPU_PLAN_H
#define MU_TASK_DEVICE_GPU_PLAN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct gpu;
struct gpu_plan;

struct gpu_plan_kind {
	size_t size; /* of the kind's struct, which begins with a struct gpu_plan */
	bool (*is_for)(const struct gpu_plan *plan, const void *what);
	/* Fills an empty plan.  False: the library cannot compute this. */
	bool (*make)(struct gpu_plan *plan, const void *what);
	/* Frees the descriptors; after a failed make, some are NULL. */
	void (*clear)(struct gpu_plan *plan);
};
struct gpu_plan {
	const struct gpu_plan_kind *kind;
	pthread_mutex_t lock; /* held while the plan is in use */
	struct gpu *gpu;      /* NULL: the plan is empty */
	bool possible;
};

struct gpu_plan *gpu_plan_new(const struct gpu_plan_kind *kind);
void gpu_plan_free(struct gpu_plan *p);
/* Makes the plan one for `what`, unless it is already.  Called with the plan's lock. */
void gpu_plan_set(struct gpu_plan *p, struct gpu *g, const void *what);

#endif
