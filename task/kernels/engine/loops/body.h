/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of one variant.  Each <variant>.c includes this file once, and is compiled with the
 * variant's flags (tools/kernels.mk).  LOOPS_NAME and LOOPS_VARIANT name the variant.
 *
 * Integer arithmetic wraps (-fwrapv).  The caller rejects division by zero; the loops only ensure
 * that it does not trap. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <tgmath.h>

#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/math/gamma.h"
#include "task/kernels/math/special.h"

#if defined(__clang__)
#define VECTORISE       _Pragma("clang loop vectorize(assume_safety)")
#define VECTORISE_SHORT VECTORISE
#else
#define VECTORISE       _Pragma("GCC ivdep")
#define VECTORISE_SHORT VECTORISE _Pragma("GCC unroll 1") /* otherwise unrolled first */
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define IS_FLOAT(v) _Generic((v), float : 1, double : 1, default : 0)

/* Integers need no rounding. */
#define nearest(x) _Generic((x), float : rint(x), double : rint(x), default : (x))
#define sign_of(x) ((T)(((x) > 0) - ((x) < 0)) + (IS_FLOAT(x) && (x) != (x) ? (x) : 0))
/* NaN if either operand is NaN. */
#define larger(x, y)  ((x) < (y) || (y) != (y) ? (y) : (x))
#define smaller(x, y) ((y) < (x) || (y) != (y) ? (y) : (x))
#define shift_by(T, y)                                                                             \
	((y) < 0                            ? 0                                                    \
	 : (y) >= (T)(sizeof(T) * CHAR_BIT) ? (int)(sizeof(T) * CHAR_BIT) - 1                      \
					    : (int)(y))

/* ---- functions that differ between integers and reals ---- */

#define INT_FUNCTIONS(T)                                                                           \
	static inline T quotient_##T(T x, T y)                                                     \
	{                                                                                          \
		return y == 0 ? 0 : (T)-1 < 0 && y == (T)-1 ? (T)(0 - (uint64_t)x) : x / y;        \
	}                                                                                          \
	static inline T trunc_div_##T(T x, T y)                                                    \
	{                                                                                          \
		return quotient_##T(x, y);                                                         \
	}                                                                                          \
	static inline T trunc_mod_##T(T x, T y)                                                    \
	{                                                                                          \
		return y == 0 || ((T)-1 < 0 && y == (T)-1) ? 0 : x % y;                            \
	}                                                                                          \
	static inline T floor_div_##T(T x, T y)                                                    \
	{                                                                                          \
		T q = quotient_##T(x, y);                                                          \
		return trunc_mod_##T(x, y) != 0 && (x < 0) != (y < 0) ? q - 1 : q;                 \
	}                                                                                          \
	static inline T floor_mod_##T(T x, T y)                                                    \
	{                                                                                          \
		T r = trunc_mod_##T(x, y);                                                         \
		return r != 0 && (r < 0) != (y < 0) ? r + y : r;                                   \
	}                                                                                          \
	static inline T power_##T(T x, T y)                                                        \
	{                                                                                          \
		T r = 1;                                                                           \
		for (; y > 0; y = (T)(y >> 1), x = (T)((uint64_t)x * (uint64_t)x))                 \
			if (y & 1)                                                                 \
				r = (T)((uint64_t)r * (uint64_t)x);                                \
		return r;                                                                          \
	}

#define FLT_FUNCTIONS(T)                                                                           \
	static inline T quotient_##T(T x, T y)                                                     \
	{                                                                                          \
		return x / y;                                                                      \
	}                                                                                          \
	static inline T trunc_div_##T(T x, T y)                                                    \
	{                                                                                          \
		return trunc(x / y);                                                               \
	}                                                                                          \
	static inline T trunc_mod_##T(T x, T y)                                                    \
	{                                                                                          \
		return fmod(x, y);                                                                 \
	}                                                                                          \
	static inline T floor_div_##T(T x, T y)                                                    \
	{                                                                                          \
		return floor(x / y);                                                               \
	}                                                                                          \
	static inline T floor_mod_##T(T x, T y)                                                    \
	{                                                                                          \
		T r = fmod(x, y);                                                                  \
		return r != 0 && (r < 0) != (y < 0) ? r + y : r;                                   \
	}                                                                                          \
	static inline T power_##T(T x, T y)                                                        \
	{                                                                                          \
		return pow(x, y);                                                                  \
	}

FLT_FUNCTIONS(float)
FLT_FUNCTIONS(double)
INT_FUNCTIONS(int8_t)
INT_FUNCTIONS(int16_t)
INT_FUNCTIONS(int32_t)
INT_FUNCTIONS(int64_t)
INT_FUNCTIONS(uint8_t)
INT_FUNCTIONS(uint16_t)
INT_FUNCTIONS(uint32_t)
INT_FUNCTIONS(uint64_t)

static inline float _Complex quotient_complex64(float _Complex x, float _Complex y)
{
	return x / y;
}

static inline double _Complex quotient_complex128(double _Complex x, double _Complex y)
{
	return x / y;
}

/* clang-format off */
#define REAL_TYPES(f)                                                                              \
	float: f##_float, double: f##_double,                                                      \
	int8_t: f##_int8_t, int16_t: f##_int16_t, int32_t: f##_int32_t, int64_t: f##_int64_t,      \
	uint8_t: f##_uint8_t, uint16_t: f##_uint16_t, uint32_t: f##_uint32_t,                      \
	uint64_t: f##_uint64_t
#define BY_TYPE(f, x, y) _Generic((x), REAL_TYPES(f))(x, y)
#define quotient(x, y)                                                                             \
	_Generic((x), REAL_TYPES(quotient), float _Complex: quotient_complex64,                    \
		 double _Complex: quotient_complex128)(x, y)
/* clang-format on */
#define trunc_div(x, y) BY_TYPE(trunc_div, x, y)
#define trunc_mod(x, y) BY_TYPE(trunc_mod, x, y)
#define floor_div(x, y) BY_TYPE(floor_div, x, y)
#define floor_mod(x, y) BY_TYPE(floor_mod, x, y)
#define power(x, y)     BY_TYPE(power, x, y)

#include "task/kernels/engine/loops/math.h"

/* ---- loops ---- */

#define UNARY_LOOP(op, T_, dt, OUT, expr)                                                          \
	static void un_##op##_##dt(void *out, const void *a_, int64_t n)                           \
	{                                                                                          \
		typedef T_ T __attribute__((unused));                                              \
		OUT *o = out;                                                                      \
		const T *a = a_;                                                                   \
		VECTORISE for (int64_t i = 0; i < n; i++)                                          \
		{                                                                                  \
			const T x = a[i];                                                          \
			o[i] = (OUT)(expr);                                                        \
		}                                                                                  \
	}
#define BINARY_LOOP(op, T_, dt, OUT, expr)                                                         \
	static void bin_##op##_##dt(void *out, const void *a_, const void *b_, int64_t n,          \
				    enum binary_form f)                                            \
	{                                                                                          \
		typedef T_ T __attribute__((unused));                                              \
		OUT *o = out;                                                                      \
		const T *a = a_, *b = b_;                                                          \
		if (f == BOTH_RUN) {                                                               \
			VECTORISE for (int64_t i = 0; i < n; i++)                                  \
			{                                                                          \
				const T x = a[i], y = b[i];                                        \
				o[i] = (OUT)(expr);                                                \
			}                                                                          \
		} else if (f == LEFT_SCALAR) {                                                     \
			const T x = a[0];                                                          \
			VECTORISE for (int64_t i = 0; i < n; i++)                                  \
			{                                                                          \
				const T y = b[i];                                                  \
				o[i] = (OUT)(expr);                                                \
			}                                                                          \
		} else {                                                                           \
			const T y = b[0];                                                          \
			VECTORISE for (int64_t i = 0; i < n; i++)                                  \
			{                                                                          \
				const T x = a[i];                                                  \
				o[i] = (OUT)(expr);                                                \
			}                                                                          \
		}                                                                                  \
	}

#define EACH_FLT(X, op, expr) X(op, float, MU_FLOAT, expr) X(op, double, MU_DOUBLE, expr)
#define EACH_INT(X, op, expr)                                                                      \
	X(op, int8_t, MU_INT8, expr)                                                               \
	X(op, int16_t, MU_INT16, expr)                                                             \
	X(op, int32_t, MU_INT32, expr)                                                             \
	X(op, int64_t, MU_INT64, expr)                                                             \
	X(op, uint8_t, MU_UINT8, expr)                                                             \
	X(op, uint16_t, MU_UINT16, expr)                                                           \
	X(op, uint32_t, MU_UINT32, expr)                                                           \
	X(op, uint64_t, MU_UINT64, expr)
#define EACH_LIB(X, op, expr) EACH_FLT(X, op, expr)
#define EACH_NUM(X, op, expr) EACH_FLT(X, op, expr) EACH_INT(X, op, expr)
#define EACH_ARI(X, op, expr)                                                                      \
	EACH_NUM(X, op, expr)                                                                      \
	X(op, float _Complex, MU_COMPLEX64, expr)                                                  \
	X(op, double _Complex, MU_COMPLEX128, expr)
#define EACH_EQ(X, op, expr) EACH_ARI(X, op, expr) X(op, bool, MU_BOOL, expr)

#define DEFINE_UNARY(op, T, dt, expr)     UNARY_LOOP(op, T, dt, T, expr)
#define DEFINE_PREDICATE(op, T, dt, expr) UNARY_LOOP(op, T, dt, bool, expr)
#define DEFINE_BINARY(op, T, dt, expr)    BINARY_LOOP(op, T, dt, T, expr)
#define DEFINE_COMPARE(op, T, dt, expr)   BINARY_LOOP(op, T, dt, bool, expr)

#define UNARY(op, types, expr)     EACH_##types(DEFINE_UNARY, op, expr)
#define PREDICATE(op, types, expr) EACH_##types(DEFINE_PREDICATE, op, expr)
#define BINARY(op, types, expr)    EACH_##types(DEFINE_BINARY, op, expr)
#define COMPARE(op, types, expr)   EACH_##types(DEFINE_COMPARE, op, expr)
#include "task/kernels/engine/loops/loops.def"
#undef UNARY
#undef PREDICATE
#undef BINARY
#undef COMPARE

#include "task/kernels/engine/loops/depthwise.h"
#include "task/kernels/engine/loops/pool.h"
#include "task/kernels/engine/loops/reduce.h"
#include "task/kernels/engine/loops/softmax.h"
#include "task/kernels/engine/loops/tile.h"
#include "task/kernels/engine/loops/transpose.h"
#include "task/kernels/engine/loops/update.h"

#define UNARY_ENTRY(op, T, dt, expr)  [dt] = un_##op##_##dt,
#define BINARY_ENTRY(op, T, dt, expr) [dt] = bin_##op##_##dt,
#define UNARY(op, types, expr)        [UN_##op] = {EACH_##types(UNARY_ENTRY, op, expr)},
#define PREDICATE(op, types, expr)    [UN_##op] = {EACH_##types(UNARY_ENTRY, op, expr)},
#define BINARY(op, types, expr)       [BIN_##op] = {EACH_##types(BINARY_ENTRY, op, expr)},
#define COMPARE(op, types, expr)      [BIN_##op] = {EACH_##types(BINARY_ENTRY, op, expr)},

extern const struct loops LOOPS_NAME;
const struct loops LOOPS_NAME = {
    .variant = LOOPS_VARIANT,
    .unary =
	{
#undef BINARY
#undef COMPARE
#include "task/kernels/engine/loops/loops.def"
	},
#undef UNARY
#undef PREDICATE
#define BINARY(op, types, expr)  [BIN_##op] = {EACH_##types(BINARY_ENTRY, op, expr)},
#define COMPARE(op, types, expr) [BIN_##op] = {EACH_##types(BINARY_ENTRY, op, expr)},
    .binary =
	{
#include "task/kernels/engine/loops/loops.def"
	},
    .reduce = REDUCE_TABLE,
    .update[MU_FLOAT] =
	{
#define OPTIMIZER(kind, name, constants, ...) [OPTIMIZER_##kind] = up_##name##_MU_FLOAT,
#include "task/kernels/engine/loops/optimizers.def"
	},
    .update[MU_DOUBLE] =
	{
#define OPTIMIZER(kind, name, constants, ...) [OPTIMIZER_##kind] = up_##name##_MU_DOUBLE,
#include "task/kernels/engine/loops/optimizers.def"
	},
    .tile = TILE_TABLE,
    .pool = POOL_TABLE,
    .depthwise = DEPTHWISE_TABLE,
    .softmax = SOFTMAX_TABLE,
    .transpose = TRANSPOSE_TABLE,
};
