/* SPDX-License-Identifier: Apache-2.0 */
/* SparseReorder and SparseTensorDenseMatMul. */

#include <complex.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/sparse/checks.h"

/* ---- SparseReorder: a stable sort by position ---- */

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
	bool adjoint_b = args_attr_bool(c->node, "adjoint_b", false);
	struct mu_shape a;

	MU_RETURN_IF_ERROR(args_shape(c, 2, &a, err));
	p->n = kernel_in(c, 1)->shape.count;
	p->flip = args_attr_bool(c->node, "adjoint_a", false);
	p->rows = a.dim[p->flip];
	p->inner = a.dim[!p->flip];
	p->cols = b->dim[!adjoint_b];
	p->b_row = adjoint_b ? 1 : b->dim[1];
	p->b_col = adjoint_b ? b->dim[1] : 1;
	if (b->dim[adjoint_b] != p->inner)
		return mu_invalid(err,
				  "Cannot multiply A and B because inner dimension does not match: "
				  "%lld vs. %lld.  Did you forget a transpose?",
				  (long long)p->inner, (long long)b->dim[adjoint_b]);
	return mu_shape_set(shape, 2, (int64_t[]){p->rows, p->cols}, err);
}

/* CONJ conjugates the elements of an adjoint operand; it is empty for real types. */
#define MULTIPLY(name, T, CONJ)                                                                    \
	static void multiply_##name(const struct kernel_call *c, const struct sparse_product *p,   \
				    void *product)                                                 \
	{                                                                                          \
		T *out = product;                                                                  \
		const T *v = kernel_in(c, 1)->data, *b = kernel_in(c, 3)->data;                    \
		const bool adjoint_b = args_attr_bool(c->node, "adjoint_b", false);                \
		for (int64_t k = 0; k < p->n; k++) {                                               \
			int64_t i = mu_tensor_int(kernel_in(c, 0), 2 * k + p->flip);               \
			int64_t j = mu_tensor_int(kernel_in(c, 0), 2 * k + !p->flip);              \
			T a = p->flip ? CONJ(v[k]) : v[k];                                         \
			for (int64_t x = 0; x < p->cols; x++) {                                    \
				T y = b[j * p->b_row + x * p->b_col];                              \
				out[i * p->cols + x] += a * (adjoint_b ? CONJ(y) : y);             \
			}                                                                          \
		}                                                                                  \
	}
MULTIPLY(float, float, )
MULTIPLY(double, double, )
MULTIPLY(int32, int32_t, )
MULTIPLY(complex64, float _Complex, conjf)
MULTIPLY(complex128, double _Complex, conj)

typedef void multiply_fn(const struct kernel_call *c, const struct sparse_product *p,
			 void *product);
static multiply_fn *const multiply[MU_DT_COUNT] = {[MU_FLOAT] = multiply_float,
						   [MU_DOUBLE] = multiply_double,
						   [MU_INT32] = multiply_int32,
						   [MU_COMPLEX64] = multiply_complex64,
						   [MU_COMPLEX128] = multiply_complex128};

static int sparse_dense_matmul(struct kernel_call *c, struct mu_err *err)
{
	struct sparse_product p;
	struct mu_tensor *out;
	struct mu_shape s;

	MU_RETURN_IF_ERROR(check_sparse_product(c, &p, &s, err));
	enum mu_dtype type = kernel_in(c, 1)->dtype;
	if (!multiply[type])
		return args_no_kernel(c, type, err);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &s, &out, err));
	if (!s.count)
		return 0; /* without a check of the positions, as in TensorFlow */
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
	elems_zero(type, out->data, 0, s.count);
	multiply[type](c, &p, out->data);
	return 0;
}

static const struct kernel rows[] = {
    {"SparseReorder", .run = reorder},
    {"SparseTensorDenseMatMul", .flags = KERNEL_EXPENSIVE, .run = sparse_dense_matmul},
};
KERNEL_TABLE(sparse_matmul, rows)
