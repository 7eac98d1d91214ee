/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of ops that move elements between dimensions: batch, depth and bits. */
#include <string.h>

#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

/* Returns the sum of two dimensions; -1: one is unknown, or the sum overflows. */
static int64_t add_dims(int64_t a, int64_t b)
{
	int64_t sum;

	return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}

/* Returns the product of two dimensions; -1: one is unknown, or the product overflows. */
static int64_t multiply_dims(int64_t a, int64_t b)
{
	int64_t product;

	return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

static int divide_dim(int64_t a, int64_t divisor, int64_t *out, struct mu_err *err)
{
	if (divisor <= 0 || (a >= 0 && a % divisor))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Dimension size must be evenly divisible by %lld but is %lld",
			       (long long)divisor, (long long)a);
	*out = a < 0 ? -1 : a / divisor;
	return 0;
}

/* block_shape, and the paddings or crops of each block dimension. */
struct blocks {
	int n;
	bool sizes_known, margins_known;
	int64_t size[MU_MAX_RANK], margin[2 * MU_MAX_RANK];
};

/* Reads the sizes and margins if they are constant.  Returns false if their number is unknown. */
static bool read_blocks(const struct mu_shape_ctx *c, struct blocks *b)
{
	const struct mu_pshape *shape = &c->in[1];

	if (shape->rank != 1 || shape->dim[0] < 0 || shape->dim[0] >= MU_MAX_RANK)
		return false;
	b->n = (int)shape->dim[0];
	b->sizes_known = mu_shape_ints(c, 1, b->size, b->n) == b->n;
	b->margins_known = mu_shape_ints(c, 2, b->margin, 2 * b->n) == 2 * b->n;
	return true;
}

static int check_blocks(const struct mu_shape_ctx *c, const struct blocks *b, struct mu_err *err)
{
	struct mu_pshape pairs = {.rank = 2, .dim = {b->n, 2}};

	MU_RETURN_IF_ERROR(mu_shape_merge(&pairs, &c->in[2], &pairs, err));
	MU_RETURN_IF_ERROR(mu_shape_want_min_rank(c, 0, b->n + 1, err));
	for (int i = 0; b->sizes_known && i < b->n; i++)
		if (b->size[i] < 1)
			return mu_fail(err, MU_INVALID_ARGUMENT, "block_shape must be positive");
	for (int i = 0; b->margins_known && i < 2 * b->n; i++)
		if (b->margin[i] < 0)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "paddings and crops cannot be negative");
	return 0;
}

/* Computes a spatial dimension after the padding and division (to_batch), or the product and crop.
 */
static int block_dim(const struct blocks *b, int i, bool to_batch, int64_t dim, int64_t *out,
		     struct mu_err *err)
{
	int64_t margin = b->margins_known ? add_dims(b->margin[2 * i], b->margin[2 * i + 1]) : -1;
	int64_t space;

	*out = -1;
	if (dim < 0 || !b->sizes_known || margin < 0)
		return 0;
	if (to_batch)
		return divide_dim(add_dims(dim, margin), b->size[i], out, err);
	space = multiply_dims(dim, b->size[i]);
	if (space < 0)
		return 0;
	*out = space - margin;
	return *out < 0 ? mu_fail(err, MU_INVALID_ARGUMENT, "cropped by more than its size") : 0;
}

static int block_shapes(struct mu_shape_ctx *c, bool to_batch, struct mu_err *err)
{
	struct mu_pshape in = c->in[0], out;
	struct blocks b;

	if (!read_blocks(c, &b))
		return mu_fail(err, MU_INVALID_ARGUMENT, "block_shape must have known size");
	MU_RETURN_IF_ERROR(check_blocks(c, &b, err));
	if (in.rank < 0)
		return 0;
	out = in;
	if (!b.sizes_known && b.n)
		out.dim[0] = -1;
	for (int i = 0; b.sizes_known && i < b.n; i++)
		if (to_batch)
			out.dim[0] = multiply_dims(out.dim[0], b.size[i]);
		else
			MU_RETURN_IF_ERROR(divide_dim(out.dim[0], b.size[i], &out.dim[0], err));
	for (int i = 0; i < b.n; i++)
		MU_RETURN_IF_ERROR(block_dim(&b, i, to_batch, in.dim[i + 1], &out.dim[i + 1], err));
	c->out[0] = out;
	return 0;
}

int shape_space_to_batch(struct mu_shape_ctx *c, struct mu_err *err)
{
	return block_shapes(c, true, err);
}

int shape_batch_to_space(struct mu_shape_ctx *c, struct mu_err *err)
{
	return block_shapes(c, false, err);
}

/* ---- depth ---- */

static int space_depth_shape(struct mu_shape_ctx *c, bool to_depth, struct mu_err *err)
{
	const struct mu_attr *format = mu_node_attr(c->node, "data_format");
	int64_t block = mu_shape_attr_int(c, "block_size");
	bool channels_first =
	    format && format->kind == MU_ATTR_STRING && !strncmp(format->s.data, "NC", 2);
	int channel = channels_first ? 1 : 3, row = channels_first ? 2 : 1;
	struct mu_pshape out = c->in[0];

	if (out.rank != 4) {
		c->out[0] = mu_pshape_unknown(4);
		return 0;
	}
	for (int i = row; i < row + 2; i++)
		if (!to_depth)
			out.dim[i] = multiply_dims(out.dim[i], block);
		else
			MU_RETURN_IF_ERROR(divide_dim(out.dim[i], block, &out.dim[i], err));
	if (to_depth)
		out.dim[channel] = multiply_dims(out.dim[channel], multiply_dims(block, block));
	else
		MU_RETURN_IF_ERROR(divide_dim(out.dim[channel], multiply_dims(block, block),
					      &out.dim[channel], err));
	c->out[0] = out;
	return 0;
}

int shape_space_to_depth(struct mu_shape_ctx *c, struct mu_err *err)
{
	return space_depth_shape(c, true, err);
}

int shape_depth_to_space(struct mu_shape_ctx *c, struct mu_err *err)
{
	return space_depth_shape(c, false, err);
}

/* ---- bits ---- */

static int64_t attr_type_size(const struct mu_shape_ctx *c, const char *attr)
{
	const struct mu_attr *a = mu_node_attr(c->node, attr);

	return a && a->kind == MU_ATTR_TYPE ? (int64_t)mu_dtype_size(a->type) : 0;
}

int shape_bitcast(struct mu_shape_ctx *c, struct mu_err *err)
{
	int64_t from = attr_type_size(c, "T"), to = attr_type_size(c, "type");
	struct mu_pshape out = c->in[0];

	if (!from || !to || out.rank < 0)
		return 0;
	if (from > to)
		mu_pshape_push(&out, from / to);
	if (from < to) {
		if (out.rank < 1 ||
		    (out.dim[out.rank - 1] >= 0 && out.dim[out.rank - 1] != to / from))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Cannot bitcast due to shape. %s does not end with %lld",
				       mu_pshape_str(&out), (long long)(to / from));
		out.rank--;
	}
	c->out[0] = out;
	return 0;
}

int shape_compare_and_bitpack(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape *out = &c->out[0];

	MU_RETURN_IF_ERROR(mu_shape_want_min_rank(c, 0, 1, err));
	*out = c->in[0];
	return out->rank < 0
		   ? 0
		   : divide_dim(out->dim[out->rank - 1], 8, &out->dim[out->rank - 1], err);
}
