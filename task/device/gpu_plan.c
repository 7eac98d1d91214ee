/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_plan.h. */
#include "task/device/gpu_plan.h"

#include <stdatomic.h>
#include <string.h>

#include "task/device/gpu_internal.h"

struct gpu_plan *gpu_plan_new(const struct gpu_plan_kind *kind)
{
	struct gpu_plan *p = MU_NEW(struct gpu_plan);

	pthread_mutex_init(&p->lock, NULL);
	p->kind = kind;
	for (unsigned i = 0; i < GPU_WAYS; i++)
		p->ways[i] = mu_xcalloc(1, kind->size);
	return p;
}

/* What is held back, or about to be recorded, still has use for the descriptors. */
static void empty(const struct gpu_plan *p, struct gpu_way *way)
{
	if (!way->gpu)
		return;
	if (gpu_works(way->gpu))
		gpu_end_segment(way->gpu, NULL);
	p->kind->forget(way);
	memset(way, 0, p->kind->size);
}

void gpu_plan_free(struct gpu_plan *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < GPU_WAYS; i++) {
		empty(p, p->ways[i]);
		free(p->ways[i]);
	}
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct gpu_way *gpu_plan_way(struct gpu_plan *p, struct gpu *g, const void *what)
{
	static _Atomic uint64_t made;
	struct gpu_way *way = NULL, *oldest = p->ways[0];

	for (unsigned i = 0; i < GPU_WAYS && !way; i++) {
		if (p->ways[i]->gpu && p->kind->is_for(p->ways[i], what))
			way = p->ways[i];
		else if (p->ways[i]->used < oldest->used)
			oldest = p->ways[i];
	}
	if (!way) {
		way = oldest;
		empty(p, way);
		way->gpu = g;
		way->serial = atomic_fetch_add(&made, 1);
		way->possible = p->kind->make(way, what);
	}
	way->used = ++p->turn;
	return way;
}
