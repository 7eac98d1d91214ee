/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels as C functions, and the simulation of GPU threads.
 *
 * The threads of a synchronising kernel are coroutines on one host thread, each with its own stack.
 * SYNC switches to the next coroutine; when all have reached it the next round begins. The threads
 * of a GPU run in any order. So the order here is reversed with every round and every launch, and a
 * missing SYNC gives a wrong result in one of the orders.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "task/kernels/engine/cuda/device_macros.h"
#include "tests/fake/cuda/fake_cuda.h"

_Thread_local struct host_dim threadIdx, blockIdx, blockDim, gridDim;

enum { MAX_THREADS = 1024, STACK = 32 << 10 };

static struct host_kernel *kernels;
static _Thread_local const struct host_kernel *running;
static _Thread_local bool backwards; /* order of this launch */

static unsigned nth(unsigned i, unsigned n, bool reverse)
{
	return reverse ? n - 1 - i : i;
}

void host_kernel_add(const char *name, void (*call)(const void *args), size_t size, int meets)
{
	struct host_kernel *k = calloc(1, sizeof *k);

	*k = (struct host_kernel){kernels, name, call, size, meets};
	kernels = k;
}

const struct host_kernel *host_kernel_find(const char *name)
{
	const struct host_kernel *k = kernels;

	while (k && strcmp(k->name, name) != 0)
		k = k->next;
	return k;
}

void fake_cuda_each_kernel(void (*fn)(void *arg, const char *name), void *arg)
{
	for (const struct host_kernel *k = kernels; k; k = k->next)
		fn(arg, k->name);
}

_Noreturn void host_address_fault(uint64_t address, size_t align)
{
	const struct host_kernel *k = running;

	fprintf(stderr, "kernel %s: 0x%llx is %s\n", k ? k->name : "?", (unsigned long long)address,
		address & HOST_DEVICE_BIT ? "not aligned for what is read or written there"
					  : "no address of a device");
	(void)align;
	abort();
}

/* ---- synchronising threads ---- */

struct coroutine {
	ucontext_t context;
	char *stack;
	bool over;
};
struct coroutines {
	ucontext_t main;
	struct coroutine each[MAX_THREADS];
	unsigned current;
	const struct host_kernel *kernel;
	const void *args;
};
static _Thread_local struct coroutines *coroutines;

/* It never returns, so it must not be instrumented by ThreadSanitizer, which counts calls and
 * returns. */
__attribute__((no_sanitize("thread"))) static void coroutine_main(void)
{
	coroutines->kernel->call(coroutines->args);
	coroutines->each[coroutines->current].over = true;
	swapcontext(&coroutines->each[coroutines->current].context, &coroutines->main);
}

void host_sync(void)
{
	swapcontext(&coroutines->each[coroutines->current].context, &coroutines->main);
}

static void coroutine_start(struct coroutine *t)
{
	if (!t->stack)
		t->stack = malloc(STACK);
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = STACK;
	t->context.uc_link = &coroutines->main;
	t->over = false;
	makecontext(&t->context, coroutine_main, 0);
}

static void run_with_barriers(const struct host_kernel *k, unsigned threads, const void *args)
{
	if (!coroutines)
		coroutines = calloc(1, sizeof *coroutines);
	coroutines->kernel = k;
	coroutines->args = args;
	for (unsigned i = 0; i < threads; i++)
		coroutine_start(&coroutines->each[i]);
	for (unsigned round = 0, over = 0; over == 0; round++) {
		for (unsigned i = 0; i < threads; i++) {
			unsigned at = nth(i, threads, backwards ^ (round & 1));
			coroutines->current = threadIdx.x = at;
			swapcontext(&coroutines->main, &coroutines->each[at].context);
			over += coroutines->each[at].over;
		}
		if (over && over < threads) {
			fprintf(stderr, "kernel %s: %u of %u threads end where the others meet\n",
				k->name, over, threads);
			abort();
		}
	}
}

void host_kernels_thread_ends(void)
{
	for (unsigned i = 0; coroutines && i < MAX_THREADS; i++)
		free(coroutines->each[i].stack);
	free(coroutines);
	coroutines = NULL;
}

void host_kernel_run(const struct host_kernel *k, unsigned blocks, unsigned threads,
		     const void *args)
{
	running = k;
	backwards = !backwards;
	gridDim.x = blocks;
	blockDim.x = threads;
	for (unsigned b = 0; b < blocks; b++) {
		blockIdx.x = nth(b, blocks, backwards);
		if (k->meets) {
			run_with_barriers(k, threads, args);
			continue;
		}
		for (unsigned i = 0; i < threads; i++) {
			threadIdx.x = nth(i, threads, backwards);
			k->call(args);
		}
	}
}
