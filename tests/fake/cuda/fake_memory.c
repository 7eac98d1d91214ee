/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory and copies. A device address is never a host address
 * (device_macros.h), so a mix-up crashes. */
#include "tests/fake/cuda/fake_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "task/kernels/engine/cuda/device_macros.h"

enum { HEAD = 256 };

struct block { /* header before the allocated memory */
	struct block *next;
	size_t size;
	int device;
	bool freed; /* freed by the host; its stream has not yet */
};

static struct block *blocks;
/* By device: bytes that are allocated, and bytes that the pool has taken from the device. */
static size_t used[FAKE_MAX_DEVICES], reserved[FAKE_MAX_DEVICES];

static cuda_ptr address_of(const struct block *b)
{
	return ((cuda_ptr)(uintptr_t)b + HEAD) | HOST_DEVICE_BIT;
}

static char *of_device(cuda_ptr at)
{
	return (char *)(uintptr_t)(at & ~HOST_DEVICE_BIT);
}

bool fake_cuda_is_device(cuda_ptr at, size_t bytes)
{
	bool is = false;

	pthread_mutex_lock(&fake_lock);
	for (const struct block *b = blocks; b && !is; b = b->next)
		is = !b->freed && b->device == fake_current() && at >= address_of(b) &&
		     bytes <= b->size && at - address_of(b) <= b->size - bytes;
	pthread_mutex_unlock(&fake_lock);
	return is;
}

int fake_memory_info(size_t *free_bytes, size_t *total)
{
	FAKE_ANSWER_TO("memory_info");
	pthread_mutex_lock(&fake_lock);
	*total = fake_cuda.memory;
	*free_bytes = fake_cuda.memory - reserved[fake_current()];
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_device_pool(void **pool, int device)
{
	*pool = &reserved[device];
	return 0;
}

int fake_pool_set(void *pool, int attribute, void *value)
{
	return attribute == CUDA_POOL_RELEASE_THRESHOLD ? 0 : INVALID_VALUE;
}

/* Called with the lock. */
static void reserve(int device, size_t bytes)
{
	fake_counts.device_bytes += bytes - reserved[device];
	reserved[device] = bytes;
	if (fake_counts.device_bytes > fake_counts.most_bytes)
		fake_counts.most_bytes = fake_counts.device_bytes;
}

int fake_memory_alloc(cuda_ptr *at, size_t bytes, void *stream)
{
	const int device = fake_current();
	struct block *b;

	FAKE_ANSWER_TO("memory_alloc");
	if (!bytes)
		return INVALID_VALUE;
	if (!fake_stream_is_here(stream))
		return INVALID_HANDLE;
	pthread_mutex_lock(&fake_lock);
	b = used[device] + bytes <= fake_cuda.memory
		? aligned_alloc(HEAD, HEAD + (bytes + HEAD - 1) / HEAD * HEAD)
		: NULL;
	if (b) {
		*b = (struct block){blocks, bytes, device, false};
		blocks = b;
		used[device] += bytes;
		if (used[device] > reserved[device]) {
			fake_counts.allocations++;
			reserve(device, used[device]);
		}
		memset((char *)b + HEAD, 0xa5, bytes); /* never zero by accident */
		*at = address_of(b);
	}
	pthread_mutex_unlock(&fake_lock);
	return b ? 0 : CUDA_NO_MEMORY;
}

int fake_memory_free(cuda_ptr at, void *stream)
{
	struct block *b;

	if (!fake_stream_is_here(stream))
		return INVALID_HANDLE;
	pthread_mutex_lock(&fake_lock);
	for (b = blocks; b && (b->freed || address_of(b) != at);)
		b = b->next;
	if (b) {
		b->freed = true;
		used[b->device] -= b->size;
		fake_append(stream, &(struct job){.deed = FREE, .to = b}, NULL, 0);
	}
	pthread_mutex_unlock(&fake_lock);
	return b ? 0 : INVALID_VALUE;
}

void fake_block_free(void *block)
{
	struct block **link = &blocks;

	pthread_mutex_lock(&fake_lock);
	while (*link != block)
		link = &(*link)->next;
	*link = (*link)->next;
	pthread_mutex_unlock(&fake_lock);
	free(block);
}

/* A context that is destroyed after a fault takes its memory with it. */
void fake_pool_release(int device)
{
	for (struct block *b = blocks; b && fake_has_fault(device); b = b->next)
		b->freed |= b->device == device;
	if (fake_has_fault(device))
		used[device] = 0;
	reserve(device, used[device]);
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

/* A copy of pageable memory blocks. */
static int put_and_wait(struct stream *s, const struct job *like, bool possible,
			void (*count)(struct fake_cuda_counts *c))
{
	int result = put(s, like, possible, count);

	pthread_mutex_lock(&fake_lock);
	while (!result && (s->first || s->current))
		pthread_cond_wait(&fake_news, &fake_lock);
	pthread_mutex_unlock(&fake_lock);
	return result;
}

int fake_copy_in(cuda_ptr to, const void *from, size_t bytes, void *stream)
{
	struct job j = {.deed = COPY, .to = of_device(to), .from = from, .bytes = bytes};

	FAKE_ANSWER_TO("copy_in");
	return put_and_wait(stream, &j, fake_cuda_is_device(to, bytes), one_in);
}

int fake_copy_out(void *to, cuda_ptr from, size_t bytes, void *stream)
{
	struct job j = {.deed = COPY, .to = to, .from = of_device(from), .bytes = bytes};

	FAKE_ANSWER_TO("copy_out");
	return put_and_wait(stream, &j, fake_cuda_is_device(from, bytes), one_out);
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
