/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory, page-locked host memory and copies. A device address is never a host address
 * (shim.h), so a mix-up crashes. */
#include "tests/fake/cuda/fake_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "task/kernels/engine/cuda/shim.h"

enum { HEAD = 256 };

struct block { /* header before the allocated memory */
	struct block *next;
	size_t size;
	int device;
};
struct pinned {
	struct pinned *next;
	char *at;
	size_t size;
};

static struct block *blocks;
static struct pinned *pinned;

static cuda_ptr address_of(const struct block *b)
{
	return ((cuda_ptr)(uintptr_t)b + HEAD) | HOST_DEVICE_BIT;
}

static char *of_device(cuda_ptr at)
{
	return (char *)(uintptr_t)(at & ~HOST_DEVICE_BIT);
}

size_t fake_memory_used(int device)
{
	size_t used = 0;

	for (const struct block *b = blocks; b; b = b->next)
		used += b->device == device ? b->size : 0;
	return used;
}

bool fake_cuda_is_device(cuda_ptr at, size_t bytes)
{
	bool is = false;

	pthread_mutex_lock(&fake_lock);
	for (const struct block *b = blocks; b && !is; b = b->next)
		is = b->device == fake_current() && at >= address_of(b) && bytes <= b->size &&
		     at - address_of(b) <= b->size - bytes;
	pthread_mutex_unlock(&fake_lock);
	return is;
}

static bool is_pinned(const char *at, size_t bytes)
{
	bool is = false;

	pthread_mutex_lock(&fake_lock);
	for (const struct pinned *p = pinned; p && !is; p = p->next)
		is = at >= p->at && bytes <= p->size && (size_t)(at - p->at) <= p->size - bytes;
	pthread_mutex_unlock(&fake_lock);
	return is;
}

int fake_memory_info(size_t *free_bytes, size_t *total)
{
	FAKE_ANSWER_TO("memory_info");
	pthread_mutex_lock(&fake_lock);
	*total = fake_cuda.memory;
	*free_bytes = fake_cuda.memory - fake_memory_used(fake_current());
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_memory_alloc(cuda_ptr *at, size_t bytes)
{
	struct block *b;

	FAKE_ANSWER_TO("memory_alloc");
	if (!bytes)
		return INVALID_VALUE;
	pthread_mutex_lock(&fake_lock);
	b = fake_memory_used(fake_current()) + bytes <= fake_cuda.memory
		? aligned_alloc(HEAD, HEAD + (bytes + HEAD - 1) / HEAD * HEAD)
		: NULL;
	if (b) {
		*b = (struct block){blocks, bytes, fake_current()};
		blocks = b;
		fake_counts.allocations++;
		fake_counts.device_bytes += bytes;
		if (fake_counts.device_bytes > fake_counts.most_bytes)
			fake_counts.most_bytes = fake_counts.device_bytes;
		memset((char *)b + HEAD, 0xa5, bytes); /* never zero by accident */
		*at = address_of(b);
	}
	pthread_mutex_unlock(&fake_lock);
	return b ? 0 : CUDA_NO_MEMORY;
}

/* Waits for the device, as the driver does. */
int fake_memory_free(cuda_ptr at)
{
	struct block *b = NULL, **link = &blocks;

	pthread_mutex_lock(&fake_lock);
	for (struct stream *s = fake_streams; s; s = s->next)
		while (s->device == fake_current() && (s->first || s->current))
			pthread_cond_wait(&fake_news, &fake_lock);
	while (*link && address_of(*link) != at)
		link = &(*link)->next;
	if ((b = *link)) {
		*link = b->next;
		fake_counts.device_bytes -= b->size;
	}
	pthread_mutex_unlock(&fake_lock);
	if (!b)
		return INVALID_VALUE;
	free(b);
	return 0;
}

int fake_host_alloc(void **at, size_t bytes, unsigned flags)
{
	struct pinned *p;

	FAKE_ANSWER_TO("host_alloc");
	if (!bytes || flags > 7)
		return INVALID_VALUE;
	p = malloc(sizeof *p);
	*p = (struct pinned){NULL, malloc(bytes), bytes};
	if (!p->at) {
		free(p);
		return CUDA_NO_MEMORY;
	}
	*at = p->at;
	pthread_mutex_lock(&fake_lock);
	p->next = pinned;
	pinned = p;
	fake_counts.host_bytes += bytes;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* Fails while a pending copy uses the memory. */
int fake_host_free(void *at)
{
	struct pinned *p = NULL, **link = &pinned;
	bool awaited = false;

	pthread_mutex_lock(&fake_lock);
	while (*link && (*link)->at != at)
		link = &(*link)->next;
	if (*link)
		awaited = fake_is_awaited(at, (*link)->size);
	if (*link && !awaited) {
		p = *link;
		*link = p->next;
		fake_counts.host_bytes -= p->size;
	}
	pthread_mutex_unlock(&fake_lock);
	if (!p)
		return INVALID_VALUE;
	free(p->at);
	free(p);
	return 0;
}

/* ---- copies ---- */

static void one_in(struct fake_cuda_counts *c)
{
	c->copies_in++;
}

static void one_out(struct fake_cuda_counts *c)
{
	c->copies_out++;
}

static void one_fill(struct fake_cuda_counts *c)
{
	c->fills++;
}

static int put(struct stream *s, const struct job *like, bool possible,
	       void (*count)(struct fake_cuda_counts *c))
{
	if (!possible)
		return INVALID_VALUE;
	if (!fake_stream_is_here(s))
		return INVALID_HANDLE;
	pthread_mutex_lock(&fake_lock);
	if (count)
		count(&fake_counts);
	fake_append(s, like, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_copy_in(cuda_ptr to, const void *from, size_t bytes, void *stream)
{
	struct job j = {.deed = COPY, .to = of_device(to), .from = from, .bytes = bytes};

	FAKE_ANSWER_TO("copy_in");
	return put(stream, &j, fake_cuda_is_device(to, bytes) && is_pinned(from, bytes), one_in);
}

int fake_copy_out(void *to, cuda_ptr from, size_t bytes, void *stream)
{
	struct job j = {.deed = COPY, .to = to, .from = of_device(from), .bytes = bytes};

	FAKE_ANSWER_TO("copy_out");
	return put(stream, &j, fake_cuda_is_device(from, bytes) && is_pinned(to, bytes), one_out);
}

int fake_copy_within(cuda_ptr to, cuda_ptr from, size_t bytes, void *stream)
{
	struct job j = {.deed = COPY, .to = of_device(to), .from = of_device(from), .bytes = bytes};

	FAKE_ANSWER_TO("copy_within");
	return put(stream, &j,
		   fake_cuda_is_device(from, bytes) && fake_cuda_is_device(to, bytes) &&
		       (to + bytes <= from || from + bytes <= to),
		   NULL);
}

int fake_fill(cuda_ptr to, unsigned char byte, size_t bytes, void *stream)
{
	struct job j = {.deed = FILL, .to = of_device(to), .byte = byte, .bytes = bytes};

	FAKE_ANSWER_TO("fill");
	return put(stream, &j, fake_cuda_is_device(to, bytes), one_fill);
}
