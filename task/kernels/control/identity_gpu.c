/* SPDX-License-Identifier: Apache-2.0 */
/* Identity, shape ops, feeds and fetches, and variables on a GPU. */
#include <string.h>

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/state/variables.h"

/* ---- in and out ---- */

static int bring_in(struct kernel_call *c, struct mu_err *err)
{
	struct device *d = device_of_node(c->node, c->runtime);

	return d->ops->copy_in(d, kernel_in(c, 0), c->node->name, &c->out[0].tensor, err);
}

static void came_out(void *arg, const struct mu_err *err)
{
	kernel_finish(arg, err);
}

static void bring_out(struct kernel_call *c)
{
	struct device *d = device_of_tensor(kernel_in(c, 0));
	struct mu_err err;
	int rc = d->ops->copy_out(d, kernel_in(c, 0), &c->out[0].tensor, came_out, c, &err);

	if (rc)
		kernel_finish(c, &err);
}

/* ---- Const: its state is the tensor on the GPU ---- */

static int const_prepare_gpu(const struct mu_node *n, struct runtime *rt, void **state,
			     struct mu_err *err)
{
	const struct mu_attr *a = mu_node_attr(n, "value");
	struct device *d = device_of_node(n, rt);
	enum mu_dtype dtype;
	struct mu_tensor t;

	MU_RETURN_IF_ERROR(mu_node_attr_type(n, "dtype", &dtype, err));
	if (!a || a->kind != MU_ATTR_TENSOR || a->tensor->dtype != dtype)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "attribute 'value' is missing or not of type %s",
			       mu_dtype_name(dtype));
	MU_RETURN_IF_ERROR(d->ops->copy_in(d, a->tensor, n->name, &t, err));
	*state = memcpy(MU_NEW(struct mu_tensor), &t, sizeof t);
	return 0;
}

static void const_release_gpu(void *state)
{
	mu_tensor_unref(state);
	free(state);
}

static int const_run_gpu(struct kernel_call *c, struct mu_err *err)
{
	kernel_out_take(c, 0, mu_tensor_ref(c->state));
	return 0;
}

/* ---- += and -= ---- */

static int identity_gpu_accumulate(struct kernel_call *c, struct mu_err *err)
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

/* The CPU's functions, for tensors wherever they lie. */
static const struct device_kernel rows[] = {
    {.k = {"_CopyFromHostToGpu", .run = bring_in}, .host_in = 1, .device_out = 1},
    {.k = {"_CopyFromGpuToHost", .start = bring_out}, .host_out = 1, .device_in = 1},
    {.k = {"Const", .run = const_run_gpu, .prepare = const_prepare_gpu,
	   .release = const_release_gpu},
     .type_attr = "dtype",
     .types = GPU_PLAIN},
    {.k = {"_ConstOnGpu", .run = const_run_gpu, .prepare = const_prepare_gpu,
	   .release = const_release_gpu},
     .device_out = 1},
    GPU_SAME("NoOp ControlTrigger DestroyResourceOp", NULL, 0),
    GPU_SAME("Identity Enter Exit NextIteration", "T", GPU_PASSED),
    GPU_SAME("RefIdentity Assign DestroyTemporaryVariable", "T", GPU_FLT),
    GPU_SAME("IdentityN", NULL, 0), /* each where its type is */
    GPU_SAME("GuaranteeConst StopGradient PreventGradient Snapshot EnsureShape "
	     "RefEnter RefExit RefNextIteration Squeeze",
	     "T", GPU_PLAIN),
    GPU_SAME("Placeholder PlaceholderWithDefault", "dtype", GPU_PLAIN),
    GPU_SAME("Switch", "T", GPU_PASSED, .host_in = 2),
    GPU_SAME("RefSwitch Reshape ExpandDims", "T", GPU_PLAIN, .host_in = 2),
    GPU_SAME("Merge", "T", GPU_PASSED, .host_out = 2),
    GPU_SAME("RefMerge", "T", GPU_PLAIN, .host_out = 2),
    GPU_SAME("LoopCond", NULL, 0, .host_in = 1, .host_out = 1),
    GPU_SAME("Shape Size Rank", "T", GPU_PLAIN, .host_out = 1),
    GPU_SAME("ShapeN", "T", GPU_PLAIN, .host_out = ~0u),
    GPU_SAME("VariableV2 Variable TemporaryVariable VarHandleOp ReadVariableOp "
	     "AssignVariableOp",
	     "dtype", GPU_FLT),
    GPU_SAME("IsVariableInitialized", "dtype", GPU_FLT, .host_out = 1),
    GPU_SAME("StridedSliceAssign ResourceStridedSliceAssign", "T", GPU_FLT,
	     .host_in = 1 << 1 | 1 << 2 | 1 << 3),
    GPU_SAME("VarIsInitializedOp VariableShape", NULL, 0, .host_out = 1),
    GPU_ROW("AssignAdd AssignSub", identity_gpu_accumulate, "T", GPU_REAL),
    GPU_ROW("AssignAddVariableOp AssignSubVariableOp", identity_gpu_accumulate, "dtype", GPU_REAL),
};
KERNEL_TABLE(control_identity_gpu, rows)
