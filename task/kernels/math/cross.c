/* SPDX-License-Identifier: Apache-2.0 */
/* Cross (products of vectors of three) and UnravelIndex. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/math/checks.h"

/* to: the vectors of three elements of `from`, each rotated by `distance` elements. */
static int rotate_vectors(struct mu_tensor *to, const struct mu_tensor *from, int distance,
			  struct mu_err *err)
{
	MU_RETURN_IF_ERROR(mu_tensor_new(to, from->dtype, &from->shape, err));
	for (int64_t i = 0; i < from->shape.count; i += 3) {
		elems_copy(from->dtype, to->data, i, from->data, i + distance, 3 - distance);
		elems_copy(from->dtype, to->data, i + 3 - distance, from->data, i, distance);
	}
	return 0;
}

int check_cross(const struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *s = &kernel_in(c, 0)->shape;

	MU_RETURN_IF_ERROR(args_same_shape(c, 0, 1, err));
	if (s->rank < 1 || s->dim[s->rank - 1] != 3)
		return mu_fail(err, s->rank ? MU_FAILED_PRECONDITION : MU_INVALID_ARGUMENT,
			       "Cross-products are only defined for 3-element vectors, not for %s",
			       mu_shape_str(s));
	return 0;
}

static int cross(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	binary_loop *multiply = loops->binary[BIN_Mul][a->dtype];
	binary_loop *subtract = loops->binary[BIN_Sub][a->dtype];
	MU_AUTO_TENSOR left = {0};
	MU_AUTO_TENSOR right = {0};
	MU_AUTO_TENSOR rotated_b = {0};
	int64_t n = a->shape.count;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(check_cross(c, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, a->dtype, &a->shape, &out, err));
	MU_RETURN_IF_ERROR(rotate_vectors(&left, a, 1, err));
	MU_RETURN_IF_ERROR(rotate_vectors(&rotated_b, b, 2, err));
	MU_RETURN_IF_ERROR(rotate_vectors(&right, a, 2, err));
	multiply(left.data, left.data, rotated_b.data, n, BOTH_RUN);
	mu_tensor_unref(&rotated_b);
	MU_RETURN_IF_ERROR(rotate_vectors(&rotated_b, b, 1, err));
	multiply(right.data, right.data, rotated_b.data, n, BOTH_RUN);
	subtract(out->data, left.data, right.data, n, BOTH_RUN);
	return 0;
}

/* Column i of the result has the coordinates of flat index i in a tensor of shape `dims`. */
static int unravel(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 0), *dims = kernel_in(c, 1);
	int64_t total = 1, n = indices->shape.count;
	struct mu_tensor *out;
	struct mu_shape shape;

	if (indices->shape.rank > 1)
		return mu_invalid(err, "The indices can only be scalar or vector, got %s",
				  mu_shape_str(&indices->shape));
	int64_t rank = dims->shape.count;
	for (int64_t d = 0; d < rank; d++) {
		int64_t x = mu_tensor_int(dims, d);
		if (x < 0)
			return mu_invalid(err,
					  "Input dims cannot be negative. Got dim = %lld at index "
					  "%lld",
					  (long long)x, (long long)d);
		if (x == 0)
			return mu_invalid(err, "Input dims cannot contain a dim of zero");
		if (__builtin_mul_overflow(total, x, &total) ||
		    (dims->dtype == MU_INT32 && total > INT32_MAX))
			return mu_invalid(err, "Input dims product is causing integer overflow");
	}
	for (int64_t i = 0; i < n; i++)
		if (mu_tensor_int(indices, i) >= total)
			return mu_invalid(err, "index is out of bound as with dims");
	int64_t out_dims[] = {rank, n};
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 1 + indices->shape.rank, out_dims, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, indices->dtype, &shape, &out, err));
	for (int64_t i = 0; i < n; i++) {
		int64_t rest = mu_tensor_int(indices, i);
		for (int64_t d = rank; d-- > 0; rest /= mu_tensor_int(dims, d)) {
			int64_t x = rest % mu_tensor_int(dims, d);
			mu_tensor_set_int(out, d * n + i, x);
		}
	}
	return 0;
}

static const struct kernel rows[] = {
    {"Cross", .run = cross},
    {"UnravelIndex", .run = unravel},
};
KERNEL_TABLE(math_cross, rows)
