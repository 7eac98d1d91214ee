/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for ids, names and jitter; not for keys. */
#ifndef MU_LIB_BASE_RANDOM_H
#define MU_LIB_BASE_RANDOM_H

#include <stdint.h>

uint64_t mu_random_u64(void); /* never 0 */
/* The finalizer of splitmix64: each bit of the result depends on all bits of z. */
static inline uint64_t mu_mix_bits(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

#endif
