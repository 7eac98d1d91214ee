/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of ops that select elements: gather, slice, tile, pad. */
#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

static int gather(struct mu_shape_ctx *c, const struct mu_pshape *params, int axis)
{
	const struct mu_pshape *indices = &c->in[1];
	int64_t batch = mu_shape_attr_int(c, "batch_dims");

	if (params->rank < 1 || indices->rank < 0)
		return 0;
	batch = batch < 0 ? batch + indices->rank : batch;
	if (batch < 0 || batch > axis || batch > indices->rank)
		return 0;
	c->out[0].rank = 0;
	for (int i = 0; i < params->rank; i++) {
		if (i != axis)
			mu_pshape_push(&c->out[0], params->dim[i]);
		for (int k = (int)batch; i == axis && k < indices->rank; k++)
			mu_pshape_push(&c->out[0], indices->dim[k]);
	}
	return 0;
}

int shape_gather(struct mu_shape_ctx *c, struct mu_err *err)
{
	int axis = 0;

	if (c->n_in > 2 && !mu_shape_axis(c, 2, c->in[0].rank < 0 ? 0 : c->in[0].rank, &axis))
		return 0;
	return gather(c, &c->in[0], axis);
}

int shape_resource_gather(struct mu_shape_ctx *c, struct mu_err *err)
{
	shape_variable(c, err);
	struct mu_pshape table = c->out[0];
	c->out[0].rank = -1;
	int64_t batch = mu_shape_attr_int(c, "batch_dims");
	return gather(c, &table, batch > 0 && batch < MU_MAX_RANK ? (int)batch : 0);
}

int shape_gather_nd(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *params = &c->in[0], *indices = &c->in[1];

	if (params->rank < 0 || indices->rank < 1 || indices->dim[indices->rank - 1] < 0)
		return 0;
	if (indices->dim[indices->rank - 1] > params->rank)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "indices.shape[-1] must be <= params.rank, but saw indices shape %s "
			       "and params shape %s",
			       mu_pshape_str(indices), mu_pshape_str(params));
	c->out[0].rank = 0;
	for (int i = 0; i < indices->rank - 1; i++)
		mu_pshape_push(&c->out[0], indices->dim[i]);
	for (int i = (int)indices->dim[indices->rank - 1]; i < params->rank; i++)
		mu_pshape_push(&c->out[0], params->dim[i]);
	return 0;
}

int shape_slice(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t begin[MU_MAX_RANK], size[MU_MAX_RANK];
	int n = mu_shape_ints(c, 1, begin, MU_MAX_RANK), m = mu_shape_ints(c, 2, size, MU_MAX_RANK);

	if (in->rank < 0)
		return 0;
	c->out[0] = mu_pshape_unknown(in->rank);
	for (int i = 0; m == in->rank && i < m; i++)
		if (size[i] >= 0)
			c->out[0].dim[i] = size[i];
		else if (n == in->rank && in->dim[i] >= begin[i] && begin[i] >= 0)
			c->out[0].dim[i] = in->dim[i] - begin[i];
	return 0;
}

/* Computes the rank and the dimensions that are not sliced; the others stay unknown. */
int shape_strided_slice(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0], *spec = &c->in[1];
	int64_t shrink = mu_shape_attr_int(c, "shrink_axis_mask"),
		new_axes = mu_shape_attr_int(c, "new_axis_mask");
	int64_t ellipsis = mu_shape_attr_int(c, "ellipsis_mask"), stride[2 * MU_MAX_RANK];
	int64_t full_mask = mu_shape_attr_int(c, "begin_mask") & mu_shape_attr_int(c, "end_mask");
	int strides = mu_shape_ints(c, 3, stride, 2 * MU_MAX_RANK), d = 0, n_sliced = 0;

	if (in->rank < 0 || spec->rank != 1 || spec->dim[0] < 0 || spec->dim[0] > 2 * MU_MAX_RANK)
		return 0;
	int n = (int)spec->dim[0];
	if (n < 63)
		ellipsis &= ((int64_t)1 << n) - 1;
	if (ellipsis & (ellipsis - 1))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Multiple ellipses in slice spec not allowed");
	for (int i = 0; i < n; i++)
		n_sliced += !((new_axes | ellipsis) >> i & 1);
	if (n_sliced > in->rank)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Index out of range using input dim %d; input has only %d dims",
			       in->rank, in->rank);
	struct mu_pshape out = {.rank = 0};
	for (int i = 0; i <= n; i++) {
		bool is_ellipsis = i == n ? !ellipsis : ellipsis >> i & 1;
		for (int k = 0; is_ellipsis && k < in->rank - n_sliced; k++)
			mu_pshape_push(&out, in->dim[d++]);
		if (i == n || (ellipsis >> i & 1))
			continue;
		if (new_axes >> i & 1) {
			mu_pshape_push(&out, 1);
			continue;
		}
		bool is_full =
		    (full_mask >> i & 1) && i < strides && (stride[i] == 1 || stride[i] == -1);
		if (!(shrink >> i & 1))
			mu_pshape_push(&out, is_full ? in->dim[d] : -1);
		d++;
	}
	c->out[0] = out;
	return 0;
}

int shape_tile(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t multiples[MU_MAX_RANK];
	int n = mu_shape_ints(c, 1, multiples, MU_MAX_RANK);

	if (in->rank < 0)
		return 0;
	c->out[0] = mu_pshape_unknown(in->rank);
	for (int i = 0; n == in->rank && i < n; i++)
		if (in->dim[i] < 0 || multiples[i] < 0 ||
		    __builtin_mul_overflow(in->dim[i], multiples[i], &c->out[0].dim[i]))
			c->out[0].dim[i] = -1;
	return 0;
}

int shape_pad(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t paddings[2 * MU_MAX_RANK];
	int n = mu_shape_ints(c, 1, paddings, 2 * MU_MAX_RANK);

	if (in->rank < 0)
		return 0;
	c->out[0] = mu_pshape_unknown(in->rank);
	for (int i = 0; n == 2 * in->rank && i < in->rank; i++)
		if (in->dim[i] < 0 ||
		    __builtin_add_overflow(in->dim[i], paddings[2 * i], &c->out[0].dim[i]) ||
		    __builtin_add_overflow(c->out[0].dim[i], paddings[2 * i + 1],
					   &c->out[0].dim[i]))
			c->out[0].dim[i] = -1;
	return 0;
}

int shape_one_hot(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t axis = mu_shape_attr_int(c, "axis"), depth = -1;

	if (in->rank < 0 || in->rank == MU_MAX_RANK)
		return 0;
	mu_shape_ints(c, 1, &depth, 1);
	axis = axis < 0 ? axis + in->rank + 1 : axis;
	if (axis < 0 || axis > in->rank)
		return 0; /* the kernel reports the error */
	c->out[0].rank = 0;
	for (int i = 0; i <= in->rank; i++) {
		if (i == axis)
			mu_pshape_push(&c->out[0], depth);
		if (i < in->rank)
			mu_pshape_push(&c->out[0], in->dim[i]);
	}
	return 0;
}

int shape_mirror_pad_grad(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *pads = &c->in[1];
	int64_t amounts[2 * MU_MAX_RANK];
	struct mu_pshape out = mu_pshape_unknown(-1);

	if (pads->rank == 2 && pads->dim[0] > MU_MAX_RANK)
		return 0;
	if (pads->rank == 2 && pads->dim[0] >= 0)
		out = mu_pshape_unknown((int)pads->dim[0]);
	if (out.rank < 0)
		return 0;
	MU_RETURN_IF_ERROR(mu_shape_merge(&out, &c->in[0], &out, err));
	bool is_known = mu_shape_ints(c, 1, amounts, 2 * MU_MAX_RANK) == 2 * out.rank;
	for (int i = 0; i < out.rank; i++) {
		if (is_known && (amounts[2 * i] < 0 || amounts[2 * i + 1] < 0))
			return mu_fail(err, MU_INVALID_ARGUMENT, "paddings must be non-negative");
		if (!is_known || out.dim[i] < 0) {
			out.dim[i] = -1;
			continue;
		}
		if (amounts[2 * i] > out.dim[i] || amounts[2 * i + 1] > out.dim[i] - amounts[2 * i])
			return mu_fail(err, MU_INVALID_ARGUMENT, "paddings exceed the dimension");
		out.dim[i] -= amounts[2 * i] + amounts[2 * i + 1];
	}
	c->out[0] = out;
	return 0;
}

int shape_gather_first(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape in = c->in[0];

	MU_RETURN_IF_ERROR(mu_shape_want_min_rank(c, 0, 1, err));
	if (in.rank > 0)
		in.dim[0] = -1;
	c->out[0] = in;
	return 0;
}

/* The tensors of all members, concatenated along dimension 0. */
int shape_gathered(struct mu_shape_ctx *c, struct mu_err *err)
{
	int64_t members = mu_shape_attr_int(c, "group_size"), n = c->in[0].dim[0];

	MU_RETURN_IF_ERROR(shape_gather_first(c, err));
	if (c->in[0].rank > 0 && n >= 0 && !__builtin_mul_overflow(n, members, &n) && n >= 0)
		c->out[0].dim[0] = n;
	return 0;
}

int shape_resource_gather_nd(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape pair[2] = {mu_pshape_unknown(-1), c->in[1]};
	struct mu_shape_ctx gather_ctx = *c;

	gather_ctx.out = &pair[0];
	shape_variable(&gather_ctx, err);
	gather_ctx = *c;
	gather_ctx.in = pair;
	return shape_gather_nd(&gather_ctx, err);
}
