/* SPDX-License-Identifier: Apache-2.0 */
/* Conv2D, DepthwiseConv2dNative and their gradients on a GPU; what the nodes ask for is checked as
 * on the CPU.
 *
 * One group: so many images at a time are laid out as patches [pixels, taps * channels]; then
 *
 *	output = patches * filter
 *	patches' gradient = output's * filter, transposed, which adds up to the input's
 *	filter's gradient = patches, transposed, * output's, image after image
 *
 * The shape alone decides how many images go at once, so sums are made in the same order each time.
 */
#include "task/kernels/nn/conv_gpu.h"

#include <stdio.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/nn/checks.h"

int64_t gpu_conv_room = (int64_t)64 << 20;
bool gpu_conv_by_library = true;

/* Pieces that a filter's gradient is cut into, when it has fewer elements than that many threads.
 */
enum { ENOUGH = 64 * 1024, MOST_PIECES = 256 };

int gpu_conv_init(struct gpu_conv *k, struct gpu *g, enum mu_dtype t, enum gpu_convolution_way way,
		  struct mu_err *err)
{
	static const char *const groups[GPU_CONVOLUTION_WAYS] = {"conv_groups", "conv_groups_input",
								 "conv_groups_filter"};
	int rc;

	*k = (struct gpu_conv){.gpu = g, .way = way};
	if ((rc = gpu_find_width(g, "patches", t, &k->patches, err)) ||
	    (rc = gpu_find(g, "unpatch", t, &k->unpatch, err)) ||
	    (rc = gpu_find(g, groups[way], t, &k->groups, err)) ||
	    (rc = gpu_find(g, "AddV2", t, &k->add, err)) ||
	    (rc = gpu_find(g, "Sum", t, &k->sum, err)) ||
	    (rc = gpu_matmul_init(&k->by, g, t, err)) ||
	    (rc = gpu_find_width(g, "view_read", t, &k->transpose, err)))
		gpu_conv_fini(k);
	else
		k->plan = gpu_convolution_plan_new();
	return rc;
}

void gpu_conv_fini(struct gpu_conv *k)
{
	gpu_matmul_fini(&k->by);
	gpu_plan_free(k->plan);
	k->plan = NULL;
}

struct window_axis_args gpu_window_axis(const struct window_axis *x)
{
	return (struct window_axis_args){x->in, x->size, x->stride, x->dilation, x->out, x->pad};
}

static struct conv_args conv_gpu_args_of(const struct conv *g)
{
	return (struct conv_args){.batch = g->batch,
				  .channels = g->channels,
				  .filters = g->filters,
				  .groups = g->groups,
				  .pieces = 1,
				  .row = gpu_window_axis(&g->row),
				  .column = gpu_window_axis(&g->column)};
}

/* ---- channels in groups ---- */

static int filter_by_groups(struct kernel_call *c, const struct gpu_conv *k, const struct conv *g,
			    struct conv_args *a, cuda_ptr filter, struct mu_err *err)
{
	int64_t n = g->row.size * g->column.size * conv_group_channels(g) * g->filters;
	MU_AUTO_TENSOR partial = {0};
	int rc;

	while (a->pieces < MOST_PIECES && n * a->pieces < ENOUGH &&
	       a->pieces * 2 <= g->batch * g->row.out)
		a->pieces *= 2;
	if (!n)
		return 0;
	if ((rc = gpu_scratch(c, g->type, n * a->pieces, &partial, err)))
		return rc;
	a->n = n * a->pieces;
	a->out = gpu_address(&partial);
	struct reduce_args sum = {.out = filter,
				  .in = a->out,
				  .outer = 1,
				  .reduced = a->pieces,
				  .inner = n,
				  .pieces = 1,
				  .scale = 1};
	rc = gpu_run(k->gpu, k->groups, a->n, a, err);
	return rc ? rc : gpu_run(k->gpu, k->sum, n, &sum, err);
}

static int by_groups(struct kernel_call *c, const struct gpu_conv *k, const struct conv *g,
		     cuda_ptr input, cuda_ptr filter, cuda_ptr output, struct mu_err *err)
{
	struct conv_args a = conv_gpu_args_of(g);
	bool to_input = k->way == GPU_CONVOLUTION_TO_INPUT;

	a.in = to_input ? output : input;
	a.filter = filter;
	a.grad = output;
	if (k->way == GPU_CONVOLUTION_TO_FILTER)
		return filter_by_groups(c, k, g, &a, filter, err);
	a.out = to_input ? input : output;
	a.n = to_input ? g->batch * g->row.in * g->column.in * g->channels
		       : g->batch * g->row.out * g->column.out * g->filters;
	return gpu_run(k->gpu, k->groups, a.n, &a, err);
}

/* ---- one group ---- */

struct part { /* some images, and where theirs lie */
	int64_t images;
	cuda_ptr input, filter, output, patches, filter_part;
	bool first;
};

static int conv_gpu_multiply(struct kernel_call *c, const struct gpu_conv *k,
			     const struct product *p, cuda_ptr out, cuda_ptr x, cuda_ptr y,
			     struct mu_err *err)
{
	struct matmul_args a = {.out = out, .a = x, .b = y};
	bool activate;

	return gpu_matmul_run(&k->by, p, &a, c->node->name, &activate, err);
}

static int run_part(struct kernel_call *c, const struct gpu_conv *k, const struct conv *g,
		    const struct part *at, struct mu_err *err)
{
	const int64_t pixels = at->images * g->row.out * g->column.out;
	const int64_t line = g->row.size * g->column.size * g->channels;
	struct conv_args a = conv_gpu_args_of(g);
	int rc;

	if (k->way == GPU_CONVOLUTION_TO_INPUT) {
		struct product p = {.m = pixels, .n = line, .k = g->filters, .trans_b = true};
		a.out = at->input;
		a.in = at->patches;
		a.n = at->images * g->row.in * g->column.in * g->channels;
		rc = conv_gpu_multiply(c, k, &p, at->patches, at->output, at->filter, err);
		return rc ? rc : gpu_run(k->gpu, k->unpatch, a.n, &a, err);
	}
	a.out = at->patches;
	a.in = at->input;
	a.n = pixels * line;
	if ((rc = gpu_run(k->gpu, k->patches, a.n, &a, err)))
		return rc;
	if (k->way == GPU_CONVOLUTION_FORWARD) {
		struct product p = {.m = pixels, .n = g->filters, .k = line};
		return conv_gpu_multiply(c, k, &p, at->output, at->patches, at->filter, err);
	}
	struct product p = {.m = line, .n = g->filters, .k = pixels, .trans_a = true};
	struct binary_args add = {.out = at->filter,
				  .a = at->filter,
				  .b = at->filter_part,
				  .n = line * g->filters,
				  .a_step = 1,
				  .b_step = 1};
	rc = conv_gpu_multiply(c, k, &p, at->first ? at->filter : at->filter_part, at->patches,
			       at->output, err);
	return rc || at->first ? rc : gpu_run(k->gpu, k->add, add.n, &add, err);
}

static int by_patches(struct kernel_call *c, const struct gpu_conv *k, const struct conv *g,
		      cuda_ptr input, cuda_ptr filter, cuda_ptr output, struct mu_err *err)
{
	const int64_t size = (int64_t)mu_dtype_size(g->type);
	const int64_t line = g->row.size * g->column.size * g->channels;
	const int64_t pixels = g->row.out * g->column.out;
	const int64_t in = g->row.in * g->column.in * g->channels, out = pixels * g->filters;
	struct part at = {.input = input, .filter = filter, .output = output, .first = true};
	MU_AUTO_TENSOR patches = {0}, part = {0};
	int64_t one, some;
	int rc = 0;

	if (__builtin_mul_overflow(pixels * size, line, &one))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "an image of %lld pixels with %lld taps each is too large",
			       (long long)pixels, (long long)line);
	some = one > 0 && one < gpu_conv_room ? gpu_conv_room / one : 1;
	some = some < g->batch ? some : g->batch;
	if ((rc = gpu_scratch(c, g->type, some * pixels * line, &patches, err)))
		return rc;
	if (k->way == GPU_CONVOLUTION_TO_FILTER && some < g->batch &&
	    (rc = gpu_scratch(c, g->type, line * g->filters, &part, err)))
		return rc;
	at.patches = gpu_address(&patches);
	at.filter_part = gpu_address(&part);
	for (int64_t left = g->batch; left > 0 && !rc; left -= at.images, at.first = false) {
		at.images = some < left ? some : left;
		rc = run_part(c, k, g, &at, err);
		at.input += (cuda_ptr)(at.images * in * size);
		at.output += (cuda_ptr)(at.images * out * size);
	}
	return rc;
}

/* ---- by the library ---- */

bool gpu_window_is_even(const struct window_axis *x)
{
	int64_t room = x->in + 2 * x->pad - ((x->size - 1) * x->dilation + 1);

	return room >= 0 && room / x->stride + 1 == x->out;
}

struct gpu_convolution_axis gpu_even_axis(const struct window_axis *x)
{
	return (struct gpu_convolution_axis){x->in,       x->size, x->stride,
					     x->dilation, x->out,  x->pad};
}

/* out[columns, rows] = in[rows, columns], transposed round: our filters have the output channels
 * last, the library's have them first. */
static int conv_gpu_transpose(const struct gpu_conv *k, cuda_ptr out, cuda_ptr in, int64_t rows,
			      int64_t columns, struct mu_err *err)
{
	struct view_args a = {.out = out,
			      .in = in,
			      .n = rows * columns,
			      .rank = 2,
			      .dim = {columns, rows},
			      .stride = {1, columns}};

	return gpu_run(k->gpu, k->transpose, a.n, &a, err);
}

static int conv_gpu_by_library(struct kernel_call *c, const struct gpu_conv *k,
			       const struct conv *g, cuda_ptr input, cuda_ptr filter,
			       cuda_ptr output, bool *done, struct mu_err *err)
{
	const int64_t taps = g->row.size * g->column.size * conv_group_channels(g);
	const struct gpu_convolution what = {g->type,
					     k->way,
					     g->batch,
					     g->channels,
					     g->filters,
					     g->groups,
					     gpu_even_axis(&g->row),
					     gpu_even_axis(&g->column)};
	MU_AUTO_TENSOR transposed = {0};
	bool can = gpu_conv_by_library && taps && gpu_window_is_even(&g->row) &&
		   gpu_window_is_even(&g->column);
	int rc = can ? gpu_convolution_plan_for(k->gpu, k->plan, &what, &can, err) : 0;

	*done = false;
	if (rc || !can || (rc = gpu_scratch(c, g->type, taps * g->filters, &transposed, err)))
		return rc;
	struct gpu_convolution_at at = {input, gpu_address(&transposed), output};
	if (k->way != GPU_CONVOLUTION_TO_FILTER &&
	    (rc = conv_gpu_transpose(k, at.filter, filter, taps, g->filters, err)))
		return rc;
	if ((rc = gpu_convolution(k->gpu, k->plan, &what, &at, c->node->name, done, err)))
		return rc;
	return *done && k->way == GPU_CONVOLUTION_TO_FILTER
		   ? conv_gpu_transpose(k, filter, at.filter, g->filters, taps, err)
		   : 0;
}

int gpu_conv_run(struct kernel_call *c, const struct gpu_conv *k, const struct conv *g,
		 cuda_ptr input, cuda_ptr filter, cuda_ptr output, struct mu_err *err)
{
	bool done;
	int rc = conv_gpu_by_library(c, k, g, input, filter, output, &done, err);

	if (rc || done)
		return rc;
	return g->groups == 1 ? by_patches(c, k, g, input, filter, output, err)
			      : by_groups(c, k, g, input, filter, output, err);
}

/* ---- kernels ---- */

struct state {
	struct gpu_conv by;
	struct window_attrs window;
};

/* By way: what is checked, and which inputs are input, filter and the output's gradient. */
enum { NONE = -1 };
static const struct {
	int (*check)(const struct kernel_call *c, const struct window_attrs *a, struct conv *g,
		     struct mu_shape *shape, struct mu_err *err);
	int input, filter, output;
} ways[GPU_CONVOLUTION_WAYS] = {
    [GPU_CONVOLUTION_FORWARD] = {check_conv, 0, 1, NONE},
    [GPU_CONVOLUTION_TO_INPUT] = {check_conv_input, NONE, 1, 2},
    [GPU_CONVOLUTION_TO_FILTER] = {check_conv_filter, 0, NONE, 2},
};

static void conv_gpu_release(void *state)
{
	gpu_conv_fini(&((struct state *)state)->by);
	free(state);
}

static int conv_gpu_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			    struct mu_err *err)
{
	enum gpu_convolution_way way = strstr(n->op, "BackpropInput")    ? GPU_CONVOLUTION_TO_INPUT
				       : strstr(n->op, "BackpropFilter") ? GPU_CONVOLUTION_TO_FILTER
									 : GPU_CONVOLUTION_FORWARD;
	struct state s = {0};
	int rc = window_attrs_conv(n, &s.window, err);

	if (rc || (rc = gpu_conv_init(&s.by, gpu_of_node(n, rt),
				      args_attr_type(n, "T", MU_DT_INVALID), way, err)))
		return rc;
	*state = memcpy(MU_NEW(struct state), &s, sizeof s);
	return 0;
}

static cuda_ptr address_of(const struct kernel_call *c, int input, const struct mu_tensor *out)
{
	return gpu_address(input == NONE ? out : kernel_in(c, (unsigned)input));
}

static int conv_gpu_run(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	enum gpu_convolution_way way = s->by.way;
	struct mu_shape shape;
	struct mu_tensor *out;
	struct conv g;
	int rc;

	if ((rc = ways[way].check(c, &s->window, &g, &shape, err)) ||
	    (rc = gpu_out(c, 0, g.type, &shape, &out, err)) || !shape.count)
		return rc;
	if (!g.groups || !g.batch) /* sums of nothing */
		return gpu_fill(s->by.gpu, out, 0, err);
	return gpu_conv_run(c, &s->by, &g, address_of(c, ways[way].input, out),
			    address_of(c, ways[way].filter, out),
			    address_of(c, ways[way].output, out), err);
}

#define ROW(name)                                                                                  \
	{                                                                                          \
		.k = {name, .run = conv_gpu_run, .prepare = conv_gpu_prepare,                      \
		      .release = conv_gpu_release},                                                \
		.type_attr = "T", .types = GPU_FLT                                                 \
	}
static const struct gpu_kernel rows[] = {
    ROW("Conv2D"),
    ROW("Conv2DBackpropInput"),
    ROW("Conv2DBackpropFilter"),
    ROW("DepthwiseConv2dNative"),
    ROW("DepthwiseConv2dNativeBackpropInput"),
    ROW("DepthwiseConv2dNativeBackpropFilter"),
};
GPU_KERNEL_TABLE(nn_conv_gpu, rows)
