/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS is column-major, so it sees a row-major matrix as its transpose.  Therefore it computes
 * the transposed product, with the operands exchanged. */
#include "task/device/gpu_product.h"

#include "task/device/gpu_internal.h"

static const struct {
	int storage, compute;
} types[MU_DT_COUNT] = {
    [MU_FLOAT] = {BLAS_R_32F, BLAS_COMPUTE_32F},
    [MU_DOUBLE] = {BLAS_R_64F, BLAS_COMPUTE_64F},
    [MU_HALF] = {BLAS_R_16F, BLAS_COMPUTE_32F},
    [MU_BFLOAT16] = {BLAS_R_16BF, BLAS_COMPUTE_32F},
};

static int multiply(struct gpu *g, const struct gpu_product *p)
{
	static const float single[] = {0, 1};
	static const double wide[] = {0, 1};
	const bool is_wide = p->type == MU_DOUBLE, tf32 = g->tf32 && p->type == MU_FLOAT;
	const void *one = is_wide ? (const void *)&wide[1] : &single[1];
	const void *zero = is_wide ? (const void *)&wide[0] : &single[0];
	const int64_t m = p->m, n = p->n, k = p->k;
	const int storage = types[p->type].storage;

	return g->blas_api->multiply(
	    g->blas, p->trans_b, p->trans_a, n, m, k, one, p->b, storage, p->trans_b ? k : n,
	    p->b_stride, p->a, storage, p->trans_a ? m : k, p->a_stride, zero, p->out, storage, n,
	    m * n, p->batch, tf32 ? BLAS_COMPUTE_32F_TF32 : types[p->type].compute,
	    BLAS_GEMM_DEFAULT);
}

int gpu_product(struct gpu *g, const struct gpu_product *p, bool *is_launched, struct mu_err *err)
{
	int rc;

	*is_launched = false;
	if (!g->blas || !p->m || !p->n || !p->k || !p->batch)
		return 0;
	if ((rc = gpu_enter(g, err)))
		return rc;
	pthread_mutex_lock(&g->library_lock);
	*is_launched = !multiply(g, p);
	pthread_mutex_unlock(&g->library_lock);
	return 0;
}
