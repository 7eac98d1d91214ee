/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_dnn.h. */
#include "task/device/gpu_dnn.h"

const struct gpu_dnn_numbers gpu_dnn_numbers[MU_DT_COUNT] = {
    [MU_FLOAT] = {DNN_FLOAT, DNN_FLOAT, DNN_FMA_MATH},
    [MU_DOUBLE] = {DNN_DOUBLE, DNN_DOUBLE, DNN_DEFAULT_MATH},
    [MU_HALF] = {DNN_HALF, DNN_FLOAT, DNN_TENSOR_OP_MATH},
    [MU_BFLOAT16] = {DNN_BFLOAT16, DNN_FLOAT, DNN_TENSOR_OP_MATH},
};

const void *gpu_dnn_scale(enum mu_dtype type, int value)
{
	static const float single[] = {0, 1};
	static const double wide[] = {0, 1};

	return type == MU_DOUBLE ? (const void *)&wide[value] : &single[value];
}

void *gpu_dnn_library(struct gpu *g)
{
	if (!g->dnn && !g->dnn_failed)
		g->dnn_failed = g->dnn_api->library_new(&g->dnn) ||
				g->dnn_api->stream_set(g->dnn, g->compute.stream);
	return g->dnn_failed ? NULL : g->dnn;
}

int gpu_dnn_plan_for(struct gpu *g, struct gpu_plan *plan, const void *what, bool *can,
		     struct mu_err *err)
{
	int rc;

	*can = false;
	if (!g->dnn_api)
		return 0;
	if ((rc = gpu_enter(g, err)))
		return rc;
	pthread_mutex_lock(&plan->lock);
	gpu_plan_set(plan, g, what);
	*can = plan->possible;
	pthread_mutex_unlock(&plan->lock);
	return 0;
}

static int run_plan(struct gpu *g, struct gpu_plan *plan, gpu_dnn_run *run, const void *at,
		    const char *holder, struct mu_err *err)
{
	const struct mu_shape bytes = mu_shape_vec((int64_t)plan->workspace);
	MU_AUTO_TENSOR work = {0};
	int rc;

	if (plan->workspace && (rc = gpu_tensor_new(g, MU_UINT8, &bytes, holder, &work, err)))
		return rc;
	pthread_mutex_lock(&g->dnn_lock);
	plan->possible = !run(plan, g->dnn, at, gpu_address(&work));
	pthread_mutex_unlock(&g->dnn_lock);
	gpu_count_launch(g);
	return 0;
}

int gpu_dnn_do(struct gpu *g, struct gpu_plan *plan, const void *what, gpu_dnn_run *run,
	       const void *at, const char *holder, bool *done, struct mu_err *err)
{
	int rc = 0;

	*done = false;
	if (!g->dnn_api)
		return 0;
	if ((rc = gpu_enter(g, err)))
		return rc;
	pthread_mutex_lock(&plan->lock);
	gpu_plan_set(plan, g, what);
	if (plan->possible && !(rc = run_plan(g, plan, run, at, holder, err)))
		*done = plan->possible;
	pthread_mutex_unlock(&plan->lock);
	return rc;
}
