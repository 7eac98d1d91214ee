/* SPDX-License-Identifier: Apache-2.0 */
/* The file is sparse and several times as large as the machine's memory.  Unused address space and
 * file offsets cost nothing, so blocks keep their size and offset forever and are never merged.
 * There are four size classes per power of two.
 *
 * Faulting in the pages of a block takes several times as long as filling them.  So free blocks
 * keep their pages ("warm" blocks), up to the larger of two limits.  One is ARENA_CACHE_BYTES.  The
 * other is the recent peak of live_bytes: warm blocks may fill the difference between this peak and
 * the blocks in use.  A repeated step thus finds all its pages, and the cache does not increase the
 * memory that a task needs.  Above the limit, the oldest warm blocks lose their pages ("cold"
 * blocks).  A new round, which measures the peak again, starts when the freed bytes reach
 * PEAK_ROUNDS times the peak.  A step with 512 MiB in use takes 56 ms; with a fixed limit of 256
 * MiB for warm blocks it takes 283 ms.
 *
 * The file is sealed against shrinking, so an importing task cannot lose mapped pages.  Importers
 * check the seal.  They get a read-only descriptor. */
#include "lib/tensor/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/mem.h"

enum {
	CLASSES_PER_POWER = 4,
	CLASSES = 64 * CLASSES_PER_POWER,
	MEMORY_MULTIPLE = 8,
	PEAK_ROUNDS = 8
};

/* The record of a free block.  It is separate, because the block may have no pages. */
struct block {
	char *at;
	struct block *next;
	/* only in warm blocks: */
	struct block *prev;
	struct block *newer, *older;
	unsigned class;
};

static struct {
	pthread_mutex_t lock; /* guards all but base, size and the descriptors */
	_Atomic bool started;
	int file, reader;
	char *base;
	size_t size, used;
	struct block *warm[CLASSES], *cold[CLASSES], *spare;
	struct block *newest, *oldest; /* warm blocks, by the time of arena_free */
	size_t live_bytes;             /* of blocks in use */
	size_t peak, next_peak;        /* of live_bytes: in the previous and in this round */
	uint64_t freed_bytes;          /* since the start of this round */
	_Atomic size_t cached_bytes;
} arena = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1, .reader = -1};

/* Returns the class of a size and the size of its blocks. */
static unsigned arena_class(size_t bytes, size_t *block)
{
	unsigned top = 63 - (unsigned)__builtin_clzl(bytes - 1); /* bytes in (2^top, 2^(top+1)] */
	size_t step = ((size_t)1 << top) / CLASSES_PER_POWER, n = (bytes + step - 1) / step;

	*block = n * step;
	return top * CLASSES_PER_POWER + (unsigned)(n - CLASSES_PER_POWER - 1);
}

static int create_file(struct mu_err *err)
{
	size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	size_t size = memory * MEMORY_MULTIPLE;
	char path[32];
	void *base;

	arena.file = memfd_create("muster-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (arena.file < 0 || ftruncate(arena.file, (off_t)size) ||
	    fcntl(arena.file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return mu_fail_errno(err, errno, "cannot create shared memory for tensors");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", arena.file);
	arena.reader = open(path, O_RDONLY | O_CLOEXEC);
	if (arena.reader < 0)
		return mu_fail_errno(err, errno, "cannot open shared memory for reading");
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, arena.file, 0);
	if (base == MAP_FAILED)
		return mu_fail_errno(err, errno, "cannot map shared memory for tensors");
	arena.base = base;
	arena.size = size;
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int arena_start(struct mu_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&arena.lock);
	if (!arena.started) {
		rc = create_file(err);
		if (rc) {
			close_fd(&arena.file);
			close_fd(&arena.reader);
		} else {
			atomic_store_explicit(&arena.started, true, memory_order_release);
		}
	}
	pthread_mutex_unlock(&arena.lock);
	return rc;
}

bool arena_started(void)
{
	return atomic_load_explicit(&arena.started, memory_order_acquire);
}

int arena_fd(void)
{
	return arena_started() ? arena.reader : -1;
}

size_t arena_cached_bytes(void)
{
	return atomic_load_explicit(&arena.cached_bytes, memory_order_relaxed);
}

static struct block *pop(struct block **list)
{
	struct block *b = *list;

	if (b)
		*list = b->next;
	return b;
}

static void arena_push(struct block **list, struct block *b)
{
	b->next = *list;
	*list = b;
}

static size_t size_of_class(unsigned k)
{
	return ((size_t)1 << k / CLASSES_PER_POWER) / CLASSES_PER_POWER *
	       (k % CLASSES_PER_POWER + CLASSES_PER_POWER + 1);
}

/* ---- warm blocks; the caller holds the lock ---- */

static void warm_add(struct block *b, unsigned k)
{
	b->class = k;
	b->prev = NULL;
	b->next = arena.warm[k];
	if (b->next)
		b->next->prev = b;
	arena.warm[k] = b;
	b->newer = NULL;
	b->older = arena.newest;
	*(b->older ? &b->older->newer : &arena.oldest) = b;
	arena.newest = b;
	atomic_fetch_add_explicit(&arena.cached_bytes, size_of_class(k), memory_order_relaxed);
}

static void warm_remove(struct block *b)
{
	if (b->next)
		b->next->prev = b->prev;
	*(b->prev ? &b->prev->next : &arena.warm[b->class]) = b->next;
	*(b->newer ? &b->newer->older : &arena.newest) = b->older;
	*(b->older ? &b->older->newer : &arena.oldest) = b->newer;
	atomic_fetch_sub_explicit(&arena.cached_bytes, size_of_class(b->class),
				  memory_order_relaxed);
}

/* Removes the warm blocks that must lose their pages, and returns them. */
static struct block *trim(void)
{
	size_t peak = arena.peak > arena.next_peak ? arena.peak : arena.next_peak;
	struct block *drop_list = NULL;

	while (arena_cached_bytes() > ARENA_CACHE_BYTES &&
	       arena.live_bytes + arena_cached_bytes() > peak) {
		struct block *b = arena.oldest;

		warm_remove(b);
		arena_push(&drop_list, b);
	}
	return drop_list;
}

/* The caller does not hold the lock, because this is slow; no other thread has the blocks. */
static void drop_pages(struct block *drop_list)
{
	while (drop_list) {
		struct block *b = pop(&drop_list);

		madvise(b->at, size_of_class(b->class), MADV_REMOVE);
		pthread_mutex_lock(&arena.lock);
		arena_push(&arena.cold[b->class], b);
		pthread_mutex_unlock(&arena.lock);
	}
}

static void count_freed(size_t size)
{
	size_t peak = arena.peak > ARENA_CACHE_BYTES ? arena.peak : ARENA_CACHE_BYTES;

	arena.live_bytes -= size;
	arena.freed_bytes += size;
	if (arena.freed_bytes / PEAK_ROUNDS < peak)
		return;
	arena.peak = arena.next_peak;
	arena.next_peak = arena.live_bytes;
	arena.freed_bytes = 0;
}

void *arena_alloc(size_t bytes)
{
	struct block *b, *drop_list = NULL;
	size_t size;
	unsigned k;
	void *p = NULL;

	if (bytes < ARENA_MIN_BYTES || !arena_started() || bytes > arena.size)
		return NULL;
	k = arena_class(bytes, &size);
	pthread_mutex_lock(&arena.lock);
	b = arena.warm[k];
	if (b)
		warm_remove(b);
	else
		b = pop(&arena.cold[k]);
	if (b) {
		p = b->at;
		arena_push(&arena.spare, b);
	} else if (size <= arena.size - arena.used) {
		p = arena.base + arena.used;
		arena.used += size;
	}
	if (p) {
		arena.live_bytes += size;
		if (arena.live_bytes > arena.next_peak)
			arena.next_peak = arena.live_bytes;
		drop_list = trim();
	}
	pthread_mutex_unlock(&arena.lock);
	drop_pages(drop_list);
	return p;
}

void arena_free(void *p, size_t bytes)
{
	struct block *b, *drop_list;
	size_t size;
	unsigned k = arena_class(bytes, &size);

	pthread_mutex_lock(&arena.lock);
	b = pop(&arena.spare);
	if (!b) /* the first use of this block */
		b = mu_xmalloc(sizeof(*b));
	b->at = p;
	count_freed(size);
	warm_add(b, k);
	drop_list = trim();
	pthread_mutex_unlock(&arena.lock);
	drop_pages(drop_list);
}

bool arena_offset(const void *p, uint64_t *offset)
{
	size_t at;

	if (!arena_started())
		return false;
	at = (size_t)((uintptr_t)p - (uintptr_t)arena.base);
	if (at >= arena.size)
		return false;
	*offset = at;
	return true;
}
