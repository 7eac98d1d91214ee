/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of single precision without branches or library calls, so that loops over them become
 * vector code; accurate to about two units in the last place.  Doubles use the library. */
#ifndef MU_TASK_KERNELS_ENGINE_LOOPS_MATH_H
#define MU_TASK_KERNELS_ENGINE_LOOPS_MATH_H

#include <math.h>
#include <stdint.h>

/* e^r on [-ln2/2, ln2/2]: a Taylor polynomial. */
static inline float exp_near_0_float(float r)
{
	float p = 1.9841270e-4f;
	p = p * r + 1.3888889e-3f;
	p = p * r + 8.3333333e-3f;
	p = p * r + 4.1666667e-2f;
	p = p * r + 1.6666667e-1f;
	p = p * r + 5.0e-1f;
	return p * r * r + r + 1;
}

/* e^x = 2^n e^r with x = n ln 2 + r and r near 0. */
static inline float exp_float(float x)
{
	const float round = 12582912; /* 1.5 * 2^23: adding it rounds to an integer */
	float c = x > 88.72283f ? 88.72283f : x < -103.97208f ? -103.97208f : x;
	float n = (c * 1.44269504088896341f + round) - round;
	float r = c - n * 0.693359375f + n * 2.12194440e-4f;
	float p = exp_near_0_float(r);
	/* 2^n in two factors: n is from -150 to 128, more than one exponent field holds. */
	int32_t whole = (int32_t)(x == x ? n : 0), half = whole / 2, rest = whole - half;
	union {
		int32_t i;
		float f;
	} a = {(half + 127) << 23}, b = {(rest + 127) << 23};
	p = p * a.f * b.f;
	p = x > 88.72283f ? INFINITY : x < -103.97208f ? 0 : p;
	return x != x ? x : p;
}

/* e^x for x <= 0. It cannot overflow, and NaN propagates, so neither needs a mask. */
static inline float exp_down_float(float x)
{
	const float round = 12582912;
	float c = x < -103.97208f ? -103.97208f : x;
	union {
		float f;
		int32_t i;
	} n = {c * 1.44269504088896341f + round}, zero = {round};
	float whole = n.f - round, r = c - whole * 0.693359375f + whole * 2.12194440e-4f;
	float p = exp_near_0_float(r);
	int32_t power = (int32_t)((uint32_t)n.i - (uint32_t)zero.i), half = power >> 1;
	union {
		uint32_t i;
		float f;
	} a = {(uint32_t)(half + 127) << 23}, b = {(uint32_t)(power - half + 127) << 23};
	return p * a.f * b.f;
}

/* On [-0.5, 0.5] a fitted polynomial, because e^x - 1 would lose digits near 0. */
static inline float expm1_float(float x)
{
	float p = 1.99621861e-4f;
	p = p * x + 1.39821969e-3f;
	p = p * x + 8.33318204e-3f;
	p = p * x + 4.1665791e-2f;
	p = p * x + 1.66666671e-1f;
	p = p * x + 0.5f;
	p = p * x * x + x;
	return x > -0.5f && x < 0.5f ? p : exp_float(x) - 1;
}

/* On [-0.625, 0.625] a fitted polynomial; beyond it, computed from e^(2|x|). */
static inline float tanh_float(float x)
{
	float z = x * x, size = x < 0 ? -x : x;
	float p = 2.29573527e-3f;
	p = p * z - 8.34686661e-3f;
	p = p * z + 2.17699164e-2f;
	p = p * z - 5.39593983e-2f;
	p = p * z + 1.33333042e-1f;
	p = p * z - 3.33333332e-1f;
	p = p * z * x + x;
	float far = 1 - 2 / (exp_float(2 * size) + 1);
	return size < 0.625f ? p : x < 0 ? -far : far;
}

/* Near 0 a polynomial of x^2; beyond it 1 - erfc(x), with a polynomial for the logarithm of erfc on
 * [0.875, 4].  Within 1.3 units in the last place. */
static inline float erf_float(float x)
{
	float z = x * x, size = x < 0 ? -x : x, c = size > 4 ? 4 : size;
	float p = 8.69896176e-05f;
	p = p * z - 0.000821654568f;
	p = p * z + 0.00520721916f;
	p = p * z - 0.0268617738f;
	p = p * z + 0.112837367f;
	p = p * z - 0.376126349f;
	p = p * z + 0.128379166f;
	p = p * x + x;
	float q = 0.000199902308f;
	q = q * c - 0.00308200438f;
	q = q * c + 0.0223810598f;
	q = q * c - 0.10425026f;
	q = q * c - 0.636820614f;
	q = q * c - 1.12788939f;
	q = q * c - 0.000144203965f;
	float far = 1 - exp_down_float(q);
	return size < 0.875f ? p : x < 0 ? -far : far;
}

#define exp_of(x)      _Generic((x), float : exp_float, default : exp)(x)
#define exp_down_of(x) _Generic((x), float : exp_down_float, default : exp)(x)
#define expm1_of(x)    _Generic((x), float : expm1_float, default : expm1)(x)
#define tanh_of(x)     _Generic((x), float : tanh_float, default : tanh)(x)
#define erf_of(x)      _Generic((x), float : erf_float, default : erf)(x)

#endif
