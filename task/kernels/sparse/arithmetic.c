/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of sparse tensors.  Ops with two sparse operands merge them by position; they expect
 * sorted positions, as TensorFlow does. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/sparse/sparse.h"

/* SparseAdd does not compare the positions with the shape, as in TensorFlow. */
static int read_operands(const struct kernel_call *c, bool in_bounds, struct sparse *a,
			 struct sparse *b, struct mu_err *err)
{
	MU_RETURN_IF_ERROR((in_bounds ? sparse_in : sparse_in_unchecked)(c, 0, a, err));
	MU_RETURN_IF_ERROR((in_bounds ? sparse_in : sparse_in_unchecked)(c, 3, b, err));
	if (!mu_shape_eq(&a->shape, &b->shape))
		return mu_invalid(err, "Operands' shapes do not match: %s and %s",
				  mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	return 0;
}

static const void *element(const struct mu_tensor *t, int64_t i)
{
	return (const char *)t->data + (size_t)i * mu_dtype_size(t->dtype);
}

static int sparse_arithmetic_compare(const struct mu_tensor *a, int64_t i,
				     const struct mu_tensor *b, int64_t k)
{
	const int64_t rank = a->shape.dim[1];

	for (int64_t d = 0; d < rank; d++) {
		int64_t x = mu_tensor_int(a, i * rank + d), y = mu_tensor_int(b, k * rank + d);
		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/* ---- two sparse tensors ---- */

/* An entry of the union: its index in either operand, -1 if that operand lacks the position. */
struct entry_pair {
	int64_t a, b;
};

static int64_t sparse_arithmetic_join(const struct sparse *a, const struct sparse *b,
				      struct entry_pair *out)
{
	int64_t n = 0;

	for (int64_t i = 0, k = 0; i < a->n || k < b->n; n++) {
		int order = i == a->n   ? 1
			    : k == b->n ? -1
					: sparse_arithmetic_compare(a->at, i, b->at, k);
		out[n] = (struct entry_pair){order <= 0 ? i++ : -1, order >= 0 ? k++ : -1};
	}
	return n;
}

static double magnitude(enum mu_dtype type, const void *x)
{
	double v = 0;

	if (type == MU_COMPLEX64)
		return cabsf(*(const float _Complex *)x);
	if (type == MU_COMPLEX128)
		return cabs(*(const double _Complex *)x);
	convert(MU_DOUBLE, &v, type, x, 1);
	return fabs(v);
}

/* Outputs 0 and 1: the positions of the union, and `op` of the values. A missing value is zero.
 * With `is_sum`, drops sums of two values whose magnitude is below input 6 (`thresh`). */
static int union_of(struct kernel_call *c, enum binary_op op, bool is_sum, struct mu_err *err)
{
	struct mu_tensor *at, *values;
	struct mu_shape vec;
	struct sparse a, b;
	double threshold = 0;

	MU_RETURN_IF_ERROR(read_operands(c, !is_sum, &a, &b, err));
	enum mu_dtype type = a.values->dtype;
	binary_loop *loop = loops->binary[op][type];
	size_t size = mu_dtype_size(type);
	if (!loop)
		return args_no_kernel(c, type, err);
	if (is_sum &&
	    !convert(MU_DOUBLE, &threshold, kernel_in(c, 6)->dtype, kernel_in(c, 6)->data, 1))
		return mu_invalid(err, "thresh must be a real number");
	MU_AUTO_FREE struct entry_pair *pairs = mu_xcalloc((size_t)(a.n + b.n) + 1, sizeof *pairs);
	MU_AUTO_FREE char *results = mu_xcalloc((size_t)(a.n + b.n) + 1, size);
	int64_t n = sparse_arithmetic_join(&a, &b, pairs), n_kept = 0;
	const uint64_t zero[2] = {0};
	for (int64_t i = 0; i < n; i++) {
		const void *x = pairs[i].a < 0 ? zero : element(a.values, pairs[i].a);
		const void *y = pairs[i].b < 0 ? zero : element(b.values, pairs[i].b);
		loop(results + (size_t)n_kept * size, x, y, 1, BOTH_RUN);
		if (!is_sum || pairs[i].a < 0 || pairs[i].b < 0 ||
		    magnitude(type, results + (size_t)n_kept * size) >= threshold)
			pairs[n_kept++] = pairs[i];
	}
	vec = mu_shape_vec(n_kept);
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 0, MU_INT64, 2, (int64_t[]){n_kept, a.shape.rank}, &at, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, type, &vec, &values, err));
	memcpy(values->data, results, (size_t)n_kept * size);
	for (int64_t i = 0; i < n_kept; i++)
		elems_copy(MU_INT64, at->data, i * a.shape.rank,
			   pairs[i].a < 0 ? b.at->data : a.at->data,
			   (pairs[i].a < 0 ? pairs[i].b : pairs[i].a) * a.shape.rank, a.shape.rank);
	if (is_sum)
		kernel_out_take(c, 2, mu_tensor_ref(kernel_in(c, 2)));
	return 0;
}

KERNEL_RUN(sparse_arithmetic_add, union_of(c, BIN_AddV2, true, err))
KERNEL_RUN(maximum, union_of(c, BIN_Maximum, false, err))
KERNEL_RUN(minimum, union_of(c, BIN_Minimum, false, err))

/* Output `out`: the gradient of the operand with the positions of input `in`.  It is the gradient
 * of the sum at the same positions, and zero elsewhere. */
static int grad_of(struct kernel_call *c, unsigned in, unsigned out, struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, 0), *at = kernel_in(c, in);
	const struct mu_tensor *sum = kernel_in(c, 3);
	struct mu_tensor *to;

	struct mu_shape vec = mu_shape_vec(at->shape.dim[0]);
	MU_RETURN_IF_ERROR(kernel_out(c, out, grad->dtype, &vec, &to, err));
	elems_zero(grad->dtype, to->data, 0, vec.count);
	for (int64_t i = 0, k = 0; i < vec.count && k < grad->shape.count;) {
		int order = sparse_arithmetic_compare(at, i, sum, k);
		if (!order)
			elems_copy(grad->dtype, to->data, i, grad->data, k, 1);
		i += order <= 0;
		k += order >= 0;
	}
	return 0;
}

static int add_grad(struct kernel_call *c, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(grad_of(c, 1, 0, err));
	return grad_of(c, 2, 1, err);
}

/* ---- a sparse and a dense tensor ---- */

/* The element of a dense tensor of shape d, broadcast to the sparse shape, at entry i. */
static int64_t dense_at(const struct sparse *s, int64_t i, const struct mu_shape *d)
{
	int skip = s->shape.rank - d->rank;
	int64_t at = 0;

	for (int k = 0; k < d->rank; k++) {
		int64_t x = mu_tensor_int(s->at, i * s->shape.rank + skip + k);
		at = at * d->dim[k] + (d->dim[k] == 1 ? 0 : x);
	}
	return at;
}

static int dense_cwise(struct kernel_call *c, enum binary_op op, struct mu_err *err)
{
	const struct mu_tensor *dense = kernel_in(c, 3);
	struct mu_tensor *out;
	struct sparse s;

	MU_RETURN_IF_ERROR(sparse_in(c, 0, &s, err));
	if (!s.shape.rank)
		return mu_invalid(err, "The shape argument requires at least one element.");
	int skip = s.shape.rank - dense->shape.rank;
	bool fits = skip >= 0;
	for (int d = 0; fits && d < dense->shape.rank; d++) {
		int64_t n = s.shape.dim[skip + d];
		fits = dense->shape.dim[d] == n || (dense->shape.dim[d] == 1 && n);
	}
	if (!fits)
		return mu_invalid(err,
				  "SparseDenseBinaryOpShared broadcasts dense to sparse only; got "
				  "incompatible shapes: %s vs. %s",
				  mu_shape_str(&s.shape), mu_shape_str(&dense->shape));
	binary_loop *loop = loops->binary[op][dense->dtype];
	if (!loop)
		return args_no_kernel(c, dense->dtype, err);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, dense->dtype, &s.values->shape, &out, err));
	for (int64_t i = 0; i < s.n; i++)
		loop((char *)out->data + (size_t)i * mu_dtype_size(dense->dtype),
		     element(s.values, i), element(dense, dense_at(&s, i, &dense->shape)), 1,
		     BOTH_RUN);
	return 0;
}

KERNEL_RUN(dense_cwise_add, dense_cwise(c, BIN_AddV2, err))
KERNEL_RUN(dense_cwise_mul, dense_cwise(c, BIN_Mul, err))

static int dense_cwise_div(struct kernel_call *c, struct mu_err *err)
{
	if (convert_any_zero(kernel_in(c, 3)))
		return mu_invalid(err, "SparseDenseCwiseDiv cannot divide by zero,but input dense "
				       "tensor contains zero ");
	return dense_cwise(c, BIN_Div, err);
}

static int dense_add(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *dense = kernel_in(c, 3);
	struct mu_tensor *out;
	struct sparse s;

	MU_RETURN_IF_ERROR(sparse_in(c, 0, &s, err));
	binary_loop *loop = loops->binary[BIN_AddV2][dense->dtype];
	if (!loop)
		return args_no_kernel(c, dense->dtype, err);
	if (!mu_shape_eq(&s.shape, &dense->shape))
		return mu_invalid(
		    err, "Dimensions of a dense and a sparse tensor do not equal: %s vs. %s",
		    mu_shape_str(&dense->shape), mu_shape_str(&s.shape));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, dense->dtype, &dense->shape, &out, err));
	elems_copy(dense->dtype, out->data, 0, dense->data, 0, dense->shape.count);
	for (int64_t i = 0; i < s.n; i++) {
		char *to = (char *)out->data +
			   (size_t)dense_at(&s, i, &dense->shape) * mu_dtype_size(dense->dtype);
		loop(to, to, element(s.values, i), 1, BOTH_RUN);
	}
	return 0;
}

/* Softmax over runs of entries that differ in the last dimension only. Positions may be outside the
 * shape, as in TensorFlow. */
static int sparse_arithmetic_softmax(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor *out;
	struct sparse s;

	MU_RETURN_IF_ERROR(sparse_in_unchecked(c, 0, &s, err));
	enum mu_dtype type = s.values->dtype;
	const int64_t rank = s.shape.rank;
	if (!loops->softmax[type])
		return args_no_kernel(c, type, err);
	if (rank < 2)
		return mu_invalid(err, "Shape should have rank of at least 2, not %lld",
				  (long long)rank);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &s.values->shape, &out, err));
	for (int64_t i = 0, n; i < s.n; i += n) {
		bool same = true;
		for (n = 1; i + n < s.n; n++) {
			for (int64_t d = 0; same && d < rank - 1; d++)
				same = mu_tensor_int(s.at, (i + n) * rank + d) ==
				       mu_tensor_int(s.at, i * rank + d);
			if (!same)
				break;
		}
		double stats[2];
		loops->softmax[type]((char *)out->data + (size_t)i * mu_dtype_size(type),
				     element(s.values, i), n, stats);
	}
	return 0;
}

/* Output 0: the gradient of the values.  Output 1: the gradient of the default value. */
static int fill_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *reverse_index = kernel_in(c, 0), *grad = kernel_in(c, 1);
	struct mu_tensor *values, *default_grad;

	binary_loop *loop = loops->binary[BIN_AddV2][grad->dtype];
	if (!loop)
		return args_no_kernel(c, grad->dtype, err);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, grad->dtype, &reverse_index->shape, &values, err));
	MU_RETURN_IF_ERROR(kernel_out_scalar(c, 1, grad->dtype, &default_grad, err));
	MU_AUTO_FREE bool *is_value = mu_xcalloc((size_t)grad->shape.count + 1, sizeof *is_value);
	for (int64_t i = 0; i < reverse_index->shape.count; i++) {
		int64_t k = MU_DATA(int64_t, reverse_index)[i];
		if (k < 0 || k >= grad->shape.count)
			return mu_invalid(
			    err, "Elements in reverse index must be in [0, %lld) but got %lld",
			    (long long)grad->shape.count, (long long)k);
		elems_copy(grad->dtype, values->data, i, grad->data, k, 1);
		is_value[k] = true;
	}
	elems_zero(grad->dtype, default_grad->data, 0, 1);
	for (int64_t k = 0; k < grad->shape.count; k++)
		if (!is_value[k])
			loop(default_grad->data, default_grad->data, element(grad, k), 1, BOTH_RUN);
	return 0;
}

static const struct kernel rows[] = {
    {"SparseAdd", .run = sparse_arithmetic_add},
    {"SparseAddGrad", .run = add_grad},
    {"SparseSparseMaximum", .run = maximum},
    {"SparseSparseMinimum", .run = minimum},
    {"SparseDenseCwiseAdd", .run = dense_cwise_add},
    {"SparseDenseCwiseMul", .run = dense_cwise_mul},
    {"SparseDenseCwiseDiv", .run = dense_cwise_div},
    {"SparseTensorDenseAdd", .run = dense_add},
    {"SparseSoftmax", .run = sparse_arithmetic_softmax},
    {"SparseFillEmptyRowsGrad RaggedFillEmptyRowsGrad", .run = fill_grad},
};
KERNEL_TABLE(sparse_arithmetic, rows)
