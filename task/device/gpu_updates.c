/* SPDX-License-Identifier: Apache-2.0 */
/* Variables' updates that follow one another go in one launch: an optimizer's are many and small.
 *
 * An update waits until something else is put on the stream, or has to be there; those of the same
 * kernel that come meanwhile join it.  One that touches what another of them writes, or writes what
 * another reads, does not: they run side by side.  An update that waits is accepted already, so it
 * is with it as with a launch that is held (gpu_launch.c).
 *
 * With the queue's lock. */
#include <string.h>

#include "task/device/gpu_internal.h"

struct range {
	cuda_ptr from, to;
};
enum { WRITTEN = 4, READ = 1 + MU_COUNT(((struct update_args *)0)->scalar) };

static bool meet(struct range a, struct range b)
{
	return a.from < b.to && b.from < a.to;
}

static unsigned written_by(const struct update_args *u, uint64_t size, struct range *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WRITTEN; i++)
		if (u->at[i])
			out[n++] = (struct range){u->at[i], u->at[i] + (uint64_t)u->n * size};
	return n;
}

static unsigned read_by(const struct update_args *u, uint64_t size, struct range *out)
{
	unsigned n = 0;

	out[n++] = (struct range){u->grad, u->grad + (uint64_t)u->n * size};
	for (int i = 0; i < u->scalars; i++)
		out[n++] = (struct range){u->scalar[i], u->scalar[i] + size};
	return n;
}

static bool any_meet(const struct range *a, unsigned n_a, const struct range *b, unsigned n_b)
{
	for (unsigned i = 0; i < n_a; i++)
		for (unsigned k = 0; k < n_b; k++)
			if (meet(a[i], b[k]))
				return true;
	return false;
}

static bool disturb(const struct update_args *a, const struct update_args *b, uint64_t size)
{
	struct range writes_a[WRITTEN], writes_b[WRITTEN], reads_a[READ], reads_b[READ];
	unsigned wa = written_by(a, size, writes_a), wb = written_by(b, size, writes_b);
	unsigned ra = read_by(a, size, reads_a), rb = read_by(b, size, reads_b);

	return any_meet(writes_a, wa, writes_b, wb) || any_meet(writes_a, wa, reads_b, rb) ||
	       any_meet(reads_a, ra, writes_b, wb);
}

static bool may_join(const struct gpu_updates *all, void *kernel, unsigned blocks, uint64_t size,
		     const struct update_args *u)
{
	const struct updates_args *a = &all->args;

	if (!a->count || all->kernel != kernel || a->count == CUDA_MAX_UPDATES ||
	    a->end[a->count - 1] + (uint64_t)blocks > INT32_MAX)
		return false;
	for (int i = 0; i < a->count; i++)
		if (disturb(u, &a->of[i], size))
			return false;
	return true;
}

bool gpu_updates_join(struct gpu_updates *all, void *kernel, unsigned blocks, uint64_t size,
		      const struct update_args *u)
{
	struct updates_args *a = &all->args;

	if (a->count && !may_join(all, kernel, blocks, size, u))
		return false;
	if (!a->count)
		memset(a, 0, sizeof *a); /* what is not used is compared, too */
	all->kernel = kernel;
	a->end[a->count] = (a->count ? a->end[a->count - 1] : 0) + blocks;
	a->of[a->count++] = *u;
	return true;
}
