/* SPDX-License-Identifier: Apache-2.0 */
/* Element types of kernels: `t` is one of f32 f64 f16 bf16 i64 u8. C(t) is the type of the
 * arithmetic, S(t) the type in memory. */
#ifndef MU_TASK_KERNELS_ENGINE_CUDA_TYPES_H
#define MU_TASK_KERNELS_ENGINE_CUDA_TYPES_H

#include "task/kernels/engine/cuda/device_macros.h"

#define C(t) compute_##t
#define S(t) stored_##t
typedef float compute_f32, stored_f32, compute_f16, compute_bf16;
typedef double compute_f64, stored_f64;
typedef uint16_t stored_f16, stored_bf16;
typedef int64_t compute_i64, stored_i64;
typedef int32_t compute_i32, stored_i32;
typedef uint8_t compute_u8, stored_u8; /* bool, too */

DEVICE uint32_t bits_of(float f)
{
#ifdef __CUDACC__
	return __float_as_uint(f);
#else
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return u;
#endif
}

DEVICE float float_of(uint32_t u)
{
#ifdef __CUDACC__
	return __uint_as_float(u);
#else
	float f;
	memcpy(&f, &u, sizeof f);
	return f;
#endif
}

/* The same roundings as half.h: to nearest, ties to even. */
DEVICE float get_bf16(stored_bf16 h)
{
	return float_of((uint32_t)h << 16);
}

DEVICE stored_bf16 put_bf16(float f)
{
	uint32_t u = bits_of(f);

	return f != f ? (stored_bf16)0x7fc0 : (stored_bf16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

DEVICE float get_f16(stored_f16 h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, m = h & 0x3ff;

	if (exponent == 31)
		return float_of(sign | 0x7f800000u | m << 13);
	if (exponent)
		return float_of(sign | (exponent + 112) << 23 | m << 13);
	float tiny = (float)m * 5.9604644775390625e-8f;
	return sign ? -tiny : tiny;
}

DEVICE stored_f16 put_f16(float f)
{
	uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, rest = u & 0x7fffffffu;

	if (rest > 0x7f800000u)
		return (stored_f16)(sign | 0x7e00);
	if (rest >= 0x477ff000u)
		return (stored_f16)(sign | 0x7c00);
	if (rest < 0x38800000u) {
		float shifted = float_of(rest) + 0.5f;
		return (stored_f16)(sign | (bits_of(shifted) - 0x3f000000u));
	}
	rest += 0xc8000fffu + (rest >> 13 & 1);
	return (stored_f16)(sign | rest >> 13);
}

#define get_f32(x) (x)
#define put_f32(x) ((float)(x))
#define get_f64(x) (x)
#define put_f64(x) ((double)(x))
#define get_i64(x) (x)
#define put_i64(x) ((int64_t)(x))
#define get_i32(x) (x)
#define put_i32(x) ((int32_t)(x))
#define get_u8(x)  (x)
#define put_u8(x)  ((uint8_t)(x))

typedef uint8_t stored_w8;
typedef uint16_t stored_w16;
typedef uint32_t stored_w32;
typedef uint64_t stored_w64;
/* Moves an element of this many bits. */
#define MOVE(bits, to, i, from, j) (PTR(S(w##bits), to)[i] = PTR(const S(w##bits), from)[j])
#define ZERO(bits, to, i)          (PTR(S(w##bits), to)[i] = 0)

#define GET(t, address, i)    get_##t(PTR(const S(t), address)[i])
#define PUT(t, address, i, v) (PTR(S(t), address)[i] = put_##t(v))

/* x / y for x, y >= 0; in 32 bits if both fit, because that is much faster. */
DEVICE int64_t index_div(int64_t x, int64_t y)
{
	return (x | y) <= UINT32_MAX ? (int64_t)((uint32_t)x / (uint32_t)y) : x / y;
}

#define EACH_FLT(X, ...)                                                                           \
	X(f32, ##__VA_ARGS__) X(f64, ##__VA_ARGS__) X(f16, ##__VA_ARGS__) X(bf16, ##__VA_ARGS__)
#define EACH_LIB(X, ...)
#define EACH_INT(X, ...) X(i64, ##__VA_ARGS__)
#define EACH_NUM(X, ...) EACH_FLT(X, ##__VA_ARGS__) EACH_INT(X, ##__VA_ARGS__)
#define EACH_ARI(X, ...) EACH_NUM(X, ##__VA_ARGS__) /* complex numbers stay on the host */
#define EACH_EQ(X, ...)  EACH_NUM(X, ##__VA_ARGS__) X(u8, ##__VA_ARGS__)
/* By the width of elements in bits, for kernels that only move them. */
#define EACH_WIDTH(X) X(8) X(16) X(32) X(64)

#endif
