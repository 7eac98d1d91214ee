/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of convolution and pooling: windows over the two spatial dimensions of four. */
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

static bool attr_is(const struct mu_shape_ctx *c, const char *name, const char *what)
{
	const struct mu_attr *a = mu_node_attr(c->node, name);

	return a && a->kind == MU_ATTR_STRING && a->s.len == strlen(what) &&
	       memcmp(a->s.data, what, a->s.len) == 0;
}

static bool read_window(const struct mu_shape_ctx *c, struct window *w)
{
	bool first = attr_is(c, "data_format", "NCHW");

	*w = (struct window){.at = {first ? 2 : 1, first ? 3 : 2},
			     .channel = first ? 1 : 3,
			     .dilation = {1, 1, 1, 1},
			     .same = attr_is(c, "padding", "SAME"),
			     .valid = attr_is(c, "padding", "VALID")};
	ints_attr(c, "dilations", w->dilation, 4);
	if (!ints_attr(c, "strides", w->stride, 4))
		return false;
	for (int i = 0; i < 4; i++)
		if (w->stride[i] < 1 || w->dilation[i] < 1)
			return false;
	return w->same || w->valid || ints_attr(c, "explicit_paddings", w->pad, 8);
}

/* Returns the number of window positions along dimension d; -1: unknown. */
static int64_t window_positions(const struct window *w, int d, int64_t n, int64_t size)
{
	int64_t reach = (size - 1) * w->dilation[d] + 1;

	if (n < 0 || (size < 0 && !w->same))
		return -1;
	if (w->same)
		return n / w->stride[d] + (n % w->stride[d] != 0);
	n += w->pad[2 * d] + w->pad[2 * d + 1];
	return n < reach ? 0 : (n - reach) / w->stride[d] + 1;
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

int shape_pool(struct mu_shape_ctx *c, struct mu_err *err)
{
	bool in;
	int rc = mu_shape_want_rank(c, 0, 4, &in, err);
	struct window w;

	if (rc || !in || !read_window(c, &w) || !ints_attr(c, "ksize", w.size, 4))
		return rc;
	c->out[0] = c->in[0];
	for (int i = 0; i < 4; i++)
		c->out[0].dim[i] = w.size[i] == 1 && w.stride[i] == 1
				       ? c->in[0].dim[i]
				       : window_positions(&w, i, c->in[0].dim[i], w.size[i]);
	return 0;
}

int shape_batch_norm(struct mu_shape_ctx *c, struct mu_err *err)
{
	c->out[0] = c->in[0];
	for (unsigned i = 1; i < c->n_out && i < 5; i++)
		c->out[i] = c->in[1];
	return 0;
}

/* Images with the size in input 1. */
int shape_resize(struct mu_shape_ctx *c, struct mu_err *err)
{
	int64_t size[2];
	bool known;
	int rc = mu_shape_want_rank(c, 0, 4, &known, err);

	if (rc)
		return rc;
	c->out[0] = known ? c->in[0] : mu_pshape_unknown(4);
	bool told = mu_shape_ints(c, 1, size, 2) == 2;
	for (int d = 0; d < 2; d++)
		c->out[0].dim[1 + d] = told ? size[d] : -1;
	return 0;
}
