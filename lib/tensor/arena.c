/* SPDX-License-Identifier: Apache-2.0 */
/* The file is sparse and several times as large as the machine's memory: address space and file
 * offsets cost nothing until they are touched, so a block keeps its size and place for ever and
 * nothing is ever merged.  Sizes are rounded up to four steps a power of two.
 *
 * Getting a block's pages takes several times as long as filling them.  So ARENA_KEEP bytes of free
 * blocks keep theirs, those of which a step makes use: when there are more, the block that comes
 * back gives its pages away, unless there are others that nobody has wanted while STALE bytes came
 * and went.  (To give away the oldest in any case would have a step that needs somewhat more than
 * that get all of its pages anew each time.)
 *
 * The file is sealed against shrinking, which is what a borrower checks: its mapping cannot lose
 * its pages under it.  It gets a descriptor that was opened for reading. */
#include "lib/tensor/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/mem.h"

enum { STEPS = 4, CLASSES = 64 * STEPS, TIMES_MEMORY = 8 };
#define STALE ((uint64_t)8 * ARENA_KEEP)

/* A free block's record: the block itself may have no pages. */
struct block {
	char *at;
	struct block *next;
	/* with pages: */
	struct block *prev;
	struct block *newer, *older;
	uint64_t back; /* what `returned` was when it was given back */
	unsigned class;
};

static struct {
	pthread_mutex_t lock; /* guards all but base, size and the descriptors: a leaf */
	_Atomic bool started;
	int file, reader;
	char *base;
	size_t size, used;
	struct block *warm[CLASSES], *cold[CLASSES], *spare;
	struct block *newest, *oldest; /* of all the warm ones */
	uint64_t returned;             /* bytes, ever */
	_Atomic size_t kept;
} arena = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1, .reader = -1};

/* The class of a size and the size of its blocks. */
static unsigned class_of(size_t bytes, size_t *block)
{
	unsigned top = 63 - (unsigned)__builtin_clzl(bytes - 1); /* bytes in (2^top, 2^(top+1)] */
	size_t step = ((size_t)1 << top) / STEPS, n = (bytes + step - 1) / step;

	*block = n * step;
	return top * STEPS + (unsigned)(n - STEPS - 1);
}

static int make_file(struct mu_err *err)
{
	size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	size_t size = memory * TIMES_MEMORY;
	char path[32];
	void *base;

	arena.file = memfd_create("muster-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (arena.file < 0 || ftruncate(arena.file, (off_t)size) ||
	    fcntl(arena.file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return mu_fail_errno(err, errno, "cannot make shared memory for tensors");
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
		rc = make_file(err);
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

size_t arena_kept(void)
{
	return atomic_load_explicit(&arena.kept, memory_order_relaxed);
}

static struct block *pop(struct block **list)
{
	struct block *b = *list;

	if (b)
		*list = b->next;
	return b;
}

static void push(struct block **list, struct block *b)
{
	b->next = *list;
	*list = b;
}

static size_t size_of_class(unsigned k)
{
	return ((size_t)1 << k / STEPS) / STEPS * (k % STEPS + STEPS + 1);
}

/* ---- blocks with pages; with the lock ---- */

static void warm_add(struct block *b, unsigned k)
{
	b->class = k;
	b->back = arena.returned;
	b->prev = NULL;
	b->next = arena.warm[k];
	if (b->next)
		b->next->prev = b;
	arena.warm[k] = b;
	b->newer = NULL;
	b->older = arena.newest;
	*(b->older ? &b->older->newer : &arena.oldest) = b;
	arena.newest = b;
	atomic_fetch_add_explicit(&arena.kept, size_of_class(k), memory_order_relaxed);
}

static void warm_remove(struct block *b)
{
	if (b->next)
		b->next->prev = b->prev;
	*(b->prev ? &b->prev->next : &arena.warm[b->class]) = b->next;
	*(b->newer ? &b->newer->older : &arena.newest) = b->older;
	*(b->older ? &b->older->newer : &arena.oldest) = b->newer;
	atomic_fetch_sub_explicit(&arena.kept, size_of_class(b->class), memory_order_relaxed);
}

/* Takes b back.  Returns blocks that have to give their pages away so that its `size` bytes can be
 * kept: b itself, when there are not enough that nobody wants. */
static struct block *take_back(struct block *b, unsigned k, size_t size)
{
	struct block *away = NULL, *o = arena.oldest;
	size_t room = ARENA_KEEP - arena_kept();

	for (; o && room < size && arena.returned - o->back > STALE; o = o->newer)
		room += size_of_class(o->class);
	if (room < size) {
		b->class = k;
		b->next = NULL;
		return b;
	}
	while (arena_kept() + size > ARENA_KEEP) {
		o = arena.oldest;
		warm_remove(o);
		push(&away, o);
	}
	warm_add(b, k);
	return away;
}

void *arena_alloc(size_t bytes)
{
	struct block *b;
	size_t size;
	unsigned k;
	void *p = NULL;

	if (bytes < ARENA_LEAST || !arena_started() || bytes > arena.size)
		return NULL;
	k = class_of(bytes, &size);
	pthread_mutex_lock(&arena.lock);
	b = arena.warm[k];
	if (b)
		warm_remove(b);
	else
		b = pop(&arena.cold[k]);
	if (b) {
		p = b->at;
		push(&arena.spare, b);
	} else if (size <= arena.size - arena.used) {
		p = arena.base + arena.used;
		arena.used += size;
	}
	pthread_mutex_unlock(&arena.lock);
	return p;
}

void arena_free(void *p, size_t bytes)
{
	struct block *b, *away;
	size_t size;
	unsigned k = class_of(bytes, &size);

	pthread_mutex_lock(&arena.lock);
	b = pop(&arena.spare);
	if (!b) /* this block's first time */
		b = mu_xmalloc(sizeof(*b));
	b->at = p;
	arena.returned += size;
	away = take_back(b, k, size);
	pthread_mutex_unlock(&arena.lock);
	while (away) {
		b = pop(&away);
		/* outside the lock: it may take a while; nobody has the block */
		madvise(b->at, size_of_class(b->class), MADV_REMOVE);
		pthread_mutex_lock(&arena.lock);
		push(&arena.cold[b->class], b);
		pthread_mutex_unlock(&arena.lock);
	}
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
