/* SPDX-License-Identifier: Apache-2.0 */
/* Entry hooks of -finstrument-functions, preloaded by tools/trace-functions.  They record the
 * functions that all threads enter (if TRACE_THREAD is not empty, only the thread that calls
 * TRACE_START) from the TRACE_NTH-th call of TRACE_START to the next call of TRACE_END, and write
 * their offsets in the program to TRACE_OUT. */
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 1 << 16 };

static _Atomic uintptr_t entered[SLOTS];
static _Atomic int calls;
static _Atomic enum { BEFORE, WITHIN, AFTER } state;
static uintptr_t base, start, end;
static int nth;
static bool one_thread;
static _Thread_local bool called_start;

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

static int read_base(struct dl_phdr_info *program, size_t size, void *arg)
{
	base = program->dlpi_addr;
	return 1; /* the first object is the program */
}

__attribute__((constructor)) static void read_options(void)
{
	char program[4096] = "";

	if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0 ||
	    strcmp(program, getenv("TRACE_PROGRAM")) != 0)
		return; /* another process of the command */
	dl_iterate_phdr(read_base, NULL);
	start = strtoull(getenv("TRACE_START"), NULL, 16);
	end = strtoull(getenv("TRACE_END"), NULL, 16);
	nth = atoi(getenv("TRACE_NTH"));
	one_thread = *getenv("TRACE_THREAD") != '\0';
}

static void write_offsets(void)
{
	FILE *f = fopen(getenv("TRACE_OUT"), "w");

	for (int i = 0; f && i < SLOTS; i++)
		if (entered[i])
			fprintf(f, "0x%lx\n", (unsigned long)entered[i]);
	if (f)
		fclose(f);
}

void __cyg_profile_func_enter(void *function, void *site)
{
	uintptr_t at = (uintptr_t)function - base, empty = 0;

	if (state == WITHIN && at == end) {
		state = AFTER;
		write_offsets();
	}
	if (at == start && atomic_fetch_add(&calls, 1) + 1 == nth) {
		called_start = true;
		state = WITHIN;
	}
	if (one_thread && !called_start)
		return;
	for (uintptr_t i = at % SLOTS; state == WITHIN; i = (i + 1) % SLOTS, empty = 0)
		if (atomic_compare_exchange_strong(&entered[i], &empty, at) || empty == at)
			return;
}

void __cyg_profile_func_exit(void *function, void *site)
{
}
