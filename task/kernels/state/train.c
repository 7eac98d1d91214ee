/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer updates: the loops of each algorithm, and where they run.  16-bit floats are updated as
 * floats, a block at a time. */
#include "task/kernels/array/rows.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/state/optimizers.h"

/* Fewer elements than two grains take no longer than waking a thread does. */
enum { GRAIN = 64 * 1024, BLOCK = 256 };

/* Where a run of elements lies in the variable, its slots and the gradient. */
struct run {
	void *at[VARIABLES_MAX]; /* variable, slots */
	const void *grad;
	int64_t n;
};

typedef void apply_fn(const struct update_loops *l, const struct run *r, const double *k);

static void a_sgd(const struct update_loops *l, const struct run *r, const double *k)
{
	l->sgd(r->at[0], r->grad, r->n, k);
}

static void a_adagrad(const struct update_loops *l, const struct run *r, const double *k)
{
	l->adagrad(r->at[0], r->at[1], r->grad, r->n, k);
}

static void a_momentum(const struct update_loops *l, const struct run *r, const double *k)
{
	l->momentum(r->at[0], r->at[1], r->grad, r->n, k);
}

static void a_adam(const struct update_loops *l, const struct run *r, const double *k)
{
	l->adam(r->at[0], r->at[1], r->at[2], r->grad, r->n, k);
}

static void a_rmsprop(const struct update_loops *l, const struct run *r, const double *k)
{
	l->rmsprop(r->at[0], NULL, r->at[1], r->at[2], r->grad, r->n, k);
}

static void a_centered(const struct update_loops *l, const struct run *r, const double *k)
{
	l->rmsprop(r->at[0], r->at[1], r->at[2], r->at[3], r->grad, r->n, k);
}

static void a_adadelta(const struct update_loops *l, const struct run *r, const double *k)
{
	l->adadelta(r->at[0], r->at[1], r->at[2], r->grad, r->n, k);
}

static void a_ftrl(const struct update_loops *l, const struct run *r, const double *k)
{
	l->ftrl(r->at[0], r->at[1], r->at[2], r->grad, r->n, k);
}

static void a_prox(const struct update_loops *l, const struct run *r, const double *k)
{
	l->prox(r->at[0], NULL, r->grad, r->n, k);
}

static void a_prox_adagrad(const struct update_loops *l, const struct run *r, const double *k)
{
	l->prox(r->at[0], r->at[1], r->grad, r->n, k);
}

static void a_adagrad_da(const struct update_loops *l, const struct run *r, const double *k)
{
	l->adagrad_da(r->at[0], r->at[1], r->at[2], r->grad, r->n, k);
}

static void a_adamax(const struct update_loops *l, const struct run *r, const double *k)
{
	l->adamax(r->at[0], r->at[1], r->at[2], r->grad, r->n, k);
}

static void a_amsgrad(const struct update_loops *l, const struct run *r, const double *k)
{
	l->amsgrad(r->at[0], r->at[1], r->at[2], r->at[3], r->grad, r->n, k);
}

static void a_signs(const struct update_loops *l, const struct run *r, const double *k)
{
	l->signs(r->at[0], r->at[1], r->grad, r->n, k);
}

static apply_fn *const apply_of[OPTIMIZER_COUNT] = {
    [OPTIMIZER_SGD] = a_sgd,
    [OPTIMIZER_ADAGRAD] = a_adagrad,
    [OPTIMIZER_MOMENTUM] = a_momentum,
    [OPTIMIZER_ADAM] = a_adam,
    [OPTIMIZER_RMSPROP] = a_rmsprop,
    [OPTIMIZER_CENTERED] = a_centered,
    [OPTIMIZER_ADADELTA] = a_adadelta,
    [OPTIMIZER_FTRL] = a_ftrl,
    [OPTIMIZER_PROX] = a_prox,
    [OPTIMIZER_PROX_ADAGRAD] = a_prox_adagrad,
    [OPTIMIZER_ADAGRAD_DA] = a_adagrad_da,
    [OPTIMIZER_ADAMAX] = a_adamax,
    [OPTIMIZER_AMSGRAD] = a_amsgrad,
    [OPTIMIZER_SIGNS] = a_signs,
};

/* ---- the engine ---- */

static struct run run_at(const struct variables *vs, const struct mu_tensor *grad, int64_t var_at,
			 int64_t grad_at, int64_t n)
{
	size_t size = mu_dtype_size(grad->dtype);
	struct run r = {.grad = (const char *)grad->data + (size_t)grad_at * size, .n = n};

	for (unsigned i = 0; i < vs->n; i++)
		r.at[i] = (char *)vs->t[i]->data + (size_t)var_at * size;
	return r;
}

/* The same in floats: widened, updated, narrowed. */
static void update_narrow(enum mu_dtype type, apply_fn *f, unsigned slots, const struct run *r,
			  const double *k)
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
		f(&loops->update[MU_FLOAT], &part, k);
		for (unsigned i = 0; i < slots; i++)
			convert(type, (char *)r->at[i] + (size_t)at * size, MU_FLOAT, wide[i], n);
	}
}

static void update(enum mu_dtype type, apply_fn *f, unsigned slots, const struct run *r,
		   const double *k)
{
	if (type == MU_HALF || type == MU_BFLOAT16)
		update_narrow(type, f, slots, r, k);
	else
		f(&loops->update[type], r, k);
}

struct dense_job {
	const struct variables *vs;
	const struct mu_tensor *grad;
	apply_fn *apply;
	const double *k;
};

static void dense_part(void *arg, int64_t from, int64_t to)
{
	const struct dense_job *j = arg;
	struct run r = run_at(j->vs, j->grad, from, from, to - from);

	update(j->grad->dtype, j->apply, j->vs->n, &r, j->k);
}

static int apply_dense(struct kernel_call *c, const struct optimizer_plan *p,
		       const struct variables *vs, const double *k, struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, (unsigned)p->grad);
	struct dense_job job = {vs, grad, apply_of[p->a->kind], k};

	if (!mu_shape_eq(&vs->t[0]->shape, &grad->shape))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "var and %s do not have the same shape%s %s",
			       c->node->def->inputs[p->grad].name, mu_shape_str(&vs->t[0]->shape),
			       mu_shape_str(&grad->shape));
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
	int rc = rows_check_updates(&vs->t[0]->shape, indices, &grad->shape, &row, err);

	if (rc)
		return rc;
	for (int64_t i = 0; i < indices->shape.count; i++) {
		struct run r = run_at(vs, grad, mu_tensor_int(indices, i) * row, i * row, row);
		update(grad->dtype, apply_of[p->a->kind], vs->n, &r, k);
	}
	return 0;
}

static int apply(struct kernel_call *c, struct mu_err *err)
{
	const struct optimizer_plan *p = c->state;
	double k[OPTIMIZER_SCALARS] = {0};
	VARIABLES_AUTO vs = {0};
	int rc;

	if ((rc = variables_lock(c, 1 + p->a->slots, &vs, err)) ||
	    (rc = optimizer_check(&vs, kernel_in(c, (unsigned)p->grad), err)) ||
	    (rc = optimizer_scalars(c, p, vs.t[0]->dtype, k, err)))
		return rc;
	rc = p->indices < 0 ? apply_dense(c, p, &vs, k, err) : apply_rows(c, p, &vs, k, err);
	if (!rc)
		variable_forward(c);
	return rc;
}

#define DENSE(name)                                                                                \
	{"Apply" name, .run = apply, .prepare = optimizer_prepare},                                \
	{                                                                                          \
		"ResourceApply" name, .run = apply, .prepare = optimizer_prepare                   \
	}
#define SPARSE(name)                                                                               \
	{"SparseApply" name, .run = apply, .prepare = optimizer_prepare},                          \
	{                                                                                          \
		"ResourceSparseApply" name, .run = apply, .prepare = optimizer_prepare             \
	}
static const struct kernel rows[] = {
    DENSE("GradientDescent"),
    DENSE("Adagrad"),
    DENSE("AdagradV2"),
    DENSE("Momentum"),
    DENSE("Adam"),
    DENSE("RMSProp"),
    DENSE("CenteredRMSProp"),
    DENSE("Adadelta"),
    DENSE("Ftrl"),
    DENSE("FtrlV2"),
    DENSE("ProximalGradientDescent"),
    DENSE("ProximalAdagrad"),
    DENSE("AdagradDA"),
    DENSE("AdaMax"),
    DENSE("AddSign"),
    DENSE("PowerSign"),
    SPARSE("Adagrad"),
    SPARSE("AdagradV2"),
    SPARSE("Momentum"),
    SPARSE("RMSProp"),
    SPARSE("CenteredRMSProp"),
    SPARSE("Adadelta"),
    SPARSE("Ftrl"),
    SPARSE("FtrlV2"),
    SPARSE("ProximalGradientDescent"),
    SPARSE("ProximalAdagrad"),
    {"ResourceSparseApplyAdagradDA", .run = apply, .prepare = optimizer_prepare},
    {"ResourceApplyAdamWithAmsgrad", .run = apply, .prepare = optimizer_prepare},
    {"ResourceApplyKerasMomentum", .run = apply, .prepare = optimizer_prepare},
    {"ResourceSparseApplyKerasMomentum", .run = apply, .prepare = optimizer_prepare},
};
KERNEL_TABLE(train, rows)
