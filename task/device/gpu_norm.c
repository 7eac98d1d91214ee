/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_norm.h. */
#include "task/device/gpu_norm.h"

#include "task/device/gpu_dnn.h"

struct norm_plan {
	struct gpu_plan common;
	const struct dnn_api *api;
	struct gpu_norm of;
	void *image, *channels; /* descriptors */
};

static void clear(struct gpu_plan *plan)
{
	struct norm_plan *w = (struct norm_plan *)plan;

	if (w->image)
		w->api->tensor_free(w->image);
	if (w->channels)
		w->api->tensor_free(w->channels);
}

static bool fits_int(const struct gpu_norm *n)
{
	const int64_t all[] = {n->batch, n->rows, n->columns, n->channels};

	for (unsigned i = 0; i < MU_COUNT(all); i++)
		if (all[i] < 1 || all[i] > INT32_MAX)
			return false;
	return n->batch * n->rows * n->columns > 1; /* of one there is no spread to speak of */
}

static int describe(struct norm_plan *w)
{
	const struct gpu_norm *n = &w->of;
	int bad;

	if ((bad = w->api->tensor_new(&w->image)) || (bad = w->api->tensor_new(&w->channels)))
		return bad;
	bad = w->api->tensor_set(w->image, DNN_NHWC, DNN_FLOAT, (int)n->batch, (int)n->channels,
				 (int)n->rows, (int)n->columns);
	return bad ? bad : w->api->norm_derive(w->channels, w->image, DNN_NORM_SPATIAL);
}

static bool make(struct gpu_plan *plan, const void *norm)
{
	struct norm_plan *w = (struct norm_plan *)plan;
	struct gpu *g = plan->gpu;
	bool possible;

	w->api = g->dnn_api;
	w->of = *(const struct gpu_norm *)norm;
	pthread_mutex_lock(&g->dnn_lock);
	possible = fits_int(&w->of) && gpu_dnn_library(g) && !describe(w);
	pthread_mutex_unlock(&g->dnn_lock);
	return possible;
}

/* What the descriptors say; the numbers are handed over with each call. */
static bool is_for(const struct gpu_plan *plan, const void *norm)
{
	const struct gpu_norm *of = &((const struct norm_plan *)plan)->of, *n = norm;

	return of->back == n->back && of->batch == n->batch && of->rows == n->rows &&
	       of->columns == n->columns && of->channels == n->channels;
}

struct gpu_plan *gpu_norm_plan_new(void)
{
	static const struct gpu_plan_kind kind = {sizeof(struct norm_plan), is_for, make, clear};

	return gpu_plan_new(&kind);
}

int gpu_norm_plan_for(struct gpu *g, struct gpu_plan *plan, const struct gpu_norm *what, bool *can,
		      struct mu_err *err)
{
	return gpu_dnn_plan_for(g, plan, what, can, err);
}

struct arguments {
	const struct gpu_norm *what; /* epsilon and factor do not belong to the plan */
	const struct gpu_norm_at *at;
};

static int run(const struct gpu_plan *plan, void *library, const void *arguments, cuda_ptr work)
{
	const struct norm_plan *p = (const struct norm_plan *)plan;
	const struct gpu_norm *n = ((const struct arguments *)arguments)->what;
	const struct gpu_norm_at *at = ((const struct arguments *)arguments)->at;
	const void *one = gpu_dnn_scale(MU_FLOAT, 1), *zero = gpu_dnn_scale(MU_FLOAT, 0);

	if (n->back)
		return p->api->norm_back(library, DNN_NORM_SPATIAL, one, zero, one, zero, p->image,
					 at->x, p->image, at->y_grad, p->image, at->x_grad,
					 p->channels, at->scale, at->scale_grad, at->offset_grad,
					 n->epsilon, at->own_mean, at->own_inverse);
	return p->api->norm_train(library, DNN_NORM_SPATIAL, one, zero, p->image, at->x, p->image,
				  at->y, p->channels, at->scale, at->offset, n->factor, at->mean,
				  at->variance, n->epsilon, at->own_mean, at->own_inverse);
}

int gpu_norm(struct gpu *g, struct gpu_plan *plan, const struct gpu_norm *what,
	     const struct gpu_norm_at *at, bool *done, struct mu_err *err)
{
	const struct arguments a = {what, at};

	return gpu_dnn_do(g, plan, what, run, &a, NULL, done, err);
}
