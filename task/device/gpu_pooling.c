/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_pooling.h. */
#include "task/device/gpu_pooling.h"

#include "task/device/gpu_dnn.h"
#include "task/device/gpu_kept.h"

struct way { /* of one shape */
	struct gpu *gpu;
	const struct dnn_api *api;
	uint64_t serial; /* no other way ever had it */
	struct gpu_pooling of;
	bool possible;
	void *input, *output, *pool; /* descriptors */
};
struct gpu_pooling_plan {
	pthread_mutex_t lock;
	struct gpu_kept kept;
	struct way ways[GPU_KEPT];
};

struct gpu_pooling_plan *gpu_pooling_plan_new(void)
{
	struct gpu_pooling_plan *p = MU_NEW(struct gpu_pooling_plan);

	pthread_mutex_init(&p->lock, NULL);
	return p;
}

/* What is held back, or about to be recorded, still has use for the descriptors. */
static void forget(struct way *w)
{
	if (w->input && gpu_works(w->gpu))
		gpu_end_segment(w->gpu, NULL);
	if (w->input)
		w->api->tensor_free(w->input);
	if (w->output)
		w->api->tensor_free(w->output);
	if (w->pool)
		w->api->pool_free(w->pool);
	w->input = w->output = w->pool = NULL;
	w->possible = false;
}

void gpu_pooling_plan_free(struct gpu_pooling_plan *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < GPU_KEPT; i++)
		forget(&p->ways[i]);
	pthread_mutex_destroy(&p->lock);
	free(p);
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

static void make_way(struct gpu *g, struct way *w, const struct gpu_pooling *what)
{
	static _Atomic uint64_t made;

	forget(w);
	w->gpu = g;
	w->api = g->dnn_api;
	w->serial = atomic_fetch_add(&made, 1);
	w->of = *what;
	pthread_mutex_lock(&g->dnn_lock);
	w->possible = gpu_dnn_library(g) && what->batch <= INT32_MAX &&
		      what->channels <= INT32_MAX && axis_fits(&what->row) &&
		      axis_fits(&what->column) && !describe(w);
	pthread_mutex_unlock(&g->dnn_lock);
}

static bool is_for(const struct way *w, const struct gpu_pooling *p)
{
	const struct gpu_pooling *of = &w->of;

	return w->api && of->type == p->type && of->average == p->average &&
	       of->batch == p->batch && of->channels == p->channels &&
	       gpu_convolution_axis_eq(&of->row, &p->row) &&
	       gpu_convolution_axis_eq(&of->column, &p->column);
}

/* The way for this shape, made when there is none yet. */
static struct way *way_for(struct gpu *g, struct gpu_pooling_plan *plan,
			   const struct gpu_pooling *p)
{
	unsigned i = 0;

	while (i < GPU_KEPT && !is_for(&plan->ways[i], p))
		i++;
	if (i == GPU_KEPT) {
		i = gpu_kept_oldest(&plan->kept);
		make_way(g, &plan->ways[i], p);
	}
	gpu_kept_use(&plan->kept, i);
	return &plan->ways[i];
}

/* What goes on a stream, or into a graph that is recorded. */
struct pooling {
	uint64_t serial; /* of the way, whose descriptors these are */
	const struct dnn_api *api;
	void *input, *output, *pool;
	cuda_ptr in, out;
	uint64_t wide;
};

static int call(void *library, const void *args)
{
	const struct pooling *p = args;
	const float one = 1, none = 0;
	const double one_wide = 1, none_wide = 0;

	return p->api->pool(library, p->pool, p->wide ? (const void *)&one_wide : &one, p->input,
			    p->in, p->wide ? (const void *)&none_wide : &none, p->output, p->out);
}

static int put_pooling(struct gpu *g, const struct gpu_deed *d, const void *args, void *stream)
{
	return gpu_dnn_call(g, stream, call, args);
}

int gpu_pooling(struct gpu *g, struct gpu_pooling_plan *plan, const struct gpu_pooling *what,
		cuda_ptr in, cuda_ptr out, bool *done, struct mu_err *err)
{
	const struct gpu_deed deed = {.put = put_pooling, .size = sizeof(struct pooling)};
	int refused, rc;

	*done = false;
	if (!g->dnn_api)
		return 0;
	if ((rc = gpu_enter(g, err)))
		return rc;
	pthread_mutex_lock(&plan->lock);
	struct way *w = way_for(g, plan, what);
	const struct pooling p = {.serial = w->serial,
				  .api = w->api,
				  .input = w->input,
				  .output = w->output,
				  .pool = w->pool,
				  .in = in,
				  .out = out,
				  .wide = what->type == MU_DOUBLE};
	if (w->possible && !(rc = gpu_put_library(g, &deed, &p, &refused, err)))
		w->possible = *done = !refused; /* one that fails is not tried again */
	pthread_mutex_unlock(&plan->lock);
	return rc;
}
