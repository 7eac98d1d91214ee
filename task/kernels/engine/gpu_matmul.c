/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/engine/gpu_matmul.h"

enum { TILE = 64, THREADS = 256 }; /* as in engine/matmul.cu.h */

int gpu_matmul_init(struct gpu_matmul *m, struct gpu *g, enum mu_dtype t, struct mu_err *err)
{
	*m = (struct gpu_matmul){.gpu = g, .type = t};
	int rc = gpu_find(g, "matmul", t, &m->kernel, err);

	if (!rc)
		m->plan = gpu_product_plan_new();
	return rc;
}

void gpu_matmul_fini(struct gpu_matmul *m)
{
	gpu_plan_free(m->plan);
	m->plan = NULL;
}

static void set_strides(struct matmul_args *a, const struct product *p)
{
	a->m = p->m;
	a->n = p->n;
	a->k = p->k;
	a->a_row = p->trans_a ? 1 : p->k;
	a->a_column = p->trans_a ? p->m : 1;
	a->b_row = p->trans_b ? 1 : p->n;
	a->b_column = p->trans_b ? p->k : 1;
}

static int own_kernel(const struct gpu_matmul *m, struct matmul_args *a, struct mu_err *err)
{
	int64_t across = (a->n + TILE - 1) / TILE, down = (a->m + TILE - 1) / TILE, blocks;
	bool too_many = __builtin_mul_overflow(across, down, &blocks);

	for (int d = 0; d < a->rank; d++)
		too_many |= __builtin_mul_overflow(blocks, a->dim[d], &blocks);
	if (too_many || blocks > INT32_MAX)
		return mu_fail(err, MU_UNIMPLEMENTED, "a product of [%lld, %lld] is too large",
			       (long long)a->m, (long long)a->n);
	const struct gpu_grid grid = {(unsigned)blocks, THREADS};
	return blocks ? gpu_launch(m->gpu, m->kernel, grid, a, err) : 0;
}

/* True if the matrices of a batch have one stride; also their number. */
static bool at_one_distance(const struct matmul_args *a, struct gpu_product *p)
{
	int64_t next_a = 0, next_b = 0;

	p->batch = 0;
	for (int d = a->rank; d-- > 0;) {
		if (a->dim[d] == 1)
			continue;
		if (!p->batch) {
			p->batch = 1;
			next_a = p->a_stride = a->a_stride[d];
			next_b = p->b_stride = a->b_stride[d];
		}
		if (!a->dim[d] || a->a_stride[d] != next_a || a->b_stride[d] != next_b)
			return false;
		p->batch *= a->dim[d];
		next_a *= a->dim[d];
		next_b *= a->dim[d];
	}
	return true;
}

int gpu_matmul_run(const struct gpu_matmul *m, const struct product *p, struct matmul_args *a,
		   const char *holder, bool *activate, struct mu_err *err)
{
	struct gpu_product by = {.type = m->type,
				 .trans_a = p->trans_a,
				 .trans_b = p->trans_b,
				 .m = p->m,
				 .n = p->n,
				 .k = p->k,
				 .out = a->out,
				 .a = a->a,
				 .b = a->b,
				 .bias = a->bias};
	bool done = false;
	int rc =
	    at_one_distance(a, &by) ? gpu_product(m->gpu, m->plan, &by, holder, &done, err) : 0;

	set_strides(a, p);
	*activate = done && a->activation;
	return rc || done ? rc : own_kernel(m, a, err);
}
