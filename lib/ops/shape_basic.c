/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules that many ops share: the shape of an input, of an attribute or of a value. */
#include <string.h>

#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

int mu_shape_ints(const struct mu_shape_ctx *c, unsigned i, int64_t *out, int max)
{
	const struct mu_tensor *t = i < c->n_in ? c->in_const[i] : NULL;

	if (!t || (t->dtype != MU_INT32 && t->dtype != MU_INT64) || t->shape.count > max)
		return -1;
	for (int64_t k = 0; k < t->shape.count; k++)
		out[k] = mu_tensor_int(t, k);
	return (int)t->shape.count;
}

bool mu_shape_axis(const struct mu_shape_ctx *c, unsigned i, int rank, int *out)
{
	int64_t axis;

	if (mu_shape_ints(c, i, &axis, 1) != 1 || axis < -rank || axis >= rank)
		return false;
	*out = (int)(axis < 0 ? axis + rank : axis);
	return true;
}

int mu_shape_merge_dim(int64_t a, int64_t b, int64_t *out, struct mu_err *err)
{
	if (a >= 0 && b >= 0 && a != b)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Dimensions must be equal, but are %lld and %lld", (long long)a,
			       (long long)b);
	*out = a >= 0 ? a : b;
	return 0;
}

int mu_shape_merge(const struct mu_pshape *a, const struct mu_pshape *b, struct mu_pshape *out,
		   struct mu_err *err)
{
	struct mu_pshape merged = a->rank < 0 ? *b : *a;
	int rc = 0;

	if (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Shapes must be equal rank, but are %s and %s", mu_pshape_str(a),
			       mu_pshape_str(b));
	for (int i = 0; a->rank >= 0 && b->rank >= 0 && i < a->rank && !rc; i++)
		rc = mu_shape_merge_dim(a->dim[i], b->dim[i], &merged.dim[i], err);
	if (!rc)
		*out = merged;
	return rc;
}

int mu_shape_want_rank(const struct mu_shape_ctx *c, unsigned i, int rank, bool *known,
		       struct mu_err *err)
{
	*known = i < c->n_in && c->in[i].rank >= 0;
	if (*known && c->in[i].rank != rank)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Shape must be rank %d but is %s, input %u of %s", rank,
			       mu_pshape_str(&c->in[i]), i, c->node->name);
	return 0;
}

int mu_shape_want_min_rank(const struct mu_shape_ctx *c, unsigned i, int rank, struct mu_err *err)
{
	if (c->in[i].rank >= 0 && c->in[i].rank < rank)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Shape must be at least rank %d but is %s, input %u of %s", rank,
			       mu_pshape_str(&c->in[i]), i, c->node->name);
	return 0;
}

bool mu_shape_flag(const struct mu_shape_ctx *c, const char *name)
{
	const struct mu_attr *a = mu_node_attr(c->node, name);

	return a && a->kind == MU_ATTR_BOOL && a->b;
}

int64_t mu_shape_attr_int(const struct mu_shape_ctx *c, const char *name)
{
	int64_t i = 0;

	return mu_node_attr_int(c->node, name, &i, NULL) ? 0 : i;
}

struct mu_pshape mu_pshape_part(const struct mu_pshape *s, int from, int to)
{
	struct mu_pshape out = {.rank = s->rank < 0 ? -1 : 0};

	for (int i = from; i < to && s->rank >= 0; i++)
		mu_pshape_push(&out, s->dim[i]);
	return out;
}

struct mu_pshape mu_pshape_join(const struct mu_pshape *a, const struct mu_pshape *b)
{
	struct mu_pshape joined = *a;

	if (b->rank < 0)
		joined.rank = -1;
	for (int i = 0; i < b->rank; i++)
		mu_pshape_push(&joined, b->dim[i]);
	return joined;
}

int shape_same(struct mu_shape_ctx *c, struct mu_err *err)
{
	if (c->n_in && c->n_out)
		c->out[0] = c->in[0];
	return 0;
}

int shape_each(struct mu_shape_ctx *c, struct mu_err *err)
{
	for (unsigned i = 0; i < c->n_in && i < c->n_out; i++)
		c->out[i] = c->in[i];
	return 0;
}

int shape_second(struct mu_shape_ctx *c, struct mu_err *err)
{
	if (c->n_in > 1 && c->n_out)
		c->out[0] = c->in[1];
	return 0;
}

int shape_all_equal(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape merged = {.rank = -1};
	int rc = 0;

	for (unsigned i = 0; i < c->n_in && !rc; i++)
		rc = mu_shape_merge(&merged, &c->in[i], &merged, err);
	if (!rc && c->n_out)
		c->out[0] = merged;
	return rc;
}

int shape_scalar(struct mu_shape_ctx *c, struct mu_err *err)
{
	for (unsigned i = 0; i < c->n_out; i++)
		c->out[i].rank = 0;
	return 0;
}

int shape_vector(struct mu_shape_ctx *c, struct mu_err *err)
{
	for (unsigned i = 0; i < c->n_out; i++)
		c->out[i] = mu_pshape_unknown(1);
	return 0;
}

/* ---- broadcast ---- */

static int broadcast_dim(int64_t a, int64_t b, int64_t *out)
{
	if (a >= 0 && b >= 0 && a != b && a != 1 && b != 1)
		return -1;
	*out = a == 1 ? b : b == 1 ? a : a > b ? a : b;
	if ((a < 0 || b < 0) && *out == 0)
		*out = -1; /* the unknown dimension may be 1 or 0 */
	return 0;
}

int mu_shape_broadcast(const struct mu_pshape *a, const struct mu_pshape *b, struct mu_pshape *out,
		       struct mu_err *err)
{
	struct mu_pshape s;

	if (a->rank < 0 || b->rank < 0) {
		out->rank = -1;
		return 0;
	}
	s.rank = a->rank > b->rank ? a->rank : b->rank;
	for (int i = 0; i < s.rank; i++) {
		int ia = i - (s.rank - a->rank), ib = i - (s.rank - b->rank);
		if (broadcast_dim(ia < 0 ? 1 : a->dim[ia], ib < 0 ? 1 : b->dim[ib], &s.dim[i]))
			return mu_fail(err, MU_INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
				       mu_pshape_str(a), mu_pshape_str(b));
	}
	*out = s;
	return 0;
}

int shape_broadcast(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape shape = {.rank = 0};
	int rc = 0;

	for (unsigned i = 0; i < c->n_in && !rc; i++)
		rc = mu_shape_broadcast(&shape, &c->in[i], &shape, err);
	if (!rc && c->n_out)
		c->out[0] = shape;
	const struct mu_attr *strict = mu_node_attr(c->node, "incompatible_shape_error");
	return strict && strict->kind == MU_ATTR_BOOL && !strict->b ? 0 : rc;
}

int shape_select(struct mu_shape_ctx *c, struct mu_err *err)
{
	return c->n_in == 3 ? mu_shape_merge(&c->in[1], &c->in[2], &c->out[0], err) : 0;
}

/* ---- shape from an attribute or an input ---- */

int shape_attr(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_attr *a = mu_node_attr(c->node, "shape");

	if (a && a->kind == MU_ATTR_SHAPE)
		c->out[0] = *a->shape;
	return 0;
}

static struct mu_pshape pshape_of(const struct mu_shape *s)
{
	struct mu_pshape p = {.rank = s->rank};

	for (int i = 0; i < s->rank; i++)
		p.dim[i] = s->dim[i];
	return p;
}

int shape_value(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_attr *a = mu_node_attr(c->node, "value");

	if (a && a->kind == MU_ATTR_TENSOR)
		c->out[0] = pshape_of(&a->tensor->shape);
	return 0;
}

int shape_variable(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_node *handle = c->node->n_inputs ? c->node->inputs[0].node : NULL;
	const struct mu_attr *a = handle ? mu_node_attr(handle, "shape") : NULL;

	if (a && a->kind == MU_ATTR_SHAPE)
		c->out[0] = *a->shape;
	return 0;
}

int mu_shape_read(const struct mu_shape_ctx *c, unsigned i, bool scalar_is_any,
		  struct mu_pshape *out, struct mu_err *err)
{
	int64_t dim[MU_MAX_RANK];
	int n = mu_shape_ints(c, i, dim, MU_MAX_RANK);
	const struct mu_pshape *in = &c->in[i];

	if (i >= c->n_in || in->rank < 0)
		return 0;
	if (in->rank == 0 && (scalar_is_any ? n < 0 || dim[0] == -1 : false))
		return 0;
	if (in->rank != 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Shape must be rank 1 but is %s, input %u",
			       mu_pshape_str(in), i);
	for (int k = 0; k < n; k++)
		if (dim[k] < -1)
			return mu_fail(err, MU_INVALID_ARGUMENT, "Dimension %lld must be >= 0",
				       (long long)dim[k]);
	*out = mu_pshape_unknown(in->dim[0] > MU_MAX_RANK ? -1 : (int)in->dim[0]);
	for (int k = 0; k < n; k++)
		out->dim[k] = dim[k];
	return 0;
}

/* Returns the index of the input `name`; 0 if there is none. */
static unsigned input_named(const struct mu_shape_ctx *c, const char *name)
{
	const struct mu_op_def *op = c->node->def;
	unsigned i = 0;

	while (i < op->n_inputs && strcmp(op->inputs[i].name, name))
		i++;
	return i < op->n_inputs ? i : 0;
}

int shape_filled(struct mu_shape_ctx *c, struct mu_err *err)
{
	return mu_shape_read(c, input_named(c, "shape"), false, &c->out[0], err);
}

/* Also checks that the parameters, inputs 2 and following, broadcast. */
int shape_filled_by_parameters(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape shape = {.rank = 0};

	for (unsigned i = 2; i < c->n_in; i++)
		MU_RETURN_IF_ERROR(mu_shape_broadcast(&shape, &c->in[i], &shape, err));
	return shape_filled(c, err);
}

/* A scalar `dims` is the length of a vector. */
int shape_fill(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape *out = &c->out[0];

	if (c->in[0].rank)
		return shape_filled(c, err);
	*out = mu_pshape_unknown(1);
	mu_shape_ints(c, 0, out->dim, 1);
	return out->dim[0] < -1 ? mu_fail(err, MU_INVALID_ARGUMENT, "Dimension %lld must be >= 0",
					  (long long)out->dim[0])
				: 0;
}

/* input_sizes may omit batch and channels; the gradient and the filter then determine them. */
int shape_conv_input(struct mu_shape_ctx *c, struct mu_err *err)
{
	int rc = mu_shape_read(c, 0, false, &c->out[0], err);

	if (!rc && c->out[0].rank != 4)
		c->out[0] = mu_pshape_unknown(4);
	return rc;
}

int shape_filled_by_second(struct mu_shape_ctx *c, struct mu_err *err)
{
	return mu_shape_read(c, 1, false, &c->out[0], err);
}

int shape_random_key(struct mu_shape_ctx *c, struct mu_err *err)
{
	static const struct mu_pshape parts[] = {
	    {.rank = 1, .dim = {1}}, {.rank = 1, .dim = {2}}, {.rank = 0}};

	for (unsigned i = 0; i < c->n_out && i < MU_COUNT(parts); i++)
		c->out[i] = parts[i];
	return 0;
}

/* A scalar if all inputs are for one index.  Otherwise a vector with the rows of the other inputs.
 */
int shape_index_shuffle(struct mu_shape_ctx *c, struct mu_err *err)
{
	static const int scalar_ranks[] = {0, 1, 0};
	struct mu_pshape vector = mu_pshape_unknown(1);
	bool is_scalar = true, is_vector = false;

	for (unsigned i = 0; i < c->n_in; i++) {
		const struct mu_pshape *in = &c->in[i];
		is_scalar &= in->rank == scalar_ranks[i];
		if (in->rank < 0 || in->rank == scalar_ranks[i])
			continue;
		is_vector = true;
		if (vector.dim[0] < 0)
			vector.dim[0] = in->dim[0];
	}
	if (is_scalar)
		c->out[0].rank = 0;
	else if (is_vector)
		c->out[0] = vector;
	return 0;
}

int shape_scalars_or_same(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape merged = mu_pshape_unknown(-1);
	bool all_scalars = true;

	for (unsigned i = 0; i < c->n_in; i++) {
		all_scalars &= c->in[i].rank == 0;
		if (c->in[i].rank > 0)
			MU_RETURN_IF_ERROR(mu_shape_merge(&merged, &c->in[i], &merged, err));
	}
	c->out[0] = merged;
	if (all_scalars)
		c->out[0].rank = 0;
	return 0;
}

int shape_substr(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape merged;

	if (c->in[1].rank >= 0 && c->in[1].rank != c->in[2].rank)
		return mu_fail(err, MU_INVALID_ARGUMENT, "pos and len shapes must match: %s vs. %s",
			       mu_pshape_str(&c->in[1]), mu_pshape_str(&c->in[2]));
	MU_RETURN_IF_ERROR(mu_shape_merge(&c->in[1], &c->in[2], &merged, err));
	return mu_shape_broadcast(&c->in[0], &c->in[1], &c->out[0], err);
}

int shape_random_each(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape sample = mu_pshape_unknown(-1);

	MU_RETURN_IF_ERROR(mu_shape_read(c, 0, false, &sample, err));
	c->out[0] = mu_pshape_join(&sample, &c->in[1]);
	return 0;
}
