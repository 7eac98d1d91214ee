/* SPDX-License-Identifier: Apache-2.0 */
/* The device's memory.  Regions are taken from the driver, which is slow to give and waits for the
 * device to take back, and are kept until the end; tensors get blocks of them.  A block lies
 * between its neighbours in address order and is joined with those that are free; free ones of
 * similar size share a list, smallest first.
 *
 * A block knows how many launches had been made when it was given back: a kernel launched later may
 * have it at once, another stream only when those launches are over. */
#include "task/device/gpu_internal.h"

#include <stdio.h>

enum { ALIGN = 256, BINS = 64, NAMED = 5 };
#define REGION_LEAST ((size_t)64 << 20)

struct gpu_block {
	struct gpu_block *before, *after; /* in the region, by address */
	struct gpu_block *next, **link;   /* among the free ones of a list; link NULL: in use */
	cuda_ptr at;
	size_t size;
	uint64_t used_until;
	char holder[HOLDER_LEN];
};

struct region {
	struct region *next;
	cuda_ptr at;
	struct gpu_block *first;
};

struct gpu_memory {
	pthread_mutex_t lock;
	struct gpu_memory_source source;
	char name[16];
	struct region *regions;
	struct gpu_block *bin[BINS];
	size_t limit, taken, used, most, next_region;
};

struct gpu_memory *gpu_memory_new(const char *name, const struct gpu_memory_source *source,
				  size_t limit, bool growth)
{
	struct gpu_memory *m = MU_NEW(struct gpu_memory);

	pthread_mutex_init(&m->lock, NULL);
	m->source = *source;
	m->limit = limit;
	m->next_region = growth ? REGION_LEAST : limit;
	snprintf(m->name, sizeof m->name, "%s", name);
	return m;
}

void gpu_memory_free(struct gpu_memory *m)
{
	if (!m)
		return;
	while (m->regions) {
		struct region *r = m->regions;
		m->regions = r->next;
		for (struct gpu_block *b = r->first, *after; b; b = after) {
			after = b->after;
			free(b);
		}
		m->source.give(m->source.ctx, r->at);
		free(r);
	}
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static unsigned bin_of(size_t size)
{
	return 63 - (unsigned)__builtin_clzll(size | 1);
}

static void put_free(struct gpu_memory *m, struct gpu_block *b)
{
	struct gpu_block **at = &m->bin[bin_of(b->size)];

	while (*at && (*at)->size < b->size)
		at = &(*at)->next;
	b->next = *at;
	b->link = at;
	if (b->next)
		b->next->link = &b->next;
	*at = b;
}

static void take_free(struct gpu_block *b)
{
	*b->link = b->next;
	if (b->next)
		b->next->link = b->link;
	b->link = NULL;
	b->next = NULL;
}

static struct gpu_block *find_free(struct gpu_memory *m, size_t size)
{
	for (unsigned i = bin_of(size); i < BINS; i++)
		for (struct gpu_block *b = m->bin[i]; b; b = b->next)
			if (b->size >= size)
				return b;
	return NULL;
}

/* A new region with room for `size`: as large as planned, as the limit leaves, as the driver has.
 */
static int add_region(struct gpu_memory *m, size_t size)
{
	size_t left = m->limit - m->taken, bytes = m->next_region > size ? m->next_region : size;
	cuda_ptr at;
	int result;

	if (size > left)
		return CUDA_NO_MEMORY;
	if (bytes > left)
		bytes = left & ~(size_t)(ALIGN - 1);
	while ((result = m->source.take(m->source.ctx, bytes, &at)) == CUDA_NO_MEMORY &&
	       bytes > size) {
		bytes = (bytes - bytes / 8) & ~(size_t)(ALIGN - 1);
		if (bytes < size)
			bytes = size;
	}
	if (result)
		return result;
	struct region *r = MU_NEW(struct region);
	struct gpu_block *b = MU_NEW(struct gpu_block);
	*r = (struct region){m->regions, at, b};
	m->regions = r;
	b->at = at;
	b->size = bytes;
	m->taken += bytes;
	m->next_region = 2 * bytes;
	put_free(m, b);
	return 0;
}

/* Splits b: the bytes beyond `size` become another block. */
static void split(struct gpu_memory *m, struct gpu_block *b, size_t size)
{
	struct gpu_block *rest;

	if (b->size - size < ALIGN)
		return;
	rest = MU_NEW(struct gpu_block);
	rest->at = b->at + size;
	rest->size = b->size - size;
	rest->used_until = b->used_until;
	rest->before = b;
	rest->after = b->after;
	if (rest->after)
		rest->after->before = rest;
	b->after = rest;
	b->size = size;
	put_free(m, rest);
}

/* ---- who holds what ---- */

struct holding {
	const char *holder;
	size_t bytes;
};

static void keep_largest(struct holding *top, struct holding h)
{
	for (unsigned i = 0; i < NAMED; i++)
		if (h.bytes > top[i].bytes) {
			struct holding smaller = top[i];
			top[i] = h;
			h = smaller;
		}
}

/* Rare, so it may take its time. */
static void name_holders(const struct gpu_memory *m, struct mu_buf *out)
{
	struct holding top[NAMED] = {0};
	struct mu_map sums;

	mu_map_init(&sums);
	for (const struct region *r = m->regions; r; r = r->next)
		for (const struct gpu_block *b = r->first; b; b = b->after)
			if (!b->link) {
				size_t sum = (size_t)(uintptr_t)mu_map_get(&sums, b->holder);
				mu_map_put(&sums, b->holder, (void *)(uintptr_t)(sum + b->size));
			}
	mu_map_each (&sums, s)
		keep_largest(top, (struct holding){s->key, (size_t)(uintptr_t)s->value});
	for (unsigned i = 0; i < NAMED && top[i].bytes; i++)
		mu_buf_printf(out, "%s%.40s (%.1f MiB)", i ? ", " : "; held most by ",
			      top[i].holder, (double)top[i].bytes / 0x1p20);
	mu_map_fini(&sums);
}

static int exhausted(const struct gpu_memory *m, size_t size, const char *holder,
		     struct mu_err *err)
{
	MU_AUTO_BUF who = {0};

	name_holders(m, &who);
	return mu_fail(err, MU_RESOURCE_EXHAUSTED,
		       "%s is out of memory: %.40s wants %.1f MiB, %.1f of %.1f MiB are in use%s",
		       m->name, holder, (double)size / 0x1p20, (double)m->used / 0x1p20,
		       (double)m->limit / 0x1p20, who.len ? who.data : "");
}

struct gpu_block *gpu_memory_take(struct gpu_memory *m, size_t bytes, const char *holder,
				  uint64_t over, uint64_t *after, struct mu_err *err)
{
	struct gpu_block *b = NULL;
	size_t size = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	int result = CUDA_NO_MEMORY;

	if (!size)
		size = bytes ? 0 : ALIGN; /* 0: the sum has wrapped */
	pthread_mutex_lock(&m->lock);
	if (size && size <= m->limit) {
		b = find_free(m, size);
		if (!b && !(result = add_region(m, size)))
			b = find_free(m, size);
	}
	if (b) {
		take_free(b);
		split(m, b, size);
		snprintf(b->holder, sizeof b->holder, "%s", holder);
		m->used += b->size;
		if (m->used > m->most)
			m->most = m->used;
		*after = b->used_until > over ? b->used_until : 0;
	} else if (result == CUDA_NO_MEMORY) {
		exhausted(m, bytes, holder, err);
	} else {
		mu_fail(err, MU_UNAVAILABLE, "%s gives no memory, the driver says %d", m->name,
			result);
	}
	pthread_mutex_unlock(&m->lock);
	return b;
}

/* `with` follows b and is free, or nothing. */
static void join(struct gpu_block *b, struct gpu_block *with)
{
	b->size += with->size;
	if (with->used_until > b->used_until)
		b->used_until = with->used_until;
	b->after = with->after;
	if (b->after)
		b->after->before = b;
	free(with);
}

void gpu_memory_give(struct gpu_memory *m, struct gpu_block *b, uint64_t now)
{
	pthread_mutex_lock(&m->lock);
	m->used -= b->size;
	b->used_until = now;
	if (b->after && b->after->link) {
		take_free(b->after);
		join(b, b->after);
	}
	if (b->before && b->before->link) {
		take_free(b->before);
		b = b->before;
		join(b, b->after);
	}
	put_free(m, b);
	pthread_mutex_unlock(&m->lock);
}

cuda_ptr gpu_block_address(const struct gpu_block *b)
{
	return b->at;
}

void gpu_memory_see(struct gpu_memory *m, size_t *used, size_t *most)
{
	pthread_mutex_lock(&m->lock);
	*used = m->used;
	*most = m->most;
	pthread_mutex_unlock(&m->lock);
}
