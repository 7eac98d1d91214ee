/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of neural network ops.  Windows of convolution and pooling extend over the two spatial
 * dimensions of four. */
#include <string.h>

#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

struct window {
	int at[2], channel; /* the spatial dimensions and the channel dimension */
	int64_t stride[4], dilation[4], size[4], pad[8];
	bool same, valid;
};

static bool ints_attr(const struct mu_shape_ctx *c, const char *name, int64_t *out, unsigned n)
{
	const struct mu_attr *a = mu_node_attr(c->node, name);

	if (!a || a->kind != MU_ATTR_LIST + MU_ATTR_INT || a->n != n)
		return false;
	memcpy(out, a->is, n * sizeof *out);
	return true;
}

/* Reads the attribute, or the constant input, `name`. */
static bool ints_of(const struct mu_shape_ctx *c, const char *name, int64_t *out, unsigned n)
{
	const struct mu_op_def *op = c->node->def;

	for (unsigned i = 0; i < op->n_inputs && i < c->n_in; i++)
		if (strcmp(op->inputs[i].name, name) == 0)
			return mu_shape_ints(c, i, out, (int)n) == (int)n;
	return ints_attr(c, name, out, n);
}

static bool attr_is(const struct mu_shape_ctx *c, const char *name, const char *value)
{
	const struct mu_attr *a = mu_node_attr(c->node, name);

	return a && a->kind == MU_ATTR_STRING && a->s.len == strlen(value) &&
	       memcmp(a->s.data, value, a->s.len) == 0;
}

static bool read_window(const struct mu_shape_ctx *c, struct window *w)
{
	bool channels_first = attr_is(c, "data_format", "NCHW");

	*w = (struct window){.at = {channels_first ? 2 : 1, channels_first ? 3 : 2},
			     .channel = channels_first ? 1 : 3,
			     .dilation = {1, 1, 1, 1},
			     .same = attr_is(c, "padding", "SAME"),
			     .valid = attr_is(c, "padding", "VALID")};
	ints_attr(c, "dilations", w->dilation, 4);
	if (!ints_of(c, "strides", w->stride, 4))
		return false;
	for (int i = 0; i < 4; i++)
		if (w->stride[i] < 1 || w->dilation[i] < 1)
			return false;
	return w->same || w->valid || ints_attr(c, "explicit_paddings", w->pad, 8);
}

/* Returns the number of window positions along dimension d; -1: unknown. */
static int64_t window_positions(const struct window *w, int d, int64_t n, int64_t size)
{
	int64_t extent;

	if (n < 0 || (size < 0 && !w->same))
		return -1;
	if (w->same)
		return n / w->stride[d] + (n % w->stride[d] != 0);
	if (__builtin_mul_overflow(size - 1, w->dilation[d], &extent) ||
	    __builtin_add_overflow(extent, 1, &extent) ||
	    __builtin_add_overflow(n, w->pad[2 * d], &n) ||
	    __builtin_add_overflow(n, w->pad[2 * d + 1], &n))
		return -1; /* the kernel fails */
	return n < extent ? 0 : (n - extent) / w->stride[d] + 1;
}

int shape_conv2d(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *filter = &c->in[1];
	bool in, f;
	int rc;
	struct window w;

	if ((rc = mu_shape_want_rank(c, 0, 4, &in, err)) ||
	    (rc = mu_shape_want_rank(c, 1, 4, &f, err)) || !in || !f || !read_window(c, &w))
		return rc;
	c->out[0] = c->in[0];
	for (int i = 0; i < 2; i++)
		c->out[0].dim[w.at[i]] =
		    window_positions(&w, w.at[i], c->in[0].dim[w.at[i]], filter->dim[i]);
	c->out[0].dim[w.channel] = filter->dim[3];
	return 0;
}

/* Dimension 0, the batch, is not pooled. */
static int pool_shape(struct mu_shape_ctx *c, bool pools_channels, struct mu_err *err)
{
	bool is_known;
	int rc = mu_shape_want_rank(c, 0, 4, &is_known, err);
	struct window w;

	if (rc || !read_window(c, &w) || !ints_of(c, "ksize", w.size, 4))
		return rc;
	c->out[0] = is_known ? c->in[0] : mu_pshape_unknown(4);
	for (int i = 1; i < 4; i++)
		if ((i != w.channel || pools_channels) && (w.size[i] != 1 || w.stride[i] != 1))
			c->out[0].dim[i] = window_positions(&w, i, c->out[0].dim[i], w.size[i]);
	return 0;
}

int shape_pool(struct mu_shape_ctx *c, struct mu_err *err)
{
	return pool_shape(c, false, err);
}

int shape_max_pool(struct mu_shape_ctx *c, struct mu_err *err)
{
	return pool_shape(c, true, err);
}

/* ---- batch norm ---- */

/* Merges the channels of *images with the lengths of the vectors in inputs [from, to). */
static int channels_of(const struct mu_shape_ctx *c, struct mu_pshape *images, unsigned from,
		       unsigned to, int64_t *channels, struct mu_err *err)
{
	const struct mu_attr *format = mu_node_attr(c->node, "data_format");
	bool is_string = format && format->kind == MU_ATTR_STRING;

	if (images->rank < 0)
		*images = mu_pshape_unknown(is_string && format->s.len == 5 ? 5 : 4);
	if (images->rank != 4 && images->rank != 5)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Shape must be rank 4 but is %s",
			       mu_pshape_str(images));
	int at = is_string && strncmp(format->s.data, "NC", 2) == 0 ? 1 : images->rank - 1;
	*channels = images->dim[at];
	for (unsigned i = from; i < to && i < c->n_in; i++)
		if (c->in[i].rank == 1)
			MU_RETURN_IF_ERROR(
			    mu_shape_merge_dim(*channels, c->in[i].dim[0], channels, err));
	images->dim[at] = *channels;
	return 0;
}

int shape_batch_norm(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape images = c->in[0];
	int64_t n;

	const struct mu_attr *factor = mu_node_attr(c->node, "exponential_avg_factor");
	bool ignores_statistics = mu_shape_flag(c, "is_training") && factor && factor->f == 1.0F;

	MU_RETURN_IF_ERROR(channels_of(c, &images, 1, ignores_statistics ? 3 : 5, &n, err));
	c->out[0] = images;
	for (unsigned i = 1; i < c->n_out && i < 5; i++)
		c->out[i] = (struct mu_pshape){.rank = 1, .dim = {n}};
	return 0;
}

int shape_batch_norm_grad(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape images = c->in[1], gradient = c->in[0];
	int64_t n, m;

	MU_RETURN_IF_ERROR(channels_of(c, &images, 2, 5, &n, err));
	MU_RETURN_IF_ERROR(channels_of(c, &gradient, 2, 5, &m, err));
	MU_RETURN_IF_ERROR(mu_shape_merge_dim(n, m, &n, err));
	for (int i = 0; i < gradient.rank; i++)
		if (gradient.dim[i] < 0 && images.dim[i] == n && m < 0)
			gradient.dim[i] = n;
	c->out[0] = gradient;
	for (unsigned i = 1; i < c->n_out; i++)
		c->out[i] = (struct mu_pshape){.rank = 1, .dim = {i < 3 ? n : 0}};
	return 0;
}

int shape_fractional_pool(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_attr *ratio = mu_node_attr(c->node, "pooling_ratio");
	bool known;

	MU_RETURN_IF_ERROR(mu_shape_want_rank(c, 0, 4, &known, err));
	c->out[0] = mu_pshape_unknown(4);
	for (int i = 0; ratio && i < 4 && (unsigned)i < ratio->n; i++)
		if (ratio->fs[i] < 1)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "pooling_ratio cannot be smaller than 1, got: %g",
				       (double)ratio->fs[i]);
	for (int i = 0; known && i < 4; i++)
		if (c->in[0].dim[i] >= 0 && ratio && ratio->n == 4 && ratio->fs[i] >= 1)
			c->out[0].dim[i] = (int64_t)((float)c->in[0].dim[i] / ratio->fs[i]);
	c->out[1] = c->out[2] = mu_pshape_unknown(1);
	return 0;
}

/* ---- LSTM ---- */

/* The patterns of the op table set the other outputs. */
int shape_lstm_cell_grad(struct mu_shape_ctx *c, struct mu_err *err)
{
	c->out[1] = c->out[0];
	if (c->out[1].dim[1] >= 0)
		c->out[1].dim[1] *= 4;
	return 0;
}

/* Sets the gradient of each input but the first. */
int shape_block_lstm_grad(struct mu_shape_ctx *c, struct mu_err *err)
{
	static const int ranks[] = {3, 2, 2, 2, 1, 1, 1, 1};
	bool known;

	for (unsigned i = 0; i < c->n_out && i < MU_COUNT(ranks) && i + 1 < c->n_in; i++) {
		MU_RETURN_IF_ERROR(mu_shape_want_rank(c, i + 1, ranks[i], &known, err));
		c->out[i] = known ? c->in[i + 1] : mu_pshape_unknown(ranks[i]);
	}
	return 0;
}

/* Computes the shape of a range.  Its minimum is input min_input and its maximum the next one.  It
 * is a scalar, or a vector with one element for each slice of `values` along the axis. */
static int quantize_range(const struct mu_shape_ctx *c, unsigned min_input,
			  const struct mu_pshape *values, struct mu_pshape *range,
			  struct mu_err *err)
{
	const int64_t axis = mu_shape_attr_int(c, "axis");

	*range = mu_pshape_unknown(axis == -1 ? 0 : 1);
	for (unsigned i = min_input; i < min_input + 2 && i < c->n_in; i++)
		MU_RETURN_IF_ERROR(mu_shape_merge(range, &c->in[i], range, err));
	if (axis < -1 || (values->rank >= 0 && axis >= values->rank))
		return mu_fail(err, MU_INVALID_ARGUMENT, "axis %lld does not fit shape %s",
			       (long long)axis, mu_pshape_str(values));
	if (axis >= 0 && values->rank >= 0)
		return mu_shape_merge_dim(range->dim[0], values->dim[axis], &range->dim[0], err);
	return 0;
}

int shape_quantize(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape range;

	MU_RETURN_IF_ERROR(quantize_range(c, 1, &c->in[0], &range, err));
	c->out[0] = c->in[0];
	c->out[1] = c->out[2] = range;
	return 0;
}

int shape_dequantize(struct mu_shape_ctx *c, struct mu_err *err)
{
	const int64_t axis = mu_shape_attr_int(c, "axis");
	bool known;

	for (unsigned i = 1; i < 3 && i < c->n_in; i++)
		MU_RETURN_IF_ERROR(mu_shape_want_rank(c, i, axis == -1 ? 0 : 1, &known, err));
	c->out[0] = c->in[0];
	return 0;
}

int shape_quantize_grad(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape range, values;

	MU_RETURN_IF_ERROR(mu_shape_merge(&c->in[0], &c->in[1], &values, err));
	MU_RETURN_IF_ERROR(quantize_range(c, 2, &values, &range, err));
	c->out[0] = values;
	c->out[1] = c->out[2] = range;
	return 0;
}

/* Sets images of the size in input 1. */
int shape_resize(struct mu_shape_ctx *c, struct mu_err *err)
{
	int64_t size[2];
	bool known;
	int rc = mu_shape_want_rank(c, 0, 4, &known, err);

	if (rc)
		return rc;
	c->out[0] = known ? c->in[0] : mu_pshape_unknown(4);
	bool is_known = mu_shape_ints(c, 1, size, 2) == 2;
	for (int d = 0; d < 2; d++)
		c->out[0].dim[1 + d] = is_known ? size[d] : -1;
	return 0;
}
