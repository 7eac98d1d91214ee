/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, reading and assignment of variables, by reference and by handle. */
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/state/variables.h"

struct variable_spec {
	const struct resource_type *type;
	enum mu_dtype dtype;
	struct mu_pshape shape;
};

static struct resource *create_variable(void *arg, struct mu_err *err)
{
	const struct variable_spec *w = arg;
	struct resource *r = &variable_new(w->dtype, &w->shape)->base;

	r->type = w->type;
	return r;
}

static int find_or_create(const struct kernel_call *c, const char *container, const char *name,
			  struct variable_spec *w, struct variable **out, struct mu_err *err)
{
	struct resource *r;
	int rc = 0;

	MU_RETURN_IF_ERROR(resources_find_or_create(c->runtime->resources, container, name, w->type,
						    create_variable, w, &r, err));
	struct variable *v = MU_CONTAINER(r, struct variable, base);
	if (v->dtype != w->dtype) {
		rc = mu_invalid(err,
				"Trying to access variable %s with wrong dtype. Expected %s got %s",
				name, mu_dtype_name(v->dtype), mu_dtype_name(w->dtype));
		variable_put(v);
		return rc;
	}
	*out = v;
	return 0;
}

static int read_variable_spec(const struct kernel_call *c, const struct resource_type *type,
			      struct variable_spec *w, struct mu_err *err)
{
	const struct mu_attr *shape = mu_node_attr(c->node, "shape");

	w->type = type;
	w->shape =
	    shape && shape->kind == MU_ATTR_SHAPE ? *shape->shape : (struct mu_pshape){.rank = -1};
	return mu_node_attr_type(c->node, "dtype", &w->dtype, err);
}

/* ---- reference variables ---- */

static int output_variable(struct kernel_call *c, struct variable_spec *w, struct mu_err *err)
{
	MU_AUTO_BUF buf = {0};
	struct variable *v;

	MU_RETURN_IF_ERROR(
	    find_or_create(c, resource_container(c, &buf), resource_name(c), w, &v, err));
	kernel_out_ref(c, 0, v);
	variable_put(v);
	return 0;
}

static int variable_v2(struct kernel_call *c, struct mu_err *err)
{
	struct variable_spec w;

	MU_RETURN_IF_ERROR(read_variable_spec(c, &reference_variable_type, &w, err));
	return output_variable(c, &w, err);
}

/* The old Variable op writes "unknown" as the shape of rank 0. */
static int variable_v1(struct kernel_call *c, struct mu_err *err)
{
	struct variable_spec w;
	int rc = read_variable_spec(c, &reference_variable_type, &w, err);

	if (w.shape.rank == 0)
		w.shape.rank = -1;
	return rc ? rc : output_variable(c, &w, err);
}

static bool has_value(struct variable *v)
{
	pthread_mutex_lock(&v->lock);
	bool is = mu_tensor_is_set(&v->value);
	pthread_mutex_unlock(&v->lock);
	return is;
}

static int put_bool(struct kernel_call *c, bool b, struct mu_err *err)
{
	return kernel_out_value(c, 0, MU_BOOL, &b, err);
}

KERNEL_RUN(is_variable_initialized, put_bool(c, c->in[0].ref &&has_value(c->in[0].ref), err))

/* Copies t into the buffer of v if readers of v share it, because they must see the change: see
 * value_to_update in variables.c.  Returns false if the variable needs another buffer. */
static bool assign_in_place(struct variable *v, const struct mu_tensor *t)
{
	bool in_place;

	pthread_mutex_lock(&v->lock);
	in_place = mu_tensor_is_set(&v->value) && !mu_tensor_is_sole(&v->value) &&
		   mu_dtype_size(t->dtype) && mu_shape_eq(&v->value.shape, &t->shape) &&
		   !v->value.buf->owner && !v->value.buf->device && !t->buf->device &&
		   !mu_tensor_has_remote_refs(&v->value);
	if (in_place)
		memmove(v->value.data, t->data, (size_t)t->shape.count * mu_dtype_size(t->dtype));
	pthread_mutex_unlock(&v->lock);
	return in_place;
}

static int assign(struct kernel_call *c, struct mu_err *err)
{
	struct variable *v = c->in[0].ref;
	const struct mu_tensor *t = kernel_in(c, 1);
	struct mu_pshape shape;

	if (!v)
		return mu_invalid(err, "input 0 must be a reference");
	if (v->dtype != t->dtype)
		return mu_invalid(err, "a %s cannot be assigned to variable %s, which holds %s",
				  mu_dtype_name(t->dtype), v->base.name ? v->base.name : "",
				  mu_dtype_name(v->dtype));
	pthread_mutex_lock(&v->lock);
	shape = v->shape;
	if (mu_tensor_is_set(&v->value)) {
		shape.rank = v->value.shape.rank;
		memcpy(shape.dim, v->value.shape.dim, sizeof shape.dim);
	}
	pthread_mutex_unlock(&v->lock);
	if (args_attr_bool(c->node, "validate_shape", true) && !mu_shape_matches(&t->shape, &shape))
		return mu_invalid(
		    err,
		    "Assign requires shapes of both tensors to match. lhs shape= %s rhs shape= %s",
		    mu_pshape_str(&shape), mu_shape_str(&t->shape));
	if (assign_in_place(v, t)) {
		variable_forward(c);
		return 0;
	}
	/* Updates write into the buffer, so nothing else, such as a constant, may share it. */
	struct mu_tensor new_value;
	if (mu_tensor_is_own(t) || t->buf->device) { /* on a GPU, updates ensure this */
		new_value = mu_tensor_ref(t);
	} else {
		MU_RETURN_IF_ERROR(mu_tensor_copy(&new_value, t, err));
	}
	variable_assign(v, new_value);
	variable_forward(c);
	return 0;
}

/* ---- resource variables ---- */

static int var_handle(struct kernel_call *c, struct mu_err *err)
{
	return resource_handle_out_named(c, variable_type.name, err);
}

static int read_variable(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype want = args_attr_type(c->node, "dtype", MU_DT_INVALID);
	struct variable *v;
	struct mu_tensor t;
	int rc = 0;

	MU_RETURN_IF_ERROR(variable_in(c, 0, &v, err));
	if (v->dtype != want)
		rc = mu_invalid(err, "Trying to read variable with wrong dtype. Expected %s got %s",
				mu_dtype_name(want), mu_dtype_name(v->dtype));
	else if (!(rc = variable_read(v, &t, err)))
		kernel_out_take(c, 0, t);
	variable_put(v);
	return rc;
}

static int var_is_initialized(struct kernel_call *c, struct mu_err *err)
{
	struct variable *v;
	struct mu_err lookup_err;
	int rc = variable_in(c, 0, &v, &lookup_err);

	if (rc == -MU_NOT_FOUND)
		return put_bool(c, false, err);
	if (rc)
		return mu_fail(err, lookup_err.code, "%s", lookup_err.msg);
	bool is = has_value(v);
	variable_put(v);
	return put_bool(c, is, err);
}

static int assign_variable(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 1);
	const struct mu_handle *h;
	struct variable_spec w = {&variable_type, t->dtype, {.rank = -1}};
	struct variable *v;
	int rc = 0;

	MU_RETURN_IF_ERROR(resource_handle_in(c, 0, &h, err));
	MU_RETURN_IF_ERROR(
	    find_or_create(c, h->container ? h->container : "", h->name, &w, &v, err));
	if (args_attr_bool(c->node, "validate_shape", false) && has_value(v)) {
		struct mu_tensor old_value;
		if (!(rc = variable_read(v, &old_value, err))) {
			if (!mu_shape_eq(&old_value.shape, &t->shape))
				rc = mu_invalid(err,
						"Trying to assign to variable with tensor with "
						"wrong shape. Expected %s got %s",
						mu_shape_str(&old_value.shape),
						mu_shape_str(&t->shape));
			mu_tensor_unref(&old_value);
		}
	}
	if (!rc)
		variable_assign(v, mu_tensor_ref(t));
	variable_put(v);
	return rc;
}

static int variable_shape(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype type = args_attr_type(c->node, "out_type", MU_INT32);
	MU_AUTO_TENSOR t = {0};
	struct mu_tensor *out;
	struct variable *v;
	int rc;

	MU_RETURN_IF_ERROR(variable_in(c, 0, &v, err));
	rc = variable_read(v, &t, err);
	variable_put(v);
	if (rc)
		return rc;
	struct mu_shape shape = mu_shape_vec(t.shape.rank);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &shape, &out, err));
	for (int i = 0; i < t.shape.rank; i++)
		mu_tensor_set_int(out, i, t.shape.dim[i]);
	return 0;
}

static int destroy_resource(struct kernel_call *c, struct mu_err *err)
{
	bool ignore_lookup_error = args_attr_bool(c->node, "ignore_lookup_error", true);
	const struct mu_handle *h;

	MU_RETURN_IF_ERROR(resource_handle_in(c, 0, &h, err));
	if (h->owned) /* deleted with its last handle */
		return 0;
	int rc =
	    resources_remove(c->runtime->resources, h->container ? h->container : "", h->name,
			     h->type_name ? h->type_name : "", ignore_lookup_error ? NULL : err);
	return ignore_lookup_error ? 0 : rc;
}

/* ---- ZeroInitializer, ZeroVarInitializer ---- */

static int assign_zeros(struct variable *v, struct mu_err *err)
{
	struct mu_shape shape;
	struct mu_tensor zeros;

	if (has_value(v))
		return mu_invalid(err, "input is already initialized");
	if (v->shape.rank < 0)
		return mu_invalid(err, "the shape of variable %s is unknown",
				  v->base.name ? v->base.name : "");
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, v->shape.rank, v->shape.dim, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&zeros, v->dtype, &shape, err));
	elems_zero(v->dtype, zeros.data, 0, shape.count);
	variable_assign(v, zeros);
	return 0;
}

static int zero_initializer(struct kernel_call *c, struct mu_err *err)
{
	if (!c->in[0].ref)
		return mu_invalid(err, "input 0 must be a reference");
	MU_RETURN_IF_ERROR(assign_zeros(c->in[0].ref, err));
	variable_forward(c);
	return 0;
}

static int zero_var_initializer(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_handle *h;
	struct variable *v;
	struct variable_spec w;

	MU_RETURN_IF_ERROR(read_variable_spec(c, &variable_type, &w, err));
	MU_RETURN_IF_ERROR(resource_handle_in(c, 0, &h, err));
	MU_RETURN_IF_ERROR(
	    find_or_create(c, h->container ? h->container : "", h->name, &w, &v, err));
	int rc = assign_zeros(v, err);
	variable_put(v);
	if (!rc)
		kernel_out_take(c, 0, mu_tensor_ref(kernel_in(c, 0)));
	return rc;
}

/* ---- AssignAdd, AssignSub, counters: both kinds of variables ---- */

static int variable_accumulate(struct kernel_call *c, enum binary_op op, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 1);
	VARIABLES_AUTO vs = {0};

	MU_RETURN_IF_ERROR(variables_lock(c, 1, &vs, err));
	struct mu_tensor *value = vs.t[0];
	if (value->dtype != t->dtype || !loops_binary_known(op, t->dtype))
		return mu_invalid(err, "%s cannot apply %s to a variable of %s", c->node->op,
				  mu_dtype_name(t->dtype), mu_dtype_name(value->dtype));
	if (!mu_shape_eq(&value->shape, &t->shape))
		return mu_invalid(
		    err, "%s requires shapes of both tensors to match. lhs shape= %s rhs shape= %s",
		    c->node->op, mu_shape_str(&value->shape), mu_shape_str(&t->shape));
	loops_binary(op, t->dtype, value->data, value->data, t->data, t->shape.count, BOTH_RUN);
	variable_forward(c);
	return 0;
}

KERNEL_RUN(assign_add, variable_accumulate(c, BIN_AddV2, err))
KERNEL_RUN(assign_sub, variable_accumulate(c, BIN_Sub, err))

/* Outputs the counter and increments it; fails at the limit. */
static int count_up_to(struct kernel_call *c, struct mu_err *err)
{
	int64_t limit = args_attr_int(c->node, "limit", 0);
	struct mu_tensor old_value;
	VARIABLES_AUTO vs = {0};

	MU_RETURN_IF_ERROR(variables_lock(c, 1, &vs, err));
	struct mu_tensor *value = vs.t[0];
	if ((value->dtype != MU_INT32 && value->dtype != MU_INT64) || value->shape.rank)
		return mu_invalid(err, "input is not a scalar: %s", mu_shape_str(&value->shape));
	if (value->dtype == MU_INT32 && limit != (int32_t)limit)
		return mu_invalid(err, "Attr limit has value %lld out of range for an int32",
				  (long long)limit);
	if (mu_tensor_int(value, 0) >= limit)
		return mu_fail(err, MU_OUT_OF_RANGE, "Reached limit of %lld", (long long)limit);
	MU_RETURN_IF_ERROR(mu_tensor_copy(&old_value, value, err));
	if (value->dtype == MU_INT64)
		++*MU_DATA(int64_t, value);
	else
		++*MU_DATA(int32_t, value);
	kernel_out_take(c, 0, old_value);
	return 0;
}

/* Moves the counter to the next element of the list, and returns that element. */
static int obtain_next(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *list = kernel_in(c, 0);
	const struct mu_shape scalar = mu_shape_scalar();
	struct variable *v = c->in[1].ref;
	struct mu_tensor *counter, *out;
	int64_t n = list->shape.count, at = 0;

	if (!v || !n)
		return mu_invalid(err, "the list is empty, or input 1 is not a reference");
	pthread_mutex_lock(&v->lock);
	int rc = variable_exclusive(v, &counter, err);
	if (!rc && (counter->dtype != MU_INT64 || counter->shape.rank))
		rc = mu_invalid(err, "the counter is not a scalar of type int64");
	if (!rc)
		at = *MU_DATA(int64_t, counter) = (*MU_DATA(int64_t, counter) % n + n + 1) % n;
	pthread_mutex_unlock(&v->lock);
	if (rc)
		return rc;
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &scalar, &out, err));
	elems_copy(MU_STRING, out->data, 0, list->data, at, 1);
	return 0;
}

/* No effect: variables are copied on write, never on read. */
static int disable_copy_on_read(struct kernel_call *c, struct mu_err *err)
{
	struct variable *v;

	MU_RETURN_IF_ERROR(variable_in(c, 0, &v, err));
	variable_put(v);
	return 0;
}

static const struct kernel rows[] = {
    {"VariableV2", .run = variable_v2},
    {"Variable", .run = variable_v1},
    {"IsVariableInitialized", .run = is_variable_initialized},
    {"Assign", .run = assign},
    {"AssignAdd AssignAddVariableOp", .run = assign_add},
    {"AssignSub AssignSubVariableOp", .run = assign_sub},
    {"CountUpTo ResourceCountUpTo", .run = count_up_to},
    {"ObtainNext", .run = obtain_next},
    {"VarHandleOp", .run = var_handle},
    {"ReadVariableOp", .run = read_variable},
    {"VarIsInitializedOp", .run = var_is_initialized},
    {"DisableCopyOnRead", .run = disable_copy_on_read},
    {"AssignVariableOp", .run = assign_variable},
    {"VariableShape", .run = variable_shape},
    {"DestroyResourceOp", .run = destroy_resource},
    {"ZeroInitializer", .run = zero_initializer},
    {"ZeroVarInitializer", .run = zero_var_initializer},
};
KERNEL_TABLE(state_variable_ops, rows)
