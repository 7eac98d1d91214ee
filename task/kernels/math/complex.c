/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers composed of reals and decomposed again; arithmetic is in the rows of
 * engine/loops/loops.def. */
#include <complex.h>
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/kernel_table.h"

/* The reals that a complex type is made of; MU_DT_INVALID for other types. */
static enum mu_dtype part_type(enum mu_dtype t)
{
	return t == MU_COMPLEX64 ? MU_FLOAT : t == MU_COMPLEX128 ? MU_DOUBLE : MU_DT_INVALID;
}

#define JOIN(T)                                                                                    \
	static void join_##T(void *out, const void *a, const void *b, int64_t n,                   \
			     enum binary_form f)                                                   \
	{                                                                                          \
		T *o = out;                                                                        \
		for (int64_t i = 0; i < n; i++) {                                                  \
			o[2 * i] = ((const T *)a)[f == LEFT_SCALAR ? 0 : i];                       \
			o[2 * i + 1] = ((const T *)b)[f == RIGHT_SCALAR ? 0 : i];                  \
		}                                                                                  \
	}
JOIN(float)
JOIN(double)

static int complex_make(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *re = kernel_in(c, 0), *im = kernel_in(c, 1);
	struct mu_shape shape;
	struct mu_tensor *out;
	bool is_double = re->dtype == MU_DOUBLE;

	MU_RETURN_IF_ERROR(broadcast_shape(&re->shape, &im->shape, &shape, err));
	MU_RETURN_IF_ERROR(
	    kernel_out(c, 0, is_double ? MU_COMPLEX128 : MU_COMPLEX64, &shape, &out, err));
	broadcast_run(is_double ? join_double : join_float, out->data, &shape,
		      mu_dtype_size(out->dtype), re->data, &re->shape, im->data, &im->shape,
		      mu_dtype_size(re->dtype));
	return 0;
}

#define PART(name, expr_float, expr_double)                                                        \
	static int name(struct kernel_call *c, struct mu_err *err)                                 \
	{                                                                                          \
		const struct mu_tensor *in = kernel_in(c, 0);                                      \
		enum mu_dtype t = part_type(in->dtype);                                            \
		struct mu_tensor *out;                                                             \
		int rc;                                                                            \
		if (t != args_attr_type(c->node, "Tout", t))                                       \
			return mu_invalid(err, "%s of %s must be %s", c->node->op,                 \
					  mu_dtype_name(in->dtype), mu_dtype_name(t));             \
		if ((rc = kernel_out(c, 0, t, &in->shape, &out, err)))                             \
			return rc;                                                                 \
		for (int64_t i = 0; i < in->shape.count; i++)                                      \
			if (t == MU_FLOAT) {                                                       \
				float _Complex z = MU_DATA(float _Complex, in)[i];                 \
				MU_DATA(float, out)[i] = expr_float;                               \
			} else {                                                                   \
				double _Complex z = MU_DATA(double _Complex, in)[i];               \
				MU_DATA(double, out)[i] = expr_double;                             \
			}                                                                          \
		return 0;                                                                          \
	}
PART(real, crealf(z), creal(z))
PART(imag, cimagf(z), cimag(z))
PART(magnitude, hypotf(crealf(z), cimagf(z)), hypot(creal(z), cimag(z)))
PART(angle, atan2f(cimagf(z), crealf(z)), atan2(cimag(z), creal(z)))

static int complex_conjugate(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;

	if (!part_type(in->dtype)) { /* a real number is its own conjugate */
		kernel_out_take(c, 0, mu_tensor_ref(in));
		return 0;
	}
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &in->shape, &out, err));
	for (int64_t i = 0; i < in->shape.count; i++)
		if (in->dtype == MU_COMPLEX64)
			MU_DATA(float _Complex, out)[i] = conjf(MU_DATA(float _Complex, in)[i]);
		else
			MU_DATA(double _Complex, out)[i] = conj(MU_DATA(double _Complex, in)[i]);
	return 0;
}

static const struct kernel rows[] = {
    {"Complex", .run = complex_make}, {"Real", .run = real},   {"Imag", .run = imag},
    {"ComplexAbs", .run = magnitude}, {"Angle", .run = angle}, {"Conj", .run = complex_conjugate},
};
KERNEL_TABLE(math_complex, rows)
