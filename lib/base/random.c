/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/random.h"

#include <sys/random.h>
#include <time.h>

uint64_t mu_mix_bits(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* splitmix64 with one state per thread, seeded by the kernel, to avoid a system call per step. */
uint64_t mu_random_u64(void)
{
	static _Thread_local uint64_t state;
	uint64_t z;

	do {
		if (!state && getrandom(&state, sizeof(state), 0) != sizeof(state))
			state = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15u ^ (uintptr_t)&state;
		z = mu_mix_bits(state += 0x9e3779b97f4a7c15u);
	} while (z == 0);
	return z;
}
