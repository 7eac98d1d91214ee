/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and pools on a GPU, in two and three dimensions.  cuDNN computes two-dimensional
 * convolutions if it is installed and can (device/gpu_convolution.h); nn/window.cu.h computes all
 * others. */
#include <string.h>

#include "task/device/gpu_convolution.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/gpu_runs.h"
#include "task/kernels/nn/checks.h"

static int window_gpu_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			      struct mu_err *err)
{
	struct window_attrs *w = MU_NEW(struct window_attrs);
	int rc =
	    strstr(n->op, "Pool") ? window_attrs_pool(n, w, err) : window_attrs_conv(n, w, err);

	if (rc)
		free(w);
	else
		*state = w;
	return rc;
}

static struct window_axis_args axis_args(const struct window_axis *x)
{
	return (struct window_axis_args){x->in, x->size, x->stride, x->dilation, x->out, x->pad};
}

/* Two dimensions are computed as three, with one plane. */
static void set_axes_2d(struct window_args *a, const struct window_axis *row,
			const struct window_axis *column)
{
	a->axis[0] = (struct window_axis_args){1, 1, 1, 1, 1, 0};
	a->axis[1] = axis_args(row);
	a->axis[2] = axis_args(column);
}

static void set_volume(struct window_args *a, const struct volume *v)
{
	a->batch = v->batch;
	a->channels = v->channels;
	a->groups = 1;
	for (int i = 0; i < 3; i++)
		a->axis[i] = axis_args(&v->axis[i]);
}

/* Computes output 0, of this type and shape. */
static int window_run(struct kernel_call *c, const char *name, enum mu_dtype t,
		      const struct mu_shape *shape, struct window_args *a, struct mu_err *err)
{
	int rc = gpu_out(c, 0, t, shape, &a->out, err);

	a->n = shape->count;
	return rc ? rc : gpu_run_type(kernel_gpu(c), name, t, a->n, a, err);
}

/* ---- convolutions ---- */

/* For each direction: the check, the kernel, and the op's inputs that hold the convolution's input,
 * its filter and the gradient of its output; NONE: not read. */
enum { NONE = -1 };
typedef int conv_check(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
		       struct mu_shape *shape, struct mu_err *err);
typedef int conv3d_check(const struct kernel_call *c, struct conv3d_sizes *s,
			 struct mu_shape *shape, struct mu_err *err);
static const struct direction {
	conv_check *check;
	conv3d_check *check_3d;
	const char *kernel;
	int input, filter, output;
} directions[] = {
    [GPU_CONVOLUTION_FORWARD] = {check_conv, check_conv3d, "conv", 0, 1, NONE},
    [GPU_CONVOLUTION_TO_INPUT] = {check_conv_input, check_conv3d_input, "conv_input", NONE, 1, 2},
    [GPU_CONVOLUTION_TO_FILTER] = {check_conv_filter, check_conv3d_filter, "conv_filter", 0, NONE,
				   2},
};

static enum gpu_convolution_direction direction_of(const struct mu_node *n)
{
	return strstr(n->op, "BackpropInput")    ? GPU_CONVOLUTION_TO_INPUT
	       : strstr(n->op, "BackpropFilter") ? GPU_CONVOLUTION_TO_FILTER
						 : GPU_CONVOLUTION_FORWARD;
}

static uint64_t conv_address(const struct kernel_call *c, int input)
{
	return input == NONE ? 0 : gpu_address(kernel_in(c, (unsigned)input));
}

static int conv_kernel(struct kernel_call *c, const struct direction *d, enum mu_dtype t,
		       const struct mu_shape *shape, struct window_args *a, struct mu_err *err)
{
	a->in = conv_address(c, d->input);
	a->filter = conv_address(c, d->filter);
	a->grad = conv_address(c, d->output);
	return window_run(c, d->kernel, t, shape, a, err);
}

/* True if the padding before and after is equal, as cuDNN requires. */
static bool has_even_padding(const struct window_axis *x)
{
	int64_t max_offset = x->in + 2 * x->pad - ((x->size - 1) * x->dilation + 1);

	return max_offset >= 0 && max_offset / x->stride + 1 == x->out;
}

static struct gpu_convolution_axis cudnn_axis(const struct window_axis *x)
{
	return (struct gpu_convolution_axis){x->in,       x->size, x->stride,
					     x->dilation, x->out,  x->pad};
}

/* out[columns, rows] = in[rows, columns].  Our filters have the output channels last, cuDNN's have
 * them first. */
static int transpose_filter(struct kernel_call *c, enum mu_dtype t, cuda_ptr out, cuda_ptr in,
			    int64_t rows, int64_t columns, struct mu_err *err)
{
	struct view_args a = {.out = out,
			      .in = in,
			      .n = rows * columns,
			      .rank = 2,
			      .dim = {columns, rows},
			      .stride = {1, columns}};

	return gpu_run_width(kernel_gpu(c), "view_read", t, a.n, &a, err);
}

/* Sets *is_done to false if cuDNN cannot compute the convolution. */
static int conv_library(struct kernel_call *c, const struct direction *d, const struct conv *g,
			const struct mu_shape *shape, bool *is_done, struct mu_err *err)
{
	const struct gpu_convolution conv = {.type = g->type,
					     .direction =
						 (enum gpu_convolution_direction)(d - directions),
					     .batch = g->batch,
					     .channels = g->channels,
					     .filters = g->filters,
					     .groups = g->groups,
					     .row = cudnn_axis(&g->row),
					     .column = cudnn_axis(&g->column)};
	const int64_t taps = g->row.size * g->column.size * conv_group_channels(g);
	struct gpu_convolution_at at = {conv_address(c, d->input), 0, conv_address(c, d->output)};
	MU_AUTO_TENSOR filter = {0};
	uint64_t out;

	*is_done = false;
	if (!taps || !has_even_padding(&g->row) || !has_even_padding(&g->column) ||
	    !gpu_convolution_is_available(kernel_gpu(c)))
		return 0;
	MU_RETURN_IF_ERROR(gpu_scratch(c, g->type, taps * g->filters, &filter, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, g->type, shape, &out, err));
	at.filter = gpu_address(&filter);
	if (d->input == NONE)
		at.input = out;
	if (d->output == NONE)
		at.output = out;
	if (d->filter != NONE)
		MU_RETURN_IF_ERROR(transpose_filter(
		    c, g->type, at.filter, conv_address(c, d->filter), taps, g->filters, err));
	MU_RETURN_IF_ERROR(gpu_convolution(kernel_gpu(c), &conv, &at, c->node->name, is_done, err));
	if (!*is_done)
		mu_tensor_unref(&c->out[0].tensor);
	else if (d->filter == NONE)
		return transpose_filter(c, g->type, out, at.filter, g->filters, taps, err);
	return 0;
}

static int conv_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct direction *d = &directions[direction_of(c->node)];
	struct mu_shape shape;
	struct conv g;
	bool is_done = false;
	uint64_t out;

	MU_RETURN_IF_ERROR(d->check(c, c->state, &g, &shape, err));
	if (!shape.count || !g.groups || !g.batch) { /* empty sums */
		MU_RETURN_IF_ERROR(gpu_out(c, 0, g.type, &shape, &out, err));
		return gpu_fill(kernel_gpu(c), &c->out[0].tensor, 0, err);
	}
	MU_RETURN_IF_ERROR(conv_library(c, d, &g, &shape, &is_done, err));
	if (is_done)
		return 0;
	struct window_args a = {
	    .batch = g.batch, .channels = g.channels, .filters = g.filters, .groups = g.groups};
	set_axes_2d(&a, &g.row, &g.column);
	return conv_kernel(c, d, g.type, &shape, &a, err);
}

static int conv3d_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct direction *d = &directions[direction_of(c->node)];
	struct conv3d_sizes s;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(d->check_3d(c, &s, &shape, err));
	struct window_args a = {.filters = s.filters};
	set_volume(&a, &s.v);
	return conv_kernel(c, d, s.v.type, &shape, &a, err);
}

/* ---- pools ---- */

static const char *pool_kernel(const struct mu_node *n, const char *max, const char *average)
{
	return n->op[0] == 'A' ? average : max;
}

static int pool_2d(struct kernel_call *c, const char *name, const struct pool_sizes *p,
		   const struct mu_shape *shape, struct window_args *a, struct mu_err *err)
{
	a->groups = 1;
	a->channels = p->channels;
	set_axes_2d(a, &p->row, &p->column);
	return window_run(c, name, args_attr_type(c->node, "T", MU_FLOAT), shape, a, err);
}

static int pool_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct window_args a = {.in = gpu_address(kernel_in(c, 0))};
	struct mu_shape shape;
	struct pool_sizes p;

	MU_RETURN_IF_ERROR(check_pool(c, c->state, &p, &shape, err));
	return pool_2d(c, pool_kernel(c->node, "pool_max", "pool_average"), &p, &shape, &a, err);
}

static int max_pool_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct window_args a = {.in = gpu_address(kernel_in(c, 0)),
				.grad = gpu_address(kernel_in(c, 2))};
	struct pool_sizes p;

	MU_RETURN_IF_ERROR(check_max_pool_grad(c, c->state, &p, err));
	return pool_2d(c, "pool_max_back", &p, &kernel_in(c, 0)->shape, &a, err);
}

static int avg_pool_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct window_args a = {.grad = gpu_address(kernel_in(c, 1))};
	struct mu_shape in;
	struct pool_sizes p;

	MU_RETURN_IF_ERROR(check_avg_pool_grad(c, c->state, &p, &in, err));
	return pool_2d(c, "pool_average_back", &p, &in, &a, err);
}

static int max_pool_grad_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct window_args a = {.in = gpu_address(kernel_in(c, 0)),
				.grad = gpu_address(kernel_in(c, 2))};
	struct mu_shape want;
	struct pool_sizes p;

	MU_RETURN_IF_ERROR(check_max_pool_grad_grad(c, c->state, &p, &want, err));
	return pool_2d(c, "pool_places", &p, &want, &a, err);
}

static int argmax_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct window_args a = {.in = gpu_address(kernel_in(c, 0)),
				.whole = args_attr_bool(c->node, "include_batch_in_index", false)};
	enum mu_dtype type;
	struct mu_shape shape;
	struct pool_sizes p;

	MU_RETURN_IF_ERROR(check_max_pool_argmax(c, c->state, &p, &shape, &type, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 1, type, &shape, &a.at, err));
	a.wide = type == MU_INT64;
	return pool_2d(c, "pool_places", &p, &shape, &a, err);
}

/* Gradients are summed by position in the order of the windows.  Positions outside their image are
 * skipped; the CPU rejects them. */
static int argmax_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *at = kernel_in(c, 2);
	const int64_t n = at->shape.count;
	struct scatter_args a = {.updates = gpu_address(kernel_in(c, 1))};
	GPU_RUNS_AUTO runs = {0};
	struct pool_sizes p;

	MU_RETURN_IF_ERROR(check_max_pool_grad_argmax(c, c->state, &p, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, in->dtype, &in->shape, &a.table, err));
	MU_RETURN_IF_ERROR(gpu_fill(kernel_gpu(c), &c->out[0].tensor, 0, err));
	if (!n || !in->shape.count)
		return 0;
	MU_RETURN_IF_ERROR(gpu_runs_new(c, n, &runs, err));
	const struct pool_keys_args keys = {
	    .keys = gpu_address(&runs.keys),
	    .order = gpu_address(&runs.order),
	    .at = gpu_address(at),
	    .n = n,
	    .image = in->shape.count / p.batch,
	    .each = n / p.batch,
	    .whole = args_attr_bool(c->node, "include_batch_in_index", false),
	    .wide = at->dtype == MU_INT64};
	MU_RETURN_IF_ERROR(gpu_run(kernel_gpu(c), "pool_keys", n, &keys, err));
	MU_RETURN_IF_ERROR(gpu_runs_sort(c, n, 1, &runs, &a.by, err));
	return gpu_run_type(kernel_gpu(c), "scatter_add", in->dtype, n, &a, err);
}

static int pool3d_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape shape;
	struct volume v;

	MU_RETURN_IF_ERROR(check_pool3d(c, &v, &shape, err));
	struct window_args a = {.in = gpu_address(kernel_in(c, 0))};
	set_volume(&a, &v);
	return window_run(c, pool_kernel(c->node, "pool_max", "pool_average"), v.type, &shape, &a,
			  err);
}

static int pool3d_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	const bool average = c->node->op[0] == 'A';
	struct mu_shape in;
	struct volume v;

	MU_RETURN_IF_ERROR(average ? check_avg_pool3d_grad(c, &v, &in, err)
				   : check_max_pool3d_grad(c, &v, &in, err));
	struct window_args a = {.grad = gpu_address(kernel_in(c, average ? 1 : 2))};
	if (!average) {
		a.in = gpu_address(kernel_in(c, 0));
		a.top = gpu_address(kernel_in(c, 1));
	}
	set_volume(&a, &v);
	return window_run(c, pool_kernel(c->node, "pool_equal_back", "pool_average_back"), v.type,
			  &in, &a, err);
}

/* in, out: bit masks of the inputs and outputs with argmax, which are on the GPU as int32, too. */
#define ROW_2D(name, fn, in, out)                                                                  \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = window_gpu_prepare}, .type_attr = "T",           \
		.types = GPU_FLT, .device_in = in, .device_out = out                               \
	}
/* host: bit mask of the inputs with sizes, which are in host memory. */
#define ROW_3D(name, fn, host)                                                                     \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = volume_prepare}, .type_attr = "T",               \
		.types = GPU_REAL, .host_in = host                                                 \
	}
static const struct device_kernel rows[] = {
    ROW_2D("Conv2D Conv2DBackpropInput Conv2DBackpropFilter DepthwiseConv2dNative "
	   "DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter",
	   conv_gpu, 0, 0),
    ROW_2D("MaxPool MaxPoolV2 AvgPool", pool_gpu, 0, 0),
    ROW_2D("MaxPoolGrad MaxPoolGradV2", max_pool_grad_gpu, 0, 0),
    ROW_2D("AvgPoolGrad", avg_pool_grad_gpu, 0, 0),
    ROW_2D("MaxPoolGradGrad MaxPoolGradGradV2", max_pool_grad_grad_gpu, 0, 0),
    ROW_2D("MaxPoolWithArgmax", argmax_gpu, 0, 1 << 1),
    ROW_2D("MaxPoolGradWithArgmax", argmax_grad_gpu, 1 << 2, 0),
    ROW_3D("Conv3D", conv3d_gpu, 0),
    ROW_3D("Conv3DBackpropInputV2", conv3d_gpu, 1 << 0),
    ROW_3D("Conv3DBackpropFilterV2", conv3d_gpu, 1 << 1),
    ROW_3D("MaxPool3D AvgPool3D", pool3d_gpu, 0),
    ROW_3D("MaxPool3DGrad", pool3d_grad_gpu, 0),
    ROW_3D("AvgPool3DGrad", pool3d_grad_gpu, 1 << 0),
};
KERNEL_TABLE(nn_window_gpu, rows)
