/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a GPU, from the driver's stream-ordered pool: memory that is freed on the compute
 * stream may be allocated at once, because kernels that use it run later.  The pool never returns
 * memory to the driver.  This file enforces the limit and counts the bytes of each holder. */
#include "task/device/gpu_internal.h"

#include <stdio.h>

enum { MAX_NAMED_HOLDERS = 5, HOLDER_LEN = 64 };

struct gpu_block {
	struct gpu_block *next, **link;
	cuda_ptr at;
	size_t size;
	char holder[HOLDER_LEN];
};

/* Allocates the whole limit and frees it, so that the pool has the memory.  While the memory is not
 * sufficient, it retries with 7/8 of the size. */
static int fill_pool(struct gpu *g, struct mu_err *err)
{
	size_t bytes = g->info.limit;
	cuda_ptr at;
	int result;

	while ((result = g->api->memory_alloc(&at, bytes, g->compute)) == CUDA_NO_MEMORY &&
	       bytes > 8)
		bytes -= bytes / 8;
	if (!result)
		result = g->api->memory_free(at, g->compute);
	return gpu_check(g, result, "taking memory", err);
}

int gpu_memory_open(struct gpu *g, bool growth, struct mu_err *err)
{
	uint64_t threshold = UINT64_MAX;
	void *pool;
	int result = g->api->device_pool(&pool, g->ordinal);

	if (!result)
		result = g->api->pool_set(pool, CUDA_POOL_RELEASE_THRESHOLD, &threshold);
	if (result || growth || !g->info.limit)
		return gpu_check(g, result, "opening its memory", err);
	return fill_pool(g, err);
}

/* ---- out of memory ---- */

struct holding {
	const char *holder;
	size_t bytes;
};

static void keep_largest(struct holding *top, struct holding h)
{
	for (unsigned i = 0; i < MAX_NAMED_HOLDERS; i++)
		if (h.bytes > top[i].bytes) {
			struct holding smaller = top[i];
			top[i] = h;
			h = smaller;
		}
}

static void name_holders(const struct gpu_memory *m, struct mu_buf *out)
{
	struct holding top[MAX_NAMED_HOLDERS] = {0};
	struct mu_map sums;

	mu_map_init(&sums);
	for (const struct gpu_block *b = m->blocks; b; b = b->next) {
		size_t sum = (size_t)(uintptr_t)mu_map_get(&sums, b->holder);
		mu_map_put(&sums, b->holder, (void *)(uintptr_t)(sum + b->size));
	}
	mu_map_each (&sums, s)
		keep_largest(top, (struct holding){s->key, (size_t)(uintptr_t)s->value});
	for (unsigned i = 0; i < MAX_NAMED_HOLDERS && top[i].bytes; i++)
		mu_buf_printf(out, "%s%.40s (%.1f MiB)", i ? ", " : "; held most by ",
			      top[i].holder, (double)top[i].bytes / 0x1p20);
	mu_map_fini(&sums);
}

static int fail_out_of_memory(struct gpu *g, size_t size, const char *holder, struct mu_err *err)
{
	MU_AUTO_BUF holders = {0};

	pthread_mutex_lock(&g->lock);
	name_holders(&g->memory, &holders);
	int rc = mu_fail(err, MU_RESOURCE_EXHAUSTED,
			 "GPU:%u is out of memory: %.40s wants %.1f MiB, %.1f of %.1f MiB are in "
			 "use%s",
			 g->device.number, holder, (double)size / 0x1p20,
			 (double)g->memory.used / 0x1p20, (double)g->info.limit / 0x1p20,
			 holders.len ? holders.data : "");
	pthread_mutex_unlock(&g->lock);
	return rc;
}

/* ---- blocks ---- */

/* Adds size bytes to the used memory; false: they exceed the limit. */
static bool reserve(struct gpu *g, size_t size)
{
	struct gpu_memory *m = &g->memory;

	pthread_mutex_lock(&g->lock);
	bool is_within_limit = size <= g->info.limit - m->used;
	if (is_within_limit)
		m->used += size;
	if (m->used > m->peak)
		m->peak = m->used;
	pthread_mutex_unlock(&g->lock);
	return is_within_limit;
}

int gpu_memory_alloc(struct gpu *g, size_t bytes, const char *holder, void *stream,
		     struct gpu_block **out, struct mu_err *err)
{
	struct gpu_memory *m = &g->memory;
	struct gpu_block *b;
	cuda_ptr at;
	int result;

	bytes = bytes ? bytes : 1;
	if (!reserve(g, bytes))
		return fail_out_of_memory(g, bytes, holder, err);
	result = g->api->memory_alloc(&at, bytes, stream);
	if (!result)
		b = MU_NEW(struct gpu_block);
	pthread_mutex_lock(&g->lock);
	if (result) {
		m->used -= bytes;
	} else {
		b->at = at;
		b->size = bytes;
		snprintf(b->holder, sizeof b->holder, "%s", holder);
		b->next = m->blocks;
		b->link = &m->blocks;
		if (b->next)
			b->next->link = &b->next;
		m->blocks = b;
	}
	pthread_mutex_unlock(&g->lock);
	if (result == CUDA_NO_MEMORY)
		return fail_out_of_memory(g, bytes, holder, err);
	if (result)
		return gpu_check(g, result, "taking memory", err);
	*out = b;
	return 0;
}

void gpu_memory_free(struct gpu *g, struct gpu_block *b)
{
	pthread_mutex_lock(&g->lock);
	*b->link = b->next;
	if (b->next)
		b->next->link = b->link;
	g->memory.used -= b->size;
	pthread_mutex_unlock(&g->lock);
	if (!gpu_enter(g, NULL))
		gpu_check(g, g->api->memory_free(b->at, g->compute), "freeing memory", NULL);
	free(b);
}

cuda_ptr gpu_block_address(const struct gpu_block *b)
{
	return b->at;
}
