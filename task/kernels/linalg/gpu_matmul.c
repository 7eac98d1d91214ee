/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/linalg/gpu_matmul.h"

#include "task/device/gpu_product.h"

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
		const struct gpu_product how = {.type = t,
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
		rc = gpu_product(g, &how, &done, err);
	}
	return rc || done ? rc : gpu_run_type(g, "matmul", t, args.count, &args, err);
}
