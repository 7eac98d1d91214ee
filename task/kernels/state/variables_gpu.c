/* SPDX-License-Identifier: Apache-2.0 */
/* Variables on a GPU. */
#include <string.h>

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/state/variables.h"

/* AssignAdd, AssignSub and their resource versions. */
static int assign_add_or_sub_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 1);
	VARIABLES_AUTO vs = {0};

	MU_RETURN_IF_ERROR(variables_lock(c, 1, &vs, err));
	if (vs.t[0]->dtype != t->dtype || !mu_shape_eq(&vs.t[0]->shape, &t->shape))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%s requires shapes of both tensors to match. lhs shape= %s rhs "
			       "shape= %s",
			       c->node->op, mu_shape_str(&vs.t[0]->shape), mu_shape_str(&t->shape));
	struct update_args a = {
	    .at = {gpu_address(vs.t[0])}, .grad = gpu_address(t), .n = t->shape.count};
	MU_RETURN_IF_ERROR(gpu_run_type(kernel_gpu(c),
					strstr(c->node->op, "Sub") ? "up_sub" : "up_add", t->dtype,
					a.n, &a, err));
	variable_forward(c);
	return 0;
}

/* GPU_SAME: the function of the CPU kernel works on tensors in GPU memory, too. */
static const struct device_kernel rows[] = {
    GPU_SAME("Assign DestroyTemporaryVariable", "T", GPU_FLT),
    GPU_SAME("VariableV2 Variable TemporaryVariable VarHandleOp ReadVariableOp "
	     "AssignVariableOp",
	     "dtype", GPU_FLT),
    GPU_SAME("IsVariableInitialized", "dtype", GPU_FLT, .host_out = 1),
    GPU_SAME("StridedSliceAssign ResourceStridedSliceAssign", "T", GPU_FLT,
	     .host_in = 1 << 1 | 1 << 2 | 1 << 3),
    GPU_SAME("VarIsInitializedOp VariableShape", NULL, 0, .host_out = 1),
    GPU_ROW("AssignAdd AssignSub", assign_add_or_sub_gpu, "T", GPU_REAL),
    GPU_ROW("AssignAddVariableOp AssignSubVariableOp", assign_add_or_sub_gpu, "dtype", GPU_REAL),
};
KERNEL_TABLE(state_variables_gpu, rows)
