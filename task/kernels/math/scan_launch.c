/* SPDX-License-Identifier: Apache-2.0 */
/* A thread a line where lines are short, or so many that they keep the GPU busy; else a block for
 * each line, or, of few long ones, for each piece: what the pieces come to is found first, then
 * what comes before each, then all.  Which of these depends on the shape alone, and so do the bits.
 */
#include "task/kernels/math/scan_launch.h"

#include <stdio.h>

#include "task/kernels/engine/gpu_rows.h"

enum { LONG = 256, PIECE = 1024, MANY_LINES = 16 * 1024, ENOUGH_BLOCKS = 1024 };

static int find(struct gpu *g, const char *op, const char *how, enum mu_dtype t, void **out,
		struct mu_err *err)
{
	char name[32];

	snprintf(name, sizeof name, "%s%s", op, how);
	return gpu_find(g, name, t, out, err);
}

static int launch(struct gpu *g, void *kernel, const struct scan_block_args *a, struct mu_err *err)
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

	if ((rc = find(g, op, "_block", sum, &over, err)) ||
	    (rc = gpu_scratch(c, sum, lines * a->pieces, &sums, err)))
		return rc;
	a->sums = gpu_address(&sums);
	a->totals = 1;
	struct scan_block_args before = {
	    .of = {a->sums, a->sums, lines, a->pieces, 1, .exclusive = 1},
	    .pieces = 1,
	    .piece = a->pieces};
	if ((rc = launch(g, kernel, a, err)) || (rc = launch(g, over, &before, err)))
		return rc;
	a->totals = 0;
	a->carried = 1;
	return launch(g, kernel, a, err);
}

int gpu_scan(struct kernel_call *c, const char *op, enum mu_dtype t, const struct scan_args *a,
	     struct mu_err *err)
{
	const int64_t lines = a->outer * a->inner;
	const bool short_ones = a->n < LONG || lines >= MANY_LINES;
	struct scan_block_args by = {.of = *a, .pieces = 1, .piece = a->n};
	struct gpu *g = gpu_here(c);
	void *kernel;
	int rc = find(g, op, short_ones ? "" : "_block", t, &kernel, err);

	if (rc || !lines || !a->n)
		return rc;
	if (short_ones)
		return gpu_run(g, kernel, lines, a, err);
	if (a->n <= PIECE || lines >= ENOUGH_BLOCKS)
		return launch(g, kernel, &by, err);
	by.piece = PIECE;
	by.pieces = (a->n + PIECE - 1) / PIECE;
	return in_pieces(c, op, t, kernel, &by, err);
}
