/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_convolution.h.  The library names its algorithms best first, by what it knows of them and
 * without trying; the first that works with the memory that we allow, and as repeatably as we want,
 * is taken, and kept for a few shapes.  The workspace goes back at once, as a product's. */
#include "task/device/gpu_convolution.h"

#include <string.h>

#include "task/device/gpu_dnn.h"

enum { MOST_CHOICES = 8 };
#define MOST_WORKSPACE ((size_t)256 << 20)

struct way {
	struct gpu_way common;
	const struct dnn_api *api;
	struct gpu_convolution of;
	void *input, *output, *filter, *conv; /* descriptors */
	struct dnn_choice choice;
};

static void forget(struct gpu_way *way)
{
	struct way *w = (struct way *)way;

	if (w->input)
		w->api->tensor_free(w->input);
	if (w->output)
		w->api->tensor_free(w->output);
	if (w->filter)
		w->api->filter_free(w->filter);
	if (w->conv)
		w->api->conv_free(w->conv);
}

static bool fits_int(const struct gpu_convolution *c)
{
	const int64_t all[] = {
	    c->batch,      c->channels,     c->filters,       c->groups,
	    c->row.in,     c->row.out,      c->row.size,      c->row.pad,
	    c->column.in,  c->column.out,   c->column.size,   c->column.pad,
	    c->row.stride, c->row.dilation, c->column.stride, c->column.dilation};

	for (unsigned i = 0; i < MU_COUNT(all); i++)
		if (all[i] > INT32_MAX)
			return false;
	return true;
}

static int describe(struct way *p, struct gpu_dnn_numbers how)
{
	const struct dnn_api *api = p->api;
	const struct gpu_convolution *c = &p->of;
	const struct gpu_convolution_axis *r = &c->row, *q = &c->column;
	int bad = 0;

	if ((bad = api->tensor_new(&p->input)) || (bad = api->tensor_new(&p->output)) ||
	    (bad = api->filter_new(&p->filter)) || (bad = api->conv_new(&p->conv)))
		return bad;
	bad = api->tensor_set(p->input, DNN_NHWC, how.stored, (int)c->batch, (int)c->channels,
			      (int)r->in, (int)q->in);
	if (!bad)
		bad = api->tensor_set(p->output, DNN_NHWC, how.stored, (int)c->batch,
				      (int)c->filters, (int)r->out, (int)q->out);
	if (!bad)
		bad = api->filter_set(p->filter, how.stored, DNN_NHWC, (int)c->filters,
				      (int)(c->channels / c->groups), (int)r->size, (int)q->size);
	if (!bad)
		bad = api->conv_set(p->conv, (int)r->pad, (int)q->pad, (int)r->stride,
				    (int)q->stride, (int)r->dilation, (int)q->dilation,
				    DNN_CROSS_CORRELATION, how.compute);
	if (!bad)
		bad = api->conv_groups(p->conv, (int)c->groups);
	return bad ? bad : api->conv_math(p->conv, how.math);
}

static int ask(const struct way *p, void *library, int *found, struct dnn_choice *out)
{
	const struct dnn_api *api = p->api;

	switch (p->of.way) {
	case GPU_CONVOLUTION_FORWARD:
		return api->choose_forward(library, p->input, p->filter, p->conv, p->output,
					   MOST_CHOICES, found, out);
	case GPU_CONVOLUTION_TO_INPUT:
		return api->choose_input(library, p->filter, p->output, p->conv, p->input,
					 MOST_CHOICES, found, out);
	default:
		return api->choose_filter(library, p->input, p->output, p->conv, p->filter,
					  MOST_CHOICES, found, out);
	}
}

/* In the order of what they say of themselves: it works, with our memory, as repeatably as was
 * asked for, and does not round float to something shorter unasked. */
static bool is_as_wanted(const struct dnn_choice *c, const struct gpu *g, int math)
{
	return c->status == 0 && c->workspace <= MOST_WORKSPACE &&
	       (!g->repeatable || c->deterministic == DNN_DETERMINISTIC) &&
	       (math != DNN_FMA_MATH || c->math == math || c->math == DNN_DEFAULT_MATH);
}

/* The descriptor's mathematics is what counts in the end: on tensor cores the algorithm's own, else
 * the one we asked for. */
static bool choose(struct way *p, const struct gpu *g, void *library, int math)
{
	struct dnn_choice all[MOST_CHOICES];
	int found = 0;

	if (ask(p, library, &found, all))
		return false;
	for (int i = 0; i < found && i < MOST_CHOICES; i++)
		if (is_as_wanted(&all[i], g, math)) {
			p->choice = all[i];
			return math != DNN_TENSOR_OP_MATH ||
			       p->api->conv_math(p->conv, all[i].math) == 0;
		}
	return false;
}

static bool make(struct gpu_way *way, const void *convolution)
{
	struct way *w = (struct way *)way;
	const struct gpu_convolution *what = convolution;
	struct gpu_dnn_numbers how = gpu_dnn_numbers[what->type];
	struct gpu *g = way->gpu;
	bool possible;

	if (what->type == MU_FLOAT && g->tf32)
		how.math = DNN_DEFAULT_MATH;
	w->api = g->dnn_api;
	w->of = *what;
	pthread_mutex_lock(&g->dnn_lock);
	void *library = gpu_dnn_library(g);
	possible =
	    library && fits_int(what) && !describe(w, how) && choose(w, g, library, how.math);
	pthread_mutex_unlock(&g->dnn_lock);
	return possible;
}

bool gpu_convolution_axis_eq(const struct gpu_convolution_axis *a,
			     const struct gpu_convolution_axis *b)
{
	return a->in == b->in && a->size == b->size && a->stride == b->stride &&
	       a->dilation == b->dilation && a->out == b->out && a->pad == b->pad;
}

static bool is_for(const struct gpu_way *way, const void *convolution)
{
	const struct gpu_convolution *of = &((const struct way *)way)->of, *c = convolution;

	return of->type == c->type && of->way == c->way && of->batch == c->batch &&
	       of->channels == c->channels && of->filters == c->filters &&
	       of->groups == c->groups && gpu_convolution_axis_eq(&of->row, &c->row) &&
	       gpu_convolution_axis_eq(&of->column, &c->column);
}

struct gpu_plan *gpu_convolution_plan_new(void)
{
	static const struct gpu_plan_kind kind = {sizeof(struct way), is_for, make, forget};

	return gpu_plan_new(&kind);
}

int gpu_convolution_plan_for(struct gpu *g, struct gpu_plan *plan,
			     const struct gpu_convolution *what, bool *can, struct mu_err *err)
{
	return gpu_dnn_plan_for(g, plan, what, can, err);
}

/* What goes on a stream, or into a graph that is recorded. */
struct convolving {
	uint64_t serial; /* of the way, whose descriptors these are */
	const struct dnn_api *api;
	void *input, *output, *filter, *conv;
	cuda_ptr at_input, at_filter, at_output, work;
	uint64_t room, way, wide, algorithm;
};

static int call(void *library, const void *args)
{
	const struct convolving *c = args;
	const struct dnn_api *api = c->api;
	const float one = 1, none = 0;
	const double one_wide = 1, none_wide = 0;
	const void *alpha = c->wide ? (const void *)&one_wide : &one;
	const void *beta = c->wide ? (const void *)&none_wide : &none;
	const int how = (int)c->algorithm;

	switch ((enum gpu_convolution_way)c->way) {
	case GPU_CONVOLUTION_FORWARD:
		return api->forward(library, alpha, c->input, c->at_input, c->filter, c->at_filter,
				    c->conv, how, c->work, c->room, beta, c->output, c->at_output);
	case GPU_CONVOLUTION_TO_INPUT:
		return api->to_input(library, alpha, c->filter, c->at_filter, c->output,
				     c->at_output, c->conv, how, c->work, c->room, beta, c->input,
				     c->at_input);
	default:
		return api->to_filter(library, alpha, c->input, c->at_input, c->output,
				      c->at_output, c->conv, how, c->work, c->room, beta, c->filter,
				      c->at_filter);
	}
}

static int put_convolution(struct gpu *g, const struct gpu_deed *d, const void *args, void *stream)
{
	return gpu_dnn_call(g, stream, call, args);
}

struct wanted {
	const struct gpu_convolution_at *at;
	const char *holder;
};

static int put(struct gpu *g, const struct gpu_way *common, const void *wanted, int *refused,
	       struct mu_err *err)
{
	const struct gpu_deed deed = {.put = put_convolution, .size = sizeof(struct convolving)};
	const struct way *way = (const struct way *)common;
	const struct wanted *x = wanted;
	struct mu_shape bytes = mu_shape_vec((int64_t)way->choice.workspace);
	MU_AUTO_TENSOR work = {0};
	int rc;

	if (way->choice.workspace &&
	    (rc = gpu_tensor_new(g, MU_UINT8, &bytes, x->holder, &work, err)))
		return rc;
	const struct convolving c = {.serial = common->serial,
				     .api = way->api,
				     .input = way->input,
				     .output = way->output,
				     .filter = way->filter,
				     .conv = way->conv,
				     .at_input = x->at->input,
				     .at_filter = x->at->filter,
				     .at_output = x->at->output,
				     .work = gpu_address(&work),
				     .room = way->choice.workspace,
				     .way = way->of.way,
				     .wide = way->of.type == MU_DOUBLE,
				     .algorithm = (uint64_t)way->choice.algorithm};
	return gpu_put_library(g, &deed, &c, refused, err);
}

int gpu_convolution(struct gpu *g, struct gpu_plan *plan, const struct gpu_convolution *what,
		    const struct gpu_convolution_at *at, const char *holder, bool *done,
		    struct mu_err *err)
{
	const struct wanted wanted = {at, holder};

	return gpu_dnn_do(g, plan, what, put, &wanted, done, err);
}
