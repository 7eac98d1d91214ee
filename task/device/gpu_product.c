/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_product.h.  cublasLt has columns first, so it is asked for the transposed product: what
 * is a matrix with rows of n to us is one with columns of n to it.  A plan keeps a way for each of
 * a few shapes, since the library takes longer to choose an algorithm than a small product runs;
 * the bias's address is put into the descriptor, which all runs share, when the product goes on a
 * stream.  The workspace is memory of the step: it goes back at once, and whoever gets it is
 * launched later. */
#include "task/device/gpu_product.h"

#include <string.h>

#include "task/device/gpu_internal.h"
#include "task/device/gpu_kept.h"

enum { MOST_WORKSPACE = 32 << 20, ALIGNED = 256 }; /* what the library takes for granted */

struct way { /* of one shape */
	struct gpu *gpu;
	const struct blas_api *api;
	uint64_t serial;       /* no other way ever had it */
	struct gpu_product of; /* its addresses count only as there or not */
	bool possible;
	void *op, *layouts[3]; /* of the first and the second operand, and of the result */
	struct blas_choice choice;
};

struct gpu_product_plan {
	pthread_mutex_t lock;
	struct gpu_kept kept;
	struct way ways[GPU_KEPT];
};

static const struct numbers {
	int stored, compute, scale;
} numbers[MU_DT_COUNT] = {
    [MU_FLOAT] = {BLAS_R_32F, BLAS_COMPUTE_32F, BLAS_R_32F},
    [MU_DOUBLE] = {BLAS_R_64F, BLAS_COMPUTE_64F, BLAS_R_64F},
    [MU_HALF] = {BLAS_R_16F, BLAS_COMPUTE_32F, BLAS_R_32F},
    [MU_BFLOAT16] = {BLAS_R_16BF, BLAS_COMPUTE_32F, BLAS_R_32F},
};

struct gpu_product_plan *gpu_product_plan_new(void)
{
	struct gpu_product_plan *p = MU_NEW(struct gpu_product_plan);

	pthread_mutex_init(&p->lock, NULL);
	return p;
}

/* What is held back, or about to be recorded, still has use for the descriptors. */
static void forget(struct way *p)
{
	if (p->op && gpu_works(p->gpu))
		gpu_end_segment(p->gpu, NULL);
	if (p->op)
		p->api->op_free(p->op);
	p->op = NULL;
	for (unsigned i = 0; i < MU_COUNT(p->layouts); i++) {
		if (p->layouts[i])
			p->api->layout_free(p->layouts[i]);
		p->layouts[i] = NULL;
	}
	p->possible = false;
}

void gpu_product_plan_free(struct gpu_product_plan *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < GPU_KEPT; i++)
		forget(&p->ways[i]);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static bool is_for(const struct way *way, const struct gpu_product *p)
{
	const struct gpu_product *of = &way->of;

	return way->api && of->type == p->type && of->trans_a == p->trans_a &&
	       of->trans_b == p->trans_b && of->m == p->m && of->n == p->n && of->k == p->k &&
	       !of->bias == !p->bias;
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
	return bad;
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

static void make_way(struct gpu *g, struct way *way, const struct gpu_product *p)
{
	static _Atomic uint64_t made;
	struct numbers how = numbers[p->type];

	forget(way);
	way->gpu = g;
	way->serial = atomic_fetch_add(&made, 1);
	if (p->type == MU_FLOAT && g->tf32)
		how.compute = BLAS_COMPUTE_32F_TF32;
	way->api = g->blas_api;
	way->of = *p;
	way->possible = !describe(way, how, p) && !choose(way, g->blas);
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
	m.serial = way->serial;
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

/* The way for this shape, made when there is none yet. */
static struct way *way_for(struct gpu *g, struct gpu_product_plan *plan,
			   const struct gpu_product *p)
{
	unsigned i = 0;

	while (i < GPU_KEPT && !is_for(&plan->ways[i], p))
		i++;
	if (i == GPU_KEPT) {
		i = gpu_kept_oldest(&plan->kept);
		make_way(g, &plan->ways[i], p);
	}
	gpu_kept_use(&plan->kept, i);
	return &plan->ways[i];
}

int gpu_product(struct gpu *g, struct gpu_product_plan *plan, const struct gpu_product *p,
		const char *holder, bool *done, struct mu_err *err)
{
	bool empty = !p->m || !p->n || !p->k;
	int rc;

	*done = false;
	if (!g->blas || empty || (p->out | p->a | p->b | p->bias) % ALIGNED)
		return 0;
	if ((rc = gpu_enter(g, err)))
		return rc;
	pthread_mutex_lock(&plan->lock);
	struct way *way = way_for(g, plan, p);
	if (way->possible)
		rc = run(g, way, p, holder, done, err);
	pthread_mutex_unlock(&plan->lock);
	return rc;
}
