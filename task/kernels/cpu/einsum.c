/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: one product of matrices for each place of the batch, with the operands turned for it.
 *
 * Every axis has a label: a letter, or a place in an ellipsis, counted from its right end.  A label
 * of both operands and the result is of the batch, of both operands alone it is summed over by the
 * product, of one operand and the result it is a row or a column, and of one operand alone it is
 * summed over before.  So operand a is seen as [batch, rows, inner], b as [batch, inner, columns],
 * and the product is seen as what the equation wants.  A letter that stands twice in an operand is
 * its diagonal, twice in the result it makes one of zeros.
 *
 * Complex numbers go through as their two parts, in four products. */
#include <string.h>

#include "lib/ops/equation.h"
#include "task/kernels/args.h"
#include "task/kernels/elems.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/loops.h"
#include "task/kernels/product.h"

enum { LABELS = MU_LETTERS + MU_MAX_RANK };

/* ---- the equation, once ---- */

static int prepare(const struct mu_node *n, struct runtime *rt, void **state, struct mu_err *err)
{
	struct mu_equation e;
	int rc = mu_equation_read(&e, args_attr_string(n, "equation", ""), n->n_inputs, err);

	if (rc)
		return rc;
	*state = mu_xmalloc(sizeof e);
	memcpy(*state, &e, sizeof e);
	return 0;
}

/* ---- the axes of a step's tensors ---- */

struct group { /* axes that go together */
	int n;
	unsigned char label[LABELS];
	int64_t count;
};
struct operand {
	const struct mu_tensor *t;
	bool there[LABELS];
	int64_t stride[LABELS]; /* 0 where one element serves for all */
	struct group own, sums; /* rows or columns; what is summed over before */
};
struct einsum {
	enum mu_dtype type; /* of the parts */
	int parts;          /* of an element */
	unsigned n_in;
	int64_t dim[LABELS];
	struct operand op[2];
	struct group batch, inner;
	struct mu_term out; /* without MU_ELLIPSIS */
	int dots;           /* axes of the longest ellipsis */
};

static int take_axis(struct einsum *e, struct operand *o, unsigned char label, int axis,
		     int64_t stride, struct mu_err *err)
{
	int64_t have = o->t->shape.dim[axis], *dim = &e->dim[label];
	bool stretches = label >= MU_LETTERS;

	if (*dim < 0 || (stretches && *dim == 1))
		*dim = have;
	else if (*dim != have && !(stretches && have == 1))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Expected dimension %lld at axis %d of the input shaped %s but got "
			       "dimension %lld",
			       (long long)*dim, axis, mu_shape_str(&o->t->shape), (long long)have);
	o->there[label] = true;
	if (have > 1 || !stretches)
		o->stride[label] += stride;
	return 0;
}

static int take_operand(struct einsum *e, struct operand *o, const struct mu_term *term,
			struct mu_err *err)
{
	int rank = o->t->shape.rank, dots = rank - (term->n - mu_term_has(term, MU_ELLIPSIS)),
	    rc = 0;
	int axis = rank;
	int64_t stride = e->parts;

	if (mu_term_has(term, MU_ELLIPSIS) ? dots < 0 : dots != 0)
		return mu_fail(
		    err, MU_INVALID_ARGUMENT, "Expected input with rank %s%d but got shape %s",
		    mu_term_has(term, MU_ELLIPSIS) ? "at least " : "",
		    term->n - mu_term_has(term, MU_ELLIPSIS), mu_shape_str(&o->t->shape));
	for (int i = term->n; !rc && i-- > 0;) {
		bool ellipsis = term->label[i] == MU_ELLIPSIS;

		for (int k = 0; !rc && k < (ellipsis ? dots : 1); k++) {
			unsigned char label =
			    ellipsis ? (unsigned char)(MU_LETTERS + k) : term->label[i];

			axis--;
			rc = take_axis(e, o, label, axis, stride, err);
			if (o->t->shape.count)
				stride *= o->t->shape.dim[axis];
		}
		if (ellipsis && dots > e->dots)
			e->dots = dots;
	}
	return rc;
}

static int spell_result(struct einsum *e, const struct mu_term *wanted, struct mu_err *err)
{
	bool ellipsis = false;

	e->out.n = 0;
	for (int i = 0; i < wanted->n; i++) {
		ellipsis |= wanted->label[i] == MU_ELLIPSIS;
		for (int k = wanted->label[i] == MU_ELLIPSIS ? e->dots : 1; k-- > 0;) {
			if (e->out.n == MU_MAX_RANK)
				return mu_fail(err, MU_INVALID_ARGUMENT,
					       "the result would have more than %d dimensions",
					       MU_MAX_RANK);
			e->out.label[e->out.n++] = wanted->label[i] == MU_ELLIPSIS
						       ? (unsigned char)(MU_LETTERS + k)
						       : wanted->label[i];
		}
	}
	if (e->dots && !ellipsis)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the result has no ellipsis, but an input's stands for %d axes",
			       e->dots);
	return 0;
}

static void put(const struct einsum *e, struct group *g, unsigned char label)
{
	g->label[g->n++] = label;
	if (__builtin_mul_overflow(g->count, e->dim[label], &g->count))
		g->count = INT64_MAX; /* no tensor has so many */
}

/* In the order of the result first, so that it need not be turned where it can be helped. */
static void sort_labels(struct einsum *e)
{
	bool done[LABELS] = {false};

	e->batch.count = e->inner.count = 1;
	for (int i = 0; i < 2; i++)
		e->op[i].own.count = e->op[i].sums.count = 1;
	for (int i = 0; i < e->out.n; i++) {
		unsigned char l = e->out.label[i];

		if (!done[l])
			put(e,
			    e->op[0].there[l] && e->op[1].there[l] ? &e->batch
								   : &e->op[!e->op[0].there[l]].own,
			    l);
		done[l] = true;
	}
	for (int l = 0; l < LABELS; l++)
		if (!done[l] && (e->op[0].there[l] || e->op[1].there[l]))
			put(e,
			    e->op[0].there[l] && e->op[1].there[l]
				? &e->inner
				: &e->op[!e->op[0].there[l]].sums,
			    (unsigned char)l);
}

/* ---- operands as the product wants them ---- */

struct matrix {
	struct mu_tensor made; /* where it had to be turned or summed */
	const void *data;
	bool trans;
};

static void see(const struct einsum *e, const int64_t *stride, const struct group *g,
		struct view *v)
{
	for (int i = 0; i < g->n; i++) {
		v->dim[v->rank] = e->dim[g->label[i]];
		v->stride[v->rank++] = stride[g->label[i]];
	}
}

static bool is_dense(const struct view *v)
{
	int64_t step = 1;

	for (int i = v->rank; i-- > 0; step *= v->dim[i])
		if (v->dim[i] != 1 && v->stride[i] != step)
			return false;
	return true;
}

/* The operand in the order batch, x, y, and then what is summed over. */
static void in_order(const struct einsum *e, const struct operand *o, const struct group *x,
		     const struct group *y, struct view *v)
{
	v->rank = 0;
	see(e, o->stride, &e->batch, v);
	see(e, o->stride, x, v);
	see(e, o->stride, y, v);
	see(e, o->stride, &o->sums, v);
}

/* A dense tensor of so many elements, however many dimensions they have. */
static int flat_tensor(const struct einsum *e, const int64_t *counts, int n, struct mu_tensor *t,
		       struct mu_err *err)
{
	struct mu_shape s;
	int rc = mu_shape_set(&s, n, counts, err);

	return rc ? rc : mu_tensor_new(t, e->type, &s, err);
}

/* x and y are the operand's matrices as the product reads them plain. */
static int matrix_of(const struct einsum *e, const struct operand *o, int part,
		     const struct group *x, const struct group *y, struct matrix *m,
		     struct mu_err *err)
{
	int64_t counts[] = {e->batch.count, x->count, y->count, o->sums.count};
	const struct reduce_loops *sum = &loops->reduce[RED_SUM][e->type];
	MU_AUTO_TENSOR turned = {0};
	size_t size = mu_dtype_size(e->type);
	struct view v, other;
	int rc;

	in_order(e, o, x, y, &v);
	in_order(e, o, y, x, &other);
	m->data = o->t->data;
	m->trans = !is_dense(&v) && is_dense(&other);
	if (e->parts == 1 && o->sums.count == 1 && (m->trans || is_dense(&v)))
		return 0;
	m->trans = false;
	v.offset = part;
	struct mu_tensor *to = o->sums.n ? &turned : &m->made;
	if ((rc = flat_tensor(e, counts, 4, to, err)))
		return rc;
	if (to->shape.count)
		view_read(e->type, to->data, o->t->data, &v);
	if (o->sums.n && (rc = flat_tensor(e, counts, 3, &m->made, err)))
		return rc;
	m->data = m->made.data;
	if (!o->sums.n)
		return 0;
	sum->start(m->made.data, m->made.shape.count);
	for (int64_t i = 0; i < m->made.shape.count; i++)
		sum->row((char *)m->made.data + (size_t)i * size,
			 (char *)turned.data + (size_t)(i * o->sums.count) * size, o->sums.count);
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
	const struct operand *o = &e->op[i];
	int rc = 0;

	for (int part = 0; !rc && part < e->parts; part++)
		rc = matrix_of(e, o, part, i ? &e->inner : &o->own, i ? &o->own : &e->inner,
			       &m[part], err);
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

/* The result seen in the order batch, rows, columns. */
static void see_result(const struct einsum *e, const struct mu_shape *shape, struct view *v)
{
	int64_t stride[LABELS] = {0}, step = e->parts;

	for (int i = e->out.n; i-- > 0; step *= shape->dim[i])
		stride[e->out.label[i]] += step;
	*v = (struct view){0};
	see(e, stride, &e->batch, v);
	see(e, stride, &e->op[0].own, v);
	see(e, stride, &e->op[1].own, v);
}

static bool repeats(const struct mu_term *t)
{
	for (int i = 1; i < t->n; i++)
		if (memchr(t->label, t->label[i], (size_t)i))
			return true;
	return false;
}

static int give(struct kernel_call *c, const struct einsum *e, struct mu_err *err)
{
	enum mu_dtype type = e->op[0].t->dtype;
	struct matrix made[2] = {0};
	struct mu_shape shape = {.rank = 0, .count = 1};
	struct mu_tensor *out;
	void *whole = NULL;
	struct view v;
	int rc = 0;

	for (int i = 0; !rc && i < e->out.n; i++)
		rc = mu_shape_push(&shape, e->dim[e->out.label[i]], err);
	if (rc || (rc = kernel_out(c, 0, type, &shape, &out, err)))
		return rc;
	if (!shape.count)
		return 0;
	see_result(e, &shape, &v);
	if (e->n_in > 1 && e->parts == 1 && is_dense(&v) && !repeats(&e->out))
		whole = out->data; /* the product goes where it belongs */
	rc = make_parts(c, e, made, &whole, err);
	if (!rc && !whole && repeats(&e->out))
		elems_zero(type, out->data, 0, shape.count);
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
	const struct mu_equation *q = c->state;
	enum mu_dtype t = kernel_in(c, 0)->dtype;
	struct einsum e = {.n_in = q->n_in,
			   .parts = t == MU_COMPLEX64 || t == MU_COMPLEX128 ? 2 : 1};
	int rc;

	e.type = t == MU_COMPLEX64 ? MU_FLOAT : t == MU_COMPLEX128 ? MU_DOUBLE : t;
	if (!product_known(e.type))
		return mu_fail(err, MU_UNIMPLEMENTED, "Einsum has no kernel for type %s",
			       mu_dtype_name(t));
	for (int i = 0; i < LABELS; i++)
		e.dim[i] = -1;
	for (unsigned i = 0; i < q->n_in; i++) {
		e.op[i].t = kernel_in(c, i);
		if ((rc = args_same_type(c, 0, i, err)) ||
		    (rc = take_operand(&e, &e.op[i], &q->in[i], err)))
			return rc;
	}
	if ((rc = spell_result(&e, &q->out, err)))
		return rc;
	sort_labels(&e);
	return give(c, &e, err);
}

static const struct kernel rows[] = {
    {"Einsum", KERNEL_EXPENSIVE, .run = run, .prepare = prepare},
};
KERNEL_TABLE(einsum, rows)
