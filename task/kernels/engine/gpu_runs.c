/* SPDX-License-Identifier: Apache-2.0 */
/* A merge sort: each launch doubles the length of the sorted runs. */
#include "task/kernels/engine/gpu_runs.h"

_Static_assert((int)MU_MAX_RANK <= (int)CUDA_MAX_RANK, "every position has to fit");

void gpu_runs_fini(struct gpu_runs *r)
{
	mu_tensor_unref(&r->keys);
	mu_tensor_unref(&r->order);
	*r = (struct gpu_runs){0};
}

int gpu_runs_new(struct kernel_call *c, int64_t n, struct gpu_runs *out, struct mu_err *err)
{
	int rc = gpu_scratch(c, MU_INT64, n, &out->keys, err);

	if (!rc && (rc = gpu_scratch(c, MU_INT64, n, &out->order, err)))
		gpu_runs_fini(out);
	return rc;
}

int gpu_positions(struct kernel_call *c, const struct mu_tensor *indices, int64_t n,
		  const struct mu_shape *table, int depth, struct gpu_runs *out, struct mu_err *err)
{
	struct position_args a = {.indices = gpu_address(indices),
				  .n = n,
				  .depth = depth,
				  .wide = indices->dtype == MU_INT64};
	GPU_RUNS_AUTO result = {0};

	MU_RETURN_IF_ERROR(gpu_runs_new(c, n, &result, err));
	for (int d = 0; d < depth; d++)
		a.dim[d] = table->dim[d];
	a.keys = gpu_address(&result.keys);
	a.order = gpu_address(&result.order);
	MU_RETURN_IF_ERROR(gpu_run(kernel_gpu(c), "positions", n, &a, err));
	*out = result;
	result = (struct gpu_runs){0};
	return 0;
}

static int sort_by_row(struct kernel_call *c, int64_t n, struct gpu_runs *r, struct mu_err *err)
{
	GPU_RUNS_AUTO other = {0};
	int rc = gpu_runs_new(c, n, &other, err);

	for (int64_t run = 1; run < n && !rc; run *= 2) {
		struct gpu_runs previous = *r;
		struct merge_args a = {gpu_address(&other.keys),
				       gpu_address(&other.order),
				       gpu_address(&previous.keys),
				       gpu_address(&previous.order),
				       n,
				       run};
		rc = gpu_run(kernel_gpu(c), "merge_runs", n, &a, err);
		*r = other;
		other = previous;
	}
	return rc;
}

int gpu_runs_sort(struct kernel_call *c, int64_t n, int64_t row, struct gpu_runs *r,
		  struct by_row *by, struct mu_err *err)
{
	int rc = n > 1 ? sort_by_row(c, n, r, err) : 0;

	*by = (struct by_row){gpu_address(&r->keys), gpu_address(&r->order), n, row};
	return rc;
}

int gpu_runs_make(struct kernel_call *c, const struct mu_tensor *indices, int64_t n,
		  const struct mu_shape *table, int depth, int64_t row, struct gpu_runs *out,
		  struct by_row *by, struct mu_err *err)
{
	int rc = gpu_positions(c, indices, n, table, depth, out, err);

	if (!rc && (rc = gpu_runs_sort(c, n, row, out, by, err)))
		gpu_runs_fini(out);
	return rc;
}
