/* SPDX-License-Identifier: Apache-2.0 */
/* SparseTensorDenseMatMul on a GPU. */
#include "task/kernels/engine/gpu_runs.h"
#include "task/kernels/sparse/checks.h"

static int sparse_product(struct kernel_call *c, struct mu_err *err)
{
	GPU_RUNS_AUTO runs = {0};
	struct sparse_product p;
	struct mu_shape shape;
	uint64_t out;

	MU_RETURN_IF_ERROR(check_sparse_product(c, &p, &shape, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, kernel_in(c, 1)->dtype, &shape, &out, err));
	MU_RETURN_IF_ERROR(gpu_fill(kernel_gpu(c), &c->out[0].tensor, 0, err));
	if (!p.n || !shape.count)
		return 0;
	MU_RETURN_IF_ERROR(gpu_runs_new(c, p.n, &runs, err));
	struct sparse_product_args a = {
	    .by = {gpu_address(&runs.keys), gpu_address(&runs.order), p.n, p.cols},
	    .out = out,
	    .indices = gpu_address(kernel_in(c, 0)),
	    .values = gpu_address(kernel_in(c, 1)),
	    .b = gpu_address(kernel_in(c, 3)),
	    .rows = p.rows,
	    .inner = p.inner,
	    .b_row = p.b_row,
	    .b_col = p.b_col,
	    .flip = p.flip,
	    .wide = kernel_in(c, 0)->dtype == MU_INT64};
	MU_RETURN_IF_ERROR(gpu_run(kernel_gpu(c), "sparse_keys", p.n, &a, err));
	MU_RETURN_IF_ERROR(gpu_runs_sort(c, p.n, p.cols, &runs, &a.by, err));
	return gpu_run_type(kernel_gpu(c), "sparse_product", kernel_in(c, 1)->dtype, p.n * p.cols,
			    &a, err);
}

static const struct device_kernel rows[] = {
    {.k = {"SparseTensorDenseMatMul", .run = sparse_product},
     .type_attr = "T",
     .types = GPU_REAL,
     .host_in = 1 << 2,
     .device_in = 1 << 0},
};
KERNEL_TABLE(sparse_matmul_gpu, rows)
