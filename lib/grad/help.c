/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of gradient functions. Only these helpers sum gradients to the shape before a broadcast:
 * with static shapes if they are known, else at run time. */
#include "lib/grad/op_grads.h"
#include "lib/ops/op_def.h"

bool grad_is_trainable(enum mu_dtype t)
{
	return t == MU_FLOAT || t == MU_DOUBLE || mu_dtype_is_16_bit_float(t) ||
	       mu_dtype_is_complex(t) || t == MU_VARIANT;
}

struct mu_out grad_number(struct mu_builder *b, struct mu_out like, double v)
{
	return builder_number(b, mu_dtype_base(mu_out_dtype(b, like)), v);
}

struct mu_out grad_scale(struct mu_builder *b, struct mu_out x, double factor)
{
	return mu_mul(b, x, grad_number(b, x, factor));
}

struct mu_out grad_shape(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "Shape", MU_IN(x));
}

struct mu_out grad_size(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "Size", MU_IN(x));
}

struct mu_out grad_zeros(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "ZerosLike", MU_IN(x));
}

struct mu_out grad_flat(struct mu_builder *b, struct mu_out x)
{
	return mu_reshape(b, x, mu_const_ints(b, (int32_t[]){-1}, 1));
}

struct mu_out grad_int(struct mu_builder *b, int64_t v)
{
	return mu_const_int(b, MU_INT32, v);
}

struct mu_out grad_single(struct mu_builder *b, int32_t v)
{
	return mu_const_ints(b, &v, 1);
}

struct mu_out grad_slice(struct mu_builder *b, struct mu_out v, int from, int to)
{
	return mu_op(b, "StridedSlice",
		     MU_IN(v, grad_single(b, from), grad_single(b, to), grad_single(b, 1)),
		     MU_ATTRS(MU_A_INT("end_mask", to == 0)));
}

struct mu_out grad_like(struct mu_builder *b, struct mu_out x, struct mu_out like)
{
	return mu_reshape(b, x, grad_shape(b, like));
}

struct mu_out grad_where(struct mu_builder *b, struct mu_out cond, struct mu_out x)
{
	return mu_op(b, "Select", MU_IN(cond, x, grad_zeros(b, x)));
}

struct mu_out grad_indicator(struct mu_builder *b, struct mu_out cond, struct mu_out like)
{
	return mu_cast(b, cond, mu_dtype_base(mu_out_dtype(b, like)));
}

static bool same_static_shape(const struct mu_pshape *x, const struct mu_pshape *y)
{
	if (x->rank < 0 || x->rank != y->rank)
		return false;
	for (int i = 0; i < x->rank; i++)
		if (x->dim[i] < 0 || x->dim[i] != y->dim[i])
			return false;
	return true;
}

void grad_unbroadcast(struct grad_call *c, unsigned i, struct mu_out gi, unsigned j,
		      struct mu_out gj)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, i), y = grad_in(c, j), sx, sy, axes;

	if (builder_failed(b))
		return;
	c->gx[i] = gi;
	c->gx[j] = gj;
	if (same_static_shape(mu_out_shape(b, x), mu_out_shape(b, y)))
		return;
	sx = grad_shape(b, x);
	sy = grad_shape(b, y);
	axes = mu_op(b, "BroadcastGradientArgs", MU_IN(sx, sy));
	c->gx[i] = mu_reshape(b, mu_op(b, "Sum", MU_IN(gi, axes)), sx);
	c->gx[j] = mu_reshape(b, mu_op(b, "Sum", MU_IN(gj, mu_port(axes, 1))), sy);
}

struct mu_out grad_sum_to(struct mu_builder *b, struct mu_out g, struct mu_out x)
{
	struct mu_out sx = grad_shape(b, x);
	struct mu_out axes = mu_op(b, "BroadcastGradientArgs", MU_IN(sx, grad_shape(b, g)));

	return mu_reshape(b, mu_op(b, "Sum", MU_IN(g, axes)), sx);
}

struct mu_out grad_matrix_product(struct mu_builder *b, struct mu_out x, bool tx, struct mu_out y,
				  bool ty)
{
	return mu_op(b, "BatchMatMulV2", MU_IN(x, y),
		     MU_ATTRS(MU_A_BOOL("adj_x", tx), MU_A_BOOL("adj_y", ty)));
}

struct mu_out grad_op(struct grad_call *c, const char *op, const struct mu_out *in, unsigned n)
{
	const struct mu_op_def *def = mu_op_find(op);
	struct mu_node_attr attrs[16];
	unsigned k = 0;

	/* Type attributes are derived from the inputs, because their types may differ from the
	 * types of the node. */
	for (unsigned i = 0; def && i < c->node->n_attrs && k < MU_COUNT(attrs); i++)
		if (mu_op_attr(def, c->node->attrs[i].name) &&
		    c->node->attrs[i].value.kind != MU_ATTR_TYPE)
			attrs[k++] = c->node->attrs[i];
	return mu_op_add(c->b, &(struct mu_op_args){
				   .op = op, .in = in, .n_in = n, .attrs = attrs, .n_attrs = k});
}

bool grad_attr_bool(const struct grad_call *c, const char *name)
{
	bool v = false;

	mu_node_attr_bool(c->node, name, &v, NULL);
	return v;
}

void grad_unsupported(struct grad_call *c, const char *reason)
{
	mu_builder_fail(c->b, MU_UNIMPLEMENTED, "op %s (node '%s') has no gradient %s", c->node->op,
			c->node->name, reason);
}
