/* SPDX-License-Identifier: Apache-2.0 */
/* One function per common op; each is a short wrapper of mu_op. */
#include "lib/builder/builder.h"

struct mu_out mu_const(struct mu_builder *b, const char *name, const struct mu_tensor *value)
{
	/* The graph takes a reference to the tensor and does not modify it. */
	struct mu_tensor t = *value;

	return mu_op(b, "Const", .name = name,
		     MU_ATTRS(MU_A_TYPE("dtype", t.dtype), MU_A_TENSOR("value", &t)));
}

/* Creates a constant from an array in memory. */
static struct mu_out const_of(struct mu_builder *b, enum mu_dtype dtype, struct mu_shape shape,
			      const void *data, size_t size)
{
	MU_AUTO_TENSOR t = {0};

	if (builder_failed(b) || mu_tensor_new(&t, dtype, &shape, &b->err))
		return MU_NO_OUT;
	if (size)
		memcpy(t.data, data, size);
	return mu_const(b, NULL, &t);
}

struct mu_out mu_const_float(struct mu_builder *b, float v)
{
	return const_of(b, MU_FLOAT, mu_shape_scalar(), &v, sizeof(v));
}

struct mu_out mu_const_double(struct mu_builder *b, double v)
{
	return const_of(b, MU_DOUBLE, mu_shape_scalar(), &v, sizeof(v));
}

struct mu_out mu_const_int(struct mu_builder *b, enum mu_dtype dtype, int64_t v)
{
	int32_t narrow = (int32_t)v;

	if (dtype == MU_INT64)
		return const_of(b, dtype, mu_shape_scalar(), &v, sizeof(v));
	if (dtype != MU_INT32 || narrow != v)
		mu_builder_fail(b, MU_INVALID_ARGUMENT,
				"mu_const_int: %lld is no value of type %s, which must be int32 or "
				"int64",
				(long long)v, mu_dtype_name(dtype));
	return const_of(b, MU_INT32, mu_shape_scalar(), &narrow, sizeof(narrow));
}

struct mu_out mu_const_ints(struct mu_builder *b, const int32_t *v, unsigned n)
{
	return const_of(b, MU_INT32, mu_shape_vec(n), v, n * sizeof(*v));
}

struct mu_out mu_const_str(struct mu_builder *b, const char *s)
{
	MU_AUTO_TENSOR t = {0};

	if (builder_failed(b) || mu_tensor_string(&t, s, strlen(s), &b->err))
		return MU_NO_OUT;
	return mu_const(b, NULL, &t);
}

struct mu_out mu_const_strs(struct mu_builder *b, const char *const *s, unsigned n)
{
	MU_AUTO_TENSOR t = {0};
	struct mu_shape shape = mu_shape_vec(n);

	if (builder_failed(b) || mu_tensor_new(&t, MU_STRING, &shape, &b->err))
		return MU_NO_OUT;
	for (unsigned i = 0; i < n; i++)
		mu_string_set(&MU_DATA(struct mu_string, &t)[i], s[i], strlen(s[i]));
	return mu_const(b, NULL, &t);
}

struct mu_out mu_placeholder(struct mu_builder *b, const char *name, enum mu_dtype dtype,
			     struct mu_pshape shape)
{
	return mu_op(b, "Placeholder", .name = name,
		     MU_ATTRS(MU_A_TYPE("dtype", dtype), MU_A_SHAPE("shape", &shape)));
}

struct mu_out mu_no_op(struct mu_builder *b, const char *name)
{
	return mu_op(b, "NoOp", .name = name);
}

static struct mu_out no_op_after(struct mu_builder *b, const char *name, const struct mu_out *deps,
				 unsigned n)
{
	mu_push_control(b, deps, n);
	struct mu_out o = mu_no_op(b, name);
	mu_pop_control(b);
	return o;
}

/* Replaces the operations on the device of the first one by a NoOp on that device, so that only one
 * edge leaves the device. Moves the other operations to the front of `deps` and returns their
 * number. */
static unsigned group_first_device(struct mu_builder *b, const char *name, struct mu_out *deps,
				   unsigned n, struct mu_out *out)
{
	const char *device = deps[0].node->device;
	struct mu_out *on_device = MU_NEW_ARRAY(struct mu_out, n);
	unsigned n_on_device = 0, n_other = 0;

	for (unsigned i = 0; i < n; i++)
		if (strcmp(deps[i].node->device, device) == 0)
			on_device[n_on_device++] = deps[i];
		else
			deps[n_other++] = deps[i];
	*out = on_device[0];
	if (n_on_device > 1) {
		mu_push_device(b, device);
		*out = no_op_after(b, name, on_device, n_on_device);
		mu_pop_device(b);
	}
	free(on_device);
	return n_other;
}

struct mu_out mu_group(struct mu_builder *b, const char *name, const struct mu_out *deps,
		       unsigned n)
{
	struct mu_out *remaining = MU_NEW_ARRAY(struct mu_out, n + 1), *device_ops, o;
	unsigned n_devices = 0, n_remaining = 0;
	const char *part = mu_arena_printf(&b->graph->arena, "%s/device", name);

	for (unsigned i = 0; i < n; i++)
		if (deps[i].node)
			remaining[n_remaining++] = deps[i];
	device_ops = MU_NEW_ARRAY(struct mu_out, n_remaining + 1);
	while (n_remaining && !builder_failed(b))
		n_remaining =
		    group_first_device(b, part, remaining, n_remaining, &device_ops[n_devices++]);
	o = no_op_after(b, name, device_ops, n_devices);
	free(remaining);
	free(device_ops);
	return o;
}

#define UNARY(fn, op_name)                                                                         \
	struct mu_out fn(struct mu_builder *b, struct mu_out x)                                    \
	{                                                                                          \
		return mu_op(b, op_name, MU_IN(x));                                                \
	}
#define BINARY(fn, op_name)                                                                        \
	struct mu_out fn(struct mu_builder *b, struct mu_out x, struct mu_out y)                   \
	{                                                                                          \
		return mu_op(b, op_name, MU_IN(x, y));                                             \
	}
UNARY(mu_identity, "Identity")
UNARY(mu_neg, "Neg")
UNARY(mu_square, "Square")
UNARY(mu_exp, "Exp")
UNARY(mu_ln, "Log")
UNARY(mu_relu, "Relu")
UNARY(mu_tanh, "Tanh")
UNARY(mu_sigmoid, "Sigmoid")
UNARY(mu_softmax, "Softmax")
BINARY(mu_add, "AddV2")
BINARY(mu_sub, "Sub")
BINARY(mu_mul, "Mul")
BINARY(mu_div, "RealDiv")
BINARY(mu_matmul, "MatMul")
BINARY(mu_bias_add, "BiasAdd")
BINARY(mu_equal, "Equal")
BINARY(mu_reshape, "Reshape")

struct mu_out mu_matmul_t(struct mu_builder *b, struct mu_out x, bool tx, struct mu_out y, bool ty)
{
	return mu_op(b, "MatMul", MU_IN(x, y),
		     MU_ATTRS(MU_A_BOOL("transpose_a", tx), MU_A_BOOL("transpose_b", ty)));
}

struct mu_out mu_cast(struct mu_builder *b, struct mu_out x, enum mu_dtype to)
{
	return mu_op(b, "Cast", MU_IN(x), MU_ATTRS(MU_A_TYPE("DstT", to)));
}

struct mu_out builder_number(struct mu_builder *b, enum mu_dtype type, double v)
{
	if (type == MU_INT32 || type == MU_INT64)
		return mu_const_int(b, type, (int64_t)v);
	if (type == MU_FLOAT)
		return mu_const_float(b, (float)v);
	return type == MU_DOUBLE ? mu_const_double(b, v) : mu_cast(b, mu_const_double(b, v), type);
}

struct mu_out mu_argmax(struct mu_builder *b, struct mu_out x, int dim)
{
	return mu_op(b, "ArgMax", MU_IN(x, mu_const_int(b, MU_INT32, dim)));
}

static struct mu_out reduce(struct mu_builder *b, const char *op, struct mu_out x,
			    const int32_t *axes, unsigned n)
{
	int32_t all_axes[MU_MAX_RANK];
	int rank = mu_out_shape(b, x)->rank;
	struct mu_out axes_input;

	for (int i = 0; i < rank; i++)
		all_axes[i] = i;
	if (n || rank >= 0)
		axes_input = mu_const_ints(b, n ? axes : all_axes, n ? n : (unsigned)rank);
	else
		axes_input = mu_op(b, "Range",
				   MU_IN(mu_const_int(b, MU_INT32, 0), mu_op(b, "Rank", MU_IN(x)),
					 mu_const_int(b, MU_INT32, 1)));
	return mu_op(b, op, MU_IN(x, axes_input));
}

struct mu_out mu_sum(struct mu_builder *b, struct mu_out x, const int32_t *axes, unsigned n)
{
	return reduce(b, "Sum", x, axes, n);
}

struct mu_out mu_mean(struct mu_builder *b, struct mu_out x, const int32_t *axes, unsigned n)
{
	return reduce(b, "Mean", x, axes, n);
}

BINARY(mu_softmax_xent, "SoftmaxCrossEntropyWithLogits")
BINARY(mu_sparse_softmax_xent, "SparseSoftmaxCrossEntropyWithLogits")
