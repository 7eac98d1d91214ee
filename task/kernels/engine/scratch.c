/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory of each thread. Fresh memory of this size would cost a page fault for every 4 KiB,
 * each time. */
#include "task/kernels/engine/scratch.h"

#include <pthread.h>

#include "lib/base/mem.h"

enum { ALIGN = 64, UNIT = 64 << 10 };

struct scratch {
	void *memory;
	size_t size;
};
static _Thread_local struct scratch mine;
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void scratch_make_key(void)
{
	pthread_key_create(&at_exit, free);
}

void *scratch_get(size_t bytes)
{
	if (bytes > mine.size) {
		pthread_once(&once, scratch_make_key);
		mine.size = (bytes + UNIT - 1) / UNIT * UNIT;
		free(mine.memory);
		mine.memory = mu_xmalloc(mine.size + ALIGN);
		pthread_setspecific(at_exit, mine.memory);
	}
	return (char *)mine.memory + (-(uintptr_t)mine.memory & (ALIGN - 1));
}
