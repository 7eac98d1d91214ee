/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that create a tensor: Fill, Range, LinSpace, OneHot, Where (the positions of true elements).
 */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/engine/variant.h"

static int array_fill(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape shape;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(args_shape(c, 0, &shape, err));
	if (kernel_in(c, 1)->shape.rank > 1 || kernel_in(c, 1)->shape.count != 1)
		return mu_invalid(err, "value must represent a scalar, got shape %s",
				  mu_shape_str(&kernel_in(c, 1)->shape));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, kernel_in(c, 1)->dtype, &shape, &out, err));
	elems_fill(out->dtype, out->data, 0, kernel_in(c, 1)->data, shape.count);
	return 0;
}

static int zeros_like(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out, t;
	int rc = 0;

	if (in->dtype == MU_VARIANT) {
		if (!(rc = variant_zeros(&t, in, err)))
			kernel_out_take(c, 0, t);
		return rc;
	}
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &in->shape, &out, err));
	elems_zero(out->dtype, out->data, 0, out->shape.count);
	return 0;
}

static int ones_like(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const enum mu_dtype real = in->dtype == MU_COMPLEX64    ? MU_FLOAT
				   : in->dtype == MU_COMPLEX128 ? MU_DOUBLE
								: in->dtype;
	const int32_t one = 1;
	uint64_t element[2] = {0}; /* complex: the imaginary part is zero */
	struct mu_tensor *out;

	if (!convert(real, element, MU_INT32, &one, 1))
		return args_no_kernel(c, in->dtype, err);

	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &in->shape, &out, err));
	elems_fill(out->dtype, out->data, 0, element, out->shape.count);
	return 0;
}

static int array_empty(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape shape;
	struct mu_tensor *out;
	int rc = args_shape(c, 0, &shape, err);

	if (!rc)
		rc =
		    kernel_out(c, 0, args_attr_type(c->node, "dtype", MU_FLOAT), &shape, &out, err);
	if (!rc)
		elems_zero(out->dtype, out->data, 0, shape.count);
	return rc;
}

/* ---- Range, LinSpace ---- */

/* v: start, limit and delta, rounded to double.  reversed: limit is on the wrong side of start. */
static int range_check(const double v[3], bool reversed, double count, struct mu_err *err)
{
	if (v[2] == 0)
		return mu_invalid(err, "Requires delta != 0: 0");
	if (reversed)
		return mu_invalid(err, "Requires start %s limit when delta %s 0: %g/%g",
				  v[2] > 0 ? "<=" : ">=", v[2] > 0 ? ">" : "<", v[0], v[1]);
	if (!(count <= 0x1p63))
		return mu_invalid(err, "Requires ((limit - start) / delta) <= %lld",
				  (long long)INT64_MAX);
	if (count > 0x1p62)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "a range of %g elements", count);
	return 0;
}

#define REVERSED(v) ((v)[2] > 0 ? (v)[0] > (v)[1] : (v)[0] < (v)[1])

/* The number of values of a range; exact also for integers that double cannot represent. */
static int range_count(struct kernel_call *c, const double v[3], int64_t *n, struct mu_err *err)
{
	enum mu_dtype t = kernel_in(c, 0)->dtype;
	/* As in TensorFlow, floats are divided as floats: 0.3f / 0.1f is 3, but more than 3 in
	 * double. */
	double count = t == MU_FLOAT
			   ? (double)ceilf(fabsf(((float)v[1] - (float)v[0]) / (float)v[2]))
			   : ceil(fabs((v[1] - v[0]) / v[2]));
	int64_t i[3];

	if (t != MU_INT32 && t != MU_INT64) {
		MU_RETURN_IF_ERROR(range_check(v, REVERSED(v), count, err));
		*n = (int64_t)count;
		return 0;
	}
	for (unsigned k = 0; k < 3; k++)
		i[k] = mu_tensor_int(kernel_in(c, k), 0);
	MU_RETURN_IF_ERROR(range_check(v, REVERSED(i), count, err));
	bool up = i[2] > 0;
	uint64_t span = (uint64_t)i[up] - (uint64_t)i[!up];
	uint64_t step = up ? (uint64_t)i[2] : 0 - (uint64_t)i[2];
	*n = (int64_t)(span / step + (span % step != 0));
	return 0;
}

#define RANGE_OF(T)                                                                                \
	do {                                                                                       \
		T start = *MU_DATA(T, kernel_in(c, 0)), delta = *MU_DATA(T, kernel_in(c, 2));      \
		for (int64_t i = 0; i < n; i++)                                                    \
			MU_DATA(T, out)[i] = (T)(start + (T)i * delta);                            \
	} while (0)

static int array_range(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = kernel_in(c, 0)->dtype;
	double v[3];
	struct mu_tensor *out;
	int64_t n = 0;

	for (unsigned i = 0; i < 3; i++) {
		const struct mu_shape *s = &kernel_in(c, i)->shape;
		if (s->rank > 1 || s->count != 1)
			return mu_invalid(err, "%s must be a scalar, not shape %s",
					  (const char *const[]){"start", "limit", "delta"}[i],
					  mu_shape_str(s));
		if (!convert(MU_DOUBLE, &v[i], t, kernel_in(c, i)->data, 1))
			return args_no_kernel(c, t, err);
	}
	MU_RETURN_IF_ERROR(range_count(c, v, &n, err));
	struct mu_shape shape = mu_shape_vec(n);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, &shape, &out, err));
	if (t == MU_INT32)
		RANGE_OF(int32_t);
	else if (t == MU_INT64)
		RANGE_OF(int64_t);
	else if (t == MU_FLOAT)
		RANGE_OF(float);
	else if (t == MU_DOUBLE)
		RANGE_OF(double);
	else
		return args_no_kernel(c, t, err);
	return 0;
}

static int lin_space(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = kernel_in(c, 0)->dtype;
	double limits[2];
	int64_t n;
	struct mu_tensor *out;
	int rc = args_int(c, 2, &n, err);

	for (unsigned i = 0; i < 2 && !rc; i++)
		if ((t != MU_FLOAT && t != MU_DOUBLE) ||
		    !convert(MU_DOUBLE, &limits[i], t, kernel_in(c, i)->data, 1))
			rc = args_no_kernel(c, t, err);
	if (!rc && n <= 0)
		rc = mu_invalid(err, "Requires num > 0: %lld", (long long)n);
	if (rc)
		return rc;
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, t, n, &out, err));
	double step = n > 1 ? (limits[1] - limits[0]) / (double)(n - 1) : 0;
	for (int64_t i = 0; i < n; i++) {
		double x = i == n - 1 && n > 1 ? limits[1] : limits[0] + step * (double)i;
		if (t == MU_FLOAT)
			MU_DATA(float, out)[i] = (float)x;
		else
			MU_DATA(double, out)[i] = x;
	}
	return 0;
}

/* ---- Where, OneHot, InvertPermutation ---- */

static int where(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	size_t size = mu_dtype_size(in->dtype);
	int64_t n_true = 0, n = in->shape.count;
	struct mu_tensor *out;
	struct mu_shape shape = mu_shape_scalar();
	MU_AUTO_FREE bool *is_true = malloc((size_t)n + 1);

	if (!size || !is_true ||
	    (!mu_dtype_is_complex(in->dtype) && !convert_supports(MU_BOOL, in->dtype)))
		return mu_fail(err, size && !is_true ? MU_RESOURCE_EXHAUSTED : MU_UNIMPLEMENTED,
			       "Where cannot be computed for type %s and shape %s",
			       mu_dtype_name(in->dtype), mu_shape_str(&in->shape));
	if (mu_dtype_is_complex(in->dtype))
		for (int64_t i = 0; i < n; i++)
			is_true[i] = !convert_is_zero(in, i);
	else
		convert(MU_BOOL, is_true, in->dtype, in->data, n);
	for (int64_t i = 0; i < n; i++)
		n_true += is_true[i];
	MU_RETURN_IF_ERROR(mu_shape_push(&shape, n_true, err));
	MU_RETURN_IF_ERROR(mu_shape_push(&shape, in->shape.rank, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT64, &shape, &out, err));
	int64_t *to = out->data;
	for (int64_t i = 0; i < n; i++) {
		if (!is_true[i])
			continue;
		int64_t rest = i;
		for (int d = in->shape.rank; d-- > 0; rest /= in->shape.dim[d])
			to[d] = rest % in->shape.dim[d];
		to += in->shape.rank;
	}
	return 0;
}

static int one_hot(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t depth, axis = args_attr_int(c->node, "axis", -1), inner = 1;
	struct mu_shape shape = mu_shape_scalar();
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(args_int(c, 1, &depth, err));
	if (kernel_in(c, 2)->shape.rank || kernel_in(c, 3)->shape.rank || depth < 0 || axis < -1 ||
	    axis > in->shape.rank)
		return mu_invalid(err,
				  "depth must be non-negative, on_value and off_value scalars, "
				  "axis at most %d: got %lld and %lld",
				  in->shape.rank, (long long)depth, (long long)axis);
	if (axis == -1)
		axis = in->shape.rank;
	inner = mu_shape_product(&in->shape, (int)axis, in->shape.rank);
	MU_RETURN_IF_ERROR(mu_shape_splice(&shape, &in->shape, (int)axis, 0, 1, &depth, err));
	enum mu_dtype t = kernel_in(c, 2)->dtype;
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, t, &shape, &out, err));
	return move_one_hot(out, in, depth, inner, kernel_in(c, 2), kernel_in(c, 3), err);
}

static int invert_permutation(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &in->shape, &out, err));
	int64_t n = in->shape.count;
	MU_AUTO_FREE bool *is_used = calloc((size_t)n + 1, 1);
	if (!is_used)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld flags",
			       (long long)n);
	for (int64_t i = 0; i < n; i++) {
		int64_t p = mu_tensor_int(in, i);
		if (p < 0 || p >= n || is_used[p])
			return mu_invalid(err, "%lld is not between 0 and %lld, or is duplicated",
					  (long long)p, (long long)n);
		is_used[p] = true;
		mu_tensor_set_int(out, p, i);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"Fill", .run = array_fill},
    {"ZerosLike", .run = zeros_like},
    {"OnesLike", .run = ones_like},
    {"Empty", .run = array_empty},
    {"Range", .run = array_range},
    {"LinSpace", .run = lin_space},
    {"Where", .run = where},
    {"OneHot", .run = one_hot},
    {"InvertPermutation", .run = invert_permutation},
};
KERNEL_TABLE(array_create, rows)
