/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: the same draws as on the CPU (philox.h, random.c), one group per thread.  Uniform
 * numbers are bit-identical.  Normal numbers use the device's logarithm and sine. */
#ifndef MU_TASK_KERNELS_RANDOM_RANDOM_CU_H
#define MU_TASK_KERNELS_RANDOM_RANDOM_CU_H

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

/* The four draws at a->counter + skip. */
DEVICE void draw_at(const struct random_args *a, uint64_t skip, uint32_t *out)
{
	uint64_t from = a->counter[0] | (uint64_t)a->counter[1] << 32, low = from + skip;
	uint64_t high = (a->counter[2] | (uint64_t)a->counter[3] << 32) + (low < from);
	uint32_t x0 = (uint32_t)low, x1 = (uint32_t)(low >> 32), x2 = (uint32_t)high,
		 x3 = (uint32_t)(high >> 32), k0 = a->key[0], k1 = a->key[1];

	for (int round = 0; round < 10; round++) {
		uint64_t x = (uint64_t)0xd2511f53u * x0, y = (uint64_t)0xcd9e8d57u * x2;
		x0 = (uint32_t)(y >> 32) ^ x1 ^ k0;
		x2 = (uint32_t)(x >> 32) ^ x3 ^ k1;
		x1 = (uint32_t)y;
		x3 = (uint32_t)x;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	out[0] = x0;
	out[1] = x1;
	out[2] = x2;
	out[3] = x3;
}

DEVICE float unit_f32(uint32_t x)
{
	return float_of(0x3f800000u | (x & 0x7fffff)) - 1.0f;
}

DEVICE double unit_f64(uint32_t high, uint32_t low)
{
	return (double)((uint64_t)(high & 0xfffff) << 32 | low) * 2.220446049250313e-16; /* 2^-52 */
}

DEVICE void uniform_of_f32(const uint32_t *x, float *out)
{
	for (int i = 0; i < 4; i++)
		out[i] = unit_f32(x[i]);
}

DEVICE void uniform_of_f64(const uint32_t *x, double *out)
{
	out[0] = unit_f64(x[0], x[1]);
	out[1] = unit_f64(x[2], x[3]);
}

DEVICE void normal_of_f32(const uint32_t *x, float *out)
{
	for (int i = 0; i < 4; i += 2) {
		float u = unit_f32(x[i]);
		float angle = (float)(6.283185307179586 * (double)unit_f32(x[i + 1]));
		float r = sqrt(-2.0f * log(u < 1e-7f ? 1e-7f : u));
		out[i] = sin(angle) * r;
		out[i + 1] = cos(angle) * r;
	}
}

DEVICE void normal_of_f64(const uint32_t *x, double *out)
{
	double u = unit_f64(x[0], x[1]), angle = 6.283185307179586 * unit_f64(x[2], x[3]);
	double r = sqrt(-2.0 * log(u < 1e-7 ? 1e-7 : u));

	out[0] = sin(angle) * r;
	out[1] = cos(angle) * r;
}

#define PUT_GROUP(t, made, have)                                                                   \
	for (int k = 0; k < (have); k++)                                                           \
		if (group * (have) + k < a.n)                                                      \
			PUT(t, a.out, group *(have) + k, made[k]);
#define DRAW_KERNEL(how, t, size)                                                                  \
	KERNEL(how##_##t, random_args)                                                             \
	{                                                                                          \
		EACH(group, (a.n + size - 1) / size)                                               \
		{                                                                                  \
			uint32_t x[4];                                                             \
			C(t) made[size];                                                           \
			draw_at(&a, (uint64_t)group, x);                                           \
			how##_of_##t(x, made);                                                     \
			PUT_GROUP(t, made, size)                                                   \
		}                                                                                  \
	}
#define DRAW_KERNELS(t, size)                                                                      \
	DRAW_KERNEL(uniform, t, size)                                                              \
	DRAW_KERNEL(normal, t, size)                                                               \
	/* draws until there are enough within two standard deviations */                          \
	KERNEL(truncated_##t, random_args)                                                         \
	{                                                                                          \
		EACH(group, (a.n + size - 1) / size)                                               \
		{                                                                                  \
			C(t) made[size], some[size];                                               \
			uint64_t at = (uint64_t)group * (uint64_t)a.each;                          \
			for (int have = 0; have < size; at++) {                                    \
				uint32_t x[4];                                                     \
				draw_at(&a, at, x);                                                \
				normal_of_##t(x, some);                                            \
				for (int k = 0; k < size && have < size; k++)                      \
					if (fabs(some[k]) < 2)                                     \
						made[have++] = some[k];                            \
			}                                                                          \
			PUT_GROUP(t, made, size)                                                   \
		}                                                                                  \
	}
DRAW_KERNELS(f32, 4)
DRAW_KERNELS(f64, 2)

#define WHOLE_KERNEL(bits, size)                                                                   \
	KERNEL(whole_##bits, random_args)                                                          \
	{                                                                                          \
		EACH(group, (a.n + size - 1) / size)                                               \
		{                                                                                  \
			uint32_t x[4];                                                             \
			draw_at(&a, (uint64_t)group, x);                                           \
			for (int k = 0; k < size && group * size + k < a.n; k++) {                 \
				uint64_t drawn =                                                   \
				    size == 4 ? x[k]                                               \
					      : x[2 * k % 4] | (uint64_t)x[(2 * k + 1) % 4] << 32; \
				PTR(uint##bits##_t, a.out)                                         \
				[group * size + k] =                                               \
				    (uint##bits##_t)(a.span ? a.low + drawn % a.span : drawn);     \
			}                                                                          \
		}                                                                                  \
	}
WHOLE_KERNEL(32, 4)
WHOLE_KERNEL(64, 2)

#endif
