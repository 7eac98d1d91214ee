/* SPDX-License-Identifier: Apache-2.0 */
/* Identity, shape ops, feeds and fetches, and variables on a GPU. */
#include <string.h>

#include "task/kernels/engine/args.h"
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
	int rc = mu_node_attr_type(n, "dtype", &dtype, err);

	if (rc)
		return rc;
	if (!a || a->kind != MU_ATTR_TENSOR || a->tensor->dtype != dtype)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "attribute 'value' is missing or not of type %s",
			       mu_dtype_name(dtype));
	if ((rc = d->ops->copy_in(d, a->tensor, n->name, &t, err)))
		return rc;
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
	int rc = variables_lock(c, 1, &vs, err);

	if (rc)
		return rc;
	if (vs.t[0]->dtype != t->dtype || !mu_shape_eq(&vs.t[0]->shape, &t->shape))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%s requires shapes of both tensors to match. lhs shape= %s rhs "
			       "shape= %s",
			       c->node->op, mu_shape_str(&vs.t[0]->shape), mu_shape_str(&t->shape));
	struct update_args a = {
	    .at = {gpu_address(vs.t[0])}, .grad = gpu_address(t), .n = t->shape.count};
	if ((rc = gpu_run_type(gpu_here(c), strstr(c->node->op, "Sub") ? "up_sub" : "up_add",
			       t->dtype, a.n, &a, err)))
		return rc;
	variable_forward(c);
	return 0;
}

/* The CPU's functions, for tensors wherever they lie. */
#define SAME(name, attr, set)                                                                      \
	{                                                                                          \
		.k = {.op = name}, .type_attr = attr, .types = set, .same = true                   \
	}
#define ON_HOST(name, attr, set, in)                                                               \
	{                                                                                          \
		.k = {.op = name}, .type_attr = attr, .types = set, .host_in = in, .same = true    \
	}
#define ACCUMULATE(name, attr)                                                                     \
	{                                                                                          \
		.k = {name, .run = identity_gpu_accumulate}, .type_attr = attr, .types = GPU_REAL  \
	}
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
    SAME("NoOp ControlTrigger DestroyResourceOp", NULL, 0),
    SAME("Identity Enter Exit NextIteration", "T", GPU_PASSED),
    SAME("RefIdentity Assign DestroyTemporaryVariable", "T", GPU_FLT),
    SAME("IdentityN", NULL, 0), /* each where its type is */
    SAME("GuaranteeConst StopGradient PreventGradient Snapshot EnsureShape "
	 "RefEnter RefExit RefNextIteration Squeeze",
	 "T", GPU_PLAIN),
    SAME("Placeholder PlaceholderWithDefault", "dtype", GPU_PLAIN),
    ON_HOST("Switch", "T", GPU_PASSED, 2),
    ON_HOST("RefSwitch Reshape ExpandDims", "T", GPU_PLAIN, 2),
    {.k = {.op = "Merge"}, .type_attr = "T", .types = GPU_PASSED, .host_out = 2, .same = true},
    {.k = {.op = "RefMerge"}, .type_attr = "T", .types = GPU_PLAIN, .host_out = 2, .same = true},
    {.k = {.op = "LoopCond"}, .host_in = 1, .host_out = 1, .same = true},
    {.k = {.op = "Shape Size Rank"},
     .type_attr = "T",
     .types = GPU_PLAIN,
     .host_out = 1,
     .same = true},
    {.k = {.op = "ShapeN"}, .type_attr = "T", .types = GPU_PLAIN, .host_out = ~0u, .same = true},
    SAME("VariableV2 Variable TemporaryVariable VarHandleOp ReadVariableOp "
	 "AssignVariableOp",
	 "dtype", GPU_FLT),
    {.k = {.op = "IsVariableInitialized"},
     .type_attr = "dtype",
     .types = GPU_FLT,
     .host_out = 1,
     .same = true},
    ON_HOST("StridedSliceAssign ResourceStridedSliceAssign", "T", GPU_FLT,
	    1 << 1 | 1 << 2 | 1 << 3),
    {.k = {.op = "VarIsInitializedOp VariableShape"}, .host_out = 1, .same = true},
    ACCUMULATE("AssignAdd AssignSub", "T"),
    ACCUMULATE("AssignAddVariableOp AssignSubVariableOp", "dtype"),
};
GPU_KERNEL_TABLE(control_identity_gpu, rows)
