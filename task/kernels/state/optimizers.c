/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/state/optimizers.h"

#include <math.h>

#include "task/kernels/engine/convert.h"

/* ---- the scalars as they were given -> those that the loops want ---- */

static void k_plain(double *k, const double *given, const struct mu_node *n)
{
	memcpy(k, given, OPTIMIZER_SCALARS * sizeof *k);
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

static void k_adamax(double *k, const double *given, const struct mu_node *n)
{
	k[0] = given[1] / (1 - given[0]);
	k[1] = given[2];
	k[2] = given[3];
	k[3] = given[4];
}

static void k_power_sign(double *k, const double *given, const struct mu_node *n)
{
	k_plain(k, given, n);
	k[4] = 1;
}

static const struct optimizer optimizers[] = {
    {"GradientDescent", 0, {"alpha"}, k_plain, OPTIMIZER_SGD},
    {"Adagrad", 1, {"lr"}, k_adagrad, OPTIMIZER_ADAGRAD},
    {"AdagradV2", 1, {"lr", "epsilon"}, k_adagrad, OPTIMIZER_ADAGRAD},
    {"Momentum", 1, {"lr", "momentum"}, k_momentum, OPTIMIZER_MOMENTUM},
    {"KerasMomentum", 1, {"lr", "momentum"}, k_keras_momentum, OPTIMIZER_MOMENTUM},
    {"Adam",
     2,
     {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"},
     k_adam,
     OPTIMIZER_ADAM},
    {"RMSProp", 2, {"lr", "rho", "momentum", "epsilon"}, k_plain, OPTIMIZER_RMSPROP},
    {"CenteredRMSProp", 3, {"lr", "rho", "momentum", "epsilon"}, k_plain, OPTIMIZER_CENTERED},
    {"Adadelta", 2, {"lr", "rho", "epsilon"}, k_plain, OPTIMIZER_ADADELTA},
    {"Ftrl", 2, {"lr", "l1", "l2", "lr_power"}, k_ftrl, OPTIMIZER_FTRL},
    {"FtrlV2", 2, {"lr", "l1", "l2", "lr_power", "l2_shrinkage"}, k_ftrl, OPTIMIZER_FTRL},
    {"ProximalGradientDescent", 0, {"alpha", "l1", "l2"}, k_plain, OPTIMIZER_PROX},
    {"ProximalAdagrad", 1, {"lr", "l1", "l2"}, k_plain, OPTIMIZER_PROX_ADAGRAD},
    {"AdagradDA", 2, {"lr", "l1", "l2", "global_step"}, k_plain, OPTIMIZER_ADAGRAD_DA},
    {"AdaMax", 2, {"beta1_power", "lr", "beta1", "beta2", "epsilon"}, k_adamax, OPTIMIZER_ADAMAX},
    {"AdamWithAmsgrad",
     3,
     {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"},
     k_adam,
     OPTIMIZER_AMSGRAD},
    {"AddSign", 1, {"lr", "alpha", "sign_decay", "beta"}, k_plain, OPTIMIZER_SIGNS},
    {"PowerSign", 1, {"lr", "logbase", "sign_decay", "beta"}, k_power_sign, OPTIMIZER_SIGNS},
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

int optimizer_prepare(const struct mu_node *n, struct runtime *rt, void **state, struct mu_err *err)
{
	const char *name = after(after(after(n->op, "Resource"), "Sparse"), "Apply");
	struct optimizer_plan p = {0};

	for (unsigned i = 0; i < MU_COUNT(optimizers); i++)
		if (strcmp(optimizers[i].name, name) == 0)
			p.a = &optimizers[i];
	p.grad = input_named(n, "grad");
	if (p.grad < 0)
		p.grad = input_named(n, "delta");
	p.indices = input_named(n, "indices");
	if (!p.a || p.grad < 0)
		return mu_fail(err, MU_UNIMPLEMENTED, "there is no optimizer %s here", n->op);
	for (unsigned i = 0; i < OPTIMIZER_SCALARS && p.a->scalars[i]; i++)
		if ((p.scalar[i] = input_named(n, p.a->scalars[i])) < 0)
			return mu_fail(err, MU_INTERNAL, "op %s has no input '%s'", n->op,
				       p.a->scalars[i]);
	*state = memcpy(MU_NEW(struct optimizer_plan), &p, sizeof p);
	return 0;
}

bool optimizer_counts(const struct optimizer *o, unsigned scalar, enum mu_dtype t)
{
	return t == MU_INT64 && strcmp(o->scalars[scalar], "global_step") == 0;
}

int optimizer_scalars(const struct kernel_call *c, const struct optimizer_plan *p, enum mu_dtype t,
		      double *k, struct mu_err *err)
{
	double given[OPTIMIZER_SCALARS] = {0};

	for (unsigned i = 0; i < OPTIMIZER_SCALARS && p->a->scalars[i]; i++) {
		const struct mu_tensor *s = kernel_in(c, (unsigned)p->scalar[i]);
		bool counts = optimizer_counts(p->a, i, s->dtype);
		if ((s->dtype != t && !counts) || s->shape.count != 1)
			return mu_fail(err, MU_INVALID_ARGUMENT, "%s is not a scalar: %s",
				       p->a->scalars[i], mu_shape_str(&s->shape));
		convert(MU_DOUBLE, &given[i], s->dtype, s->data, 1);
	}
	p->a->constants(k, given, c->node);
	return 0;
}

int optimizer_check(const struct variables *vs, const struct mu_tensor *grad, struct mu_err *err)
{
	const struct mu_tensor *var = vs->t[0];

	if (var->dtype != MU_FLOAT && var->dtype != MU_DOUBLE && var->dtype != MU_HALF &&
	    var->dtype != MU_BFLOAT16)
		return mu_fail(err, MU_UNIMPLEMENTED, "optimizers update real numbers, not %s",
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
