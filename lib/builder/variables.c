/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: VariableV2, its read op, its initial value and the op that assigns it.
 *
 * The initial value is computed on the device of the variable, so it does not cross the network.
 */
#include "lib/builder/builder.h"

static struct mu_out initial_value(struct mu_builder *b, const struct mu_var *v,
				   struct mu_init init)
{
	int32_t dims[MU_MAX_RANK];
	struct mu_out shape, random, value;

	if (init.kind == MU_INIT_TENSOR)
		return mu_const(b, NULL, init.tensor);
	for (int i = 0; i < v->shape.rank; i++)
		dims[i] = (int32_t)v->shape.dim[i];
	shape = mu_const_ints(b, dims, (unsigned)v->shape.rank);
	if (init.kind == MU_INIT_VALUE) {
		value = builder_number(b, v->dtype, init.value);
		return v->shape.rank ? mu_op(b, "Fill", MU_IN(shape, value)) : value;
	}
	random = mu_op(b, init.kind == MU_INIT_NORMAL ? "TruncatedNormal" : "RandomUniform",
		       MU_IN(shape),
		       MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT), MU_A_INT("seed", init.seed),
				MU_A_INT("seed2", init.seed ? (int64_t)b->vars.n + 1 : 0)));
	if (init.kind == MU_INIT_UNIFORM) /* maps [0,1) to [-bound, bound) */
		random = mu_sub(b, mu_mul(b, random, mu_const_float(b, 2)), mu_const_float(b, 1));
	value = mu_mul(b, random, mu_const_float(b, (float)init.value));
	return v->dtype == MU_FLOAT ? value : mu_cast(b, value, v->dtype);
}

struct mu_var *mu_variable(struct mu_builder *b, const char *name, enum mu_dtype dtype,
			   struct mu_pshape shape, struct mu_init init, bool trainable)
{
	struct mu_var *v;
	struct mu_out value;

	if (b->outer)
		mu_builder_fail(b, MU_INVALID_ARGUMENT,
				"variable '%s' is created within a function: create it outside and "
				"pass its value to the function",
				name);
	if (init.kind == MU_INIT_TENSOR && !init.tensor)
		mu_builder_fail(b, MU_INVALID_ARGUMENT, "variable '%s' gets no initial tensor",
				name);
	if (builder_failed(b))
		return NULL;
	for (int i = 0; i < shape.rank || shape.rank < 0; i++)
		if (shape.rank < 0 || shape.dim[i] < 0 || shape.dim[i] > INT32_MAX) {
			mu_builder_fail(b, MU_INVALID_ARGUMENT,
					"variable '%s': every dimension must be known, got %s",
					name, mu_pshape_str(&shape));
			return NULL;
		}
	v = MU_ARENA_NEW(&b->graph->arena, struct mu_var);
	v->dtype = dtype;
	v->shape = shape;
	v->trainable = trainable;
	v->ref = mu_op(b, "VariableV2", .name = name,
		       MU_ATTRS(MU_A_TYPE("dtype", dtype), MU_A_SHAPE("shape", &v->shape)));
	if (builder_failed(b))
		return NULL;
	v->name = v->ref.node->name;
	mu_push_device(b, v->ref.node->device);
	value = initial_value(b, v, init);
	v->init = mu_assign(b, v, value);
	v->read = mu_op(b, "Identity", .name = mu_arena_printf(&b->graph->arena, "%s/read", name),
			MU_IN(v->ref));
	mu_pop_device(b);
	if (builder_failed(b))
		return NULL;
	builder_list_push(&b->vars, v);
	return v;
}

unsigned mu_var_count(const struct mu_builder *b)
{
	return b->vars.n;
}

struct mu_var *mu_var_at(const struct mu_builder *b, unsigned i)
{
	return i < b->vars.n ? b->vars.items[i] : NULL;
}

struct mu_out mu_assign(struct mu_builder *b, struct mu_var *v, struct mu_out value)
{
	if (builder_failed(b) || !v)
		return MU_NO_OUT;
	mu_push_device(b, v->ref.node->device);
	struct mu_out o = mu_op(b, "Assign", MU_IN(v->ref, value));
	mu_pop_device(b);
	return o;
}

struct mu_var *mu_global_step(struct mu_builder *b)
{
	if (!b->global_step)
		b->global_step =
		    mu_variable(b, "global_step", MU_INT64, MU_SCALAR, MU_ZEROS, false);
	return b->global_step;
}

struct mu_out mu_init_all(struct mu_builder *b)
{
	struct mu_out *inits = MU_NEW_ARRAY(struct mu_out, b->vars.n + 1);

	for (unsigned i = 0; i < b->vars.n; i++)
		inits[i] = mu_var_at(b, i)->init;
	struct mu_out o = mu_group(b, "init", inits, b->vars.n);
	free(inits);
	return o;
}
