/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer updates on a GPU, of whole variables and of some rows: one kernel for each
 * algorithm, which reads the scalars from GPU memory. */
#include <stdio.h>

#include "task/kernels/array/rows.h"
#include "task/kernels/engine/gpu_runs.h"
#include "task/kernels/state/optimizers.h"

static const char *const kernels[OPTIMIZER_COUNT] = {
#define OPTIMIZER(kind, name, constants, ...) [OPTIMIZER_##kind] = "up_" #name,
#include "task/kernels/engine/loops/optimizers.def"
};

static int train_gpu_run(struct kernel_call *c, const char *suffix, int64_t n, const void *args,
			 size_t size, struct mu_err *err)
{
	const struct optimizer_plan *p = c->state;
	char name[32];

	snprintf(name, sizeof name, "%s%s", kernels[p->a->kind], suffix);
	return gpu_run_type_sized(kernel_gpu(c), name, kernel_in(c, (unsigned)p->grad)->dtype, n,
				  args, size, err);
}

static int find_scalars(const struct kernel_call *c, const struct optimizer_plan *p,
			struct update_args *a, struct mu_err *err)
{
	for (; a->scalars < OPTIMIZER_SCALARS && p->a->scalars[a->scalars]; a->scalars++) {
		const struct mu_tensor *t = kernel_in(c, (unsigned)p->scalar[a->scalars]);
		bool is_step = optimizer_scalar_is_step(p->a, (unsigned)a->scalars, t->dtype);
		if ((t->dtype != kernel_in(c, (unsigned)p->grad)->dtype && !is_step) ||
		    t->shape.rank)
			return mu_fail(err, MU_INVALID_ARGUMENT, "%s is not a scalar: %s",
				       p->a->scalars[a->scalars], mu_shape_str(&t->shape));
		a->scalar[a->scalars] = gpu_address(t);
		if (is_step)
			a->counter = a->scalars + 1;
	}
	return 0;
}

static int apply_dense_gpu(struct kernel_call *c, const struct mu_tensor *var,
			   struct update_args *a, struct mu_err *err)
{
	const struct optimizer_plan *p = c->state;
	const struct mu_tensor *grad = kernel_in(c, (unsigned)p->grad);

	if (!mu_shape_eq(&var->shape, &grad->shape))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "var and %s do not have the same shape%s %s",
			       c->node->def->inputs[p->grad].name, mu_shape_str(&var->shape),
			       mu_shape_str(&grad->shape));
	return train_gpu_run(c, "", a->n, a, sizeof *a, err);
}

static int apply_rows_gpu(struct kernel_call *c, const struct mu_tensor *var, struct update_args *a,
			  struct mu_err *err)
{
	const struct optimizer_plan *p = c->state;
	const struct mu_tensor *indices = kernel_in(c, (unsigned)p->indices);
	struct update_rows_args rows_args = {.u = *a};
	GPU_RUNS_AUTO runs = {0};
	int64_t row;

	MU_RETURN_IF_ERROR(rows_check_update_shape(
	    &var->shape, &indices->shape, &kernel_in(c, (unsigned)p->grad)->shape, &row, err));
	if (!a->n)
		return 0;
	MU_RETURN_IF_ERROR(gpu_runs_make(c, indices, indices->shape.count, &var->shape, 1, row,
					 &runs, &rows_args.by, err));
	return train_gpu_run(c, "_rows", a->n, &rows_args, sizeof rows_args, err);
}

static int train_gpu_apply(struct kernel_call *c, struct mu_err *err)
{
	const struct optimizer_plan *p = c->state;
	const struct mu_tensor *grad = kernel_in(c, (unsigned)p->grad);
	struct update_args a = {.grad = gpu_address(grad),
				.n = grad->shape.count,
				.flag = optimizer_flag(c->node, p->a)};
	VARIABLES_AUTO vs = {0};
	int rc;

	if ((rc = variables_lock(c, 1 + p->a->slots, &vs, err)) ||
	    (rc = optimizer_check(&vs, grad, err)) || (rc = find_scalars(c, p, &a, err)))
		return rc;
	for (unsigned i = 0; i < vs.n; i++)
		a.at[i] = gpu_address(vs.t[i]);
	rc = p->indices < 0 ? apply_dense_gpu(c, vs.t[0], &a, err)
			    : apply_rows_gpu(c, vs.t[0], &a, err);
	if (!rc)
		variable_forward(c);
	return rc;
}

/* indices: bit mask of the input with the indices, which are on the GPU as int32, too; 0: none. */
#define ROW(names, indices)                                                                        \
	{                                                                                          \
		.k = {names, .run = train_gpu_apply, .prepare = optimizer_prepare},                \
		.type_attr = "T", .types = GPU_REAL, .device_in = indices                          \
	}
static const struct device_kernel rows[] = {
    ROW("ApplyGradientDescent ApplyAdagrad ApplyAdagradV2 ApplyMomentum ApplyAdam "
	"ApplyRMSProp ApplyCenteredRMSProp ApplyAdadelta ApplyFtrl ApplyFtrlV2 "
	"ApplyProximalAdagrad ApplyProximalGradientDescent ApplyAdagradDA ApplyAdaMax "
	"ApplyAddSign ApplyPowerSign ResourceApplyGradientDescent ResourceApplyAdagrad "
	"ResourceApplyAdagradV2 ResourceApplyMomentum ResourceApplyAdam "
	"ResourceApplyRMSProp ResourceApplyCenteredRMSProp ResourceApplyAdadelta "
	"ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyProximalAdagrad "
	"ResourceApplyProximalGradientDescent ResourceApplyAdagradDA "
	"ResourceApplyAdaMax ResourceApplyAddSign ResourceApplyPowerSign "
	"ResourceApplyAdamWithAmsgrad ResourceApplyKerasMomentum",
	0),
    ROW("SparseApplyAdagrad ResourceSparseApplyAdagrad SparseApplyMomentum "
	"ResourceSparseApplyMomentum SparseApplyFtrl ResourceSparseApplyFtrl "
	"SparseApplyFtrlV2 ResourceSparseApplyFtrlV2 ResourceSparseApplyKerasMomentum "
	"ResourceSparseApplyAdagradDA",
	1 << 4),
    ROW("SparseApplyAdagradV2 ResourceSparseApplyAdagradV2 "
	"SparseApplyProximalGradientDescent ResourceSparseApplyProximalGradientDescent",
	1 << 5),
    ROW("SparseApplyProximalAdagrad ResourceSparseApplyProximalAdagrad", 1 << 6),
    ROW("SparseApplyAdadelta ResourceSparseApplyAdadelta", 1 << 7),
    ROW("SparseApplyRMSProp ResourceSparseApplyRMSProp", 1 << 8),
    ROW("SparseApplyCenteredRMSProp ResourceSparseApplyCenteredRMSProp", 1 << 9),
};
KERNEL_TABLE(state_train_gpu, rows)
