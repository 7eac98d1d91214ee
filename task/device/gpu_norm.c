/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_norm.h. */
#include "task/device/gpu_norm.h"

#include "task/device/gpu_dnn.h"

struct way {
	struct gpu_way common;
	const struct dnn_api *api;
	struct gpu_norm of;
	void *image, *channels; /* descriptors */
};

static void forget(struct gpu_way *way)
{
	struct way *w = (struct way *)way;

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

static int describe(struct way *w)
{
	const struct gpu_norm *n = &w->of;
	int bad;

	if ((bad = w->api->tensor_new(&w->image)) || (bad = w->api->tensor_new(&w->channels)))
		return bad;
	bad = w->api->tensor_set(w->image, DNN_NHWC, DNN_FLOAT, (int)n->batch, (int)n->channels,
				 (int)n->rows, (int)n->columns);
	return bad ? bad : w->api->norm_derive(w->channels, w->image, DNN_NORM_SPATIAL);
}

static bool make(struct gpu_way *way, const void *norm)
{
	struct way *w = (struct way *)way;
	struct gpu *g = way->gpu;
	bool possible;

	w->api = g->dnn_api;
	w->of = *(const struct gpu_norm *)norm;
	pthread_mutex_lock(&g->dnn_lock);
	possible = fits_int(&w->of) && gpu_dnn_library(g) && !describe(w);
	pthread_mutex_unlock(&g->dnn_lock);
	return possible;
}

/* What the descriptors say; the numbers are handed over with each call. */
static bool is_for(const struct gpu_way *way, const void *norm)
{
	const struct gpu_norm *of = &((const struct way *)way)->of, *n = norm;

	return of->back == n->back && of->batch == n->batch && of->rows == n->rows &&
	       of->columns == n->columns && of->channels == n->channels;
}

struct gpu_plan *gpu_norm_plan_new(void)
{
	static const struct gpu_plan_kind kind = {sizeof(struct way), is_for, make, forget};

	return gpu_plan_new(&kind);
}

int gpu_norm_plan_for(struct gpu *g, struct gpu_plan *plan, const struct gpu_norm *what, bool *can,
		      struct mu_err *err)
{
	return gpu_dnn_plan_for(g, plan, what, can, err);
}

/* What goes on a stream, or into a graph that is recorded. */
struct norming {
	uint64_t serial; /* of the way, whose descriptors these are */
	const struct dnn_api *api;
	void *image, *channels;
	struct gpu_norm_at at;
	double epsilon, factor;
	uint64_t back;
};

static int call(void *library, const void *args)
{
	const struct norming *n = args;
	const struct gpu_norm_at *at = &n->at;
	const float one = 1, none = 0;

	if (n->back)
		return n->api->norm_back(
		    library, DNN_NORM_SPATIAL, &one, &none, &one, &none, n->image, at->x, n->image,
		    at->y_grad, n->image, at->x_grad, n->channels, at->scale, at->scale_grad,
		    at->offset_grad, n->epsilon, at->own_mean, at->own_inverse);
	return n->api->norm_train(library, DNN_NORM_SPATIAL, &one, &none, n->image, at->x, n->image,
				  at->y, n->channels, at->scale, at->offset, n->factor, at->mean,
				  at->variance, n->epsilon, at->own_mean, at->own_inverse);
}

static int put_norm(struct gpu *g, const struct gpu_deed *d, const void *args, void *stream)
{
	return gpu_dnn_call(g, stream, call, args);
}

struct wanted {
	const struct gpu_norm *what; /* epsilon and factor are none of the way's */
	const struct gpu_norm_at *at;
};

static int put(struct gpu *g, const struct gpu_way *way, const void *wanted, int *refused,
	       struct mu_err *err)
{
	const struct gpu_deed deed = {.put = put_norm, .size = sizeof(struct norming)};
	const struct way *w = (const struct way *)way;
	const struct wanted *x = wanted;
	const struct norming n = {.serial = way->serial,
				  .api = w->api,
				  .image = w->image,
				  .channels = w->channels,
				  .at = *x->at,
				  .epsilon = x->what->epsilon,
				  .factor = x->what->factor,
				  .back = x->what->back};

	return gpu_put_library(g, &deed, &n, refused, err);
}

int gpu_norm(struct gpu *g, struct gpu_plan *plan, const struct gpu_norm *what,
	     const struct gpu_norm_at *at, bool *done, struct mu_err *err)
{
	const struct wanted wanted = {what, at};

	return gpu_dnn_do(g, plan, what, put, &wanted, done, err);
}
