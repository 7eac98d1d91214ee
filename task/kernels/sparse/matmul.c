/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tensors sorted, and multiplied with dense matrices. */

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/sparse/checks.h"

/* ---- SparseReorder: rows by rising position, equal ones as they came ---- */

struct row {
	const int64_t *at;
	int64_t i;
	int rank;
};

static int sparse_matmul_compare(const void *x, const void *y)
{
	const struct row *a = x, *b = y;

	for (int d = 0; d < a->rank; d++)
		if (a->at[d] != b->at[d])
			return a->at[d] < b->at[d] ? -1 : 1;
	return (a->i > b->i) - (a->i < b->i);
}

static int reorder(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *at = kernel_in(c, 0), *values = kernel_in(c, 1);
	struct mu_tensor *out_at, *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(args_shape(c, 2, &shape, err));
	int64_t n = values->shape.count;
	MU_AUTO_FREE struct row *list = mu_xcalloc((size_t)n + 1, sizeof *list);
	for (int64_t i = 0; i < n; i++)
		list[i] = (struct row){&MU_DATA(int64_t, at)[i * shape.rank], i, shape.rank};
	qsort(list, (size_t)n, sizeof *list, sparse_matmul_compare);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT64, &at->shape, &out_at, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, values->dtype, &values->shape, &out, err));
	for (int64_t i = 0; i < n; i++) {
		elems_copy(MU_INT64, out_at->data, i * shape.rank, list[i].at, 0, shape.rank);
		elems_copy(values->dtype, out->data, i, values->data, list[i].i, 1);
	}
	return 0;
}

/* ---- SparseTensorDenseMatMul ---- */

int check_sparse_product(const struct kernel_call *c, struct sparse_product *p,
			 struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_shape *b = &kernel_in(c, 3)->shape;
	bool flip_b = args_attr_bool(c->node, "adjoint_b", false);
	struct mu_shape a;

	MU_RETURN_IF_ERROR(args_shape(c, 2, &a, err));
	p->n = kernel_in(c, 1)->shape.count;
	p->flip = args_attr_bool(c->node, "adjoint_a", false);
	p->rows = a.dim[p->flip];
	p->inner = a.dim[!p->flip];
	p->cols = b->dim[!flip_b];
	p->b_row = flip_b ? 1 : b->dim[1];
	p->b_col = flip_b ? b->dim[1] : 1;
	if (b->dim[flip_b] != p->inner)
		return mu_invalid(err,
				  "Cannot multiply A and B because inner dimension does not match: "
				  "%lld vs. %lld.  Did you forget a transpose?",
				  (long long)p->inner, (long long)b->dim[flip_b]);
	return mu_shape_set(shape, 2, (int64_t[]){p->rows, p->cols}, err);
}

#define MULTIPLY(T)                                                                                \
	static void multiply_##T(const struct kernel_call *c, const struct sparse_product *p,      \
				 T *out)                                                           \
	{                                                                                          \
		const T *v = kernel_in(c, 1)->data, *b = kernel_in(c, 3)->data;                    \
		for (int64_t k = 0; k < p->n; k++) {                                               \
			int64_t i = mu_tensor_int(kernel_in(c, 0), 2 * k + p->flip);               \
			int64_t j = mu_tensor_int(kernel_in(c, 0), 2 * k + !p->flip);              \
			for (int64_t x = 0; x < p->cols; x++)                                      \
				out[i * p->cols + x] += v[k] * b[j * p->b_row + x * p->b_col];     \
		}                                                                                  \
	}
MULTIPLY(float)
MULTIPLY(double)
MULTIPLY(int32_t)

static int sparse_dense_matmul(struct kernel_call *c, struct mu_err *err)
{
	struct sparse_product p;
	struct mu_tensor *out;
	struct mu_shape s;

	MU_RETURN_IF_ERROR(check_sparse_product(c, &p, &s, err));
	for (int64_t k = 0; k < p.n; k++) {
		int64_t i = mu_tensor_int(kernel_in(c, 0), 2 * k + p.flip);
		int64_t j = mu_tensor_int(kernel_in(c, 0), 2 * k + !p.flip);
		if (j < 0 || j >= p.inner)
			return mu_invalid(err,
					  "k (%lld) from index[%lld,%d] out of bounds (>=%lld)",
					  (long long)j, (long long)k, !p.flip, (long long)p.inner);
		if (i < 0 || i >= p.rows)
			return mu_invalid(err,
					  "m (%lld) from index[%lld,%d] out of bounds (>=%lld)",
					  (long long)i, (long long)k, p.flip, (long long)p.rows);
	}
	enum mu_dtype type = kernel_in(c, 1)->dtype;
	if (type != MU_FLOAT && type != MU_DOUBLE && type != MU_INT32)
		return mu_fail(err, MU_UNIMPLEMENTED, "no sparse products of %s",
			       mu_dtype_name(type));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &s, &out, err));
	elems_zero(type, out->data, 0, s.count);
	if (type == MU_FLOAT)
		multiply_float(c, &p, out->data);
	else if (type == MU_DOUBLE)
		multiply_double(c, &p, out->data);
	else
		multiply_int32_t(c, &p, out->data);
	return 0;
}

static const struct kernel rows[] = {
    {"SparseReorder", .run = reorder},
    {"SparseTensorDenseMatMul", .flags = KERNEL_EXPENSIVE, .run = sparse_dense_matmul},
};
KERNEL_TABLE(sparse_matmul, rows)
