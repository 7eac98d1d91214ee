/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of ops that split tensors into segments or partitions, and of ops that stitch them. */
#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

/* The dimensions of data behind those that it shares with the indices.  The rank of the indices is
 * known; *rest is of unknown rank where data's is. */
static int rest_of(const struct mu_pshape *data, const struct mu_pshape *indices,
		   struct mu_pshape *rest, struct mu_err *err)
{
	int64_t same;

	*rest = mu_pshape_unknown(-1);
	if (data->rank < 0)
		return 0;
	if (data->rank < indices->rank)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Shape must be at least rank %d but is %s",
			       indices->rank, mu_pshape_str(data));
	for (int i = 0; i < indices->rank; i++)
		MU_RETURN_IF_ERROR(mu_shape_merge_dim(data->dim[i], indices->dim[i], &same, err));
	*rest = mu_pshape_part(data, indices->rank, data->rank);
	return 0;
}

static struct mu_pshape prepend_dim(int64_t first, const struct mu_pshape *rest)
{
	return mu_pshape_join(&(struct mu_pshape){.rank = 1, .dim = {first}}, rest);
}

int shape_partition(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape rest;

	if (c->in[1].rank < 0)
		return 0;
	MU_RETURN_IF_ERROR(rest_of(&c->in[0], &c->in[1], &rest, err));
	for (unsigned i = 0; i < c->n_out; i++)
		c->out[i] = prepend_dim(-1, &rest);
	return 0;
}

/* The largest index of the constants; false: an input is not constant. */
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
	struct mu_pshape all = mu_pshape_unknown(-1), rest;
	int64_t last;

	for (unsigned i = 0; i < n; i++) {
		if (c->in[i].rank < 0)
			continue;
		MU_RETURN_IF_ERROR(rest_of(&c->in[n + i], &c->in[i], &rest, err));
		MU_RETURN_IF_ERROR(mu_shape_merge(&all, &rest, &all, err));
	}
	c->out[0] = prepend_dim(max_index(c, n, &last) ? last + 1 : -1, &all);
	return 0;
}

int shape_unsorted_segment(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape rest;
	int64_t n = -1;
	bool known;

	MU_RETURN_IF_ERROR(mu_shape_want_rank(c, 2, 0, &known, err));
	if (c->in[1].rank < 0)
		return 0;
	MU_RETURN_IF_ERROR(rest_of(&c->in[0], &c->in[1], &rest, err));
	if (mu_shape_ints(c, 2, &n, 1) == 1 && n < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Dimension size, given by scalar input 2, must be non-negative but "
			       "is %lld",
			       (long long)n);
	c->out[0] = prepend_dim(n, &rest);
	return 0;
}

/* ---- SplitV ---- */

enum { MAX_PARTS = 256 };

/* Sets the open size, and checks that the sizes add up to the dimension. */
static int complete_sizes(int64_t *size, unsigned n, int64_t dim, struct mu_err *err)
{
	int64_t sum = 0, *open = NULL;

	for (unsigned i = 0; i < n; i++)
		if (size[i] == -1 && !open)
			open = &size[i];
		else if (size[i] < 0 || __builtin_add_overflow(sum, size[i], &sum))
			return mu_fail(
			    err, MU_INVALID_ARGUMENT,
			    "split sizes must be >= 0 and not too large, and one may be -1");
	if (dim >= 0 && (open ? sum > dim : sum != dim))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "can't split axis of size %lld into pieces that add up to %lld",
			       (long long)dim, (long long)sum);
	if (open && dim >= 0)
		*open = dim - sum;
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

/* ---- Unique, Bincount and other counts ---- */

/* The row has patterns for the counts. */
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

/* `rank` is that of the values: a row of counts for each row. */
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

/* A sparse tensor of the rank of input i and `more`. */
static int sparse_counts(struct mu_shape_ctx *c, unsigned i, int more)
{
	const int rank = c->in[i].rank;

	mu_shape_sparse(&c->out[0], &c->out[1], &c->out[2], -1, rank < 0 ? -1 : rank + more);
	return 0;
}

int shape_dense_counts(struct mu_shape_ctx *c, struct mu_err *err)
{
	return sparse_counts(c, 0, 0);
}

/* For values that are no vector, TensorFlow's function is wrong, and its kernel takes them. */
int shape_ragged_counts(struct mu_shape_ctx *c, struct mu_err *err)
{
	if (c->in[1].rank >= 0 && c->in[1].rank != 1)
		return 0;
	return sparse_counts(c, 1, 1);
}

/* ---- join ---- */

int shape_string_join(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape all = mu_pshape_unknown(-1);
	bool scalars = true;

	for (unsigned i = 0; i < c->n_in; i++) {
		scalars &= c->in[i].rank == 0;
		if (c->in[i].rank > 0)
			MU_RETURN_IF_ERROR(mu_shape_merge(&all, &c->in[i], &all, err));
	}
	c->out[0] = all;
	if (scalars)
		c->out[0].rank = 0;
	return 0;
}

int shape_substr(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape both;

	if (c->in[1].rank >= 0 && c->in[1].rank != c->in[2].rank)
		return mu_fail(err, MU_INVALID_ARGUMENT, "pos and len shapes must match: %s vs. %s",
			       mu_pshape_str(&c->in[1]), mu_pshape_str(&c->in[2]));
	MU_RETURN_IF_ERROR(mu_shape_merge(&c->in[1], &c->in[2], &both, err));
	return mu_shape_broadcast(&c->in[0], &c->in[1], &c->out[0], err);
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

/* Scalars and tensors of one shape. */
int shape_betainc(struct mu_shape_ctx *c, struct mu_err *err)
{
	return shape_string_join(c, err);
}

int shape_mirror_pad_grad(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *pads = &c->in[1];
	int64_t by[2 * MU_MAX_RANK];
	struct mu_pshape out = mu_pshape_unknown(-1);

	if (pads->rank == 2 && pads->dim[0] > MU_MAX_RANK)
		return 0;
	if (pads->rank == 2 && pads->dim[0] >= 0)
		out = mu_pshape_unknown((int)pads->dim[0]);
	if (out.rank < 0)
		return 0;
	MU_RETURN_IF_ERROR(mu_shape_merge(&out, &c->in[0], &out, err));
	bool known = mu_shape_ints(c, 1, by, 2 * MU_MAX_RANK) == 2 * out.rank;
	for (int i = 0; i < out.rank; i++) {
		if (known && (by[2 * i] < 0 || by[2 * i + 1] < 0))
			return mu_fail(err, MU_INVALID_ARGUMENT, "paddings must be non-negative");
		out.dim[i] = known && out.dim[i] >= 0 ? out.dim[i] - by[2 * i] - by[2 * i + 1] : -1;
		if (known && out.dim[i] < -1)
			return mu_fail(err, MU_INVALID_ARGUMENT, "paddings exceed the dimension");
	}
	c->out[0] = out;
	return 0;
}

/* ---- gather ---- */

int shape_gather_first(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape in = c->in[0];

	MU_RETURN_IF_ERROR(mu_shape_want_min_rank(c, 0, 1, err));
	if (in.rank > 0)
		in.dim[0] = -1;
	c->out[0] = in;
	return 0;
}

/* The tensors of all members, one behind the other. */
int shape_gathered(struct mu_shape_ctx *c, struct mu_err *err)
{
	int64_t members = mu_shape_attr_int(c, "group_size"), n = c->in[0].dim[0];

	MU_RETURN_IF_ERROR(shape_gather_first(c, err));
	if (c->in[0].rank > 0 && n >= 0 && !__builtin_mul_overflow(n, members, &n) && n >= 0)
		c->out[0].dim[0] = n;
	return 0;
}

int shape_random_each(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape sample = mu_pshape_unknown(-1);

	MU_RETURN_IF_ERROR(mu_shape_read(c, 0, false, &sample, err));
	c->out[0] = mu_pshape_join(&sample, &c->in[1]);
	return 0;
}

int shape_resource_gather_nd(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape pair[2] = {mu_pshape_unknown(-1), c->in[1]};
	struct mu_shape_ctx of_value = *c;

	of_value.out = &pair[0];
	shape_variable(&of_value, err);
	of_value = *c;
	of_value.in = pair;
	return shape_gather_nd(&of_value, err);
}
