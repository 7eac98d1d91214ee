/* SPDX-License-Identifier: Apache-2.0 */
/* Partial assignment of variables, and temporary variables that live for a few nodes of one step.
 */
#include "task/kernels/array/strided.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/state/variables.h"

/* ---- var[begin:end:stride] = value ---- */

static int strided_assign(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *value = kernel_in(c, 4);
	VARIABLES_AUTO vs = {0};
	struct strided s;

	MU_RETURN_IF_ERROR(variables_lock(c, 1, &vs, err));
	MU_RETURN_IF_ERROR(strided_read(&s, c, 1, &vs.t[0]->shape, err));
	struct mu_tensor *to = vs.t[0];
	if (value->dtype != to->dtype)
		return mu_invalid(err, "l-value dtype %s does not match r-value dtype %s",
				  mu_dtype_name(to->dtype), mu_dtype_name(value->dtype));
	MU_AUTO_TENSOR filled = {0};
	const struct mu_tensor *from = value;
	if (!s.shape.count) { /* an empty slice: nothing is assigned, and the shape of the value
				 does not matter */
		variable_forward(c);
		return 0;
	}
	if (!value->shape.rank && s.shape.rank) { /* a scalar for all elements */
		MU_RETURN_IF_ERROR(move_scratch(c, value->dtype, &s.shape, &filled, err));
		MU_RETURN_IF_ERROR(move_fill(&filled, value, err));
		from = &filled;
	} else if (!mu_shape_eq(&s.shape, &value->shape)) {
		return mu_invalid(err,
				  "shape of value was %s instead of %s: the assigned value does "
				  "not fit the slice",
				  mu_shape_str(&value->shape), mu_shape_str(&s.shape));
	}
	MU_RETURN_IF_ERROR(move_write(to, &s.view, from, err));
	variable_forward(c);
	return 0;
}

/* ---- TemporaryVariable: in the step's container, named by op, frame and iteration ---- */

static char *temporary_name(const struct kernel_call *c)
{
	const char *name = args_attr_string(c->node, "var_name", "");

	return mu_xasprintf("%s/frame:%llu/iter:%llu", *name ? name : c->node->name, c->frame,
			    c->iter);
}

static struct resource *variable_parts_share(void *arg, struct mu_err *err)
{
	resource_ref(arg);
	return arg;
}

static int temporary_variable(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *shape = mu_node_attr(c->node, "shape");
	MU_AUTO_FREE char *name = temporary_name(c);
	enum mu_dtype dtype = args_attr_type(c->node, "dtype", MU_DT_INVALID);
	struct mu_shape full;
	struct resource *found;
	struct mu_tensor t;
	int rc = 0;

	if (!shape || shape->kind != MU_ATTR_SHAPE || shape->shape->rank < 0 || !c->step)
		return mu_invalid(err, "a temporary variable needs a shape");
	MU_RETURN_IF_ERROR(mu_shape_set(&full, shape->shape->rank, shape->shape->dim, err));
	MU_RETURN_IF_ERROR(move_scratch(c, dtype, &full, &t, err));
	if ((rc = move_fill(&t, NULL, err))) {
		mu_tensor_unref(&t);
		return rc;
	}
	struct variable *v = variable_new(dtype, shape->shape);
	variable_assign(v, t);
	rc = resources_find_or_create(c->runtime->resources, step_own_container(c->step), name,
				      &variable_type, variable_parts_share, &v->base, &found, err);
	if (!rc)
		resource_unref(found);
	if (!rc && found != &v->base)
		rc = mu_fail(err, MU_ALREADY_EXISTS, "the temporary variable '%s' is there already",
			     name);
	if (!rc)
		kernel_out_ref(c, 0, v);
	resource_unref(&v->base);
	return rc;
}

static int destroy_temporary(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_FREE char *name = temporary_name(c);
	struct variable *v = c->in[0].ref;
	struct mu_tensor t;

	if (!v || !c->step)
		return mu_invalid(err, "input 0 must be a reference");
	if (!*args_attr_string(c->node, "var_name", ""))
		return mu_invalid(err, "Missing var_name attribute");
	MU_RETURN_IF_ERROR(variable_read(v, &t, err));
	kernel_out_take(c, 0, t);
	return resources_remove(c->runtime->resources, step_own_container(c->step), name,
				variable_type.name, err);
}

/* Outputs the reference of input 0. */
static int ref_identity(struct kernel_call *c, struct mu_err *err)
{
	if (!c->in[0].ref)
		return mu_invalid(err, "input 0 must be a reference");
	kernel_out_ref(c, 0, c->in[0].ref);
	return 0;
}

static const struct kernel rows[] = {
    {"StridedSliceAssign ResourceStridedSliceAssign", .run = strided_assign},
    {"TemporaryVariable", .run = temporary_variable},
    {"DestroyTemporaryVariable", .run = destroy_temporary},
    {"RefIdentity DebugGradientRefIdentity", .run = ref_identity},
};
KERNEL_TABLE(state_variable_parts, rows)
