/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on a GPU. */
#include "task/kernels/linalg/matmul_gpu.h"
#include "task/device/gpu_product.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/linalg/checks.h"

int gpu_matmul(struct gpu *g, enum mu_dtype t, const struct product *p, uint64_t out, uint64_t a,
	       uint64_t b, const struct broadcast_args *by, struct mu_err *err)
{
	struct matmul_args args = {.out = out,
				   .a = a,
				   .b = b,
				   .m = p->m,
				   .n = p->n,
				   .k = p->k,
				   .a_row = p->trans_a ? 1 : p->k,
				   .a_column = p->trans_a ? p->m : 1,
				   .b_row = p->trans_b ? 1 : p->n,
				   .b_column = p->trans_b ? p->k : 1};
	int64_t batch = 1;
	bool done = false;
	int rc = 0;

	if (by)
		args.by = *by;
	for (int d = 0; d < args.by.rank; d++)
		batch *= args.by.dim[d];
	args.count = batch * p->m * p->n;
	if (args.by.rank <= 1) { /* one stride for the whole batch */
		const struct gpu_product request = {.type = t,
						    .trans_a = p->trans_a,
						    .trans_b = p->trans_b,
						    .m = p->m,
						    .n = p->n,
						    .k = p->k,
						    .out = out,
						    .a = a,
						    .b = b,
						    .batch = batch,
						    .a_stride = args.by.stride[0][0] * p->m * p->k,
						    .b_stride = args.by.stride[1][0] * p->k * p->n};
		rc = gpu_product(g, &request, &done, err);
	}
	return rc || done ? rc : gpu_run_type(g, "matmul", t, args.count, &args, err);
}

static int matmul_to(struct kernel_call *c, const struct product *p, uint64_t out,
		     const struct broadcast_args *by, struct mu_err *err)
{
	return gpu_matmul(kernel_gpu(c), kernel_in(c, 0)->dtype, p, out,
			  gpu_address(kernel_in(c, 0)), gpu_address(kernel_in(c, 1)), by, err);
}

static int matmul_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct product p;
	struct mu_shape shape;
	uint64_t out;

	MU_RETURN_IF_ERROR(check_matmul(c, &p, &shape, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, kernel_in(c, 0)->dtype, &shape, &out, err));
	return matmul_to(c, &p, out, NULL, err);
}

static int batch_matmul_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct product_batch batch;
	struct product p = {0};
	struct mu_shape shape;
	uint64_t out;

	MU_RETURN_IF_ERROR(check_batch_matmul(c, &p, &batch, &shape, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, kernel_in(c, 0)->dtype, &shape, &out, err));
	const struct view *views[] = {&batch.a, &batch.b};
	struct broadcast_args by;
	gpu_broadcast(&by, &batch.shape, views, 2);
	return matmul_to(c, &p, out, &by, err);
}

/* Product, bias and activation are three launches. */
static int fused_matmul_gpu(struct kernel_call *c, struct mu_err *err)
{
	static const char *const names[] = {
	    [UN_Relu] = "Relu", [UN_Sigmoid] = "Sigmoid", [UN_Tanh] = "Tanh"};
	const struct fused_matmul *f = c->state;
	const enum mu_dtype t = kernel_in(c, 0)->dtype;
	struct unary_args activation = {0};
	MU_AUTO_TENSOR product = {0};
	struct mu_shape product_shape, shape;
	struct product p;

	MU_RETURN_IF_ERROR(check_matmul(c, &p, &product_shape, err));
	MU_RETURN_IF_ERROR(check_fused_shape(c, f, &product_shape, &shape, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, t, &shape, &activation.out, err));
	MU_RETURN_IF_ERROR(
	    gpu_tensor_new(kernel_gpu(c), t, &product_shape, c->node->name, &product, err));
	MU_RETURN_IF_ERROR(matmul_to(c, &p, gpu_address(&product), NULL, err));
	MU_RETURN_IF_ERROR(
	    gpu_binary(kernel_gpu(c), "AddV2", &c->out[0].tensor, &product, kernel_in(c, 2), err));
	if (!f->activates)
		return 0;
	activation.in = activation.out;
	activation.n = shape.count;
	return gpu_run_type(kernel_gpu(c), names[f->activation], t, activation.n, &activation, err);
}

#define ROW(name, fn, prep, attr)                                                                  \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = prep}, .type_attr = attr, .types = GPU_FLT       \
	}
static const struct device_kernel rows[] = {
    ROW("MatMul", matmul_gpu, NULL, "T"),
    ROW("_FusedMatMul", fused_matmul_gpu, check_fused_prepare, "T"),
    ROW("BatchMatMul BatchMatMulV2", batch_matmul_gpu, NULL, "T"),
    ROW("BatchMatMulV3", batch_matmul_gpu, NULL, "Ta"),
};
KERNEL_TABLE(linalg_matmul_gpu, rows)
