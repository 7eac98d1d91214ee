/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of ops that count: unique elements, histograms by value, counts as sparse tensors. */
#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

/* The patterns of the op table set the shapes of the counts. */
int shape_unique(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t axis;
	int n = mu_shape_ints(c, 1, &axis, 1);

	c->out[0] = mu_pshape_unknown(in->rank);
	if (in->rank < 0)
		return 0;
	if (n < 0)
		return c->in_const[1] ? mu_fail(err, MU_INVALID_ARGUMENT,
						"axis does not support more than 1 element")
				      : 0;
	if (n == 0 && in->rank != 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Shape must be rank 1 but is %s",
			       mu_pshape_str(in));
	axis = n == 0 ? 0 : axis < 0 ? axis + in->rank : axis;
	if (axis < 0 || axis >= in->rank)
		return mu_fail(err, MU_INVALID_ARGUMENT, "axis is not one of %s",
			       mu_pshape_str(in));
	c->out[1].dim[0] = in->dim[axis];
	return 0;
}

/* rank: the rank of the values.  A matrix has a row of counts for each of its rows. */
static int bincount_shape(struct mu_shape_ctx *c, unsigned size_input, int rank, int64_t rows,
			  struct mu_err *err)
{
	int64_t size = -1;

	if (mu_shape_ints(c, size_input, &size, 1) == 1 && size < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT, "size (%lld) must be non-negative",
			       (long long)size);
	c->out[0] = rank < 2 ? (struct mu_pshape){.rank = 1, .dim = {size}}
			     : (struct mu_pshape){.rank = 2, .dim = {rows, size}};
	return 0;
}

int shape_dense_bincount(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];

	if (in->rank > 2)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Shape must be at most rank 2 but is %s",
			       mu_pshape_str(in));
	if (in->rank <=
	    0) /* TensorFlow infers a scalar of a scalar, but its kernel returns a vector */
		return 0;
	if (!c->in_const[1]) {
		c->out[0] = mu_pshape_unknown(in->rank);
		return 0;
	}
	return bincount_shape(c, 1, in->rank, in->dim[0], err);
}

int shape_sparse_bincount(struct mu_shape_ctx *c, struct mu_err *err)
{
	int64_t dim[2];
	int n = mu_shape_ints(c, 2, dim, 2);

	if (n < 1 || !c->in_const[3])
		return 0;
	return bincount_shape(c, 3, n, dim[0], err);
}

/* Sets a sparse tensor with the rank of input i plus extra_rank. */
static int sparse_counts(struct mu_shape_ctx *c, unsigned i, int extra_rank)
{
	const int rank = c->in[i].rank;

	mu_shape_sparse(&c->out[0], &c->out[1], &c->out[2], -1, rank < 0 ? -1 : rank + extra_rank);
	return 0;
}

int shape_dense_counts(struct mu_shape_ctx *c, struct mu_err *err)
{
	return sparse_counts(c, 0, 0);
}

/* The kernel accepts values that are not a vector.  TensorFlow's shape function is wrong for them.
 */
int shape_ragged_counts(struct mu_shape_ctx *c, struct mu_err *err)
{
	if (c->in[1].rank >= 0 && c->in[1].rank != 1)
		return 0;
	return sparse_counts(c, 1, 1);
}
