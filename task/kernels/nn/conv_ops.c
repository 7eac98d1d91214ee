/* SPDX-License-Identifier: Apache-2.0 */
/* Conv2D, DepthwiseConv2dNative and their gradients: checks of their nodes; conv_fast.c computes.
 */
#include <limits.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/nn/checks.h"
#include "task/kernels/nn/conv.h"
#include "task/runtime/runtime.h"

static int conv_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			struct mu_err *err)
{
	struct window_attrs a;

	MU_RETURN_IF_ERROR(window_attrs_conv(n, &a, err));
	*(struct window_attrs *)(*state = mu_xmalloc(sizeof a)) = a;
	return 0;
}

static bool is_depthwise(const struct kernel_call *c)
{
	return c->node->op[0] == 'D';
}

static int need_rank4(const struct mu_shape *s, const char *name, struct mu_err *err)
{
	return s->rank == 4
		   ? 0
		   : mu_invalid(err, "%s must be 4-dimensional: %s", name, mu_shape_str(s));
}

/* The convolution of an input and a filter of these shapes. */
static int conv_geometry(const struct kernel_call *c, const struct window_attrs *a,
			 const struct mu_shape *in, const struct mu_shape *filter, struct conv *g,
			 struct mu_err *err)
{
	MU_RETURN_IF_ERROR(need_rank4(in, "input", err));
	MU_RETURN_IF_ERROR(need_rank4(filter, "filter", err));
	*g = (struct conv){.batch = in->dim[0], .channels = in->dim[3]};
	if (g->batch > INT_MAX || g->channels > INT_MAX || filter->dim[2] > INT_MAX ||
	    filter->dim[3] > INT_MAX)
		return mu_invalid(err, "batch or depth is too large: %s, %s", mu_shape_str(in),
				  mu_shape_str(filter));
	if (is_depthwise(c)) {
		if (filter->dim[2] != g->channels)
			return mu_invalid(err,
					  "input and filter must have the same depth: %lld vs %lld",
					  (long long)g->channels, (long long)filter->dim[2]);
		if (a->stride[0] != a->stride[1])
			return mu_invalid(err, "Current implementation only supports equal length "
					       "strides in the row and column dimensions.");
		g->groups = g->channels;
		g->filters = filter->dim[2] * filter->dim[3];
	} else {
		if (filter->dim[2] <= 0)
			return mu_invalid(
			    err, "filter depth must be stricly greater than zero, got %lld",
			    (long long)filter->dim[2]);
		if (g->channels % filter->dim[2] != 0)
			return mu_invalid(
			    err,
			    "input depth must be evenly divisible by filter depth: %lld vs %lld",
			    (long long)g->channels, (long long)filter->dim[2]);
		g->groups = g->channels / filter->dim[2];
		g->filters = filter->dim[3];
	}
	MU_RETURN_IF_ERROR(
	    window_axis_set(&g->row, a, WINDOW_ROWS, in->dim[1], filter->dim[0], err));
	MU_RETURN_IF_ERROR(
	    window_axis_set(&g->column, a, WINDOW_COLUMNS, in->dim[2], filter->dim[1], err));
	/* TensorFlow does not check the groups of an empty output. */
	if (g->groups && g->filters % g->groups != 0 && g->batch && g->row.out && g->column.out)
		return mu_invalid(
		    err, "output depth must be evenly divisible by number of groups: %lld vs %lld",
		    (long long)g->filters, (long long)g->groups);
	return 0;
}

static int conv_output_shape(const struct conv *g, struct mu_shape *s, struct mu_err *err)
{
	int64_t dims[4] = {g->batch, g->row.out, g->column.out, g->filters};

	return mu_shape_set(s, 4, dims, err);
}

int check_conv(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
	       struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *filter = kernel_in(c, 1);

	MU_RETURN_IF_ERROR(conv_geometry(c, a, &in->shape, &filter->shape, g, err));
	g->type = in->dtype;
	return conv_output_shape(g, shape, err);
}

/* Checks that the gradient has the shape of the forward op's output. */
static int check_grad(const struct kernel_call *c, const struct conv *g, struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, 2);
	struct mu_shape want;

	MU_RETURN_IF_ERROR(need_rank4(&grad->shape, "out_backprop", err));
	MU_RETURN_IF_ERROR(conv_output_shape(g, &want, err));
	if (!mu_shape_eq(&want, &grad->shape))
		return mu_invalid(
		    err,
		    "%s: Size of out_backprop doesn't match computed: actual = %s, computed = %s",
		    c->node->op, mu_shape_str(&grad->shape), mu_shape_str(&want));
	return 0;
}

/* Reads a shape of four sizes from input i.  If `image`, batch and depth may be missing. */
static int conv_sizes_of(const struct kernel_call *c, unsigned i, const char *name, bool image,
			 struct mu_shape *out, struct mu_err *err)
{
	const struct mu_shape *grad = &kernel_in(c, 2)->shape;
	int64_t d[4];
	int n;

	MU_RETURN_IF_ERROR(args_ints(c, i, d, 4, &n, err));
	if (image && n == 2 && grad->rank == 4 && kernel_in(c, 1)->shape.rank == 4) {
		d[2] = d[1];
		d[1] = d[0];
		d[0] = grad->dim[0];
		d[3] = kernel_in(c, 1)->shape.dim[2];
	} else if (n != 4) {
		return mu_invalid(err, "%s requires %s to contain 4 values", c->node->op, name);
	}
	return mu_shape_set(out, 4, d, err);
}

int check_conv_input(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
		     struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_tensor *filter = kernel_in(c, 1);

	MU_RETURN_IF_ERROR(conv_sizes_of(c, 0, "input_sizes", !is_depthwise(c), shape, err));
	MU_RETURN_IF_ERROR(conv_geometry(c, a, shape, &filter->shape, g, err));
	g->type = filter->dtype;
	return check_grad(c, g, err);
}

int check_conv_filter(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
		      struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	MU_RETURN_IF_ERROR(conv_sizes_of(c, 1, "filter_sizes", false, shape, err));
	MU_RETURN_IF_ERROR(conv_geometry(c, a, &in->shape, shape, g, err));
	g->type = in->dtype;
	return check_grad(c, g, err);
}

/* ---- CPU kernels ---- */

static int conv_need_real(const struct kernel_call *c, enum mu_dtype t, struct mu_err *err)
{
	return t == MU_FLOAT || t == MU_DOUBLE || t == MU_INT32 ? 0 : args_no_kernel(c, t, err);
}

static int conv(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *filter = kernel_in(c, 1);
	struct mu_tensor *out;
	struct mu_shape shape;
	struct conv g;

	MU_RETURN_IF_ERROR(conv_need_real(c, in->dtype, err));
	MU_RETURN_IF_ERROR(check_conv(c, c->state, &g, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, g.type, &shape, &out, err));
	return conv_run(c, &g, CONV_OUTPUT, in->data, filter->data, out->data, err);
}

static int conv_input(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *filter = kernel_in(c, 1), *grad = kernel_in(c, 2);
	struct mu_tensor *out;
	struct mu_shape shape;
	struct conv g;

	MU_RETURN_IF_ERROR(conv_need_real(c, filter->dtype, err));
	MU_RETURN_IF_ERROR(check_conv_input(c, c->state, &g, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, g.type, &shape, &out, err));
	return conv_run(c, &g, CONV_INPUT_GRAD, out->data, filter->data, grad->data, err);
}

static int conv_filter(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *grad = kernel_in(c, 2);
	struct mu_tensor *out;
	struct mu_shape shape;
	struct conv g;

	MU_RETURN_IF_ERROR(conv_need_real(c, in->dtype, err));
	MU_RETURN_IF_ERROR(check_conv_filter(c, c->state, &g, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, g.type, &shape, &out, err));
	if (!g.groups) { /* the input has no channels, so the gradient is zero */
		elems_zero(g.type, out->data, 0, shape.count);
		return 0;
	}
	return conv_run(c, &g, CONV_FILTER_GRAD, in->data, out->data, grad->data, err);
}

/* ---- convolutions fused with padding and resizing ---- */

/* Replaces the image by the result of the CPU kernel of `op` for it and input `argument`.  The
 * kernel reads the attributes of the fused node. */
static int run_stage(const struct kernel_call *c, const char *op, unsigned argument,
		     struct mu_tensor *image, struct mu_err *err)
{
	struct value in[2] = {{.tensor = *image}, {.tensor = *kernel_in(c, argument)}}, out = {0};
	struct kernel_call stage = *c;

	stage.in = in;
	stage.n_in = MU_COUNT(in);
	stage.out = &out;
	stage.n_out = 1;
	int rc = c->runtime->kernels->find(op)->run(&stage, err);
	mu_tensor_unref(image);
	*image = out.tensor;
	return rc;
}

static int check_fused_paddings(const struct mu_tensor *paddings, struct mu_err *err)
{
	const int32_t *p = MU_DATA(int32_t, paddings);

	if (p[0] || p[1] || p[6] || p[7])
		return mu_invalid(err,
				  "Fused mirror padding only support spatial padding, not %s: "
				  "paddings are [%d %d] and [%d %d]",
				  p[0] || p[1] ? "batches" : "channels", p[0], p[1], p[6], p[7]);
	return 0;
}

/* Inputs: image, (FusedResizeAndPadConv2D) size, paddings, filter. */
static int fused_conv(struct kernel_call *c, struct mu_err *err)
{
	const unsigned filter = c->n_in - 1, paddings = c->n_in - 2;
	const enum mu_dtype type = kernel_in(c, 0)->dtype;
	MU_AUTO_TENSOR image = mu_tensor_ref(kernel_in(c, 0));

	MU_RETURN_IF_ERROR(check_fused_paddings(kernel_in(c, paddings), err));
	if (paddings > 1) {
		MU_RETURN_IF_ERROR(run_stage(c, "ResizeBilinear", 1, &image, err));
		if (type != MU_FLOAT) { /* ResizeBilinear outputs floats */
			MU_AUTO_TENSOR floats = image;
			image = (struct mu_tensor){0};
			MU_RETURN_IF_ERROR(convert_tensor(&image, type, &floats, err));
		}
	}
	MU_RETURN_IF_ERROR(run_stage(c, "MirrorPad", paddings, &image, err));
	MU_RETURN_IF_ERROR(run_stage(c, "Conv2D", filter, &image, err));
	kernel_out_take(c, 0, mu_tensor_ref(&image));
	return 0;
}

static const struct kernel rows[] = {
    {"Conv2D DepthwiseConv2dNative", KERNEL_EXPENSIVE, .run = conv, .prepare = conv_prepare},
    {"Conv2DBackpropInput DepthwiseConv2dNativeBackpropInput", KERNEL_EXPENSIVE, .run = conv_input,
     .prepare = conv_prepare},
    {"Conv2DBackpropFilter DepthwiseConv2dNativeBackpropFilter", KERNEL_EXPENSIVE,
     .run = conv_filter, .prepare = conv_prepare},
    {"FusedPadConv2D FusedResizeAndPadConv2D", KERNEL_EXPENSIVE, .run = fused_conv,
     .prepare = conv_prepare},
};
KERNEL_TABLE(nn_conv_ops, rows)
