/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between float and the two 16-bit floating-point formats, half and bfloat16. */
#ifndef MU_LIB_TENSOR_HALF_H
#define MU_LIB_TENSOR_HALF_H

#include <stdint.h>
#include <string.h>

/* The largest finite numbers. */
#define HALF_MAX     65504.0F
#define BFLOAT16_MAX 0x1.fep127F

static inline uint32_t float_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	return u;
}

static inline float bits_float(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

static inline float bfloat_to_float(uint16_t h)
{
	return bits_float((uint32_t)h << 16);
}

/* Rounds to nearest, ties to even; NaN stays NaN. */
static inline uint16_t float_to_bfloat(float f)
{
	uint32_t u = float_bits(f);

	if (f != f)
		return 0x7fc0;
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, m = h & 0x3ff;

	if (exponent == 31)
		return bits_float(sign | 0x7f800000u | m << 13);
	if (exponent)
		return bits_float(sign | (exponent + 112) << 23 | m << 13);
	float tiny = (float)m * 0x1p-24f; /* subnormal, or zero */
	return sign ? -tiny : tiny;
}

static inline uint16_t float_to_half(float f)
{
	uint32_t u = float_bits(f), sign = u >> 16 & 0x8000, rest = u & 0x7fffffffu;

	if (rest > 0x7f800000u)
		return (uint16_t)(sign | 0x7e00);
	if (rest >= 0x477ff000u) /* rounds past the largest half */
		return (uint16_t)(sign | 0x7c00);
	if (rest < 0x38800000u) {
		/* Adding one half lets the processor round the subnormal into the low bits. */
		float shifted = bits_float(rest) + 0.5f;
		return (uint16_t)(sign | (float_bits(shifted) - 0x3f000000u));
	}
	rest += 0xc8000fffu + (rest >> 13 & 1);
	return (uint16_t)(sign | rest >> 13);
}

#endif
