/* SPDX-License-Identifier: Apache-2.0 */
#include "task/device/gpu_dnn.h"

#include "task/device/gpu_plan.h"

const struct gpu_dnn_numbers gpu_dnn_numbers[MU_DT_COUNT] = {
    [MU_FLOAT] = {DNN_FLOAT, DNN_FLOAT, DNN_FMA_MATH},
    [MU_DOUBLE] = {DNN_DOUBLE, DNN_DOUBLE, DNN_DEFAULT_MATH},
    [MU_HALF] = {DNN_HALF, DNN_FLOAT, DNN_TENSOR_OP_MATH},
    [MU_BFLOAT16] = {DNN_BFLOAT16, DNN_FLOAT, DNN_TENSOR_OP_MATH},
};

void *gpu_dnn_library(struct gpu *g)
{
	if (!g->dnn && !g->dnn_failed)
		g->dnn_failed = g->dnn_api->library_new(&g->dnn) ||
				g->dnn_api->stream_set(g->dnn, g->compute.stream);
	return g->dnn_failed ? NULL : g->dnn;
}

int gpu_dnn_call(struct gpu *g, void *stream, int (*call)(void *library, const void *args),
		 const void *args)
{
	const struct dnn_api *api = g->dnn_api;
	const bool other = stream != g->compute.stream;

	pthread_mutex_lock(&g->dnn_lock);
	int bad = other ? api->stream_set(g->dnn, stream) : 0;
	if (!bad)
		bad = call(g->dnn, args);
	if (other && api->stream_set(g->dnn, g->compute.stream) && !bad)
		bad = DNN_BAD_PARAM;
	pthread_mutex_unlock(&g->dnn_lock);
	return bad;
}

int gpu_dnn_do(struct gpu *g, struct gpu_plan *plan, const void *what, gpu_dnn_put *put,
	       const void *at, bool *done, struct mu_err *err)
{
	int refused = 0, rc;

	*done = false;
	if (!g->dnn_api)
		return 0;
	if ((rc = gpu_enter(g, err)))
		return rc;
	pthread_mutex_lock(&plan->lock);
	struct gpu_way *way = gpu_plan_way(plan, g, what);
	if (way->possible && !(rc = put(g, way, at, &refused, err)))
		way->possible = *done = !refused;
	pthread_mutex_unlock(&plan->lock);
	return rc;
}

/* Nothing is put: what is possible counts as done. */
static int put_nothing(struct gpu *g, const struct gpu_way *way, const void *at, int *refused,
		       struct mu_err *err)
{
	return 0;
}

int gpu_dnn_plan_for(struct gpu *g, struct gpu_plan *plan, const void *what, bool *can,
		     struct mu_err *err)
{
	return gpu_dnn_do(g, plan, what, put_nothing, NULL, can, err);
}
