/* SPDX-License-Identifier: Apache-2.0 */
/* See einsum.h. */
#include "task/kernels/linalg/einsum.h"

#include <string.h>

#include "task/kernels/engine/args.h"

/* ---- equation ---- */

int einsum_prepare(const struct mu_node *n, struct runtime *rt, void **state, struct mu_err *err)
{
	struct mu_equation e;

	MU_RETURN_IF_ERROR(
	    mu_equation_read(&e, args_attr_string(n, "equation", ""), n->n_inputs, err));
	*state = mu_xmalloc(sizeof e);
	memcpy(*state, &e, sizeof e);
	return 0;
}

/* ---- axes of the operands ---- */

static int add_axis(struct einsum *e, struct einsum_operand *o, unsigned char label, int axis,
		    int64_t stride, struct mu_err *err)
{
	int64_t size = o->t->shape.dim[axis], *dim = &e->dim[label];
	bool broadcasts = label >= MU_LETTERS;

	if (*dim < 0 || (broadcasts && *dim == 1))
		*dim = size;
	else if (*dim != size && !(broadcasts && size == 1))
		return mu_invalid(err,
				  "Expected dimension %lld at axis %d of the input shaped %s but "
				  "got dimension %lld",
				  (long long)*dim, axis, mu_shape_str(&o->t->shape),
				  (long long)size);
	o->has_label[label] = true;
	if (size > 1 || !broadcasts)
		o->stride[label] += stride;
	return 0;
}

static int add_operand(struct einsum *e, struct einsum_operand *o, const struct mu_term *term,
		       struct mu_err *err)
{
	int rank = o->t->shape.rank,
	    ellipsis_rank = rank - (term->n - mu_term_has(term, MU_ELLIPSIS)), rc = 0;
	int axis = rank;
	int64_t stride = 1;

	if (mu_term_has(term, MU_ELLIPSIS) ? ellipsis_rank < 0 : ellipsis_rank != 0)
		return mu_invalid(err, "Expected input with rank %s%d but got shape %s",
				  mu_term_has(term, MU_ELLIPSIS) ? "at least " : "",
				  term->n - mu_term_has(term, MU_ELLIPSIS),
				  mu_shape_str(&o->t->shape));
	for (int i = term->n; !rc && i-- > 0;) {
		bool ellipsis = term->label[i] == MU_ELLIPSIS;

		for (int k = 0; !rc && k < (ellipsis ? ellipsis_rank : 1); k++) {
			unsigned char label =
			    ellipsis ? (unsigned char)(MU_LETTERS + k) : term->label[i];

			axis--;
			rc = add_axis(e, o, label, axis, stride, err);
			if (o->t->shape.count)
				stride *= o->t->shape.dim[axis];
		}
		if (ellipsis && ellipsis_rank > e->ellipsis_rank)
			e->ellipsis_rank = ellipsis_rank;
	}
	return rc;
}

static int set_result_labels(struct einsum *e, const struct mu_term *term, struct mu_err *err)
{
	bool ellipsis = false;

	e->out.n = 0;
	for (int i = 0; i < term->n; i++) {
		ellipsis |= term->label[i] == MU_ELLIPSIS;
		for (int k = term->label[i] == MU_ELLIPSIS ? e->ellipsis_rank : 1; k-- > 0;) {
			if (e->out.n == MU_MAX_RANK)
				return mu_invalid(err,
						  "the result would have more than %d dimensions",
						  MU_MAX_RANK);
			e->out.label[e->out.n++] = term->label[i] == MU_ELLIPSIS
						       ? (unsigned char)(MU_LETTERS + k)
						       : term->label[i];
		}
	}
	if (e->ellipsis_rank && !ellipsis)
		return mu_invalid(err,
				  "the result has no ellipsis, but an input's stands for %d axes",
				  e->ellipsis_rank);
	return 0;
}

static void add_label(const struct einsum *e, struct einsum_group *g, unsigned char label)
{
	g->label[g->n++] = label;
	if (__builtin_mul_overflow(g->count, e->dim[label], &g->count))
		g->count = INT64_MAX; /* no tensor has so many elements */
}

/* Sorts the labels into groups, those of the result first and in its order, which often avoids a
 * transpose of the result. */
static void sort_labels(struct einsum *e)
{
	bool is_assigned[EINSUM_LABELS] = {false};

	e->batch.count = e->inner.count = 1;
	for (int i = 0; i < 2; i++)
		e->op[i].outer.count = e->op[i].sums.count = 1;
	for (int i = 0; i < e->out.n; i++) {
		unsigned char l = e->out.label[i];

		if (!is_assigned[l])
			add_label(e,
				  e->op[0].has_label[l] && e->op[1].has_label[l]
				      ? &e->batch
				      : &e->op[!e->op[0].has_label[l]].outer,
				  l);
		is_assigned[l] = true;
	}
	for (int l = 0; l < EINSUM_LABELS; l++)
		if (!is_assigned[l] && (e->op[0].has_label[l] || e->op[1].has_label[l]))
			add_label(e,
				  e->op[0].has_label[l] && e->op[1].has_label[l]
				      ? &e->inner
				      : &e->op[!e->op[0].has_label[l]].sums,
				  (unsigned char)l);
}

int einsum_read(const struct kernel_call *c, const struct mu_equation *q, struct einsum *e,
		struct mu_err *err)
{
	*e = (struct einsum){.type = kernel_in(c, 0)->dtype, .n_in = q->n_in};
	for (int i = 0; i < EINSUM_LABELS; i++)
		e->dim[i] = -1;
	for (unsigned i = 0; i < q->n_in; i++) {
		e->op[i].t = kernel_in(c, i);
		MU_RETURN_IF_ERROR(add_operand(e, &e->op[i], &q->in[i], err));
	}
	MU_RETURN_IF_ERROR(set_result_labels(e, &q->out, err));
	sort_labels(e);
	e->shape = mu_shape_scalar();
	for (int i = 0; i < e->out.n; i++)
		MU_RETURN_IF_ERROR(mu_shape_push(&e->shape, e->dim[e->out.label[i]], err));
	return 0;
}

/* ---- operand views ---- */

static void einsum_view(const struct einsum *e, const int64_t *stride, const struct einsum_group *g,
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

/* Views the operand with the axes in the order batch, x, y, summed. */
static void einsum_view_axes(const struct einsum *e, const struct einsum_operand *o,
			     const struct einsum_group *x, const struct einsum_group *y,
			     struct view *v)
{
	v->rank = 0;
	einsum_view(e, o->stride, &e->batch, v);
	einsum_view(e, o->stride, x, v);
	einsum_view(e, o->stride, y, v);
	einsum_view(e, o->stride, &o->sums, v);
}

void einsum_view_operand(const struct einsum *e, unsigned i, struct einsum_operand_view *out)
{
	const struct einsum_operand *o = &e->op[i];
	const struct einsum_group *x = i ? &e->inner : &o->outer, *y = i ? &o->outer : &e->inner;
	struct view exchanged = {0};
	bool is_plain;

	*out = (struct einsum_operand_view){
	    .count = {e->batch.count, x->count, y->count, o->sums.count}, .sums = o->sums.n > 0};
	einsum_view_axes(e, o, x, y, &out->v);
	einsum_view_axes(e, o, y, x, &exchanged);
	is_plain = is_dense(&out->v);
	out->ready = o->sums.count == 1 && (is_plain || is_dense(&exchanged));
	out->trans = out->ready && !is_plain;
}

/* ---- result view ---- */

bool einsum_repeats(const struct einsum *e)
{
	for (int i = 1; i < e->out.n; i++)
		if (memchr(e->out.label, e->out.label[i], (size_t)i))
			return true;
	return false;
}

bool einsum_view_result(const struct einsum *e, struct view *v)
{
	int64_t stride[EINSUM_LABELS] = {0}, step = 1;

	for (int i = e->out.n; i-- > 0; step *= e->shape.dim[i])
		stride[e->out.label[i]] += step;
	*v = (struct view){0};
	einsum_view(e, stride, &e->batch, v);
	einsum_view(e, stride, &e->op[0].outer, v);
	einsum_view(e, stride, &e->op[1].outer, v);
	return is_dense(v) && !einsum_repeats(e);
}
