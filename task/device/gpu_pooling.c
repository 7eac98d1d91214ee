/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_pooling.h. */
#include "task/device/gpu_pooling.h"

#include "task/device/gpu_dnn.h"

struct pool_plan {
	struct gpu_plan common;
	const struct dnn_api *api;
	struct gpu_pooling of;
	void *input, *output, *pool; /* descriptors */
};

static void clear(struct gpu_plan *plan)
{
	struct pool_plan *w = (struct pool_plan *)plan;

	if (w->input)
		w->api->tensor_free(w->input);
	if (w->output)
		w->api->tensor_free(w->output);
	if (w->pool)
		w->api->pool_free(w->pool);
}

static bool axis_fits(const struct gpu_convolution_axis *x)
{
	return x->in <= INT32_MAX && x->out <= INT32_MAX && x->size <= INT32_MAX &&
	       x->stride <= INT32_MAX && x->pad < x->size && x->dilation == 1;
}

static int describe(struct pool_plan *w)
{
	const struct gpu_pooling *p = &w->of;
	const struct gpu_convolution_axis *r = &p->row, *q = &p->column;
	const int type = gpu_dnn_numbers[p->type].stored;
	int bad;

	if ((bad = w->api->tensor_new(&w->input)) || (bad = w->api->tensor_new(&w->output)) ||
	    (bad = w->api->pool_new(&w->pool)))
		return bad;
	bad = w->api->tensor_set(w->input, DNN_NHWC, type, (int)p->batch, (int)p->channels,
				 (int)r->in, (int)q->in);
	if (!bad)
		bad = w->api->tensor_set(w->output, DNN_NHWC, type, (int)p->batch, (int)p->channels,
					 (int)r->out, (int)q->out);
	return bad ? bad
		   : w->api->pool_set(w->pool, p->average ? DNN_POOL_AVERAGE_INSIDE : DNN_POOL_MAX,
				      DNN_PROPAGATE_NAN, (int)r->size, (int)q->size, (int)r->pad,
				      (int)q->pad, (int)r->stride, (int)q->stride);
}

static bool make(struct gpu_plan *plan, const void *pooling)
{
	struct pool_plan *w = (struct pool_plan *)plan;
	const struct gpu_pooling *what = pooling;
	struct gpu *g = plan->gpu;
	bool possible;

	w->api = g->dnn_api;
	w->of = *what;
	pthread_mutex_lock(&g->dnn_lock);
	possible = gpu_dnn_library(g) && what->batch <= INT32_MAX && what->channels <= INT32_MAX &&
		   axis_fits(&what->row) && axis_fits(&what->column) && !describe(w);
	pthread_mutex_unlock(&g->dnn_lock);
	return possible;
}

static bool is_for(const struct gpu_plan *plan, const void *pooling)
{
	const struct gpu_pooling *of = &((const struct pool_plan *)plan)->of, *p = pooling;

	return of->type == p->type && of->average == p->average && of->back == p->back &&
	       of->batch == p->batch && of->channels == p->channels &&
	       gpu_convolution_axis_eq(&of->row, &p->row) &&
	       gpu_convolution_axis_eq(&of->column, &p->column);
}

struct gpu_plan *gpu_pooling_plan_new(void)
{
	static const struct gpu_plan_kind kind = {sizeof(struct pool_plan), is_for, make, clear};

	return gpu_plan_new(&kind);
}

struct addresses {
	cuda_ptr from, to;
};

static int run(const struct gpu_plan *plan, void *library, const void *addresses, cuda_ptr work)
{
	const struct pool_plan *p = (const struct pool_plan *)plan;
	const struct addresses *at = addresses;
	const void *one = gpu_dnn_scale(p->of.type, 1), *zero = gpu_dnn_scale(p->of.type, 0);

	/* cuDNN wants x and y for any gradient; that of an average reads neither. */
	return p->of.back ? p->api->pool_back(library, p->pool, one, p->output, at->from, p->output,
					      at->from, p->input, at->to, zero, p->input, at->to)
			  : p->api->pool(library, p->pool, one, p->input, at->from, zero, p->output,
					 at->to);
}

int gpu_pooling(struct gpu *g, struct gpu_plan *plan, const struct gpu_pooling *what, cuda_ptr from,
		cuda_ptr to, bool *done, struct mu_err *err)
{
	const struct addresses at = {from, to};

	return gpu_dnn_do(g, plan, what, run, &at, NULL, done, err);
}
