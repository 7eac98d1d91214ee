/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_product.h.  cublasLt has columns first, so it is asked for the transposed product: what
 * is a matrix with rows of n to us is one with columns of n to it.  The plan's lock is held while
 * the bias's address is in the descriptor.  The workspace is freed at once: its next user is
 * launched later. */
#include "task/device/gpu_product.h"

#include <string.h>

#include "task/device/gpu_internal.h"

enum { MOST_WORKSPACE = 32 << 20, ALIGNED = 256 }; /* what the library takes for granted */

struct product_plan {
	struct gpu_plan common;
	const struct blas_api *api;
	struct gpu_product of; /* its addresses count only as there or not */
	void *op, *layouts[3]; /* of the first and the second operand, and of the result */
	struct blas_choice choice;
};

static const struct numbers {
	int stored, compute, scale;
} numbers[MU_DT_COUNT] = {
    [MU_FLOAT] = {BLAS_R_32F, BLAS_COMPUTE_32F, BLAS_R_32F},
    [MU_DOUBLE] = {BLAS_R_64F, BLAS_COMPUTE_64F, BLAS_R_64F},
    [MU_HALF] = {BLAS_R_16F, BLAS_COMPUTE_32F, BLAS_R_32F},
    [MU_BFLOAT16] = {BLAS_R_16BF, BLAS_COMPUTE_32F, BLAS_R_32F},
};

static void clear(struct gpu_plan *plan)
{
	struct product_plan *w = (struct product_plan *)plan;

	if (w->op)
		w->api->op_free(w->op);
	for (unsigned i = 0; i < MU_COUNT(w->layouts); i++)
		if (w->layouts[i])
			w->api->layout_free(w->layouts[i]);
}

static bool is_for(const struct gpu_plan *plan, const void *product)
{
	const struct gpu_product *of = &((const struct product_plan *)plan)->of, *p = product;

	return of->type == p->type && of->trans_a == p->trans_a && of->trans_b == p->trans_b &&
	       of->m == p->m && of->n == p->n && of->k == p->k && !of->bias == !p->bias &&
	       of->batch == p->batch && of->a_stride == p->a_stride && of->b_stride == p->b_stride;
}

/* The library's first operand is our second. */
static int describe_batch(struct product_plan *plan, const struct gpu_product *p)
{
	const int64_t strides[] = {p->b_stride, p->a_stride, p->m * p->n};
	const int32_t count = (int32_t)p->batch;
	int bad = 0;

	for (unsigned i = 0; i < MU_COUNT(strides) && !bad; i++) {
		bad = plan->api->layout_set(plan->layouts[i], BLAS_LAYOUT_BATCH, &count,
					    sizeof count);
		if (!bad)
			bad = plan->api->layout_set(plan->layouts[i], BLAS_LAYOUT_STRIDE,
						    &strides[i], sizeof strides[i]);
	}
	return bad;
}

static int describe(struct product_plan *plan, struct numbers how, const struct gpu_product *p)
{
	const struct blas_api *api = plan->api;
	const int first = p->trans_b, second = p->trans_a, with_bias = BLAS_EPILOGUE_BIAS;
	int64_t m = p->m, n = p->n, k = p->k;
	int bad = api->op_new(&plan->op, how.compute, how.scale);

	if (!bad)
		bad = api->op_set(plan->op, BLAS_OP_TRANS_A, &first, sizeof first);
	if (!bad)
		bad = api->op_set(plan->op, BLAS_OP_TRANS_B, &second, sizeof second);
	if (!bad && p->bias)
		bad = api->op_set(plan->op, BLAS_OP_EPILOGUE, &with_bias, sizeof with_bias);
	if (!bad && p->bias)
		bad = api->op_set(plan->op, BLAS_OP_BIAS, &p->bias, sizeof p->bias);
	if (!bad)
		bad = p->trans_b ? api->layout_new(&plan->layouts[0], how.stored, (uint64_t)k,
						   (uint64_t)n, k)
				 : api->layout_new(&plan->layouts[0], how.stored, (uint64_t)n,
						   (uint64_t)k, n);
	if (!bad)
		bad = p->trans_a ? api->layout_new(&plan->layouts[1], how.stored, (uint64_t)m,
						   (uint64_t)k, m)
				 : api->layout_new(&plan->layouts[1], how.stored, (uint64_t)k,
						   (uint64_t)m, k);
	if (!bad)
		bad = api->layout_new(&plan->layouts[2], how.stored, (uint64_t)n, (uint64_t)m, n);
	return bad || !p->batch ? bad : describe_batch(plan, p);
}

static int choose(struct product_plan *plan, void *library)
{
	const struct blas_api *api = plan->api;
	const size_t most = MOST_WORKSPACE;
	void *wish = NULL;
	int found = 0, bad = api->wish_new(&wish);

	if (bad)
		return bad;
	bad = api->wish_set(wish, BLAS_WISH_WORKSPACE, &most, sizeof most);
	if (!bad)
		bad =
		    api->choose(library, plan->op, plan->layouts[0], plan->layouts[1],
				plan->layouts[2], plan->layouts[2], wish, 1, &plan->choice, &found);
	api->wish_free(wish);
	return bad || found < 1 ? -1 : plan->choice.state;
}

static bool make(struct gpu_plan *plan, const void *product)
{
	struct product_plan *w = (struct product_plan *)plan;
	const struct gpu_product *p = product;
	struct numbers how = numbers[p->type];
	struct gpu *g = plan->gpu;

	if (p->type == MU_FLOAT && g->tf32)
		how.compute = BLAS_COMPUTE_32F_TF32;
	w->api = g->blas_api;
	w->of = *p;
	return !describe(w, how, p) && !choose(w, g->blas);
}

struct gpu_plan *gpu_product_plan_new(void)
{
	static const struct gpu_plan_kind kind = {sizeof(struct product_plan), is_for, make, clear};

	return gpu_plan_new(&kind);
}

static int run(struct gpu *g, const struct product_plan *plan, const struct gpu_product *p,
	       const char *holder, bool *done, struct mu_err *err)
{
	static const float single[] = {0, 1};
	static const double wide[] = {0, 1};
	const bool is_wide = p->type == MU_DOUBLE;
	const void *one = is_wide ? (const void *)&wide[1] : &single[1];
	const void *zero = is_wide ? (const void *)&wide[0] : &single[0];
	const struct blas_api *api = plan->api;
	struct mu_shape bytes = mu_shape_vec((int64_t)plan->choice.workspace);
	MU_AUTO_TENSOR work = {0};
	int bad = 0, rc = gpu_tensor_new(g, MU_UINT8, &bytes, holder, &work, err);

	if (rc)
		return rc;
	if (p->bias)
		bad = api->op_set(plan->op, BLAS_OP_BIAS, &p->bias, sizeof p->bias);
	if (!bad)
		bad = api->multiply(g->blas, plan->op, one, p->b, plan->layouts[0], p->a,
				    plan->layouts[1], zero, p->out, plan->layouts[2], p->out,
				    plan->layouts[2], &plan->choice, gpu_address(&work),
				    plan->choice.workspace, g->compute.stream);
	gpu_count_launch(g);
	*done = !bad;
	return 0;
}

int gpu_product(struct gpu *g, struct gpu_plan *plan, const struct gpu_product *p,
		const char *holder, bool *done, struct mu_err *err)
{
	bool empty = !p->m || !p->n || !p->k || p->batch > INT32_MAX;
	int rc;

	*done = false;
	if (!g->blas || empty || (p->out | p->a | p->b | p->bias) % ALIGNED)
		return 0;
	if ((rc = gpu_enter(g, err)))
		return rc;
	pthread_mutex_lock(&plan->lock);
	gpu_plan_set(plan, g, p);
	if (plan->possible)
		rc = run(g, (struct product_plan *)plan, p, holder, done, err);
	pthread_mutex_unlock(&plan->lock);
	return rc;
}
