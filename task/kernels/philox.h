/* SPDX-License-Identifier: Apache-2.0 */
/* The counter-based generator Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", 2011), laid out as TensorFlow lays it out so that a seed gives the same numbers. */
#ifndef MU_TASK_KERNELS_PHILOX_H
#define MU_TASK_KERNELS_PHILOX_H

#include <stdint.h>

struct philox {
	uint32_t counter[4], key[2];
};

static inline struct philox philox_seeded(uint64_t seed, uint64_t seed2)
{
	return (struct philox){
	    .counter = {0, 0, (uint32_t)seed2, (uint32_t)(seed2 >> 32)},
	    .key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
	};
}

/* Moves on by n draws of four numbers. */
static inline void philox_skip(struct philox *p, uint64_t n)
{
	uint64_t low = p->counter[0] | (uint64_t)p->counter[1] << 32;
	uint64_t high = p->counter[2] | (uint64_t)p->counter[3] << 32;

	high += __builtin_add_overflow(low, n, &low);
	p->counter[0] = (uint32_t)low;
	p->counter[1] = (uint32_t)(low >> 32);
	p->counter[2] = (uint32_t)high;
	p->counter[3] = (uint32_t)(high >> 32);
}

static inline void philox_next(struct philox *p, uint32_t out[4])
{
	uint32_t a = p->counter[0], b = p->counter[1], c = p->counter[2], d = p->counter[3];
	uint32_t k0 = p->key[0], k1 = p->key[1];

	for (int round = 0; round < 10; round++) {
		uint64_t x = (uint64_t)0xd2511f53u * a, y = (uint64_t)0xcd9e8d57u * c;
		uint32_t na = (uint32_t)(y >> 32) ^ b ^ k0, nc = (uint32_t)(x >> 32) ^ d ^ k1;
		b = (uint32_t)y;
		d = (uint32_t)x;
		a = na;
		c = nc;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	out[0] = a;
	out[1] = b;
	out[2] = c;
	out[3] = d;
	philox_skip(p, 1);
}

#endif
