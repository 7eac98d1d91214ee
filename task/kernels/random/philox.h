/* SPDX-License-Identifier: Apache-2.0 */
/* The counter-based generator Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", 2011), with TensorFlow's layout of counter and key, so that a seed gives the same
 * numbers. */
#ifndef MU_TASK_KERNELS_RANDOM_PHILOX_H
#define MU_TASK_KERNELS_RANDOM_PHILOX_H

#include <stdint.h>
#include <string.h>

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

/* Skips n groups of four numbers. */
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

/* ---- numbers in [0, 1): random fraction bits with exponent 0, minus one ---- */

static inline float philox_float(uint32_t x)
{
	uint32_t bits = 0x3f800000u | (x & 0x7fffff);
	float f;

	memcpy(&f, &bits, sizeof f);
	return f - 1.0f;
}

static inline double philox_double(uint32_t high, uint32_t low)
{
	uint64_t bits = 0x3ff0000000000000u | (uint64_t)(high & 0xfffff) << 32 | low;
	double d;

	memcpy(&d, &bits, sizeof d);
	return d - 1.0;
}

/* ---- streams of single numbers ---- */

struct philox_stream {
	struct philox from;
	uint32_t x[4];
	int left; /* unused numbers at the end of x */
};

static inline uint32_t philox_32(struct philox_stream *s)
{
	if (!s->left) {
		philox_next(&s->from, s->x);
		s->left = 4;
	}
	return s->x[4 - s->left--];
}

static inline uint64_t philox_64(struct philox_stream *s)
{
	uint32_t low = philox_32(s);

	return low | (uint64_t)philox_32(s) << 32;
}

static inline double philox_unit(struct philox_stream *s)
{
	uint32_t high = philox_32(s);

	return philox_double(high, philox_32(s));
}

/* philox_below_32 and philox_below_64: a uniform number in 0 … n-1.  Draws that would favour small
 * numbers are rejected. */
#define PHILOX_BELOW(bits)                                                                         \
	static inline uint##bits##_t philox_below_##bits(struct philox_stream *s,                  \
							 uint##bits##_t n)                         \
	{                                                                                          \
		uint##bits##_t x = philox_##bits(s);                                               \
                                                                                                   \
		if (n & (n - 1))                                                                   \
			while (x < UINT##bits##_MAX % n + 1)                                       \
				x = philox_##bits(s);                                              \
		return x % n;                                                                      \
	}
PHILOX_BELOW(32)
PHILOX_BELOW(64)
#undef PHILOX_BELOW

#endif
