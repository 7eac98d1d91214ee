/* SPDX-License-Identifier: Apache-2.0 */
/* Identity, Const and similar: outputs that are an input, or a tensor of the graph. */
#include "lib/base/clock.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/runtime.h"

static int no_op(struct kernel_call *c, struct mu_err *err)
{
	return 0;
}

/* Identity, IdentityN, StopGradient, …: output i is input i, by reference. */
static int identity_forward(struct kernel_call *c, struct mu_err *err)
{
	for (unsigned i = 0; i < c->n_out && i < c->n_in; i++)
		kernel_out_take(c, i, mu_tensor_ref(kernel_in(c, i)));
	return 0;
}

/* ---- Const: the attribute's tensor, parsed with the graph ---- */

static int const_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			 struct mu_err *err)
{
	const struct mu_attr *a = mu_node_attr(n, "value");
	enum mu_dtype dtype;

	if (!a || a->kind != MU_ATTR_TENSOR)
		return mu_invalid(err, "attribute 'value' is missing");

	MU_RETURN_IF_ERROR(mu_node_attr_type(n, "dtype", &dtype, err));
	if (dtype != a->tensor->dtype)
		return mu_invalid(err, "Inconsistent dtypes: %s vs. %s",
				  mu_dtype_name(a->tensor->dtype), mu_dtype_name(dtype));
	struct mu_tensor *t = MU_NEW(struct mu_tensor);
	*t = mu_tensor_ref(a->tensor);
	*state = t;
	return 0;
}

static void const_release(void *state)
{
	mu_tensor_unref(state);
	free(state);
}

static int const_run(struct kernel_call *c, struct mu_err *err)
{
	kernel_out_take(c, 0, mu_tensor_ref(c->state));
	return 0;
}

/* ---- placeholders ---- */

static int fail_unfed_placeholder(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *shape = mu_node_attr(c->node, "shape");
	enum mu_dtype dtype;

	MU_RETURN_IF_ERROR(mu_node_attr_type(c->node, "dtype", &dtype, err));
	if (shape && shape->kind == MU_ATTR_SHAPE && shape->shape->rank > 0)
		return mu_invalid(
		    err,
		    "You must feed a value for placeholder tensor '%s' with dtype %s and shape %s",
		    c->node->name, mu_dtype_name(dtype), mu_pshape_str(shape->shape));
	return mu_invalid(err, "You must feed a value for placeholder tensor '%s' with dtype %s",
			  c->node->name, mu_dtype_name(dtype));
}

static int placeholder_with_default(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *shape = mu_node_attr(c->node, "shape");
	const struct mu_tensor *t = kernel_in(c, 0);

	if (shape && shape->kind == MU_ATTR_SHAPE && !mu_shape_matches(&t->shape, shape->shape))
		return mu_invalid(err, "the default of the placeholder has shape %s, want %s",
				  mu_shape_str(&t->shape), mu_pshape_str(shape->shape));
	return identity_forward(c, err);
}

static int ensure_shape(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *shape = mu_node_attr(c->node, "shape");
	const struct mu_tensor *t = kernel_in(c, 0);

	if (shape && shape->kind == MU_ATTR_SHAPE && !mu_shape_matches(&t->shape, shape->shape))
		return mu_invalid(err,
				  "Shape of tensor %s %s is not compatible with expected shape %s.",
				  c->node->inputs[0].node->name, mu_shape_str(&t->shape),
				  mu_pshape_str(shape->shape));
	return identity_forward(c, err);
}

/* ---- arguments and return values of functions ---- */

static int frame_of(const struct kernel_call *c, struct call_frame **out, int64_t *index,
		    struct mu_err *err)
{
	*out = c->step ? step_call_frame(c->step) : NULL;
	*index = args_attr_int(c->node, "index", -1);
	if (!*out)
		return mu_fail(err, MU_INTERNAL, "no call frame");
	return 0;
}

static int arg_run(struct kernel_call *c, struct mu_err *err)
{
	struct call_frame *f;
	int64_t i;

	MU_RETURN_IF_ERROR(frame_of(c, &f, &i, err));
	if (i < 0 || i >= f->n_in || f->in[i].dtype != args_attr_type(c->node, "T", MU_DT_INVALID))
		return mu_invalid(err, "argument %lld is missing or not a %s", (long long)i,
				  mu_dtype_name(args_attr_type(c->node, "T", MU_DT_INVALID)));
	kernel_out_take(c, 0, mu_tensor_ref(&f->in[i]));
	return 0;
}

static int retval_run(struct kernel_call *c, struct mu_err *err)
{
	struct call_frame *f;
	int64_t i;

	MU_RETURN_IF_ERROR(frame_of(c, &f, &i, err));
	if (i < 0 || i >= f->n_out || mu_tensor_is_set(&f->out[i]))
		return mu_invalid(err, "output %lld is set twice or does not exist", (long long)i);
	f->out[i] = mu_tensor_ref(kernel_in(c, 0));
	return 0;
}

static int timestamp(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out_scalar(c, 0, MU_DOUBLE, &out, err));
	*MU_DATA(double, out) = mu_wall();
	return 0;
}

/* Outputs the index of this device's type in device_names, or the length of the list. */
static int device_index(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *names = mu_node_attr(c->node, "device_names");
	int32_t at = 0, n = names ? (int32_t)names->n : 0;

	while (at < n && strcmp(names->ss[at].data, "CPU"))
		at++;
	return kernel_out_value(c, 0, MU_INT32, &at, err);
}

/* FakeParam stands for an output that a branch of If does not compute. No node reads the tensor, so
 * it is zeros, and unknown dimensions are 0. */
static int fake_param(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *attr = mu_node_attr(c->node, "shape");
	struct mu_pshape shape = *attr->shape;
	struct mu_tensor *out;

	for (int d = 0; d < shape.rank; d++)
		if (shape.dim[d] < 0)
			shape.dim[d] = 0;
	MU_RETURN_IF_ERROR(kernel_out_dims(c, 0, args_attr_type(c->node, "dtype", MU_FLOAT),
					   shape.rank < 0 ? 0 : shape.rank, shape.dim, &out, err));
	elems_zero(out->dtype, out->data, 0, out->shape.count);
	return 0;
}

static const struct kernel rows[] = {
    {"_Arg", KERNEL_NO_FOLD, .run = arg_run},
    {"_Retval", KERNEL_NO_FOLD, .run = retval_run},
    {"NoOp", .run = no_op},
    {"Identity IdentityN DebugGradientIdentity StopGradient PreventGradient Snapshot "
     "GuaranteeConst WrapDatasetVariant UnwrapDatasetVariant",
     .run = identity_forward},
    {"EnsureShape", .run = ensure_shape},
    {"Const", .run = const_run, .prepare = const_prepare, .release = const_release},
    {"Placeholder PlaceholderV2", .run = fail_unfed_placeholder},
    {"PlaceholderWithDefault", .run = placeholder_with_default},
    {"DeviceIndex", .run = device_index},
    {"FakeParam", .run = fake_param},
    {"Timestamp", KERNEL_NO_FOLD, .run = timestamp},
};
KERNEL_TABLE(control_identity, rows)
