/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/state/optimizers.h"

#include <math.h>

#include "task/kernels/engine/convert.h"

#define DEVICE static
#include "task/kernels/engine/loops/optimizer_constants.h"

static void (*const constants[OPTIMIZER_COUNT])(double *k, const double *scalars, int flag) = {
#define OPTIMIZER(kind, name, constants, ...) [OPTIMIZER_##kind] = constants,
#include "task/kernels/engine/loops/optimizers.def"
};

static const struct optimizer optimizers[] = {
    {"GradientDescent", 0, {"alpha"}, OPTIMIZER_SGD},
    {"Adagrad", 1, {"lr"}, OPTIMIZER_ADAGRAD},
    {"AdagradV2", 1, {"lr", "epsilon"}, OPTIMIZER_ADAGRAD},
    {"Momentum", 1, {"lr", "momentum"}, OPTIMIZER_MOMENTUM},
    {"KerasMomentum", 1, {"lr", "momentum"}, OPTIMIZER_MOMENTUM},
    {"Adam", 2, {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"}, OPTIMIZER_ADAM},
    {"RMSProp", 2, {"lr", "rho", "momentum", "epsilon"}, OPTIMIZER_RMSPROP},
    {"CenteredRMSProp", 3, {"lr", "rho", "momentum", "epsilon"}, OPTIMIZER_CENTERED},
    {"Adadelta", 2, {"lr", "rho", "epsilon"}, OPTIMIZER_ADADELTA},
    {"Ftrl", 2, {"lr", "l1", "l2", "lr_power"}, OPTIMIZER_FTRL},
    {"FtrlV2", 2, {"lr", "l1", "l2", "lr_power", "l2_shrinkage"}, OPTIMIZER_FTRL},
    {"ProximalGradientDescent", 0, {"alpha", "l1", "l2"}, OPTIMIZER_PROX},
    {"ProximalAdagrad", 1, {"lr", "l1", "l2"}, OPTIMIZER_PROX_ADAGRAD},
    {"AdagradDA", 2, {"lr", "l1", "l2", "global_step"}, OPTIMIZER_ADAGRAD_DA},
    {"AdaMax", 2, {"beta1_power", "lr", "beta1", "beta2", "epsilon"}, OPTIMIZER_ADAMAX},
    {"AdamWithAmsgrad",
     3,
     {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"},
     OPTIMIZER_AMSGRAD},
    {"AddSign", 1, {"lr", "alpha", "sign_decay", "beta"}, OPTIMIZER_SIGNS},
    {"PowerSign", 1, {"lr", "logbase", "sign_decay", "beta"}, OPTIMIZER_SIGNS},
};

static int input_named(const struct mu_node *n, const char *name)
{
	for (unsigned i = 0; n->def && i < n->def->n_inputs; i++)
		if (strcmp(n->def->inputs[i].name, name) == 0)
			return (int)i;
	return -1;
}

static const char *skip_prefix(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) == 0 ? s + n : s;
}

int optimizer_prepare(const struct mu_node *n, struct runtime *rt, void **state, struct mu_err *err)
{
	const char *name =
	    skip_prefix(skip_prefix(skip_prefix(n->op, "Resource"), "Sparse"), "Apply");
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

bool optimizer_scalar_is_step(const struct optimizer *o, unsigned scalar, enum mu_dtype t)
{
	return t == MU_INT64 && strcmp(o->scalars[scalar], "global_step") == 0;
}

int optimizer_flag(const struct mu_node *n, const struct optimizer *o)
{
	switch (o->kind) {
	case OPTIMIZER_ADAGRAD:
		return args_attr_bool(n, "update_slots", true);
	case OPTIMIZER_MOMENTUM:
		return args_attr_bool(n, "use_nesterov", false) |
		       (strcmp(o->name, "KerasMomentum") == 0) << 1;
	case OPTIMIZER_ADAM:
		return args_attr_bool(n, "use_nesterov", false);
	case OPTIMIZER_FTRL:
		return args_attr_bool(n, "multiply_linear_by_lr", false);
	case OPTIMIZER_SIGNS:
		return strcmp(o->name, "PowerSign") == 0;
	default:
		return 0;
	}
}

/* The scalars whose sign sparse FTRL and ProximalAdagrad check, and their names in TensorFlow's
 * messages. */
static const struct signed_scalar {
	const char *name, *text, *required;
} signed_scalars[] = {
    {"lr", "lr", "positive"},
    {"l1", "l1 regularization strength", "non-negative"},
    {"l2", "l2 regularization strength", "non-negative"},
    {"l2_shrinkage", "l2 shrinkage regularization strength", "non-negative"},
    {"lr_power", "lr_power", "non-positive"},
};

static bool has_sign(double v, const char *required)
{
	return required[0] == 'p' ? v > 0 : strcmp(required, "non-negative") == 0 ? v >= 0 : v <= 0;
}

static int check_sign(const struct optimizer_plan *p, const char *scalar, double v,
		      bool multiplies_by_lr, struct mu_err *err)
{
	if (!(p->a->kind == OPTIMIZER_FTRL && p->indices >= 0) &&
	    p->a->kind != OPTIMIZER_PROX_ADAGRAD)
		return 0;
	if (v == 0 && multiplies_by_lr && strcmp(scalar, "lr") == 0)
		return 0; /* "linear" is not divided by it */
	for (unsigned i = 0; i < MU_COUNT(signed_scalars); i++) {
		const struct signed_scalar *s = &signed_scalars[i];
		if (strcmp(s->name, scalar) == 0 && !has_sign(v, s->required))
			return mu_invalid(err, "%s is not a %s scalar: []", s->text, s->required);
	}
	return 0;
}

int optimizer_scalars(const struct kernel_call *c, const struct optimizer_plan *p, enum mu_dtype t,
		      double *k, struct mu_err *err)
{
	double values[OPTIMIZER_SCALARS] = {0};
	const int flag = optimizer_flag(c->node, p->a);

	for (unsigned i = 0; i < OPTIMIZER_SCALARS && p->a->scalars[i]; i++) {
		const struct mu_tensor *s = kernel_in(c, (unsigned)p->scalar[i]);
		bool is_step = optimizer_scalar_is_step(p->a, i, s->dtype);
		if ((s->dtype != t && !is_step) || s->shape.rank)
			return mu_invalid(err, "%s is not a scalar: %s", p->a->scalars[i],
					  mu_shape_str(&s->shape));
		convert(MU_DOUBLE, &values[i], s->dtype, s->data, 1);

		MU_RETURN_IF_ERROR(check_sign(p, p->a->scalars[i], values[i],
					      p->a->kind == OPTIMIZER_FTRL && flag, err));
	}
	constants[p->a->kind](k, values, flag);
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
		return mu_invalid(err, "the gradient is %s, the variable %s",
				  mu_dtype_name(grad->dtype), mu_dtype_name(var->dtype));
	for (unsigned i = 1; i < vs->n; i++)
		if (vs->t[i]->dtype != var->dtype || !mu_shape_eq(&vs->t[i]->shape, &var->shape))
			return mu_invalid(err, "var and slot %u do not have the same shape %s %s",
					  i, mu_shape_str(&var->shape),
					  mu_shape_str(&vs->t[i]->shape));
	return 0;
}
