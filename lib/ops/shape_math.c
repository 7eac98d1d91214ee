/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of products, reductions, biases and losses. */
#include <string.h>

#include "lib/graph/graph.h"
#include "lib/ops/equation.h"
#include "lib/ops/shape.h"

/* Computes the last two dimensions of a matrix product; the caller adds the batch dimensions. */
static int matmul_dims(struct mu_shape_ctx *c, bool ta, bool tb, int64_t *rows, int64_t *cols,
		       struct mu_err *err)
{
	const struct mu_pshape *a = &c->in[0], *b = &c->in[1];
	int64_t inner;
	int rc =
	    mu_shape_merge_dim(a->dim[a->rank - 1 - ta], b->dim[b->rank - 2 + tb], &inner, err);

	*rows = a->dim[a->rank - 2 + ta];
	*cols = b->dim[b->rank - 1 - tb];
	return rc ? mu_append(err, " in the product of %s and %s", mu_pshape_str(a),
			      mu_pshape_str(b))
		  : 0;
}

int shape_matmul(struct mu_shape_ctx *c, struct mu_err *err)
{
	bool a, b;
	int64_t rows = -1, cols = -1;
	int rc;

	if ((rc = mu_shape_want_rank(c, 0, 2, &a, err)) ||
	    (rc = mu_shape_want_rank(c, 1, 2, &b, err)))
		return rc;
	bool ta = mu_shape_flag(c, "transpose_a"), tb = mu_shape_flag(c, "transpose_b");
	if (a && b)
		rc = matmul_dims(c, ta, tb, &rows, &cols, err);
	else if (a)
		rows = c->in[0].dim[ta];
	else if (b)
		cols = c->in[1].dim[!tb];
	if (!rc)
		c->out[0] = (struct mu_pshape){.rank = 2, .dim = {rows, cols}};
	return rc;
}

int shape_batch_matmul(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape batch[2];
	int64_t rows, cols;
	int rc;

	if (c->n_in < 2 || c->in[0].rank < 2 || c->in[1].rank < 2)
		return 0;
	if ((rc = matmul_dims(c, mu_shape_flag(c, "adj_x"), mu_shape_flag(c, "adj_y"), &rows, &cols,
			      err)))
		return rc;
	for (int i = 0; i < 2; i++) {
		batch[i] = c->in[i];
		batch[i].rank -= 2;
	}
	struct mu_shape_ctx batch_ctx = *c;
	batch_ctx.in = batch;
	if ((rc = shape_broadcast(&batch_ctx, err)))
		return rc;
	mu_pshape_push(&c->out[0], rows);
	mu_pshape_push(&c->out[0], cols);
	return 0;
}

/* Sets the dimensions of the labels in a term of the equation.  Axes of an ellipsis are
 * right-aligned. */
static int merge_axes(const struct mu_term *t, const struct mu_pshape *in, int64_t *dim,
		      int *n_ellipsis, struct mu_err *err)
{
	bool has_ellipsis = mu_term_has(t, MU_ELLIPSIS);
	int ellipsis_rank = in->rank - (t->n - has_ellipsis), axis = in->rank, rc = 0;

	if (has_ellipsis ? ellipsis_rank < 0 : ellipsis_rank != 0)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Expected input with rank %s%d but got %s",
			       has_ellipsis ? "at least " : "", t->n - has_ellipsis,
			       mu_pshape_str(in));
	for (int i = t->n; !rc && i-- > 0;) {
		if (t->label[i] != MU_ELLIPSIS) {
			int64_t *d = &dim[t->label[i]];
			rc = mu_shape_merge_dim(*d, in->dim[--axis], d, err);
			continue;
		}
		for (int k = 0; k < ellipsis_rank; k++) {
			int64_t *d = &dim[MU_LETTERS + k], size = in->dim[--axis];
			*d = k < *n_ellipsis && (size == 1 || *d > 1) ? *d : size;
		}
		*n_ellipsis = ellipsis_rank > *n_ellipsis ? ellipsis_rank : *n_ellipsis;
	}
	return rc;
}

int shape_einsum(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_attr *text = mu_node_attr(c->node, "equation");
	int64_t dim[MU_LETTERS + MU_MAX_RANK];
	struct mu_pshape out = {.rank = 0};
	struct mu_equation e;
	int rc, n_ellipsis = 0;

	if (!text || text->kind != MU_ATTR_STRING)
		return 0;
	if ((rc = mu_equation_read(&e, text->s.data, c->n_in, err)))
		return rc;
	for (unsigned i = 0; i < MU_COUNT(dim); i++)
		dim[i] = -1;
	for (unsigned i = 0; i < e.n_in; i++) {
		if (c->in[i].rank < 0)
			return 0;
		if ((rc = merge_axes(&e.in[i], &c->in[i], dim, &n_ellipsis, err)))
			return rc;
	}
	for (int i = 0; i < e.out.n; i++)
		for (int k = e.out.label[i] == MU_ELLIPSIS ? n_ellipsis : 1; k-- > 0;) {
			if (out.rank == MU_MAX_RANK)
				return 0; /* the kernel reports the error */
			mu_pshape_push(
			    &out,
			    dim[e.out.label[i] == MU_ELLIPSIS ? MU_LETTERS + k : e.out.label[i]]);
		}
	c->out[0] = out;
	return 0;
}

int shape_reduce(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t axis[MU_MAX_RANK];
	bool reduced[MU_MAX_RANK] = {false}, keep = mu_shape_flag(c, "keep_dims");
	int n = mu_shape_ints(c, 1, axis, MU_MAX_RANK);

	if (in->rank < 0)
		return 0;
	if (n < 0) {
		if (keep)
			c->out[0] = mu_pshape_unknown(in->rank);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		int64_t a = axis[i] < 0 ? axis[i] + in->rank : axis[i];
		if (a < 0 || a >= in->rank)
			return mu_fail(
			    err, MU_INVALID_ARGUMENT,
			    "Invalid reduction dimension %lld for input with %d dimensions",
			    (long long)axis[i], in->rank);
		reduced[a] = true;
	}
	c->out[0].rank = 0;
	for (int i = 0; i < in->rank; i++)
		if (!reduced[i] || keep)
			mu_pshape_push(&c->out[0], reduced[i] ? 1 : in->dim[i]);
	return 0;
}

int shape_argmax(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int axis;

	if (in->rank < 1)
		return 0;
	if (!mu_shape_axis(c, 1, in->rank, &axis)) {
		c->out[0] = mu_pshape_unknown(in->rank - 1);
		return 0;
	}
	c->out[0].rank = 0;
	for (int i = 0; i < in->rank; i++)
		if (i != axis)
			mu_pshape_push(&c->out[0], in->dim[i]);
	return 0;
}

static int channel_axis(const struct mu_shape_ctx *c)
{
	const struct mu_attr *a = mu_node_attr(c->node, "data_format");
	bool channels_first =
	    a && a->kind == MU_ATTR_STRING && a->s.data && strncmp(a->s.data, "NC", 2) == 0;

	return channels_first && c->in[0].rank > 2 ? 1 : c->in[0].rank - 1;
}

int shape_bias_add(struct mu_shape_ctx *c, struct mu_err *err)
{
	bool known;
	int rc = mu_shape_want_rank(c, 1, 1, &known, err), axis = channel_axis(c);

	if (rc || c->in[0].rank < 2)
		return rc;
	struct mu_pshape out = c->in[0];
	if (known && (rc = mu_shape_merge_dim(out.dim[axis], c->in[1].dim[0], &out.dim[axis], err)))
		return rc;
	c->out[0] = out;
	return 0;
}

int shape_bias_add_grad(struct mu_shape_ctx *c, struct mu_err *err)
{
	c->out[0] = mu_pshape_unknown(1);
	if (c->in[0].rank > 1)
		c->out[0].dim[0] = c->in[0].dim[channel_axis(c)];
	return 0;
}

/* logits: [batch, classes].  Outputs: a loss per example, and the gradient of logits. */
static int cross_entropy_shapes(struct mu_shape_ctx *c, const struct mu_pshape *logits)
{
	c->out[1] = logits->rank == 2 ? *logits : mu_pshape_unknown(2);
	c->out[0] = (struct mu_pshape){.rank = 1, .dim = {c->out[1].dim[0]}};
	return 0;
}

int shape_xent(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape logits;
	int rc;

	if (c->in[0].rank != 2 || c->in[1].rank != 2) /* the inputs are broadcast */
		return cross_entropy_shapes(c, &(struct mu_pshape){.rank = -1});
	struct mu_shape_ctx pair = *c;
	pair.out = &logits;
	rc = shape_broadcast(&pair, err);
	return rc ? rc : cross_entropy_shapes(c, &logits);
}

int shape_sparse_xent(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape logits = c->in[0];
	bool known;
	int rc = mu_shape_want_rank(c, 0, 2, &known, err);

	if (!rc && known && c->in[1].rank == 1)
		rc = mu_shape_merge_dim(logits.dim[0], c->in[1].dim[0], &logits.dim[0], err);
	return rc ? rc : cross_entropy_shapes(c, &logits);
}

int shape_top_k(struct mu_shape_ctx *c, struct mu_err *err)
{
	int64_t k = -1;

	if (c->in[0].rank < 1)
		return 0;
	if (c->n_in > 1)
		mu_shape_ints(c, 1, &k, 1);
	else
		k = mu_shape_attr_int(c, "k");
	if (k >= 0 && c->in[0].dim[c->in[0].rank - 1] >= 0 && c->in[0].dim[c->in[0].rank - 1] < k)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "input must have last dimension >= k = %lld but is %lld",
			       (long long)k, (long long)c->in[0].dim[c->in[0].rank - 1]);
	for (unsigned i = 0; i < c->n_out; i++) {
		c->out[i] = c->in[0];
		c->out[i].dim[c->in[0].rank - 1] = k;
	}
	return 0;
}

/* The shape is known only if the op returns the exact k largest elements of the last axis.  The CPU
 * kernel computes only this form. */
int shape_approx_top_k(struct mu_shape_ctx *c, struct mu_err *err)
{
	if (mu_shape_attr_int(c, "reduction_dimension") == -1 &&
	    mu_shape_flag(c, "aggregate_to_topk"))
		return shape_top_k(c, err);
	for (unsigned i = 0; i < c->n_out; i++)
		c->out[i] = mu_pshape_unknown(c->in[0].rank);
	return 0;
}
