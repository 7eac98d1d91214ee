/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_pooling.h. */
#include "task/device/gpu_pooling.h"

#include "task/device/gpu_dnn.h"

struct way {
	struct gpu_way common;
	const struct dnn_api *api;
	struct gpu_pooling of;
	void *input, *output, *pool; /* descriptors */
};

static void forget(struct gpu_way *way)
{
	struct way *w = (struct way *)way;

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

static int describe(struct way *w)
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

static bool make(struct gpu_way *way, const void *pooling)
{
	struct way *w = (struct way *)way;
	const struct gpu_pooling *what = pooling;
	struct gpu *g = way->gpu;
	bool possible;

	w->api = g->dnn_api;
	w->of = *what;
	pthread_mutex_lock(&g->dnn_lock);
	possible = gpu_dnn_library(g) && what->batch <= INT32_MAX && what->channels <= INT32_MAX &&
		   axis_fits(&what->row) && axis_fits(&what->column) && !describe(w);
	pthread_mutex_unlock(&g->dnn_lock);
	return possible;
}

static bool is_for(const struct gpu_way *way, const void *pooling)
{
	const struct gpu_pooling *of = &((const struct way *)way)->of, *p = pooling;

	return of->type == p->type && of->average == p->average && of->back == p->back &&
	       of->batch == p->batch && of->channels == p->channels &&
	       gpu_convolution_axis_eq(&of->row, &p->row) &&
	       gpu_convolution_axis_eq(&of->column, &p->column);
}

struct gpu_plan *gpu_pooling_plan_new(void)
{
	static const struct gpu_plan_kind kind = {sizeof(struct way), is_for, make, forget};

	return gpu_plan_new(&kind);
}

/* What goes on a stream, or into a graph that is recorded. */
struct pooling {
	uint64_t serial; /* of the way, whose descriptors these are */
	const struct dnn_api *api;
	void *input, *output, *pool;
	cuda_ptr from, to;
	uint64_t wide, back;
};

static int call(void *library, const void *args)
{
	const struct pooling *p = args;
	const float one = 1, none = 0;
	const double one_wide = 1, none_wide = 0;
	const void *alpha = p->wide ? (const void *)&one_wide : &one;
	const void *beta = p->wide ? (const void *)&none_wide : &none;

	/* the gradient of an average is that of any numbers: it looks at none, but wants an address
	 */
	return p->back ? p->api->pool_back(library, p->pool, alpha, p->output, p->from, p->output,
					   p->from, p->input, p->to, beta, p->input, p->to)
		       : p->api->pool(library, p->pool, alpha, p->input, p->from, beta, p->output,
				      p->to);
}

static int put_pooling(struct gpu *g, const struct gpu_deed *d, const void *args, void *stream)
{
	return gpu_dnn_call(g, stream, call, args);
}

struct wanted {
	cuda_ptr from, to;
};

static int put(struct gpu *g, const struct gpu_way *way, const void *wanted, int *refused,
	       struct mu_err *err)
{
	const struct gpu_deed deed = {.put = put_pooling, .size = sizeof(struct pooling)};
	const struct way *w = (const struct way *)way;
	const struct wanted *at = wanted;
	const struct pooling p = {.serial = way->serial,
				  .api = w->api,
				  .input = w->input,
				  .output = w->output,
				  .pool = w->pool,
				  .from = at->from,
				  .to = at->to,
				  .wide = w->of.type == MU_DOUBLE,
				  .back = w->of.back};

	return gpu_put_library(g, &deed, &p, refused, err);
}

int gpu_pooling(struct gpu *g, struct gpu_plan *plan, const struct gpu_pooling *what, cuda_ptr from,
		cuda_ptr to, bool *done, struct mu_err *err)
{
	const struct wanted wanted = {from, to};

	return gpu_dnn_do(g, plan, what, put, &wanted, done, err);
}
