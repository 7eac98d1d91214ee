/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases: complex numbers and Fourier transforms. */
#ifndef MU_TESTS_CLIENT_GRADIENT_CASES_COMPLEX_H
#define MU_TESTS_CLIENT_GRADIENT_CASES_COMPLEX_H

#include "tests/client/gradient.h"

/* z = x + i y; each case takes the real or imaginary part of the result. */
static struct mu_out complex_of(struct mu_builder *b, struct mu_out x, struct mu_out y)
{
	return mu_op(b, "Complex", MU_IN(x, y));
}

static struct mu_out imag(struct mu_builder *b, struct mu_out z)
{
	return mu_op(b, "Imag", MU_IN(z));
}

CASE(y_complex, mu_op(b, "Real", MU_IN(complex_of(b, mu_square(b, x), row(b, 4)))))
CASE(y_complex_row, imag(b, complex_of(b, values(b, 3, 4, 0), x)))
CASE(y_complex_abs, mu_op(b, "ComplexAbs", MU_IN(complex_of(b, x, values(b, 3, 4, 0)))))
CASE(y_complex_abs_imag, mu_op(b, "ComplexAbs", MU_IN(complex_of(b, values(b, 3, 4, 0), x))))
CASE(y_angle, mu_op(b, "Angle", MU_IN(complex_of(b, x, mu_add(b, x, values(b, 3, 4, 0))))))

static struct mu_out products(struct mu_builder *b, struct mu_out x, const char *part)
{
	struct mu_out z = complex_of(b, x, mu_square(b, x));
	struct mu_out w = complex_of(b, values(b, 3, 4, 0), values(b, 3, 4, 1));
	struct mu_out y = mu_sub(b, mu_mul(b, mu_mul(b, z, w), mu_neg(b, z)),
				 mu_op(b, "Conj", MU_IN(mu_add(b, z, mu_identity(b, z)))));

	return mu_op(b, part, MU_IN(y));
}

CASE(y_complex_products, products(b, x, "Real"))
CASE(y_complex_products_imag, products(b, x, "Imag"))

static struct mu_out wide_complex(struct mu_builder *b, struct mu_out x)
{
	struct mu_out d = mu_cast(b, x, MU_DOUBLE), y;
	struct mu_out z = mu_op(b, "Complex", MU_IN(d, mu_square(b, d)),
				MU_ATTRS(MU_A_TYPE("Tout", MU_COMPLEX128)));

	y = mu_op(b, "ComplexAbs", MU_IN(mu_mul(b, z, z)), MU_ATTRS(MU_A_TYPE("Tout", MU_DOUBLE)));
	return mu_cast(b, y, MU_FLOAT);
}

CASE(y_complex_wide, wide_complex(b, x))

/* parts: real and imaginary part of a transform of complex numbers. The macros also transform reals
 * with a given length. */
static struct mu_out parts(struct mu_builder *b, struct mu_out z)
{
	return mu_add(b, mu_op(b, "Real", MU_IN(z)), mu_square(b, imag(b, z)));
}

#define TRANSFORMED(op) parts(b, mu_op(b, (op), MU_IN(complex_of(b, x, mu_square(b, x)))))

#define TO_HALF(op, ...)                                                                           \
	parts(b, mu_op(b, (op),                                                                    \
		       MU_IN(x, ints(b, MU_COUNT(((int32_t[]){__VA_ARGS__})),                      \
				     (int32_t[]){__VA_ARGS__}))))

#define TO_REALS(op, ...)                                                                          \
	mu_op(b, (op),                                                                             \
	      MU_IN(complex_of(b, x, mu_square(b, x)),                                             \
		    ints(b, MU_COUNT(((int32_t[]){__VA_ARGS__})), (int32_t[]){__VA_ARGS__})))

CASE(y_fft, TRANSFORMED("FFT"))
CASE(y_ifft, TRANSFORMED("IFFT"))
CASE(y_fft_2d, TRANSFORMED("FFT2D"))
CASE(y_ifft_2d, TRANSFORMED("IFFT2D"))
CASE(y_fft_3d, TRANSFORMED("FFT3D"))
CASE(y_ifft_3d, TRANSFORMED("IFFT3D"))
CASE(y_rfft, TO_HALF("RFFT", 4))
CASE(y_rfft_odd, TO_HALF("RFFT", 5))
CASE(y_rfft_short, TO_HALF("RFFT", 3))
CASE(y_rfft_2d, TO_HALF("RFFT2D", 2, 3))
CASE(y_rfft_3d, TO_HALF("RFFT3D", 2, 3, 2))
CASE(y_irfft, TO_REALS("IRFFT", 4))
CASE(y_irfft_odd, TO_REALS("IRFFT", 5))
CASE(y_irfft_cut, TO_REALS("IRFFT", 2))
CASE(y_irfft_one, TO_REALS("IRFFT", 1))
CASE(y_irfft_2d, TO_REALS("IRFFT2D", 2, 5))
CASE(y_irfft_3d, TO_REALS("IRFFT3D", 2, 3, 2))

static struct mu_out linear_ops(struct mu_builder *b, struct mu_out x, const char *part)
{
	struct mu_out z = complex_of(b, x, mu_square(b, x));
	struct mu_out w = mu_mul(b, z, complex_of(b, values(b, 3, 4, 0), values(b, 3, 4, 1)));
	struct mu_out axis = ints(b, 1, (int32_t[]){1});
	struct mu_out y = mu_op(b, "ConcatV2", MU_IN(z, w, mu_const_int(b, MU_INT32, 1)));

	y = mu_op(b, "Transpose", MU_IN(y, ints(b, 2, (int32_t[]){1, 0})));
	y = mu_op(b, "Slice",
		  MU_IN(y, ints(b, 2, (int32_t[]){1, 0}), ints(b, 2, (int32_t[]){6, 3})));
	y = mu_op(b, "GatherV2",
		  MU_IN(y, ints(b, 3, (int32_t[]){0, 5, 0}), mu_const_int(b, MU_INT32, 0)));
	y = mu_op(b, "Tile", MU_IN(y, ints(b, 2, (int32_t[]){1, 2})));
	y = mu_add(b, mu_op(b, "Sum", MU_IN(y, axis)), mu_op(b, "Mean", MU_IN(y, axis)));
	return mu_square(b, mu_op(b, part, MU_IN(mu_op(b, "ExpandDims", MU_IN(y, axis)))));
}

CASE(y_complex_linear, linear_ops(b, x, "Real"))
CASE(y_complex_linear_imag, linear_ops(b, x, "Imag"))

static const struct gradient_case complex_cases[] = {
    {"Complex", {2, {3, 4}}, y_complex, -1, 1},
    {"Complex, imaginary part broadcast", {1, {4}}, y_complex_row, -1, 1},
    {"ComplexAbs", {2, {3, 4}}, y_complex_abs, 0.5f, 2},
    {"ComplexAbs, imaginary", {2, {3, 4}}, y_complex_abs_imag, 0.5f, 2},
    {"Angle", {2, {3, 4}}, y_angle, 1, 2},
    {"complex products and sums", {2, {3, 4}}, y_complex_products, -1, 1},
    {"complex products and sums, imaginary", {2, {3, 4}}, y_complex_products_imag, -1, 1},
    {"complex linear ops", {2, {3, 4}}, y_complex_linear, -1, 1},
    {"complex linear ops, imaginary", {2, {3, 4}}, y_complex_linear_imag, -1, 1},
    {"complex128", {2, {3, 4}}, y_complex_wide, 0.5f, 1},
    {"FFT", {2, {2, 4}}, y_fft, -1, 1},
    {"IFFT", {2, {2, 4}}, y_ifft, -1, 1},
    {"FFT2D", {3, {2, 2, 3}}, y_fft_2d, -1, 1},
    {"IFFT2D", {2, {3, 4}}, y_ifft_2d, -1, 1},
    {"FFT3D", {3, {2, 2, 2}}, y_fft_3d, -1, 1},
    {"IFFT3D", {3, {2, 2, 2}}, y_ifft_3d, -1, 1},
    {"RFFT", {2, {2, 4}}, y_rfft, -1, 1},
    {"RFFT, odd", {2, {-1, 5}}, y_rfft_odd, -1, 1},
    {"RFFT, cropped", {2, {2, 4}}, y_rfft_short, -1, 1},
    {"RFFT2D, cropped", {3, {2, 3, 4}}, y_rfft_2d, -1, 1},
    {"RFFT3D", {3, {2, 3, 2}}, y_rfft_3d, -1, 1},
    {"IRFFT", {2, {2, 3}}, y_irfft, -1, 1},
    {"IRFFT, odd", {2, {2, 3}}, y_irfft_odd, -1, 1},
    {"IRFFT, cropped", {2, {-1, 3}}, y_irfft_cut, -1, 1},
    {"IRFFT, length 1", {2, {2, 3}}, y_irfft_one, -1, 1},
    {"IRFFT2D, cropped", {3, {2, 3, 3}}, y_irfft_2d, -1, 1},
    {"IRFFT3D", {3, {2, 3, 2}}, y_irfft_3d, -1, 1},
};

#endif
