/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory of each thread. New memory of this size would cost a page fault for every 4 KiB in
 * each call. */
#include "task/kernels/engine/scratch.h"

#include <pthread.h>

#include "lib/base/mem.h"

enum { ALIGN = 64, UNIT = 64 << 10 };

struct scratch {
	void *memory;
	size_t size;
};
static _Thread_local struct scratch thread_scratch;
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void scratch_make_key(void)
{
	pthread_key_create(&exit_key, free);
}

void *scratch_get(size_t bytes)
{
	if (bytes > thread_scratch.size) {
		pthread_once(&once, scratch_make_key);
		thread_scratch.size = (bytes + UNIT - 1) / UNIT * UNIT;
		free(thread_scratch.memory);
		thread_scratch.memory = mu_xmalloc(thread_scratch.size + ALIGN);
		pthread_setspecific(exit_key, thread_scratch.memory);
	}
	return (char *)thread_scratch.memory + (-(uintptr_t)thread_scratch.memory & (ALIGN - 1));
}
