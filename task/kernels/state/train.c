/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer updates: selects the elements and divides them among threads. 16-bit floats are updated
 * as floats, a block at a time. */
#include "task/kernels/array/rows.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/state/optimizers.h"

/* Waking a thread takes as long as updating two grains of elements. */
enum { GRAIN = 64 * 1024, BLOCK = 256 };

/* A run of elements of the variable, its slots (NULL: none) and the gradient. */
struct run {
	void *at[VARIABLES_MAX];
	const void *grad;
	int64_t n;
};

/* ---- updates ---- */

static struct run run_at(const struct variables *vs, const struct mu_tensor *grad, int64_t var_at,
			 int64_t grad_at, int64_t n)
{
	size_t size = mu_dtype_size(grad->dtype);
	struct run r = {.grad = (const char *)grad->data + (size_t)grad_at * size, .n = n};

	for (unsigned i = 0; i < vs->n; i++)
		r.at[i] = (char *)vs->t[i]->data + (size_t)var_at * size;
	return r;
}

/* Updates 16-bit floats: converts them to float, updates them, and converts them back. */
static void update_narrow(enum mu_dtype type, enum optimizer_kind kind, unsigned slots,
			  const struct run *r, const double *k)
{
	float wide[VARIABLES_MAX][BLOCK], grad[BLOCK];
	size_t size = mu_dtype_size(type);

	for (int64_t at = 0, n; at < r->n; at += n) {
		struct run part = {.grad = grad};
		n = r->n - at < BLOCK ? r->n - at : BLOCK;
		part.n = n;
		convert(MU_FLOAT, grad, type, (const char *)r->grad + (size_t)at * size, n);
		for (unsigned i = 0; i < slots; i++) {
			part.at[i] = wide[i];
			convert(MU_FLOAT, wide[i], type, (char *)r->at[i] + (size_t)at * size, n);
		}
		loops->update[MU_FLOAT][kind](part.at, part.grad, part.n, k);
		for (unsigned i = 0; i < slots; i++)
			convert(type, (char *)r->at[i] + (size_t)at * size, MU_FLOAT, wide[i], n);
	}
}

static void update(enum mu_dtype type, enum optimizer_kind kind, unsigned slots,
		   const struct run *r, const double *k)
{
	if (mu_dtype_is_16_bit_float(type))
		update_narrow(type, kind, slots, r, k);
	else
		loops->update[type][kind](r->at, r->grad, r->n, k);
}

struct dense_job {
	const struct variables *vs;
	const struct mu_tensor *grad;
	enum optimizer_kind kind;
	const double *k;
};

static void dense_part(void *arg, int64_t from, int64_t to)
{
	const struct dense_job *j = arg;
	struct run r = run_at(j->vs, j->grad, from, from, to - from);

	update(j->grad->dtype, j->kind, j->vs->n, &r, j->k);
}

static int apply_dense(struct kernel_call *c, const struct optimizer_plan *p,
		       const struct variables *vs, const double *k, struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, (unsigned)p->grad);
	struct dense_job job = {vs, grad, p->a->kind, k};

	if (!mu_shape_eq(&vs->t[0]->shape, &grad->shape))
		return mu_invalid(err, "var and %s do not have the same shape%s %s",
				  c->node->def->inputs[p->grad].name,
				  mu_shape_str(&vs->t[0]->shape), mu_shape_str(&grad->shape));
	if (grad->shape.count <= GRAIN)
		dense_part(&job, 0, grad->shape.count);
	else
		kernel_parallel(c, grad->shape.count, GRAIN, dense_part, &job);
	return 0;
}

static int apply_rows(struct kernel_call *c, const struct optimizer_plan *p,
		      const struct variables *vs, const double *k, struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, (unsigned)p->grad);
	const struct mu_tensor *indices = kernel_in(c, (unsigned)p->indices);
	int64_t row;

	MU_RETURN_IF_ERROR(rows_check_updates(&vs->t[0]->shape, indices, &grad->shape, &row, err));
	for (int64_t i = 0; i < indices->shape.count; i++) {
		struct run r = run_at(vs, grad, mu_tensor_int(indices, i) * row, i * row, row);
		update(grad->dtype, p->a->kind, vs->n, &r, k);
	}
	return 0;
}

static int train_apply(struct kernel_call *c, struct mu_err *err)
{
	const struct optimizer_plan *p = c->state;
	double k[OPTIMIZER_SCALARS] = {0};
	VARIABLES_AUTO vs = {0};

	MU_RETURN_IF_ERROR(variables_lock(c, 1 + p->a->slots, &vs, err));
	MU_RETURN_IF_ERROR(optimizer_check(&vs, kernel_in(c, (unsigned)p->grad), err));
	MU_RETURN_IF_ERROR(optimizer_scalars(c, p, vs.t[0]->dtype, k, err));
	MU_RETURN_IF_ERROR(p->indices < 0 ? apply_dense(c, p, &vs, k, err)
					  : apply_rows(c, p, &vs, k, err));
	variable_forward(c);
	return 0;
}

static const struct kernel rows[] = {
    {"ApplyGradientDescent ApplyAdagrad ApplyAdagradV2 ApplyMomentum ApplyAdam ApplyRMSProp "
     "ApplyCenteredRMSProp ApplyAdadelta ApplyFtrl ApplyFtrlV2 ApplyProximalGradientDescent "
     "ApplyProximalAdagrad ApplyAdagradDA ApplyAdaMax ApplyAddSign ApplyPowerSign "
     "ResourceApplyGradientDescent ResourceApplyAdagrad ResourceApplyAdagradV2 "
     "ResourceApplyMomentum ResourceApplyAdam ResourceApplyRMSProp ResourceApplyCenteredRMSProp "
     "ResourceApplyAdadelta ResourceApplyFtrl ResourceApplyFtrlV2 "
     "ResourceApplyProximalGradientDescent ResourceApplyProximalAdagrad ResourceApplyAdagradDA "
     "ResourceApplyAdaMax ResourceApplyAddSign ResourceApplyPowerSign ResourceApplyAdamWithAmsgrad "
     "ResourceApplyKerasMomentum SparseApplyAdagrad SparseApplyAdagradV2 SparseApplyMomentum "
     "SparseApplyRMSProp SparseApplyCenteredRMSProp SparseApplyAdadelta SparseApplyFtrl "
     "SparseApplyFtrlV2 SparseApplyProximalGradientDescent SparseApplyProximalAdagrad "
     "SparseApplyAdagradDA "
     "ResourceSparseApplyAdagrad ResourceSparseApplyAdagradV2 ResourceSparseApplyMomentum "
     "ResourceSparseApplyRMSProp ResourceSparseApplyCenteredRMSProp ResourceSparseApplyAdadelta "
     "ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2 ResourceSparseApplyProximalGradientDescent "
     "ResourceSparseApplyProximalAdagrad ResourceSparseApplyAdagradDA "
     "ResourceSparseApplyKerasMomentum",
     .run = train_apply, .prepare = optimizer_prepare},
};
KERNEL_TABLE(state_train, rows)
