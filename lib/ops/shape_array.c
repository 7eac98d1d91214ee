/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of ops that rearrange, join and divide tensors. */
#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

int shape_reshape(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t dim[MU_MAX_RANK], n_in = 1, n_out = 1;
	int n = mu_shape_ints(c, 1, dim, MU_MAX_RANK), unknown = -1;

	if (n < 0)
		return shape_filled_by_second(c, err);
	for (int i = 0; in->rank >= 0 && i < in->rank; i++)
		if (in->dim[i] < 0 || __builtin_mul_overflow(n_in, in->dim[i], &n_in)) {
			n_in = -1;
			break;
		}
	if (in->rank < 0)
		n_in = -1;
	for (int i = 0; i < n; i++) {
		if (dim[i] < -1 || (dim[i] == -1 && unknown >= 0))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Reshape: %lld is not a dimension, or two dimensions are -1",
				       (long long)dim[i]);
		if (dim[i] == -1)
			unknown = i;
		else if (__builtin_mul_overflow(n_out, dim[i], &n_out))
			return mu_fail(err, MU_INVALID_ARGUMENT, "Reshape: the shape is too large");
	}
	if (n_in >= 0 && (unknown < 0 ? n_in != n_out : n_out > 0 && n_in % n_out != 0))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Cannot reshape a tensor with %lld elements to a shape of %lld",
			       (long long)n_in, (long long)n_out);
	if (unknown >= 0 && n_in >= 0 && n_out > 0)
		dim[unknown] = n_in / n_out;
	c->out[0].rank = 0;
	for (int i = 0; i < n; i++)
		mu_pshape_push(&c->out[0], dim[i]);
	return 0;
}

int shape_transpose(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t perm[MU_MAX_RANK];
	int n = mu_shape_ints(c, 1, perm, MU_MAX_RANK);

	if (in->rank < 0)
		return 0;
	if (n < 0) {
		c->out[0] = mu_pshape_unknown(in->rank);
		return 0;
	}
	struct mu_pshape out = {.rank = n};
	for (int i = 0; i < n; i++) {
		int64_t p = perm[i] < 0 ? perm[i] + n : perm[i];
		if (n != in->rank || p < 0 || p >= n)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "the permutation does not fit a tensor of shape %s",
				       mu_pshape_str(in));
		out.dim[i] = in->dim[p];
	}
	c->out[0] = out;
	return 0;
}

int shape_expand_dims(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int axis;

	if (in->rank < 0 || in->rank == MU_MAX_RANK)
		return 0;
	if (!mu_shape_axis(c, 1, in->rank + 1, &axis)) {
		c->out[0] = mu_pshape_unknown(in->rank + 1);
		return 0;
	}
	c->out[0].rank = 0;
	for (int i = 0; i <= in->rank; i++) {
		if (i == axis)
			mu_pshape_push(&c->out[0], 1);
		if (i < in->rank)
			mu_pshape_push(&c->out[0], in->dim[i]);
	}
	return 0;
}

int shape_squeeze(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	const struct mu_attr *dims = mu_node_attr(c->node, "squeeze_dims");
	unsigned n = dims && dims->kind == MU_ATTR_LIST + MU_ATTR_INT ? dims->n : 0;
	struct mu_pshape out = {.rank = 0};

	for (unsigned k = 0; k < n && in->rank >= 0; k++)
		if (dims->is[k] < -in->rank || dims->is[k] >= in->rank)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "squeeze_dims[%u] not in [-%d,%d).", k, in->rank, in->rank);
	for (int i = 0; i < in->rank; i++) {
		bool is_listed = false;
		for (unsigned k = 0; k < n; k++)
			is_listed |= dims->is[k] == i || dims->is[k] + in->rank == i;
		if (!n && in->dim[i] < 0)
			return 0;
		if (is_listed && in->dim[i] > 1)
			return mu_fail(
			    err, MU_INVALID_ARGUMENT,
			    "Can not squeeze dim[%d], expected a dimension of 1, got %lld", i,
			    (long long)in->dim[i]);
		if (n ? !is_listed : in->dim[i] != 1)
			mu_pshape_push(&out, in->dim[i]);
	}
	if (in->rank >= 0)
		c->out[0] = out;
	return 0;
}

/* ---- Concat, Pack and Split ---- */

/* Concatenates inputs [from, from + n) along the axis in input `axis_input`. */
static int concat(struct mu_shape_ctx *c, unsigned from, unsigned n, unsigned axis_input,
		  struct mu_err *err)
{
	struct mu_pshape out = {.rank = -1}, in;
	int64_t sum = 0;
	int axis, rc;

	for (unsigned i = from; i < from + n; i++)
		if (c->in[i].rank >= 0)
			out = mu_pshape_unknown(c->in[i].rank);
	if (out.rank < 1)
		return 0;
	bool known = mu_shape_axis(c, axis_input, out.rank, &axis);
	for (unsigned i = from; known && i < from + n; i++) {
		in = c->in[i];
		if (in.rank < 0) {
			sum = -1;
			continue;
		}
		if (axis < in.rank) {
			sum = sum < 0 || in.dim[axis] < 0 ? -1 : sum + in.dim[axis];
			in.dim[axis] = -1;
		}
		if ((rc = mu_shape_merge(&out, &in, &out, err)))
			return rc;
	}
	if (known)
		out.dim[axis] = sum;
	c->out[0] = out;
	return 0;
}

int shape_concat(struct mu_shape_ctx *c, struct mu_err *err)
{
	return c->n_in < 2 ? 0 : concat(c, 1, c->n_in - 1, 0, err);
}

int shape_concat_v2(struct mu_shape_ctx *c, struct mu_err *err)
{
	return c->n_in < 2 ? 0 : concat(c, 0, c->n_in - 1, c->n_in - 1, err);
}

int shape_pack(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape merged = {.rank = -1};
	int64_t axis = mu_shape_attr_int(c, "axis");
	int rc = 0;

	for (unsigned i = 0; i < c->n_in && !rc; i++)
		rc = mu_shape_merge(&merged, &c->in[i], &merged, err);
	if (rc || merged.rank < 0 || merged.rank == MU_MAX_RANK)
		return rc;
	axis = axis < 0 ? axis + merged.rank + 1 : axis;
	if (axis < 0 || axis > merged.rank)
		return mu_fail(err, MU_INVALID_ARGUMENT, "axis %lld does not fit shape %s",
			       (long long)mu_shape_attr_int(c, "axis"), mu_pshape_str(&merged));
	c->out[0].rank = 0;
	for (int i = 0; i <= merged.rank; i++) {
		if (i == axis)
			mu_pshape_push(&c->out[0], c->n_in);
		if (i < merged.rank)
			mu_pshape_push(&c->out[0], merged.dim[i]);
	}
	return 0;
}

int shape_unpack(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t axis = mu_shape_attr_int(c, "axis");

	axis = axis < 0 ? axis + in->rank : axis;
	if (in->rank < 1 || axis < 0 || axis >= in->rank)
		return 0;
	for (unsigned o = 0; o < c->n_out; o++) {
		c->out[o].rank = 0;
		for (int i = 0; i < in->rank; i++)
			if (i != axis)
				mu_pshape_push(&c->out[o], in->dim[i]);
	}
	return 0;
}

int shape_split(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[1];
	int axis;

	if (in->rank < 1 || !mu_shape_axis(c, 0, in->rank, &axis))
		return 0;
	if (c->n_out && in->dim[axis] >= 0 && in->dim[axis] % c->n_out)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%lld along dimension %d cannot be split evenly by %u",
			       (long long)in->dim[axis], axis, c->n_out);
	for (unsigned o = 0; o < c->n_out; o++) {
		c->out[o] = *in;
		c->out[o].dim[axis] = in->dim[axis] < 0 ? -1 : in->dim[axis] / c->n_out;
	}
	return 0;
}

/* ---- Shape and Where ---- */

int shape_of(struct mu_shape_ctx *c, struct mu_err *err)
{
	for (unsigned i = 0; i < c->n_out && i < c->n_in; i++)
		c->out[i] =
		    (struct mu_pshape){.rank = 1, .dim = {c->in[i].rank < 0 ? -1 : c->in[i].rank}};
	return 0;
}

int shape_where(struct mu_shape_ctx *c, struct mu_err *err)
{
	c->out[0] =
	    (struct mu_pshape){.rank = 2, .dim = {-1, c->in[0].rank < 0 ? -1 : c->in[0].rank}};
	return 0;
}

/* ---- SplitV ---- */

enum { MAX_PARTS = 256 };

/* Computes the size that is -1, and checks that the sizes add up to the dimension. */
static int complete_sizes(int64_t *size, unsigned n, int64_t dim, struct mu_err *err)
{
	int64_t sum = 0, *unknown = NULL;

	for (unsigned i = 0; i < n; i++)
		if (size[i] == -1 && !unknown)
			unknown = &size[i];
		else if (size[i] < 0 || __builtin_add_overflow(sum, size[i], &sum))
			return mu_fail(
			    err, MU_INVALID_ARGUMENT,
			    "split sizes must be >= 0 and not too large, and one may be -1");
	if (dim >= 0 && (unknown ? sum > dim : sum != dim))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "can't split axis of size %lld into pieces that add up to %lld",
			       (long long)dim, (long long)sum);
	if (unknown && dim >= 0)
		*unknown = dim - sum;
	return 0;
}

int shape_split_v(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t size[MAX_PARTS];
	int axis, n;

	if (in->rank < 0)
		return 0;
	for (unsigned o = 0; o < c->n_out; o++)
		c->out[o] = mu_pshape_unknown(in->rank);
	n = mu_shape_ints(c, 1, size, MAX_PARTS);
	if (n >= 0 && (unsigned)n != c->n_out)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Length of size_splits should be equal to num_outputs (%d vs. %u)",
			       n, c->n_out);
	if (!mu_shape_axis(c, 2, in->rank, &axis))
		return c->in_const[2] ? mu_fail(err, MU_INVALID_ARGUMENT,
						"split_dim is not an axis of %s", mu_pshape_str(in))
				      : 0;
	if (n >= 0)
		MU_RETURN_IF_ERROR(complete_sizes(size, c->n_out, in->dim[axis], err));
	for (unsigned o = 0; o < c->n_out; o++) {
		c->out[o] = *in;
		c->out[o].dim[axis] = n >= 0 ? size[o] : -1;
	}
	return 0;
}

int shape_unravel(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	struct mu_pshape out = {.rank = 2, .dim = {-1, 1}};

	if (in->rank < 0)
		return 0;
	if (c->in[1].rank == 1)
		out.dim[0] = c->in[1].dim[0];
	for (int i = 0; i < in->rank; i++)
		if (in->dim[i] < 0 || out.dim[1] < 0 ||
		    __builtin_mul_overflow(out.dim[1], in->dim[i], &out.dim[1]))
			out.dim[1] = -1;
	out.rank = in->rank ? 2 : 1;
	c->out[0] = out;
	return 0;
}

int shape_broadcast_args(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *a = &c->in[0], *b = &c->in[1];

	c->out[0] = mu_pshape_unknown(1);
	if (a->rank == 1 && b->rank == 1 && a->dim[0] >= 0 && b->dim[0] >= 0)
		c->out[0].dim[0] = a->dim[0] > b->dim[0] ? a->dim[0] : b->dim[0];
	return 0;
}

int shape_concat_offset(struct mu_shape_ctx *c, struct mu_err *err)
{
	for (unsigned i = 0; i < c->n_out && i + 1 < c->n_in; i++)
		c->out[i] = c->in[i + 1];
	return 0;
}
