/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and products on a GPU. */
#include "task/kernels/math/scan_gpu.h"

#include <stdio.h>

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_rows.h"
#include "task/kernels/math/checks.h"

/* A thread a line where lines are short, or so many that they keep the GPU busy; else a block for
 * each line, or, of few long ones, for each piece: what the pieces come to is found first, then
 * what comes before each, then all.  Which of these depends on the shape alone, and so do the bits.
 */
enum { LONG = 256, PIECE = 1024, MANY_LINES = 16 * 1024, ENOUGH_BLOCKS = 1024 };

static int scan_gpu_find(struct gpu *g, const char *op, const char *how, enum mu_dtype t,
			 void **out, struct mu_err *err)
{
	char name[32];

	snprintf(name, sizeof name, "%s%s", op, how);
	return gpu_find(g, name, t, out, err);
}

static int scan_gpu_launch(struct gpu *g, void *kernel, const struct scan_block_args *a,
			   struct mu_err *err)
{
	return gpu_launch(g, kernel, gpu_grid_of_rows(a->of.outer * a->of.inner * a->pieces), a,
			  err);
}

static int in_pieces(struct kernel_call *c, const char *op, enum mu_dtype t, void *kernel,
		     struct scan_block_args *a, struct mu_err *err)
{
	const enum mu_dtype sum = t == MU_HALF || t == MU_BFLOAT16 ? MU_FLOAT : t;
	const int64_t lines = a->of.outer * a->of.inner;
	struct gpu *g = gpu_here(c);
	MU_AUTO_TENSOR sums = {0};
	void *over;
	int rc;

	if ((rc = scan_gpu_find(g, op, "_block", sum, &over, err)) ||
	    (rc = gpu_scratch(c, sum, lines * a->pieces, &sums, err)))
		return rc;
	a->sums = gpu_address(&sums);
	a->totals = 1;
	struct scan_block_args before = {
	    .of = {a->sums, a->sums, lines, a->pieces, 1, .exclusive = 1},
	    .pieces = 1,
	    .piece = a->pieces};
	if ((rc = scan_gpu_launch(g, kernel, a, err)) ||
	    (rc = scan_gpu_launch(g, over, &before, err)))
		return rc;
	a->totals = 0;
	a->carried = 1;
	return scan_gpu_launch(g, kernel, a, err);
}

int gpu_scan(struct kernel_call *c, const char *op, enum mu_dtype t, const struct scan_args *a,
	     struct mu_err *err)
{
	const int64_t lines = a->outer * a->inner;
	const bool short_ones = a->n < LONG || lines >= MANY_LINES;
	struct scan_block_args by = {.of = *a, .pieces = 1, .piece = a->n};
	struct gpu *g = gpu_here(c);
	void *kernel;
	int rc = scan_gpu_find(g, op, short_ones ? "" : "_block", t, &kernel, err);

	if (rc || !lines || !a->n)
		return rc;
	if (short_ones)
		return gpu_run(g, kernel, lines, a, err);
	if (a->n <= PIECE || lines >= ENOUGH_BLOCKS)
		return scan_gpu_launch(g, kernel, &by, err);
	by.piece = PIECE;
	by.pieces = (a->n + PIECE - 1) / PIECE;
	return in_pieces(c, op, t, kernel, &by, err);
}

static int scan_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	struct scan_plan p;
	int rc = check_scan(c, &p, err);

	if (rc || (rc = gpu_out(c, 0, in->dtype, &in->shape, &out, err)) || !in->shape.count)
		return rc;
	struct scan_args a = {gpu_address(out), gpu_address(in), p.outer,  p.n,
			      p.inner,          p.exclusive,     p.reverse};
	return gpu_scan(c, c->node->op, in->dtype, &a, err);
}

static const struct gpu_kernel rows[] = {
    {.k = {"Cumsum", .run = scan_gpu}, .type_attr = "T", .types = GPU_NUM, .host_in = 1 << 1},
    {.k = {"Cumprod", .run = scan_gpu}, .type_attr = "T", .types = GPU_NUM, .host_in = 1 << 1},
};
GPU_KERNEL_TABLE(math_scan_gpu, rows)
