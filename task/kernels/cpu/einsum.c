/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: see task/kernels/einsum.h for what it comes to.  Complex numbers go through as their two
 * parts, in four products. */
#include "task/kernels/einsum.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/loops/loops.h"
#include "task/kernels/products/product.h"

struct matrix {
	struct mu_tensor made; /* where it had to be turned or summed */
	const void *data;
	bool trans;
};

/* A dense tensor of so many elements, however many dimensions they have. */
static int flat_tensor(const struct einsum *e, const int64_t *counts, int n, struct mu_tensor *t,
		       struct mu_err *err)
{
	struct mu_shape s;
	int rc = mu_shape_set(&s, n, counts, err);

	return rc ? rc : mu_tensor_new(t, e->type, &s, err);
}

static int matrix_of(const struct einsum *e, unsigned i, int part, struct matrix *m,
		     struct mu_err *err)
{
	const struct reduce_loops *sum = &loops->reduce[RED_SUM][e->type];
	const struct mu_tensor *t = e->op[i].t;
	MU_AUTO_TENSOR turned = {0};
	size_t size = mu_dtype_size(e->type);
	struct einsum_sight s;
	int rc;

	einsum_see(e, i, part, &s);
	m->data = t->data;
	m->trans = s.trans;
	if (s.ready)
		return 0;
	struct mu_tensor *to = s.sums ? &turned : &m->made;
	if ((rc = flat_tensor(e, s.count, 4, to, err)))
		return rc;
	if (to->shape.count)
		view_read(e->type, to->data, t->data, &s.v);
	if (s.sums && (rc = flat_tensor(e, s.count, 3, &m->made, err)))
		return rc;
	m->data = m->made.data;
	if (!s.sums)
		return 0;
	sum->start(m->made.data, m->made.shape.count);
	for (int64_t k = 0; k < m->made.shape.count; k++)
		sum->row((char *)m->made.data + (size_t)k * size,
			 (char *)turned.data + (size_t)(k * s.count[3]) * size, s.count[3]);
	return 0;
}

/* ---- the product, and the result ---- */

/* to[batch, rows, columns] = or += sign * a * b. */
static void multiply(struct kernel_call *c, const struct einsum *e, const struct matrix *a,
		     const struct matrix *b, bool add, void *to)
{
	struct product p = {.m = e->op[0].own.count,
			    .n = e->op[1].own.count,
			    .k = e->inner.count,
			    .trans_a = a->trans,
			    .trans_b = b->trans,
			    .add = add};
	size_t size = mu_dtype_size(e->type);

	for (int64_t i = 0; i < e->batch.count; i++)
		product_spread(c, e->type, &p, (char *)a->data + (size_t)(i * p.m * p.k) * size,
			       (char *)b->data + (size_t)(i * p.k * p.n) * size,
			       (char *)to + (size_t)(i * p.m * p.n) * size);
}

static int read_parts(const struct einsum *e, unsigned i, struct matrix *m, struct mu_err *err)
{
	int rc = 0;

	for (int part = 0; !rc && part < e->parts; part++)
		rc = matrix_of(e, i, part, &m[part], err);
	return rc;
}

static void negate(const struct einsum *e, struct matrix *m)
{
	unary_loop *neg = loops->unary[UN_Neg][e->type];

	neg(m->made.data, m->made.data, m->made.shape.count);
}

/* The parts of the result, each in the order batch, rows, columns. */
static int make_parts(struct kernel_call *c, const struct einsum *e, struct matrix *made,
		      void **whole, struct mu_err *err)
{
	int64_t counts[] = {e->batch.count, e->op[0].own.count, e->op[1].own.count};
	struct matrix a[2] = {0}, b[2] = {0};
	int rc = read_parts(e, 0, a, err);

	if (!rc && e->n_in > 1)
		rc = read_parts(e, 1, b, err);
	for (int i = 0; !rc && i < e->parts; i++) {
		if (e->n_in == 1) {
			made[i] = a[i];
			a[i] = (struct matrix){0};
		} else if (!*whole && !(rc = flat_tensor(e, counts, 3, &made[i].made, err))) {
			made[i].data = made[i].made.data;
		}
	}
	if (!rc && e->n_in > 1) {
		for (int i = 0; i < e->parts; i++)
			multiply(c, e, &a[0], &b[i], false, *whole ? *whole : made[i].made.data);
		if (e->parts > 1) {
			multiply(c, e, &a[1], &b[0], true, made[1].made.data);
			negate(e, &a[1]);
			multiply(c, e, &a[1], &b[1], true, made[0].made.data);
		}
	}
	for (int i = 0; i < 2; i++) {
		mu_tensor_unref(&a[i].made);
		mu_tensor_unref(&b[i].made);
	}
	return rc;
}

static int give(struct kernel_call *c, const struct einsum *e, struct mu_err *err)
{
	enum mu_dtype type = e->op[0].t->dtype;
	struct matrix made[2] = {0};
	struct mu_tensor *out;
	void *whole = NULL;
	struct view v;
	int rc = kernel_out(c, 0, type, &e->shape, &out, err);

	if (rc || !e->shape.count)
		return rc;
	if (einsum_see_result(e, &v) && e->n_in > 1)
		whole = out->data; /* the product goes where it belongs */
	rc = make_parts(c, e, made, &whole, err);
	if (!rc && !whole && einsum_repeats(e))
		elems_zero(type, out->data, 0, e->shape.count);
	for (int i = 0; i < e->parts; i++) {
		v.offset = i;
		if (!rc && !whole)
			view_write(e->type, out->data, &v, made[i].data);
		mu_tensor_unref(&made[i].made);
	}
	return rc;
}

static int run(struct kernel_call *c, struct mu_err *err)
{
	struct einsum e;
	int rc = einsum_read(c, c->state, &e, err);

	if (!rc)
		rc = product_check(c->node->op, e.type,
				   &(struct product){.m = e.op[0].own.count,
						     .n = e.op[1].own.count,
						     .k = e.inner.count},
				   err);
	return rc ? rc : give(c, &e, err);
}

static const struct kernel rows[] = {
    {"Einsum", KERNEL_EXPENSIVE, .run = run, .prepare = einsum_prepare},
};
KERNEL_TABLE(einsum, rows)
