/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the expressions of engine/loops/loops.def call, for the types of types.h: one
 * name for all types, by overloading in C++ and by _Generic in C. */
#ifndef MU_TASK_KERNELS_ENGINE_CUDA_MATH_H
#define MU_TASK_KERNELS_ENGINE_CUDA_MATH_H

#include "task/kernels/engine/cuda/types.h"

#ifdef __cplusplus
#define NAMED(f, t) f
#else
#define NAMED(f, t) f##_of_##t
#define BY(f, x, y)                                                                                \
	_Generic((x), float : f##_of_f32, double : f##_of_f64, default : f##_of_i64)(x, y)
#define quotient(x, y)  BY(quotient, x, y)
#define trunc_div(x, y) BY(trunc_div, x, y)
#define trunc_mod(x, y) BY(trunc_mod, x, y)
#define floor_div(x, y) BY(floor_div, x, y)
#define floor_mod(x, y) BY(floor_mod, x, y)
#define power(x, y)     BY(power, x, y)
#define nearest(x)                                                                                 \
	_Generic((x), float : nearest_of_f32, double : nearest_of_f64, default : nearest_of_i64)(x)
#endif

#define exp_of(x)     exp(x)
#define expm1_of(x)   expm1(x)
#define tanh_of(x)    tanh(x)
#define erf_of(x)     erf(x)
#define sign_of(x)    ((x) != (x) ? (x) : (T)(((x) > 0) - ((x) < 0)))
#define larger(x, y)  ((x) < (y) || (y) != (y) ? (y) : (x))
#define smaller(x, y) ((y) < (x) || (y) != (y) ? (y) : (x))
#define shift_by(T, y)                                                                             \
	((y) < 0 ? 0 : (y) >= (T)(sizeof(T) * 8) ? (int)(sizeof(T) * 8) - 1 : (int)(y))

#define FLT_FUNCTIONS(t, T)                                                                        \
	DEVICE T NAMED(quotient, t)(T x, T y)                                                      \
	{                                                                                          \
		return x / y;                                                                      \
	}                                                                                          \
	DEVICE T NAMED(trunc_div, t)(T x, T y)                                                     \
	{                                                                                          \
		return trunc(x / y);                                                               \
	}                                                                                          \
	DEVICE T NAMED(nearest, t)(T x)                                                            \
	{                                                                                          \
		return rint(x);                                                                    \
	}                                                                                          \
	DEVICE T NAMED(trunc_mod, t)(T x, T y)                                                     \
	{                                                                                          \
		return fmod(x, y);                                                                 \
	}                                                                                          \
	DEVICE T NAMED(floor_div, t)(T x, T y)                                                     \
	{                                                                                          \
		return floor(x / y);                                                               \
	}                                                                                          \
	DEVICE T NAMED(floor_mod, t)(T x, T y)                                                     \
	{                                                                                          \
		T r = fmod(x, y);                                                                  \
		return r != 0 && (r < 0) != (y < 0) ? r + y : r;                                   \
	}                                                                                          \
	DEVICE T NAMED(power, t)(T x, T y)                                                         \
	{                                                                                          \
		return pow(x, y);                                                                  \
	}
FLT_FUNCTIONS(f32, float)
FLT_FUNCTIONS(f64, double)

/* Division by zero gives 0: the host cannot check the divisors first, as the CPU kernels do. */
DEVICE int64_t NAMED(quotient, i64)(int64_t x, int64_t y)
{
	return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}
DEVICE int64_t NAMED(trunc_div, i64)(int64_t x, int64_t y)
{
	return quotient(x, y);
}
DEVICE int64_t NAMED(nearest, i64)(int64_t x)
{
	return x;
}
DEVICE int64_t NAMED(trunc_mod, i64)(int64_t x, int64_t y)
{
	return y == 0 || y == -1 ? 0 : x % y;
}
DEVICE int64_t NAMED(floor_div, i64)(int64_t x, int64_t y)
{
	int64_t q = quotient(x, y);

	return trunc_mod(x, y) != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}
DEVICE int64_t NAMED(floor_mod, i64)(int64_t x, int64_t y)
{
	int64_t r = trunc_mod(x, y);

	return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
DEVICE int64_t NAMED(power, i64)(int64_t x, int64_t y)
{
	uint64_t r = 1, b = (uint64_t)x;

	for (; y > 0; y >>= 1, b *= b)
		if (y & 1)
			r *= b;
	return (int64_t)r;
}

#endif
