/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of sparse and ragged tensors. */
#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

void mu_shape_sparse(struct mu_pshape *indices, struct mu_pshape *values, struct mu_pshape *shape,
		     int64_t n, int64_t rank)
{
	*indices = (struct mu_pshape){.rank = 2, .dim = {n, rank}};
	*values = (struct mu_pshape){.rank = 1, .dim = {n}};
	*shape = (struct mu_pshape){.rank = 1, .dim = {rank}};
}

int shape_dense_sets(struct mu_shape_ctx *c, struct mu_err *err)
{
	int rank = c->in[0].rank >= 0 ? c->in[0].rank : c->in[1].rank;

	mu_shape_sparse(&c->out[0], &c->out[1], &c->out[2], -1, rank);
	return 0;
}

int shape_ragged_to_sparse(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *values = &c->in[c->n_in - 1];
	int64_t n = values->rank < 0 ? -1 : 1;

	for (int i = 0; i < values->rank; i++)
		if (n < 0 || values->dim[i] < 0 || __builtin_mul_overflow(n, values->dim[i], &n))
			n = -1;
	mu_shape_sparse(&c->out[0], &c->out[1], &c->out[2], n,
			values->rank < 0 ? -1 : (int64_t)c->n_in - 1 + values->rank);
	return 0;
}

int shape_ragged_gather(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *values = &c->in[c->n_in - 2];

	for (unsigned i = 0; i + 1 < c->n_out; i++)
		c->out[i] = mu_pshape_unknown(1);
	MU_RETURN_IF_ERROR(mu_shape_want_min_rank(c, c->n_in - 2, 1, err));
	c->out[c->n_out - 1] = *values;
	if (values->rank > 0)
		c->out[c->n_out - 1].dim[0] = -1;
	return 0;
}

int shape_sdca(struct mu_shape_ctx *c, struct mu_err *err)
{
	unsigned weights = c->n_in - c->n_out; /* the last inputs are the weights and the state */
	bool known;

	MU_RETURN_IF_ERROR(mu_shape_want_rank(c, c->n_in - 1, 2, &known, err));
	c->out[0] =
	    (struct mu_pshape){.rank = 2, .dim = {known ? c->in[c->n_in - 1].dim[0] : -1, 4}};
	for (unsigned i = 1; i < c->n_out; i++)
		c->out[i] = c->in[weights + i - 1];
	return 0;
}

int shape_sparse_reduce(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape in[2] = {mu_pshape_unknown(-1), c->in[3]};
	const struct mu_tensor *value[2] = {NULL, c->in_const[3]};
	struct mu_shape_ctx dense = *c;

	if (!c->in_const[2] || !c->in_const[3])
		return 0;
	MU_RETURN_IF_ERROR(mu_shape_read(c, 2, false, &in[0], err));
	dense.in = in;
	dense.in_const = value;
	dense.n_in = 2;
	return shape_reduce(&dense, err);
}

int shape_edit_distance(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape a = mu_pshape_unknown(-1), b = a;

	if (!c->in_const[2] || !c->in_const[5])
		return 0;
	MU_RETURN_IF_ERROR(mu_shape_read(c, 2, false, &a, err));
	MU_RETURN_IF_ERROR(mu_shape_read(c, 5, false, &b, err));
	if (a.rank != b.rank)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Num elements of hypothesis_shape does not match truth_shape: "
			       "%d vs. %d",
			       a.rank, b.rank);
	if (a.rank < 1)
		return 0;
	a.rank--;
	for (int i = 0; i < a.rank; i++)
		if (b.dim[i] > a.dim[i])
			a.dim[i] = b.dim[i];
	c->out[0] = a;
	return 0;
}

static int64_t ragged_rank(const struct mu_shape_ctx *c)
{
	const struct mu_attr *a = mu_node_attr(c->node, "row_partition_types");

	if (!a || a->kind != MU_ATTR_LIST + MU_ATTR_STRING)
		return 0;
	return (int64_t)a->n - mu_span_is(a->ss[0], "FIRST_DIM_SIZE");
}

int shape_ragged_to_dense(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *values = &c->in[1];
	struct mu_pshape out = mu_pshape_unknown(-1);
	int64_t rank = ragged_rank(c) + values->rank;

	MU_RETURN_IF_ERROR(mu_shape_read(c, 0, true, &out, err));
	if (values->rank < 0 || rank > MU_MAX_RANK)
		return c->out[0] = out, 0;
	if (out.rank < 0)
		out = mu_pshape_unknown((int)rank);
	if (out.rank != rank)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "rt_input.shape and shape=%s are incompatible: the rank of the "
			       "ragged tensor is %lld",
			       mu_pshape_str(&out), (long long)rank);
	for (int i = 1; i < values->rank; i++) {
		int64_t *d = &out.dim[out.rank - values->rank + i];
		MU_RETURN_IF_ERROR(mu_shape_merge_dim(*d, values->dim[i], d, err));
	}
	c->out[0] = out;
	return 0;
}

int shape_ragged_to_variant(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *splits = &c->in[0];
	bool known;

	for (unsigned i = 0; i + 1 < c->n_in; i++)
		MU_RETURN_IF_ERROR(mu_shape_want_rank(c, i, 1, &known, err));
	if (!mu_shape_flag(c, "batched_input")) {
		c->out[0] = mu_pshape_unknown(0);
		return mu_shape_want_min_rank(c, c->n_in - 1, c->n_in > 1, err);
	}
	MU_RETURN_IF_ERROR(mu_shape_want_min_rank(c, c->n_in - 1, 1, err));
	c->out[0] = mu_pshape_unknown(1);
	if (splits->rank >= 1 && splits->dim[0] > 0)
		c->out[0].dim[0] = splits->dim[0] - (c->n_in > 1);
	return 0;
}

int shape_ragged_from_variant(struct mu_shape_ctx *c, struct mu_err *err)
{
	int64_t levels = mu_shape_attr_int(c, "input_ragged_rank");
	bool known;

	for (unsigned i = 0; i + 1 < c->n_out; i++)
		c->out[i] = mu_pshape_unknown(1);
	return levels < 0 ? 0 : mu_shape_want_rank(c, 0, (int)(c->n_out - 1 - levels), &known, err);
}

int shape_ragged_variant_grad(struct mu_shape_ctx *c, struct mu_err *err)
{
	return mu_shape_read(c, 2, true, &c->out[0], err);
}

int shape_ctc_beam(struct mu_shape_ctx *c, struct mu_err *err)
{
	int64_t top = mu_shape_attr_int(c, "top_paths"), batch = -1;

	if (c->in[0].rank == 3)
		batch = c->in[0].dim[1];
	if (c->in[1].rank == 1)
		MU_RETURN_IF_ERROR(mu_shape_merge_dim(batch, c->in[1].dim[0], &batch, err));
	if (3 * top + 1 != c->n_out)
		return 0;
	for (int64_t i = 0; i < top; i++)
		mu_shape_sparse(&c->out[i], &c->out[top + i], &c->out[2 * top + i], -1, 2);
	c->out[3 * top] = (struct mu_pshape){.rank = 2, .dim = {batch, top}};
	return 0;
}
