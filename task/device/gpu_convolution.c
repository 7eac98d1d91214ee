/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_convolution.h. cuDNN lists its algorithms by its heuristics, the best first, without
 * running them. The first one that is_allowed() accepts is used. */
#include "task/device/gpu_convolution.h"

#include <string.h>

#include "task/device/gpu_internal.h"

enum { MOST_CHOICES = 8 };
#define MOST_WORKSPACE ((size_t)256 << 20)

struct conv {
	const struct dnn_api *api;
	struct gpu_convolution of;
	void *input, *output, *filter, *conv; /* descriptors */
	struct dnn_choice choice;
};

/* cuDNN's numbers of a type: how elements are stored, and how sums are computed. */
static const struct numbers {
	int stored, compute, math;
} numbers[MU_DT_COUNT] = {
    [MU_FLOAT] = {DNN_FLOAT, DNN_FLOAT, DNN_FMA_MATH},
    [MU_DOUBLE] = {DNN_DOUBLE, DNN_DOUBLE, DNN_DEFAULT_MATH},
    [MU_HALF] = {DNN_HALF, DNN_FLOAT, DNN_TENSOR_OP_MATH},
    [MU_BFLOAT16] = {DNN_BFLOAT16, DNN_FLOAT, DNN_TENSOR_OP_MATH},
};

/* The GPU's handle; NULL: cuDNN does not start.  It serves one call at a time, on the compute
 * stream.  The library is large and starts slowly, so the handle is made for the first use. */
static void *library_of(struct gpu *g)
{
	if (!g->dnn && !g->dnn_failed)
		g->dnn_failed =
		    g->dnn_api->library_new(&g->dnn) || g->dnn_api->stream_set(g->dnn, g->compute);
	return g->dnn_failed ? NULL : g->dnn;
}

static void clear(const struct conv *w)
{
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

static int describe(struct conv *p, struct numbers how)
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

static int list_algorithms(const struct conv *p, void *library, int *found, struct dnn_choice *out)
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

/* True if the algorithm works, fits our workspace, is deterministic if required, and does not round
 * floats to a shorter type without permission. */
static bool is_allowed(const struct dnn_choice *c, const struct gpu *g, int math)
{
	return c->status == 0 && c->workspace <= MOST_WORKSPACE &&
	       (!g->is_deterministic || c->deterministic == DNN_DETERMINISTIC) &&
	       (math != DNN_FMA_MATH || c->math == math || c->math == DNN_DEFAULT_MATH);
}

/* Sets the math type of the descriptor, which decides: that of the algorithm on tensor cores, else
 * the requested one. */
static bool choose_algorithm(struct conv *p, const struct gpu *g, void *library, int math)
{
	struct dnn_choice all[MOST_CHOICES];
	int found = 0;

	if (list_algorithms(p, library, &found, all))
		return false;
	for (int i = 0; i < found && i < MOST_CHOICES; i++)
		if (is_allowed(&all[i], g, math)) {
			p->choice = all[i];
			return math != DNN_TENSOR_OP_MATH ||
			       p->api->conv_math(p->conv, all[i].math) == 0;
		}
	return false;
}

static int call(const struct conv *p, void *library, const struct gpu_convolution_at *at,
		cuda_ptr work)
{
	static const float single[] = {0, 1};
	static const double wide[] = {0, 1};
	const bool is_wide = p->of.type == MU_DOUBLE;
	const void *one = is_wide ? (const void *)&wide[1] : &single[1];
	const void *zero = is_wide ? (const void *)&wide[0] : &single[0];
	const struct dnn_api *api = p->api;
	const int algorithm = p->choice.algorithm;
	const size_t workspace = p->choice.workspace;

	switch (p->of.way) {
	case GPU_CONVOLUTION_FORWARD:
		return api->forward(library, one, p->input, at->input, p->filter, at->filter,
				    p->conv, algorithm, work, workspace, zero, p->output,
				    at->output);
	case GPU_CONVOLUTION_TO_INPUT:
		return api->to_input(library, one, p->filter, at->filter, p->output, at->output,
				     p->conv, algorithm, work, workspace, zero, p->input,
				     at->input);
	default:
		return api->to_filter(library, one, p->input, at->input, p->output, at->output,
				      p->conv, algorithm, work, workspace, zero, p->filter,
				      at->filter);
	}
}

bool gpu_convolution_is_enabled = true;

bool gpu_convolution_is_available(const struct gpu *g)
{
	return gpu_convolution_is_enabled && g->dnn_api && !g->dnn_failed;
}

/* The workspace is freed at once: its next user is launched later. */
static int run(struct gpu *g, struct conv *p, const struct gpu_convolution_at *at,
	       const char *holder, bool *done, struct mu_err *err)
{
	const struct mu_shape bytes = mu_shape_vec((int64_t)p->choice.workspace);
	MU_AUTO_TENSOR work = {0};
	int rc;

	if (p->choice.workspace && (rc = gpu_tensor_new(g, MU_UINT8, &bytes, holder, &work, err)))
		return rc;
	*done = !call(p, g->dnn, at, gpu_address(&work));
	return 0;
}

int gpu_convolution(struct gpu *g, const struct gpu_convolution *what,
		    const struct gpu_convolution_at *at, const char *holder, bool *done,
		    struct mu_err *err)
{
	struct numbers how = numbers[what->type];
	struct conv p = {.api = g->dnn_api, .of = *what};
	int rc = gpu_enter(g, err);

	*done = false;
	if (rc || !fits_int(what))
		return rc;
	if (what->type == MU_FLOAT && g->tf32)
		how.math = DNN_DEFAULT_MATH;
	pthread_mutex_lock(&g->library_lock);
	void *library = library_of(g);
	if (library && !describe(&p, how) && choose_algorithm(&p, g, library, how.math))
		rc = run(g, &p, at, holder, done, err);
	clear(&p);
	pthread_mutex_unlock(&g->library_lock);
	return rc;
}
