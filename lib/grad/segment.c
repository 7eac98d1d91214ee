/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of segment reductions. */
#include "lib/grad/op_grads.h"

/* Returns for each row of data the row of its segment. A row with a negative segment id has
 * no segment and is zeros. */
static struct mu_out segment_rows(struct grad_call *c, struct mu_out per_segment)
{
	struct mu_builder *b = c->b;
	struct mu_out ids = grad_in(c, 1), zero = grad_zeros(b, ids), rows, has_segment;

	if (strncmp(c->node->op, "Unsorted", 8) != 0)
		return mu_op(b, "Gather", MU_IN(per_segment, ids));
	rows = mu_op(b, "Gather", MU_IN(per_segment, mu_op(b, "Maximum", MU_IN(ids, zero))));
	has_segment = mu_op(b, "GreaterEqual", MU_IN(ids, zero));
	/* ids have the leading dimensions of rows. Appends dimensions of size 1, so that the
	 * condition broadcasts. */
	has_segment =
	    mu_reshape(b, has_segment,
		       mu_op(b, "ConcatV2",
			     MU_IN(grad_shape(b, ids),
				   mu_op(b, "Fill",
					 MU_IN(mu_reshape(b,
							  mu_sub(b, mu_op(b, "Rank", MU_IN(rows)),
								 mu_op(b, "Rank", MU_IN(ids))),
							  mu_const_ints(b, (int32_t[]){1}, 1)),
					       grad_int(b, 1))),
				   grad_int(b, 0))));
	/* Not a product with 0 and 1, because the gradient of a segment may be infinite. */
	return mu_op(b, "SelectV2", MU_IN(has_segment, rows, grad_zeros(b, rows)));
}

/* Sums x over the segments of the node. */
static struct mu_out segment_sum(struct grad_call *c, struct mu_out x)
{
	return c->node->n_inputs > 2
		   ? mu_op(c->b, "UnsortedSegmentSum", MU_IN(x, grad_in(c, 1), grad_in(c, 2)))
		   : mu_op(c->b, "SegmentSum", MU_IN(x, grad_in(c, 1)));
}

static void g_segment_sum(struct grad_call *c)
{
	c->gx[0] = segment_rows(c, c->gy[0]);
}

static void g_segment_mean(struct grad_call *c)
{
	struct mu_out count = segment_sum(c, mu_op(c->b, "OnesLike", MU_IN(grad_in(c, 0))));

	c->gx[0] = segment_rows(c, grad_div_no_nan(c->b, c->gy[0], count));
}

/* Max and Min: the elements that are equal to the result share its gradient. */
static void g_segment_extreme(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0);
	struct mu_out is_extreme = mu_equal(b, x, segment_rows(c, grad_out(c, 0)));
	struct mu_out share =
	    grad_div_no_nan(b, c->gy[0], segment_sum(c, grad_indicator(b, is_extreme, x)));

	c->gx[0] = grad_where(b, is_extreme, segment_rows(c, share));
}

/* The gradient is the product of the other elements of the segment. */
static void g_segment_prod(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), zero = mu_equal(b, x, grad_zeros(b, x));
	struct mu_out is_zero = grad_indicator(b, zero, x);
	struct mu_out in[3] = {mu_op(b, "Select", MU_IN(zero, mu_op(b, "OnesLike", MU_IN(x)), x)),
			       grad_in(c, 1)};
	struct mu_out p, n_other_zeros;

	if (c->node->n_inputs > 2)
		in[2] = grad_in(c, 2);
	p = mu_div(b, segment_rows(c, grad_op(c, c->node->op, in, c->node->n_inputs)), in[0]);
	n_other_zeros = mu_sub(b, segment_rows(c, segment_sum(c, is_zero)),
			       is_zero); /* number of zeros among the other elements */
	p = grad_where(b, mu_equal(b, n_other_zeros, grad_zeros(b, x)), p);
	c->gx[0] = mu_mul(b, p, segment_rows(c, c->gy[0]));
}

/* ---- sparse segment reductions; inputs: (data, indices, segment ids, …) ---- */
static const struct {
	const char *op, *grad;
} sparse[] = {
    {"SparseSegmentMean", "SparseSegmentMeanGrad"},
    {"SparseSegmentMeanWithNumSegments", "SparseSegmentMeanGrad"},
    {"SparseSegmentSqrtN", "SparseSegmentSqrtNGrad"},
    {"SparseSegmentSqrtNWithNumSegments", "SparseSegmentSqrtNGrad"},
    {"SparseSegmentSum", "SparseSegmentSumGrad"},
    {"SparseSegmentSumWithNumSegments", "SparseSegmentSumGrad"},
};

static void g_sparse(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out rows =
	    mu_op(b, "Gather", MU_IN(grad_shape(b, grad_in(c, 0)), grad_int(b, 0)));

	for (size_t i = 0; i < MU_COUNT(sparse); i++)
		if (strcmp(sparse[i].op, c->node->op) == 0)
			c->gx[0] = GRAD_OP(c, sparse[i].grad, c->gy[0], grad_in(c, 1),
					   grad_in(c, 2), rows);
}

const struct op_grad grads_of_segments[] = {
    {"SegmentMax", g_segment_extreme, GRAD_FIRST},
    {"SegmentMean", g_segment_mean, GRAD_FIRST},
    {"SegmentMin", g_segment_extreme, GRAD_FIRST},
    {"SegmentProd", g_segment_prod, GRAD_FIRST},
    {"SegmentSum", g_segment_sum, GRAD_FIRST},
    {"SparseSegmentMean", g_sparse, GRAD_FIRST},
    {"SparseSegmentMeanWithNumSegments", g_sparse, GRAD_FIRST},
    {"SparseSegmentSqrtN", g_sparse, GRAD_FIRST},
    {"SparseSegmentSqrtNWithNumSegments", g_sparse, GRAD_FIRST},
    {"SparseSegmentSum", g_sparse, GRAD_FIRST},
    {"SparseSegmentSumWithNumSegments", g_sparse, GRAD_FIRST},
    {"UnsortedSegmentMax", g_segment_extreme, GRAD_FIRST},
    {"UnsortedSegmentMin", g_segment_extreme, GRAD_FIRST},
    {"UnsortedSegmentProd", g_segment_prod, GRAD_FIRST},
    {"UnsortedSegmentSum", g_segment_sum, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
