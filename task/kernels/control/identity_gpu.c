/* SPDX-License-Identifier: Apache-2.0 */
/* Identity, control flow, constants, shape ops, feeds and fetches on a GPU. */
#include <string.h>

#include "task/kernels/engine/gpu_table.h"

/* ---- copies between host and GPU ---- */

static int copy_to_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct device *d = device_of_node(c->node, c->runtime);

	return d->ops->copy_in(d, kernel_in(c, 0), c->node->name, &c->out[0].tensor, err);
}

static void copy_to_host_done(void *arg, const struct mu_err *err)
{
	kernel_finish(arg, err);
}

static void copy_to_host(struct kernel_call *c)
{
	struct device *d = device_of_tensor(kernel_in(c, 0));
	struct mu_err err;
	int rc =
	    d->ops->copy_out(d, kernel_in(c, 0), &c->out[0].tensor, copy_to_host_done, c, &err);

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

/* GPU_SAME: the function of the CPU kernel works on tensors in GPU memory, too. */
static const struct device_kernel rows[] = {
    {.k = {"_CopyFromHostToGpu", .run = copy_to_gpu}, .host_in = 1, .device_out = 1},
    {.k = {"_CopyFromGpuToHost", .start = copy_to_host}, .host_out = 1, .device_in = 1},
    {.k = {"Const", .run = const_run_gpu, .prepare = const_prepare_gpu,
	   .release = const_release_gpu},
     .type_attr = "dtype",
     .types = GPU_PLAIN},
    {.k = {"_ConstOnGpu", .run = const_run_gpu, .prepare = const_prepare_gpu,
	   .release = const_release_gpu},
     .device_out = 1},
    GPU_SAME("NoOp ControlTrigger DestroyResourceOp", NULL, 0),
    GPU_SAME("Identity Enter Exit NextIteration", "T", GPU_PASSED),
    GPU_SAME("RefIdentity", "T", GPU_FLT),
    GPU_SAME("IdentityN", NULL, 0), /* each output stays in the memory of its input */
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
};
KERNEL_TABLE(control_identity_gpu, rows)
