/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_convolution.h.  The library names its algorithms best first, by what it knows of them and
 * without trying; the first that works with the memory that we allow, and as repeatably as we want,
 * is taken. */
#include "task/device/gpu_convolution.h"

#include <string.h>

#include "task/device/gpu_dnn.h"

enum { MOST_CHOICES = 8 };
#define MOST_WORKSPACE ((size_t)256 << 20)

struct conv_plan {
	struct gpu_plan common;
	const struct dnn_api *api;
	struct gpu_convolution of;
	void *input, *output, *filter, *conv; /* descriptors */
	struct dnn_choice choice;
};

static void clear(struct gpu_plan *plan)
{
	struct conv_plan *w = (struct conv_plan *)plan;

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

static int describe(struct conv_plan *p, struct gpu_dnn_numbers how)
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

static int ask(const struct conv_plan *p, void *library, int *found, struct dnn_choice *out)
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
static bool choose(struct conv_plan *p, const struct gpu *g, void *library, int math)
{
	struct dnn_choice all[MOST_CHOICES];
	int found = 0;

	if (ask(p, library, &found, all))
		return false;
	for (int i = 0; i < found && i < MOST_CHOICES; i++)
		if (is_as_wanted(&all[i], g, math)) {
			p->choice = all[i];
			p->common.workspace = all[i].workspace;
			return math != DNN_TENSOR_OP_MATH ||
			       p->api->conv_math(p->conv, all[i].math) == 0;
		}
	return false;
}

static bool make(struct gpu_plan *plan, const void *convolution)
{
	struct conv_plan *w = (struct conv_plan *)plan;
	const struct gpu_convolution *what = convolution;
	struct gpu_dnn_numbers how = gpu_dnn_numbers[what->type];
	struct gpu *g = plan->gpu;
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

static bool is_for(const struct gpu_plan *plan, const void *convolution)
{
	const struct gpu_convolution *of = &((const struct conv_plan *)plan)->of, *c = convolution;

	return of->type == c->type && of->way == c->way && of->batch == c->batch &&
	       of->channels == c->channels && of->filters == c->filters &&
	       of->groups == c->groups && gpu_convolution_axis_eq(&of->row, &c->row) &&
	       gpu_convolution_axis_eq(&of->column, &c->column);
}

struct gpu_plan *gpu_convolution_plan_new(void)
{
	static const struct gpu_plan_kind kind = {sizeof(struct conv_plan), is_for, make, clear};

	return gpu_plan_new(&kind);
}

int gpu_convolution_plan_for(struct gpu *g, struct gpu_plan *plan,
			     const struct gpu_convolution *what, bool *can, struct mu_err *err)
{
	return gpu_dnn_plan_for(g, plan, what, can, err);
}

static int run(const struct gpu_plan *plan, void *library, const void *addresses, cuda_ptr work)
{
	const struct conv_plan *p = (const struct conv_plan *)plan;
	const struct gpu_convolution_at *at = addresses;
	const struct dnn_api *api = p->api;
	const void *one = gpu_dnn_scale(p->of.type, 1), *zero = gpu_dnn_scale(p->of.type, 0);
	const int algorithm = p->choice.algorithm;
	const size_t room = plan->workspace;

	switch (p->of.way) {
	case GPU_CONVOLUTION_FORWARD:
		return api->forward(library, one, p->input, at->input, p->filter, at->filter,
				    p->conv, algorithm, work, room, zero, p->output, at->output);
	case GPU_CONVOLUTION_TO_INPUT:
		return api->to_input(library, one, p->filter, at->filter, p->output, at->output,
				     p->conv, algorithm, work, room, zero, p->input, at->input);
	default:
		return api->to_filter(library, one, p->input, at->input, p->output, at->output,
				      p->conv, algorithm, work, room, zero, p->filter, at->filter);
	}
}

int gpu_convolution(struct gpu *g, struct gpu_plan *plan, const struct gpu_convolution *what,
		    const struct gpu_convolution_at *at, const char *holder, bool *done,
		    struct mu_err *err)
{
	return gpu_dnn_do(g, plan, what, run, at, holder, done, err);
}
