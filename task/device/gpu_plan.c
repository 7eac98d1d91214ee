/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_plan.h. */
#include "task/device/gpu_plan.h"

#include <string.h>

#include "task/device/gpu_internal.h"

struct gpu_plan *gpu_plan_new(const struct gpu_plan_kind *kind)
{
	struct gpu_plan *p = mu_xcalloc(1, kind->size);

	pthread_mutex_init(&p->lock, NULL);
	p->kind = kind;
	return p;
}

static void clear(struct gpu_plan *p)
{
	if (p->gpu)
		p->kind->clear(p);
	memset(p + 1, 0, p->kind->size - sizeof *p);
	p->gpu = NULL;
}

void gpu_plan_free(struct gpu_plan *p)
{
	if (!p)
		return;
	clear(p);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void gpu_plan_set(struct gpu_plan *p, struct gpu *g, const void *what)
{
	if (p->gpu && p->kind->is_for(p, what))
		return;
	clear(p);
	p->gpu = g;
	p->possible = p->kind->make(p, what);
}
