/* SPDX-License-Identifier: Apache-2.0 */
/* One row per function; x is the operand of a unary op, x and y are those of a binary op. */
#include "task/kernels/engine/loops/complex.h"

#include <complex.h>
#include <math.h>

#include "task/kernels/engine/complex_of.h"

typedef float _Complex complex64;
typedef double _Complex complex128;

static complex128 sign_of(complex128 x)
{
	double size = cabs(x);

	if (!isfinite(size))
		return complex_of(NAN, NAN);
	return size > 0 ? x / size : 0;
}

/* log(1 + x), accurate near zero. */
static complex128 log1p_of(complex128 x)
{
	double re = creal(x), im = cimag(x);

	return 0.5 * log1p(re * (2 + re) + im * im) + I * atan2(im, 1 + re);
}

/* exp(x) - 1, accurate near zero. */
static complex128 expm1_of(complex128 x)
{
	double re = creal(x), half = sin(cimag(x) / 2), expm1_re = expm1(re);

	return expm1_re * cos(cimag(x)) - 2 * half * half + I * ((expm1_re + 1) * sin(cimag(x)));
}

/* cpow returns NaN for powers of zero that are 0. */
static complex128 power_of(complex128 x, complex128 y)
{
	return x == 0 && creal(y) > 0 ? 0 : cpow(x, y);
}

#define UNARY_ROWS(ROW)                                                                            \
	ROW(Sign, sign_of(x))                                                                      \
	ROW(Sqrt, csqrt(x))                                                                        \
	ROW(Rsqrt, 1 / csqrt(x))                                                                   \
	ROW(Reciprocal, 1 / x)                                                                     \
	ROW(Inv, 1 / x)                                                                            \
	ROW(Exp, cexp(x))                                                                          \
	ROW(Expm1, expm1_of(x))                                                                    \
	ROW(Log, clog(x))                                                                          \
	ROW(Log1p, log1p_of(x))                                                                    \
	ROW(Sin, csin(x))                                                                          \
	ROW(Cos, ccos(x))                                                                          \
	ROW(Tan, ctan(x))                                                                          \
	ROW(Asin, casin(x))                                                                        \
	ROW(Acos, cacos(x))                                                                        \
	ROW(Atan, catan(x))                                                                        \
	ROW(Sinh, csinh(x))                                                                        \
	ROW(Cosh, ccosh(x))                                                                        \
	ROW(Tanh, ctanh(x))                                                                        \
	ROW(Asinh, casinh(x))                                                                      \
	ROW(Acosh, cacosh(x))                                                                      \
	ROW(Atanh, catanh(x))                                                                      \
	ROW(Sigmoid, 1 / (1 + cexp(-x)))

/* In gradients x is the op's output and y the gradient of the output. */
#define BINARY_ROWS(ROW)                                                                           \
	ROW(Pow, power_of(x, y))                                                                   \
	ROW(SquaredDifference, (x - y) * conj(x - y))                                              \
	ROW(DivNoNan, y == 0 ? 0 : x / y)                                                          \
	ROW(MulNoNan, y == 0 ? 0 : x * y)                                                          \
	ROW(Xdivy, x == 0 ? 0 : x / y)                                                             \
	ROW(Xlogy, x == 0 ? 0 : x * clog(y))                                                       \
	ROW(Xlog1py, x == 0 ? 0 : x * log1p_of(y))                                                 \
	ROW(SigmoidGrad, y *x *(1 - x))                                                            \
	ROW(TanhGrad, y *(1 - x * x))                                                              \
	ROW(SqrtGrad, y == 0 ? 0 : 0.5 * y / conj(x))                                              \
	ROW(RsqrtGrad, -0.5 * y * conj(x) * conj(x) * conj(x))                                     \
	ROW(ReciprocalGrad, -conj(x) * y * conj(x))                                                \
	ROW(InvGrad, -conj(x) * y * conj(x))

#define UNARY_LOOP(op, T, expr)                                                                    \
	static void un_##op##_##T(void *out, const void *in, int64_t n)                            \
	{                                                                                          \
		for (int64_t i = 0; i < n; i++) {                                                  \
			const complex128 x = ((const T *)in)[i];                                   \
			((T *)out)[i] = (T)(expr);                                                 \
		}                                                                                  \
	}
#define BINARY_LOOP(op, T, expr)                                                                   \
	static void bin_##op##_##T(void *out, const void *a, const void *b, int64_t n,             \
				   enum binary_form f)                                             \
	{                                                                                          \
		for (int64_t i = 0; i < n; i++) {                                                  \
			const complex128 x = ((const T *)a)[f == LEFT_SCALAR ? 0 : i];             \
			const complex128 y = ((const T *)b)[f == RIGHT_SCALAR ? 0 : i];            \
			((T *)out)[i] = (T)(expr);                                                 \
		}                                                                                  \
	}
#define UNARY_LOOPS(op, expr)  UNARY_LOOP(op, complex64, expr) UNARY_LOOP(op, complex128, expr)
#define BINARY_LOOPS(op, expr) BINARY_LOOP(op, complex64, expr) BINARY_LOOP(op, complex128, expr)
UNARY_ROWS(UNARY_LOOPS)
BINARY_ROWS(BINARY_LOOPS)

#define UNARY_ENTRY(op, expr)  [UN_##op] = {un_##op##_complex64, un_##op##_complex128},
#define BINARY_ENTRY(op, expr) [BIN_##op] = {bin_##op##_complex64, bin_##op##_complex128},
static unary_loop *const unaries[UN_COUNT][2] = {UNARY_ROWS(UNARY_ENTRY)};
static binary_loop *const binaries[BIN_COUNT][2] = {BINARY_ROWS(BINARY_ENTRY)};

unary_loop *complex_unary(enum unary_op op, enum mu_dtype t)
{
	return mu_dtype_is_complex(t) ? unaries[op][t == MU_COMPLEX128] : NULL;
}

binary_loop *complex_binary(enum binary_op op, enum mu_dtype t)
{
	return mu_dtype_is_complex(t) ? binaries[op][t == MU_COMPLEX128] : NULL;
}
