/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer updates.  TensorFlow has four ops for each algorithm (by reference or by handle, dense
 * or at some rows); here an algorithm is one row of `algorithms` and the op's own argument names
 * say where its inputs stand. */
#include <math.h>

#include "task/kernels/convert.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/loops.h"
#include "task/kernels/rows.h"
#include "task/kernels/variables.h"

enum { MAX_SCALARS = 6, GRAIN = 16 * 1024 };

/* Where a run of elements lies in the variable, its slots and the gradient. */
struct run {
	void *at[VARIABLES_MAX]; /* variable, slots */
	const void *grad;
	int64_t n;
};

struct algorithm {
	const char *name;
	unsigned slots;
	const char *scalars[MAX_SCALARS]; /* input names */
	/* The scalars as they were given -> those that the loop wants. */
	void (*constants)(double *k, const double *given, const struct mu_node *n);
	void (*apply)(const struct update_loops *l, const struct run *r, const double *k);
};

/* ---- the algorithms ---- */

static void k_plain(double *k, const double *given, const struct mu_node *n)
{
	memcpy(k, given, MAX_SCALARS * sizeof *k);
}

static void k_adagrad(double *k, const double *given, const struct mu_node *n)
{
	k[0] = given[0];
	k[1] = given[1]; /* epsilon: 0 in the first version */
	k[2] = args_attr_bool(n, "update_slots", true);
}

static void k_momentum(double *k, const double *given, const struct mu_node *n)
{
	k[0] = given[0];
	k[1] = given[1];
	k[2] = args_attr_bool(n, "use_nesterov", false);
	k[3] = 0;
}

static void k_keras_momentum(double *k, const double *given, const struct mu_node *n)
{
	k_momentum(k, given, n);
	k[3] = 1;
}

static void k_adam(double *k, const double *given, const struct mu_node *n)
{
	k[0] = given[2] * sqrt(1 - given[1]) / (1 - given[0]);
	k[1] = given[3];
	k[2] = given[4];
	k[3] = given[5];
	k[4] = args_attr_bool(n, "use_nesterov", false);
}

static void k_ftrl(double *k, const double *given, const struct mu_node *n)
{
	k[0] = given[0];
	k[1] = given[1];
	k[2] = given[2];
	k[3] = given[4]; /* l2_shrinkage: 0 in the first version */
	k[4] = given[3];
	k[5] = args_attr_bool(n, "multiply_linear_by_lr", false);
}

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

static const struct algorithm algorithms[] = {
    {"GradientDescent", 0, {"alpha"}, k_plain, a_sgd},
    {"Adagrad", 1, {"lr"}, k_adagrad, a_adagrad},
    {"AdagradV2", 1, {"lr", "epsilon"}, k_adagrad, a_adagrad},
    {"Momentum", 1, {"lr", "momentum"}, k_momentum, a_momentum},
    {"KerasMomentum", 1, {"lr", "momentum"}, k_keras_momentum, a_momentum},
    {"Adam", 2, {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"}, k_adam, a_adam},
    {"RMSProp", 2, {"lr", "rho", "momentum", "epsilon"}, k_plain, a_rmsprop},
    {"CenteredRMSProp", 3, {"lr", "rho", "momentum", "epsilon"}, k_plain, a_centered},
    {"Adadelta", 2, {"lr", "rho", "epsilon"}, k_plain, a_adadelta},
    {"Ftrl", 2, {"lr", "l1", "l2", "lr_power"}, k_ftrl, a_ftrl},
    {"FtrlV2", 2, {"lr", "l1", "l2", "lr_power", "l2_shrinkage"}, k_ftrl, a_ftrl},
    {"ProximalGradientDescent", 0, {"alpha", "l1", "l2"}, k_plain, a_prox},
    {"ProximalAdagrad", 1, {"lr", "l1", "l2"}, k_plain, a_prox_adagrad},
};

/* ---- the engine ---- */

struct plan {
	const struct algorithm *a;
	int grad, indices; /* input numbers; indices -1: dense */
	int scalar[MAX_SCALARS];
};

static int input_named(const struct mu_node *n, const char *name)
{
	for (unsigned i = 0; n->def && i < n->def->n_inputs; i++)
		if (strcmp(n->def->inputs[i].name, name) == 0)
			return (int)i;
	return -1;
}

static const char *after(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) == 0 ? s + n : s;
}

static int prepare(const struct mu_node *n, struct runtime *rt, void **state, struct mu_err *err)
{
	const char *name = after(after(after(n->op, "Resource"), "Sparse"), "Apply");
	struct plan p = {0};

	for (unsigned i = 0; i < MU_COUNT(algorithms); i++)
		if (strcmp(algorithms[i].name, name) == 0)
			p.a = &algorithms[i];
	p.grad = input_named(n, "grad");
	if (p.grad < 0)
		p.grad = input_named(n, "delta");
	p.indices = input_named(n, "indices");
	if (!p.a || p.grad < 0)
		return mu_fail(err, MU_UNIMPLEMENTED, "there is no optimizer %s here", n->op);
	for (unsigned i = 0; i < MAX_SCALARS && p.a->scalars[i]; i++)
		if ((p.scalar[i] = input_named(n, p.a->scalars[i])) < 0)
			return mu_fail(err, MU_INTERNAL, "op %s has no input '%s'", n->op,
				       p.a->scalars[i]);
	*state = memcpy(MU_NEW(struct plan), &p, sizeof p);
	return 0;
}

static int read_scalars(const struct kernel_call *c, const struct plan *p, enum mu_dtype t,
			double *k, struct mu_err *err)
{
	double given[MAX_SCALARS] = {0};

	for (unsigned i = 0; i < MAX_SCALARS && p->a->scalars[i]; i++) {
		const struct mu_tensor *s = kernel_in(c, (unsigned)p->scalar[i]);
		if (s->dtype != t || s->shape.count != 1)
			return mu_fail(err, MU_INVALID_ARGUMENT, "%s is not a scalar: %s",
				       p->a->scalars[i], mu_shape_str(&s->shape));
		convert(MU_DOUBLE, &given[i], t, s->data, 1);
	}
	p->a->constants(k, given, c->node);
	return 0;
}

static int check_slots(const struct variables *vs, const struct mu_tensor *grad, struct mu_err *err)
{
	const struct mu_tensor *var = vs->t[0];

	if (var->dtype != MU_FLOAT && var->dtype != MU_DOUBLE)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "optimizers here update float and double, "
			       "not %s",
			       mu_dtype_name(var->dtype));
	if (grad->dtype != var->dtype)
		return mu_fail(err, MU_INVALID_ARGUMENT, "the gradient is %s, the variable %s",
			       mu_dtype_name(grad->dtype), mu_dtype_name(var->dtype));
	for (unsigned i = 1; i < vs->n; i++)
		if (vs->t[i]->dtype != var->dtype || !mu_shape_eq(&vs->t[i]->shape, &var->shape))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "var and slot %u do not have the same shape %s %s", i,
				       mu_shape_str(&var->shape), mu_shape_str(&vs->t[i]->shape));
	return 0;
}

static struct run run_at(const struct variables *vs, const struct mu_tensor *grad, int64_t var_at,
			 int64_t grad_at, int64_t n)
{
	size_t size = mu_dtype_size(grad->dtype);
	struct run r = {.grad = (const char *)grad->data + (size_t)grad_at * size, .n = n};

	for (unsigned i = 0; i < vs->n; i++)
		r.at[i] = (char *)vs->t[i]->data + (size_t)var_at * size;
	return r;
}

struct dense_job {
	const struct variables *vs;
	const struct mu_tensor *grad;
	const struct algorithm *a;
	const double *k;
};

static void dense_part(void *arg, int64_t from, int64_t to)
{
	const struct dense_job *j = arg;
	struct run r = run_at(j->vs, j->grad, from, from, to - from);

	j->a->apply(&loops->update[j->grad->dtype], &r, j->k);
}

static int apply_dense(struct kernel_call *c, const struct plan *p, const struct variables *vs,
		       const double *k, struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, (unsigned)p->grad);
	struct dense_job job = {vs, grad, p->a, k};

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

static int apply_rows(struct kernel_call *c, const struct plan *p, const struct variables *vs,
		      const double *k, struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, (unsigned)p->grad);
	const struct mu_tensor *indices = kernel_in(c, (unsigned)p->indices);
	int64_t row;
	int rc = rows_check_updates(&vs->t[0]->shape, indices, &grad->shape, &row, err);

	if (rc)
		return rc;
	for (int64_t i = 0; i < indices->shape.count; i++) {
		struct run r = run_at(vs, grad, mu_tensor_int(indices, i) * row, i * row, row);
		p->a->apply(&loops->update[grad->dtype], &r, k);
	}
	return 0;
}

static int apply(struct kernel_call *c, struct mu_err *err)
{
	const struct plan *p = c->state;
	double k[MAX_SCALARS] = {0};
	VARIABLES_AUTO vs = {0};
	int rc;

	if ((rc = variables_lock(c, 1 + p->a->slots, &vs, err)) ||
	    (rc = check_slots(&vs, kernel_in(c, (unsigned)p->grad), err)) ||
	    (rc = read_scalars(c, p, vs.t[0]->dtype, k, err)))
		return rc;
	rc = p->indices < 0 ? apply_dense(c, p, &vs, k, err) : apply_rows(c, p, &vs, k, err);
	if (!rc)
		variable_forward(c);
	return rc;
}

#define DENSE(name)                                                                                \
	{"Apply" name, .run = apply, .prepare = prepare},                                          \
	{                                                                                          \
		"ResourceApply" name, .run = apply, .prepare = prepare                             \
	}
#define SPARSE(name)                                                                               \
	{"SparseApply" name, .run = apply, .prepare = prepare},                                    \
	{                                                                                          \
		"ResourceSparseApply" name, .run = apply, .prepare = prepare                       \
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
    {"ResourceApplyKerasMomentum", .run = apply, .prepare = prepare},
    {"ResourceSparseApplyKerasMomentum", .run = apply, .prepare = prepare},
};
KERNEL_TABLE(train, rows)
