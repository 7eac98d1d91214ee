/* SPDX-License-Identifier: Apache-2.0 */
/* The Einsum op; einsum.h describes its reduction to products. */
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/columns.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/product.h"
#include "task/kernels/linalg/einsum.h"

struct matrix {
	struct mu_tensor copy; /* if the operand has to be transposed or summed */
	const void *data;
	bool trans;
};

/* Allocates a dense tensor with the n dimensions `counts`. */
static int new_dense(const struct einsum *e, const int64_t *counts, int n, struct mu_tensor *t,
		     struct mu_err *err)
{
	struct mu_shape s;

	MU_RETURN_IF_ERROR(mu_shape_set(&s, n, counts, err));
	return mu_tensor_new(t, e->type, &s, err);
}

/* out[k] = the sum of row k; a complex row is a matrix of two columns. */
static void einsum_sum_rows(enum mu_dtype t, struct mu_tensor *out, const char *in, int64_t columns)
{
	enum mu_dtype part = mu_dtype_part(t);
	const int parts = part != t ? 2 : 1;
	const struct reduce_loops *sum = &loops->reduce[RED_SUM][part];
	size_t size = mu_dtype_size(t);
	char *to = out->data;

	sum->start(to, parts * out->shape.count);
	for (int64_t k = 0; k < out->shape.count; k++, to += size, in += (size_t)columns * size)
		if (parts == 1)
			sum->row(to, in, columns);
		else
			columns_reduce(sum, size / 2, to, in, columns, 2);
}

static int matrix_of(const struct einsum *e, unsigned i, struct matrix *m, struct mu_err *err)
{
	const struct mu_tensor *t = e->op[i].t;
	MU_AUTO_TENSOR transposed = {0};
	struct einsum_operand_view s;

	einsum_view_operand(e, i, &s);
	m->data = t->data;
	m->trans = s.trans;
	if (s.ready)
		return 0;
	struct mu_tensor *to = s.sums ? &transposed : &m->copy;
	MU_RETURN_IF_ERROR(new_dense(e, s.count, 4, to, err));
	if (to->shape.count)
		view_read(e->type, to->data, t->data, &s.v);
	if (s.sums)
		MU_RETURN_IF_ERROR(new_dense(e, s.count, 3, &m->copy, err));
	m->data = m->copy.data;
	if (s.sums)
		einsum_sum_rows(e->type, &m->copy, transposed.data, s.count[3]);
	return 0;
}

/* ---- product and output ---- */

/* to[batch, rows, columns] = a * b. */
static void einsum_multiply(struct kernel_call *c, const struct einsum *e, const struct matrix *a,
			    const struct matrix *b, void *to)
{
	struct product p = {.m = e->op[0].outer.count,
			    .n = e->op[1].outer.count,
			    .k = e->inner.count,
			    .trans_a = a->trans,
			    .trans_b = b->trans};

	product_batch_in_parallel(c, e->type, &p, e->batch.count, NULL, NULL, a->data, b->data, to);
}

static int einsum_output(struct kernel_call *c, const struct einsum *e, struct matrix *a,
			 struct matrix *b, struct mu_err *err)
{
	const int64_t counts[] = {e->batch.count, e->op[0].outer.count, e->op[1].outer.count};
	MU_AUTO_TENSOR product = {0};
	struct mu_tensor *out;
	struct view v;
	int rc = kernel_out(c, 0, e->type, &e->shape, &out, err);

	if (rc || !e->shape.count || (rc = matrix_of(e, 0, a, err)))
		return rc;
	const bool is_direct = einsum_view_result(e, &v); /* the product is written to the output */
	const void *from = a->data;
	if (e->n_in > 1) {
		if ((rc = matrix_of(e, 1, b, err)) ||
		    (!is_direct && (rc = new_dense(e, counts, 3, &product, err))))
			return rc;
		einsum_multiply(c, e, a, b, is_direct ? out->data : product.data);
		if (is_direct)
			return 0;
		from = product.data;
	}
	if (einsum_repeats(e))
		elems_zero(e->type, out->data, 0, e->shape.count);
	view_write(e->type, out->data, &v, from);
	return 0;
}

static int einsum_run(struct kernel_call *c, struct mu_err *err)
{
	struct matrix a = {0}, b = {0};
	struct einsum e;
	int rc = einsum_read(c, c->state, &e, err);

	if (!rc)
		rc = product_check(c->node->op, e.type,
				   &(struct product){.m = e.op[0].outer.count,
						     .n = e.op[1].outer.count,
						     .k = e.inner.count},
				   err);
	if (!rc)
		rc = einsum_output(c, &e, &a, &b, err);
	mu_tensor_unref(&a.copy);
	mu_tensor_unref(&b.copy);
	return rc;
}

static const struct kernel rows[] = {
    {"Einsum", KERNEL_EXPENSIVE, .run = einsum_run, .prepare = einsum_prepare},
};
KERNEL_TABLE(linalg_einsum_ops, rows)
