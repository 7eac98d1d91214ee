/* SPDX-License-Identifier: Apache-2.0 */
/* TopK; diagonals; updates at given positions. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/math/checks.h"

/* ---- TopKV2 ---- */

struct ranked {
	double value;
	int64_t exact; /* int64 does not fit a double */
	int32_t at;
};

/* Larger values first, then the lower index; NaN last. */
static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->value > y->value || (x->value == x->value && y->value != y->value))
		return -1;
	if (x->value < y->value || (y->value == y->value && x->value != x->value))
		return 1;
	if (x->exact != y->exact)
		return x->exact > y->exact ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static void rank_row(const struct mu_tensor *in, int64_t row, int64_t n, struct ranked *r)
{
	size_t size = mu_dtype_size(in->dtype);

	for (int64_t i = 0; i < n; i++) {
		const char *at = (const char *)in->data + (size_t)(row * n + i) * size;
		r[i] = (struct ranked){.at = (int32_t)i};
		convert(MU_DOUBLE, &r[i].value, in->dtype, at, 1);
		if (in->dtype == MU_INT64)
			memcpy(&r[i].exact, at, sizeof r[i].exact);
	}
	qsort(r, (size_t)n, sizeof *r, by_rank);
}

int check_top_k(const struct kernel_call *c, int64_t *k, struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t n, dim[MU_MAX_RANK];
	int rc = 0;

	if (c->n_in > 1)
		rc = args_int(c, 1, k, err);
	else
		*k = args_attr_int(c->node, "k", 0);
	if (rc)
		return rc;
	if (in->shape.rank < 1)
		return mu_invalid(err, "input must be >= 1-D, got shape %s",
				  mu_shape_str(&in->shape));
	n = in->shape.dim[in->shape.rank - 1];
	if (*k < 0)
		return mu_invalid(err, "Need k >= 0, got %lld", (long long)*k);
	if (n < *k)
		return mu_invalid(err, "input must have at least k columns. Had %lld, needed %lld",
				  (long long)n, (long long)*k);
	if (!mu_dtype_size(in->dtype) || !convert_supports(MU_DOUBLE, in->dtype) || n > INT32_MAX)
		return args_no_kernel(c, in->dtype, err);
	memcpy(dim, in->shape.dim, sizeof dim);
	dim[in->shape.rank - 1] = *k;
	return mu_shape_set(shape, in->shape.rank, dim, err);
}

static int top_k(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const enum mu_dtype index_type = args_attr_type(c->node, "index_type", MU_INT32);
	struct mu_tensor *values, *at;
	struct mu_shape shape;
	int64_t k;

	MU_RETURN_IF_ERROR(check_top_k(c, &k, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &shape, &values, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, index_type, &shape, &at, err));
	int64_t n = in->shape.dim[in->shape.rank - 1], rows = n ? in->shape.count / n : 0;
	MU_AUTO_FREE struct ranked *r = malloc((size_t)(n + 1) * sizeof *r);
	if (!r)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld columns",
			       (long long)n);
	for (int64_t row = 0; row < rows && k; row++) {
		rank_row(in, row, n, r);
		for (int64_t i = 0; i < k; i++) {
			convert(index_type,
				(char *)at->data +
				    (size_t)(row * k + i) * mu_dtype_size(index_type),
				MU_INT32, &r[i].at, 1);
			elems_copy(in->dtype, values->data, row * k + i, in->data,
				   row * n + r[i].at, 1);
		}
	}
	return 0;
}

/* Exact, as TensorFlow's on a CPU; the other forms have no kernel there. */
static int approx_top_k(struct kernel_call *c, struct mu_err *err)
{
	if (!args_attr_bool(c->node, "is_max_k", true) ||
	    args_attr_int(c->node, "reduction_dimension", -1) != -1)
		return args_no_kernel(c, kernel_in(c, 0)->dtype, err);
	return top_k(c, err);
}

/* Element n of each row in rising order; in falling order when `reverse`. */
static int nth_element(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	bool reverse = args_attr_bool(c->node, "reverse", false);
	struct mu_shape shape = in->shape;
	struct mu_tensor *out;
	int64_t k;

	MU_RETURN_IF_ERROR(args_int(c, 1, &k, err));
	int64_t n = shape.rank ? shape.dim[shape.rank - 1] : 0;
	if (k < 0 || k >= n)
		return mu_invalid(err,
				  "Input must be at least 1-D and n in [0, %lld), but got %lld",
				  (long long)n, (long long)k);
	if (!mu_dtype_size(in->dtype) || !convert_supports(MU_DOUBLE, in->dtype) || n > INT32_MAX)
		return args_no_kernel(c, in->dtype, err);
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, shape.rank - 1, in->shape.dim, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &shape, &out, err));
	MU_AUTO_FREE struct ranked *r = malloc((size_t)n * sizeof *r);
	if (!r)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld columns",
			       (long long)n);
	for (int64_t row = 0; row < shape.count; row++) {
		rank_row(in, row, n, r);
		elems_copy(in->dtype, out->data, row, in->data,
			   row * n + r[reverse ? k : n - 1 - k].at, 1);
	}
	return 0;
}

/* ---- DiagPart: the first half of the dimensions meets the second ---- */

static int tensor_diag_part(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int half = in->shape.rank / 2;
	struct mu_shape shape;
	struct mu_tensor *out;

	if (in->shape.rank % 2)
		return mu_invalid(err, "The rank of the tensor should be even, got shape %s",
				  mu_shape_str(&in->shape));
	for (int d = 0; d < half; d++)
		if (in->shape.dim[d] != in->shape.dim[half + d])
			return mu_invalid(err,
					  "Invalid shape %s: dimensions %d and %d do not match.",
					  mu_shape_str(&in->shape), d, half + d);
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, half, in->shape.dim, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	struct view diagonal = {.rank = 1, .dim = {shape.count}, .stride = {shape.count + 1}};
	return move_read(out, in, &diagonal, err);
}

static int diag(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_shape shape = in->shape;
	struct mu_tensor *out;

	if (in->shape.rank == 0)
		return mu_invalid(err, "Input must be at least rank 1, got 0");
	MU_RETURN_IF_ERROR(mu_shape_append(&shape, in->shape.rank, in->shape.dim, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	MU_RETURN_IF_ERROR(move_fill(out, NULL, err));
	int64_t n = in->shape.count;
	struct view diagonal = {.rank = 1, .dim = {n}, .stride = {n + 1}};
	return move_write(out, &diagonal, in, err);
}

static const struct kernel rows[] = {
    {"TopK TopKV2", .run = top_k},
    {"ApproxTopK", .run = approx_top_k},
    {"NthElement", .run = nth_element},
    {"DiagPart", .run = tensor_diag_part},
    {"Diag", .run = diag},
};
KERNEL_TABLE(math_top_k, rows)
