/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of ops that split tensors into segments or partitions, and of ops that stitch them. */
#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

/* Sets *inner to the dimensions of data after the dimensions of the indices, whose rank is known.
 * If the rank of data is unknown, the rank of *inner is unknown too. */
static int inner_dims(const struct mu_pshape *data, const struct mu_pshape *indices,
		      struct mu_pshape *inner, struct mu_err *err)
{
	int64_t merged;

	*inner = mu_pshape_unknown(-1);
	if (data->rank < 0)
		return 0;
	if (data->rank < indices->rank)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Shape must be at least rank %d but is %s",
			       indices->rank, mu_pshape_str(data));
	for (int i = 0; i < indices->rank; i++)
		MU_RETURN_IF_ERROR(mu_shape_merge_dim(data->dim[i], indices->dim[i], &merged, err));
	*inner = mu_pshape_part(data, indices->rank, data->rank);
	return 0;
}

static struct mu_pshape prepend_dim(int64_t first, const struct mu_pshape *inner)
{
	return mu_pshape_join(&(struct mu_pshape){.rank = 1, .dim = {first}}, inner);
}

int shape_partition(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape inner;

	if (c->in[1].rank < 0)
		return 0;
	MU_RETURN_IF_ERROR(inner_dims(&c->in[0], &c->in[1], &inner, err));
	for (unsigned i = 0; i < c->n_out; i++)
		c->out[i] = prepend_dim(-1, &inner);
	return 0;
}

/* Sets *max to the largest index.  Returns false if an input is not constant. */
static bool max_index(const struct mu_shape_ctx *c, unsigned n, int64_t *max)
{
	*max = -1;
	for (unsigned i = 0; i < n; i++) {
		const struct mu_tensor *t = c->in_const[i];
		if (!t || t->dtype != MU_INT32)
			return false;
		for (int64_t k = 0; k < t->shape.count; k++)
			if (mu_tensor_int(t, k) > *max)
				*max = mu_tensor_int(t, k);
	}
	return true;
}

int shape_stitch(struct mu_shape_ctx *c, struct mu_err *err)
{
	unsigned n = c->n_in / 2;
	struct mu_pshape element = mu_pshape_unknown(-1), inner;
	int64_t max;

	for (unsigned i = 0; i < n; i++) {
		if (c->in[i].rank < 0)
			continue;
		MU_RETURN_IF_ERROR(inner_dims(&c->in[n + i], &c->in[i], &inner, err));
		MU_RETURN_IF_ERROR(mu_shape_merge(&element, &inner, &element, err));
	}
	c->out[0] = prepend_dim(max_index(c, n, &max) ? max + 1 : -1, &element);
	return 0;
}

int shape_unsorted_segment(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape inner;
	int64_t n = -1;
	bool known;

	MU_RETURN_IF_ERROR(mu_shape_want_rank(c, 2, 0, &known, err));
	if (c->in[1].rank < 0)
		return 0;
	MU_RETURN_IF_ERROR(inner_dims(&c->in[0], &c->in[1], &inner, err));
	if (mu_shape_ints(c, 2, &n, 1) == 1 && n < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Dimension size, given by scalar input 2, must be non-negative but "
			       "is %lld",
			       (long long)n);
	c->out[0] = prepend_dim(n, &inner);
	return 0;
}
