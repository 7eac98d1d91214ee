/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_product.h.  cublasLt has columns first, so it is asked for the transposed product: what
 * is a matrix with rows of n to us is one with columns of n to it.  The bias's address is put into
 * the descriptor, which all runs share, when the product goes on a stream.  The workspace is memory
 * of the step: it goes back at once, and whoever gets it is launched later. */
#include "task/device/gpu_product.h"

#include <string.h>

#include "task/device/gpu_internal.h"

enum { MOST_WORKSPACE = 32 << 20, ALIGNED = 256 }; /* what the library takes for granted */

struct way {
	struct gpu_way common;
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

static void forget(struct gpu_way *way)
{
	struct way *w = (struct way *)way;

	if (w->op)
		w->api->op_free(w->op);
	for (unsigned i = 0; i < MU_COUNT(w->layouts); i++)
		if (w->layouts[i])
			w->api->layout_free(w->layouts[i]);
}

static bool is_for(const struct gpu_way *way, const void *product)
{
	const struct gpu_product *of = &((const struct way *)way)->of, *p = product;

	return of->type == p->type && of->trans_a == p->trans_a && of->trans_b == p->trans_b &&
	       of->m == p->m && of->n == p->n && of->k == p->k && !of->bias == !p->bias &&
	       of->batch == p->batch && of->a_stride == p->a_stride && of->b_stride == p->b_stride;
}

/* The library's first operand is our second. */
static int describe_batch(struct way *way, const struct gpu_product *p)
{
	const int64_t strides[] = {p->b_stride, p->a_stride, p->m * p->n};
	const int32_t count = (int32_t)p->batch;
	int bad = 0;

	for (unsigned i = 0; i < MU_COUNT(strides) && !bad; i++) {
		bad =
		    way->api->layout_set(way->layouts[i], BLAS_LAYOUT_BATCH, &count, sizeof count);
		if (!bad)
			bad = way->api->layout_set(way->layouts[i], BLAS_LAYOUT_STRIDE, &strides[i],
						   sizeof strides[i]);
	}
	return bad;
}

static int describe(struct way *way, struct numbers how, const struct gpu_product *p)
{
	const struct blas_api *api = way->api;
	const int first = p->trans_b, second = p->trans_a, with_bias = BLAS_EPILOGUE_BIAS;
	int64_t m = p->m, n = p->n, k = p->k;
	int bad = api->op_new(&way->op, how.compute, how.scale);

	if (!bad)
		bad = api->op_set(way->op, BLAS_OP_TRANS_A, &first, sizeof first);
	if (!bad)
		bad = api->op_set(way->op, BLAS_OP_TRANS_B, &second, sizeof second);
	if (!bad && p->bias)
		bad = api->op_set(way->op, BLAS_OP_EPILOGUE, &with_bias, sizeof with_bias);
	if (!bad && p->bias)
		bad = api->op_set(way->op, BLAS_OP_BIAS, &p->bias, sizeof p->bias);
	if (!bad)
		bad = p->trans_b ? api->layout_new(&way->layouts[0], how.stored, (uint64_t)k,
						   (uint64_t)n, k)
				 : api->layout_new(&way->layouts[0], how.stored, (uint64_t)n,
						   (uint64_t)k, n);
	if (!bad)
		bad = p->trans_a ? api->layout_new(&way->layouts[1], how.stored, (uint64_t)m,
						   (uint64_t)k, m)
				 : api->layout_new(&way->layouts[1], how.stored, (uint64_t)k,
						   (uint64_t)m, k);
	if (!bad)
		bad = api->layout_new(&way->layouts[2], how.stored, (uint64_t)n, (uint64_t)m, n);
	return bad || !p->batch ? bad : describe_batch(way, p);
}

static int choose(struct way *way, void *library)
{
	const struct blas_api *api = way->api;
	const size_t most = MOST_WORKSPACE;
	void *wish = NULL;
	int found = 0, bad = api->wish_new(&wish);

	if (bad)
		return bad;
	bad = api->wish_set(wish, BLAS_WISH_WORKSPACE, &most, sizeof most);
	if (!bad)
		bad = api->choose(library, way->op, way->layouts[0], way->layouts[1],
				  way->layouts[2], way->layouts[2], wish, 1, &way->choice, &found);
	api->wish_free(wish);
	return bad || found < 1 ? -1 : way->choice.state;
}

static bool make(struct gpu_way *way, const void *product)
{
	struct way *w = (struct way *)way;
	const struct gpu_product *p = product;
	struct numbers how = numbers[p->type];
	struct gpu *g = way->gpu;

	if (p->type == MU_FLOAT && g->tf32)
		how.compute = BLAS_COMPUTE_32F_TF32;
	w->api = g->blas_api;
	w->of = *p;
	return !describe(w, how, p) && !choose(w, g->blas);
}

struct gpu_plan *gpu_product_plan_new(void)
{
	static const struct gpu_plan_kind kind = {sizeof(struct way), is_for, make, forget};

	return gpu_plan_new(&kind);
}

struct multiplying {
	uint64_t serial; /* of the way, whose descriptors these are */
	const struct blas_api *api;
	void *op, *layouts[3];
	struct blas_choice choice;
	cuda_ptr out, a, b, bias, work;
	uint64_t wide;
};

static int put_product(struct gpu *g, const struct gpu_deed *d, const void *args, void *stream)
{
	const float one = 1, none = 0;
	const double one_wide = 1, none_wide = 0;
	const struct multiplying *m = args;
	int bad = m->bias ? m->api->op_set(m->op, BLAS_OP_BIAS, &m->bias, sizeof m->bias) : 0;

	return bad ? bad
		   : m->api->multiply(g->blas, m->op, m->wide ? (const void *)&one_wide : &one,
				      m->b, m->layouts[0], m->a, m->layouts[1],
				      m->wide ? (const void *)&none_wide : &none, m->out,
				      m->layouts[2], m->out, m->layouts[2], &m->choice, m->work,
				      m->choice.workspace, stream);
}

static int run(struct gpu *g, struct way *way, const struct gpu_product *p, const char *holder,
	       bool *done, struct mu_err *err)
{
	const struct gpu_deed deed = {.put = put_product, .size = sizeof(struct multiplying)};
	struct mu_shape bytes = mu_shape_vec((int64_t)way->choice.workspace);
	MU_AUTO_TENSOR work = {0};
	struct multiplying m;
	int refused, rc = gpu_tensor_new(g, MU_UINT8, &bytes, holder, &work, err);

	if (rc)
		return rc;
	memset(&m, 0, sizeof m); /* padding, too: it is compared */
	m.serial = way->common.serial;
	m.api = way->api;
	m.op = way->op;
	memcpy(m.layouts, way->layouts, sizeof m.layouts);
	memcpy(&m.choice, &way->choice, sizeof m.choice);
	m.out = p->out;
	m.a = p->a;
	m.b = p->b;
	m.bias = p->bias;
	m.work = gpu_address(&work);
	m.wide = p->type == MU_DOUBLE;
	rc = gpu_put_library(g, &deed, &m, &refused, err);
	*done = !rc && !refused;
	return rc;
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
	struct way *way = (struct way *)gpu_plan_way(plan, g, p);
	if (way->common.possible)
		rc = run(g, way, p, holder, done, err);
	pthread_mutex_unlock(&plan->lock);
	return rc;
}
