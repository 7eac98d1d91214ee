/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over any axes.  Neighbouring dimensions are merged until kept and reduced ones
 * alternate.  Loops go from the outermost to the innermost dimension.  The innermost loop reduces a
 * row to one element, or adds a row to a row. */
#include <math.h>

#include "lib/base/ints.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/columns.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/math/checks.h"

static void reduce_walk(const struct reduced_dims *f, int level, const struct reduce_loops *l,
			size_t size, char *out, const char *in)
{
	int64_t n = f->dim[level];

	if (level == f->rank - 1) {
		if (f->reduced[level])
			l->row(out, in, n);
		else
			l->add(out, in, n);
		return;
	}
	if (level == f->rank - 2 && f->reduced[level]) {
		columns_reduce(l, size, out, in, n, f->dim[level + 1]);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		reduce_walk(f, level + 1, l, size, out + (size_t)(i * f->out_stride[level]) * size,
			    in + (size_t)(i * f->in_stride[level]) * size);
}

/* Reduces `in` to n elements at out. */
static void reduce_tensor(const struct reduce_loops *l, void *out, int64_t n,
			  const struct mu_tensor *in, const bool *reduced)
{
	struct reduced_dims f;

	l->start(out, n);
	if (!in->shape.count)
		return;
	reduced_dims_init(&f, &in->shape, reduced);
	reduce_walk(&f, 0, l, mu_dtype_size(in->dtype), out, in->data);
}

/* *n_reduced: the number of input elements of an output element. */
static int reduce_into(struct kernel_call *c, enum reduce_op op, struct mu_tensor **out,
		       int64_t *n_reduced, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const struct reduce_loops *l = &loops->reduce[op][in->dtype];
	bool reduced[MU_MAX_RANK] = {false};
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_axes(c, reduced, err));
	if (!l->start)
		return args_no_kernel(c, in->dtype, err);
	MU_RETURN_IF_ERROR(reduced_shape(&in->shape, reduced,
					 args_attr_bool(c->node, "keep_dims", false), &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &shape, out, err));
	*n_reduced = shape.count ? in->shape.count / shape.count : 0;
	reduce_tensor(l, (*out)->data, shape.count, in, reduced);
	return 0;
}

static int reduce(struct kernel_call *c, enum reduce_op op, struct mu_err *err)
{
	struct mu_tensor *out;
	int64_t n_reduced;

	return reduce_into(c, op, &out, &n_reduced, err);
}

#define DIVIDE(T, data, n, by)                                                                     \
	for (int64_t i = 0; i < (n); i++)                                                          \
	((T *)(data))[i] = (T)(((T *)(data))[i] / (T)(by))

/* The type of 64 bits for sums of integers of this type; 0 for other types. */
static enum mu_dtype wide_integer(enum mu_dtype t)
{
	switch (t) {
	case MU_INT8:
	case MU_INT16:
	case MU_INT32:
	case MU_INT64:
		return MU_INT64;
	case MU_UINT8:
	case MU_UINT16:
	case MU_UINT32:
	case MU_UINT64:
		return MU_UINT64;
	default:
		return 0;
	}
}

/* Sums in 64 bits, as TensorFlow does: neither the sum nor the count needs to fit the type. */
static int mean_of_integers(struct kernel_call *c, enum mu_dtype wide, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO_TENSOR addends = {0};
	MU_AUTO_TENSOR sums = {0};
	bool reduced[MU_MAX_RANK] = {false};
	struct mu_tensor *out;
	struct mu_shape shape;
	int64_t n_reduced;

	MU_RETURN_IF_ERROR(check_axes(c, reduced, err));
	MU_RETURN_IF_ERROR(reduced_shape(&in->shape, reduced,
					 args_attr_bool(c->node, "keep_dims", false), &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &shape, &out, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&addends, wide, &in->shape, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&sums, wide, &shape, err));
	if (!shape.count)
		return 0;
	n_reduced = in->shape.count / shape.count;
	if (!n_reduced) { /* the mean of no integers is 0 */
		memset(out->data, 0, mu_tensor_bytes(out));
		return 0;
	}
	convert(wide, addends.data, in->dtype, in->data, in->shape.count);
	reduce_tensor(&loops->reduce[RED_SUM][wide], sums.data, shape.count, &addends, reduced);
	if (wide == MU_UINT64)
		DIVIDE(uint64_t, sums.data, shape.count, n_reduced);
	else
		DIVIDE(int64_t, sums.data, shape.count, n_reduced);
	convert(in->dtype, out->data, wide, sums.data, shape.count);
	return 0;
}

static int mean(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor *out;
	int64_t n_reduced;
	enum mu_dtype wide = wide_integer(kernel_in(c, 0)->dtype);

	if (wide)
		return mean_of_integers(c, wide, err);

	MU_RETURN_IF_ERROR(reduce_into(c, RED_SUM, &out, &n_reduced, err));
	if (out->dtype == MU_FLOAT)
		DIVIDE(float, out->data, out->shape.count, n_reduced);
	else if (out->dtype == MU_DOUBLE)
		DIVIDE(double, out->data, out->shape.count, n_reduced);
	else if (out->dtype == MU_COMPLEX64) /* both parts; the mean of no numbers is 0 */
		DIVIDE(float, out->data, 2 * out->shape.count, n_reduced ? n_reduced : 1);
	else if (out->dtype == MU_COMPLEX128)
		DIVIDE(double, out->data, 2 * out->shape.count, n_reduced ? n_reduced : 1);
	else
		return args_no_kernel(c, out->dtype, err);
	return 0;
}

/* z * conj(z) of complex numbers with parts of type T, and the root of the real part. */
#define COMPLEX_NORM(T)                                                                            \
	static void complex_squares_##T(T *out, const T *in, int64_t n)                            \
	{                                                                                          \
		for (int64_t i = 0; i < 2 * n; i += 2) {                                           \
			out[i] = in[i] * in[i] + in[i + 1] * in[i + 1];                            \
			out[i + 1] = 0;                                                            \
		}                                                                                  \
	}                                                                                          \
	static void complex_roots_##T(T *x, int64_t n)                                             \
	{                                                                                          \
		for (int64_t i = 0; i < 2 * n; i += 2)                                             \
			x[i] = (T)sqrt((double)x[i]);                                              \
	}
COMPLEX_NORM(float)
COMPLEX_NORM(double)

static void norm_squares(enum mu_dtype t, void *out, const void *in, int64_t n)
{
	if (t == MU_COMPLEX64)
		complex_squares_float(out, in, n);
	else if (t == MU_COMPLEX128)
		complex_squares_double(out, in, n);
	else
		loops->unary[UN_Square][t](out, in, n);
}

/* As in TensorFlow, sums of squares of integers wrap, and the root is truncated. */
static void integer_roots(enum mu_dtype t, void *x, int64_t n)
{
	const size_t size = mu_dtype_size(t);
	char *at = x;

	for (int64_t i = 0; i < n; i++, at += size) {
		double root;
		convert(MU_DOUBLE, &root, t, at, 1);
		root = root > 0 ? sqrt(root) : 0;
		convert(t, at, MU_DOUBLE, &root, 1);
	}
}

static void norm_roots(enum mu_dtype t, void *x, int64_t n)
{
	if (t == MU_COMPLEX64)
		complex_roots_float(x, n);
	else if (t == MU_COMPLEX128)
		complex_roots_double(x, n);
	else if (loops->unary[UN_Sqrt][t])
		loops->unary[UN_Sqrt][t](x, x, n);
	else
		integer_roots(t, x, n);
}

static int euclidean_norm(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO_TENSOR squares = {0};
	struct mu_tensor *out;
	int64_t n_reduced;

	if (!loops->unary[UN_Square][in->dtype])
		return args_no_kernel(c, in->dtype, err);
	MU_RETURN_IF_ERROR(mu_tensor_new(&squares, in->dtype, &in->shape, err));
	norm_squares(in->dtype, squares.data, in->data, in->shape.count);
	struct value original = c->in[0];
	c->in[0].tensor = squares;
	int rc = reduce_into(c, RED_SUM, &out, &n_reduced, err);
	c->in[0] = original;
	if (!rc)
		norm_roots(out->dtype, out->data, out->shape.count);
	return rc;
}

static int l2_loss(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	const size_t size = mu_dtype_size(in->dtype);
	double squares[512], sum = 0;

	MU_RETURN_IF_ERROR(kernel_out_scalar(c, 0, in->dtype, &out, err));
	for (int64_t i = 0, n; i < in->shape.count; i += n) {
		union {
			float f;
			double d;
		} part = {.d = 0};
		n = mu_min(in->shape.count - i, (int64_t)MU_COUNT(squares));
		loops->unary[UN_Square][in->dtype](squares,
						   (const char *)in->data + (size_t)i * size, n);
		loops->reduce[RED_SUM][in->dtype].row(&part, squares, n);
		sum += in->dtype == MU_FLOAT ? (double)part.f : part.d;
	}
	if (in->dtype == MU_FLOAT)
		*MU_DATA(float, out) = (float)(sum / 2);
	else
		*MU_DATA(double, out) = sum / 2;
	return 0;
}

#define REDUCTION(name, op) KERNEL_RUN(name, reduce(c, op, err))
REDUCTION(reduce_sum, RED_SUM)
REDUCTION(reduce_prod, RED_PROD)
REDUCTION(reduce_max, RED_MAX)
REDUCTION(reduce_min, RED_MIN)
REDUCTION(reduce_all, RED_AND)
REDUCTION(reduce_any, RED_OR)

static const struct kernel rows[] = {
    {"Sum", .run = reduce_sum}, {"Prod", .run = reduce_prod},
    {"Max", .run = reduce_max}, {"Min", .run = reduce_min},
    {"All", .run = reduce_all}, {"Any", .run = reduce_any},
    {"Mean", .run = mean},      {"EuclideanNorm", .run = euclidean_norm},
    {"L2Loss", .run = l2_loss},
};
KERNEL_TABLE(math_reduce, rows)
