/* SPDX-License-Identifier: Apache-2.0 */
/* Calls, branches and loops: ops whose attributes name functions.
 *
 * An op has its stateless form if all its functions are stateless. An output shape is known if it
 * is the same in all functions.
 */
#include "lib/builder/fn.h"

/* With this attribute, TensorFlow's server lowers the op to Switch, Merge and frames. Muster always
 * lowers it. */
#define LOWERED MU_A_BOOL("_lower_using_switch_merge", true)
#define A_FUNC(k, f)                                                                               \
	((struct mu_node_attr){(k), {.kind = MU_ATTR_FUNC, .func = &(struct mu_func){.name = (f)}}})

/* True if f has arguments of these types. False for MU_DT_INVALID. */
static bool accepts_inputs(struct mu_builder *b, const char *op, const struct mu_fn *f,
			   const struct mu_out *in, unsigned n)
{
	if (builder_failed(b) || !f)
		return false;
	if (f->n_args != n)
		mu_builder_fail(b, MU_INVALID_ARGUMENT, "%s: function %s has %u arguments, not %u",
				op, f->name, f->n_args, n);
	for (unsigned i = 0; i < n && !builder_failed(b); i++)
		if (mu_dtype_base(mu_out_dtype(b, in[i])) != mu_out_dtype(f->b, f->args[i]))
			mu_builder_fail(b, MU_INVALID_ARGUMENT,
					"%s: argument %u of function %s is %s, %s was given", op, i,
					f->name, mu_dtype_name(mu_out_dtype(f->b, f->args[i])),
					mu_dtype_name(mu_dtype_base(mu_out_dtype(b, in[i]))));
	return !builder_failed(b);
}

static bool same_outputs(struct mu_builder *b, const char *op, const struct mu_fn *f,
			 const struct mu_fn *g)
{
	bool same = f->n_outs == g->n_outs;

	for (unsigned i = 0; same && i < f->n_outs; i++)
		same = mu_dtype_base(mu_out_dtype(f->b, f->outs[i])) ==
		       mu_dtype_base(mu_out_dtype(g->b, g->outs[i]));
	if (!same)
		mu_builder_fail(
		    b, MU_INVALID_ARGUMENT,
		    "%s: functions %s and %s differ in the number or types of their outputs", op,
		    f->name, g->name);
	return same;
}

static const enum mu_dtype *types_of(struct mu_builder *b, const struct mu_fn *f)
{
	enum mu_dtype *types = MU_ARENA_ARRAY(&b->graph->arena, enum mu_dtype, f->n_outs + 1);

	for (unsigned i = 0; i < f->n_outs; i++)
		types[i] = mu_dtype_base(mu_out_dtype(f->b, f->outs[i]));
	return types;
}

static bool same_shape(const struct mu_pshape *x, const struct mu_pshape *y)
{
	if (x->rank != y->rank)
		return false;
	for (int k = 0; k < x->rank; k++)
		if (x->dim[k] != y->dim[k])
			return false;
	return true;
}

/* Sets the shape of each output whose shape is equal in all functions. */
static void set_output_shapes(struct mu_builder *b, struct mu_out o, const struct mu_fn *const *f,
			      unsigned n)
{
	for (unsigned i = 0; o.node && i < f[0]->n_outs; i++) {
		const struct mu_pshape *shape = mu_out_shape(f[0]->b, f[0]->outs[i]);
		bool same = true;

		for (unsigned k = 1; k < n; k++)
			same &= same_shape(shape, mu_out_shape(f[k]->b, f[k]->outs[i]));
		if (same)
			builder_set_shape(b, mu_port(o, (int)i), shape);
	}
}

struct mu_out mu_call(struct mu_builder *b, const struct mu_fn *f, const struct mu_out *in,
		      unsigned n)
{
	if (!accepts_inputs(b, "mu_call", f, in, n))
		return MU_NO_OUT;
	struct mu_node_attr attrs[] = {
	    MU_A_TYPES("Tout", (enum mu_dtype *)types_of(b, f), f->n_outs), A_FUNC("f", f->name)};
	struct mu_out o =
	    mu_op_add(b, &(struct mu_op_args){.op = f->stateful ? "StatefulPartitionedCall"
								: "PartitionedCall",
					      .name = f->name,
					      .in = in,
					      .n_in = n,
					      .attrs = attrs,
					      .n_attrs = MU_COUNT(attrs)});

	set_output_shapes(b, o, &f, 1);
	return o;
}

/* Adds a branch op. The first input, `selector`, is the condition or index. */
static struct mu_out branch(struct mu_builder *b, const char *op, struct mu_out selector,
			    const struct mu_out *in, unsigned n, const struct mu_node_attr *attrs,
			    unsigned n_attrs)
{
	struct mu_out *inputs = MU_NEW_ARRAY(struct mu_out, n + 1), o;

	inputs[0] = selector;
	if (n)
		memcpy(inputs + 1, in, n * sizeof(*in));
	o = mu_op_add(
	    b, &(struct mu_op_args){
		   .op = op, .in = inputs, .n_in = n + 1, .attrs = attrs, .n_attrs = n_attrs});
	free(inputs);
	return o;
}

struct mu_out mu_if(struct mu_builder *b, struct mu_out pred, const struct mu_fn *then_fn,
		    const struct mu_fn *else_fn, const struct mu_out *in, unsigned n)
{
	const struct mu_fn *branches[] = {then_fn, else_fn};

	if (!accepts_inputs(b, "mu_if", then_fn, in, n) ||
	    !accepts_inputs(b, "mu_if", else_fn, in, n) ||
	    !same_outputs(b, "mu_if", then_fn, else_fn))
		return MU_NO_OUT;
	struct mu_node_attr attrs[] = {
	    MU_A_TYPES("Tout", (enum mu_dtype *)types_of(b, then_fn), then_fn->n_outs),
	    A_FUNC("then_branch", then_fn->name), A_FUNC("else_branch", else_fn->name), LOWERED};
	struct mu_out o = branch(b, then_fn->stateful || else_fn->stateful ? "If" : "StatelessIf",
				 pred, in, n, attrs, MU_COUNT(attrs));

	set_output_shapes(b, o, branches, 2);
	return o;
}

struct mu_out mu_case(struct mu_builder *b, struct mu_out index,
		      const struct mu_fn *const *branches, unsigned n_branches,
		      const struct mu_out *in, unsigned n)
{
	struct mu_func *funcs = MU_ARENA_ARRAY(&b->graph->arena, struct mu_func, n_branches + 1);
	bool stateful = false;

	if (!n_branches)
		mu_builder_fail(b, MU_INVALID_ARGUMENT, "mu_case: at least one branch is needed");
	for (unsigned i = 0; i < n_branches; i++) {
		if (!accepts_inputs(b, "mu_case", branches[i], in, n) ||
		    !same_outputs(b, "mu_case", branches[0], branches[i]))
			return MU_NO_OUT;
		funcs[i].name = branches[i]->name;
		stateful |= branches[i]->stateful;
	}
	if (builder_failed(b))
		return MU_NO_OUT;
	struct mu_node_attr attrs[] = {
	    MU_A_TYPES("Tout", (enum mu_dtype *)types_of(b, branches[0]), branches[0]->n_outs),
	    {"branches", {.kind = MU_ATTR_LIST + MU_ATTR_FUNC, .n = n_branches, .funcs = funcs}},
	    LOWERED};
	struct mu_out o =
	    branch(b, stateful ? "Case" : "StatelessCase", index, in, n, attrs, MU_COUNT(attrs));

	set_output_shapes(b, o, branches, n_branches);
	return o;
}

/* True if the outputs of the body have the types and shapes of the loop variables. */
static bool body_matches_variables(struct mu_builder *b, const struct mu_fn *body)
{
	if (body->n_outs != body->n_args)
		mu_builder_fail(b, MU_INVALID_ARGUMENT,
				"mu_while: function %s returns %u outputs for %u variables",
				body->name, body->n_outs, body->n_args);
	for (unsigned i = 0; i < body->n_outs && !builder_failed(b); i++) {
		enum mu_dtype var_type = mu_out_dtype(body->b, body->args[i]);
		enum mu_dtype out_type = mu_dtype_base(mu_out_dtype(body->b, body->outs[i]));
		const struct mu_pshape *var_shape = mu_out_shape(body->b, body->args[i]);
		const struct mu_pshape *out_shape = mu_out_shape(body->b, body->outs[i]);
		bool is_compatible = var_shape->rank < 0 || out_shape->rank < 0 ||
				     var_shape->rank == out_shape->rank;

		for (int k = 0; is_compatible && out_shape->rank >= 0 && k < var_shape->rank; k++)
			is_compatible = var_shape->dim[k] < 0 || out_shape->dim[k] < 0 ||
					var_shape->dim[k] == out_shape->dim[k];
		if (var_type != out_type)
			mu_builder_fail(b, MU_INVALID_ARGUMENT,
					"mu_while: variable %u is %s, function %s makes it %s", i,
					mu_dtype_name(var_type), body->name,
					mu_dtype_name(out_type));
		else if (!is_compatible)
			mu_builder_fail(b, MU_INVALID_ARGUMENT,
					"mu_while: variable %u is of shape %s, which function %s "
					"changes: use a less specific shape",
					i, mu_pshape_str(var_shape), body->name);
	}
	return !builder_failed(b);
}

struct mu_out mu_while(struct mu_builder *b, const struct mu_fn *cond, const struct mu_fn *body,
		       const struct mu_out *vars, unsigned n)
{
	if (!accepts_inputs(b, "mu_while", cond, vars, n) ||
	    !accepts_inputs(b, "mu_while", body, vars, n) || !body_matches_variables(b, body))
		return MU_NO_OUT;
	if (cond->n_outs != 1) {
		mu_builder_fail(b, MU_INVALID_ARGUMENT,
				"mu_while: the condition %s returns %u outputs, not 1", cond->name,
				cond->n_outs);
		return MU_NO_OUT;
	}
	struct mu_node_attr attrs[] = {A_FUNC("cond", cond->name), A_FUNC("body", body->name),
				       LOWERED};
	struct mu_out o =
	    mu_op_add(b, &(struct mu_op_args){
			     .op = cond->stateful || body->stateful ? "While" : "StatelessWhile",
			     .in = vars,
			     .n_in = n,
			     .attrs = attrs,
			     .n_attrs = MU_COUNT(attrs)});

	for (unsigned i = 0; o.node && i < n; i++)
		builder_set_shape(b, mu_port(o, (int)i), mu_out_shape(body->b, body->args[i]));
	return o;
}
