/* SPDX-License-Identifier: Apache-2.0 */
/* TopK and InTopK on a GPU. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/gpu_rows.h"
#include "task/kernels/math/checks.h"

static int top_k_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			 struct mu_err *err)
{
	return gpu_one_prepare(n, rt, "top_k", "T", state, err);
}

/* Few are found one after another; many are selected and sorted, of few long rows by pieces first
 * and then of what these have. */
enum { FEW = 8, MANY_ROWS = 512, PIECE = 4096 };

static int select_once(struct kernel_call *c, void *kernel, struct top_k_args *a,
		       struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	MU_AUTO_TENSOR order = {0};
	int rc = gpu_scratch(c, MU_INT32, a->rows * a->pieces * a->k, &order, err);

	a->order = gpu_address(&order);
	return rc ? rc : gpu_launch(o->gpu, kernel, gpu_grid_of_rows(a->rows * a->pieces), a, err);
}

static int select_many(struct kernel_call *c, const struct rank_args *all, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	struct top_k_args a = {.out = all->out,
			       .at = all->at,
			       .in = all->in,
			       .rows = all->rows,
			       .n = all->n,
			       .k = all->k,
			       .pieces = 1};
	MU_AUTO_TENSOR values = {0}, ids = {0};
	void *kernel;
	int rc = gpu_find(o->gpu, "top_k_select", o->type, &kernel, err);

	if (rc)
		return rc;
	if (a.rows >= MANY_ROWS || a.n < 4 * PIECE || 4 * a.k > PIECE)
		return select_once(c, kernel, &a, err);
	struct top_k_args some = a;
	some.pieces = a.n / PIECE;
	const int64_t kept = a.rows * some.pieces * a.k;
	if ((rc = gpu_scratch(c, o->type, kept, &values, err)) ||
	    (rc = gpu_scratch(c, MU_INT32, kept, &ids, err)))
		return rc;
	some.out = a.in = gpu_address(&values);
	some.at = a.ids = gpu_address(&ids);
	a.n = some.pieces * a.k;
	rc = select_once(c, kernel, &some, err);
	return rc ? rc : select_once(c, kernel, &a, err);
}

static int top_k_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	const struct mu_tensor *in = kernel_in(c, 0);
	struct rank_args a = {.in = gpu_address(in)};
	struct mu_tensor *values, *at;
	struct mu_shape shape;
	int rc = check_top_k(c, &a.k, &shape, err);

	if (rc)
		return rc;
	a.n = in->shape.dim[in->shape.rank - 1];
	if (a.n > INT32_MAX)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s of %lld columns is not here", c->node->op,
			       (long long)a.n);
	if ((rc = gpu_out(c, 0, o->type, &shape, &values, err)) ||
	    (rc = gpu_out(c, 1, MU_INT32, &shape, &at, err)) || !shape.count)
		return rc;
	a.out = gpu_address(values);
	a.at = gpu_address(at);
	a.rows = in->shape.count / a.n;
	return a.k > FEW ? select_many(c, &a, err)
			 : gpu_launch(o->gpu, o->kernel, gpu_grid_of_rows(a.rows), &a, err);
}

static int in_top_k_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			    struct mu_err *err)
{
	struct gpu_one o = {gpu_of_node(n, rt), NULL, MU_FLOAT};
	int rc = gpu_kernel(o.gpu, "in_top_k", &o.kernel, err);

	if (!rc)
		*state = memcpy(MU_NEW(struct gpu_one), &o, sizeof o);
	return rc;
}

static int in_top_k_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	const struct mu_tensor *in = kernel_in(c, 0), *targets = kernel_in(c, 1);
	struct rank_args a = {.in = gpu_address(in),
			      .targets = gpu_address(targets),
			      .wide = targets->dtype == MU_INT64};
	struct mu_tensor *out;
	int rc = check_in_top_k(c, &a.k, err);

	if (rc || (rc = gpu_out(c, 0, MU_BOOL, &targets->shape, &out, err)) ||
	    !targets->shape.count)
		return rc;
	a.out = gpu_address(out);
	a.rows = in->shape.dim[0];
	a.n = in->shape.dim[1];
	return gpu_launch(o->gpu, o->kernel, gpu_grid_of_rows(a.rows), &a, err);
}

/* Where they were is int32, and made on the GPU all the same. */
#define TOP_K(name)                                                                                \
	{                                                                                          \
		.k = {name, .run = top_k_gpu, .prepare = top_k_prepare}, .type_attr = "T",         \
		.types = GPU_NUM, .host_in = 1 << 1, .device_out = 1 << 1                          \
	}
#define IN_TOP_K(name)                                                                             \
	{                                                                                          \
		.k = {name, .run = in_top_k_gpu, .prepare = in_top_k_prepare}, .host_in = 1 << 2,  \
		.device_in = 1 << 1                                                                \
	}
static const struct gpu_kernel rows[] = {
    TOP_K("TopK"),
    TOP_K("TopKV2"),
    IN_TOP_K("InTopK"),
    IN_TOP_K("InTopKV2"),
};
GPU_KERNEL_TABLE(math_top_k_gpu, rows)
