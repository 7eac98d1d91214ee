/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/engine/args.h"

#include "task/kernels/engine/elems.h"

int args_type(const struct kernel_call *c, unsigned i, enum mu_dtype want, struct mu_err *err)
{
	if (i >= c->n_in)
		return mu_invalid(err, "input %u is missing", i);
	if (kernel_in(c, i)->dtype != want)
		return mu_invalid(err, "input %u is %s, want %s", i,
				  mu_dtype_name(kernel_in(c, i)->dtype), mu_dtype_name(want));
	return 0;
}

int args_rank(const struct kernel_call *c, unsigned i, int rank, struct mu_err *err)
{
	if (i >= c->n_in)
		return mu_invalid(err, "input %u is missing", i);
	if (kernel_in(c, i)->shape.rank != rank)
		return mu_invalid(err, "input %u must be rank %d, not shape %s", i, rank,
				  mu_shape_str(&kernel_in(c, i)->shape));
	return 0;
}

int args_same_shape(const struct kernel_call *c, unsigned i, unsigned j, struct mu_err *err)
{
	const struct mu_shape *a = &kernel_in(c, i)->shape, *b = &kernel_in(c, j)->shape;

	if (!mu_shape_eq(a, b))
		return mu_invalid(err, "inputs %u and %u must have the same shape, not %s and %s",
				  i, j, mu_shape_str(a), mu_shape_str(b));
	return 0;
}

int args_is_int(const struct kernel_call *c, unsigned i, struct mu_err *err)
{
	if (i >= c->n_in)
		return mu_invalid(err, "input %u is missing", i);
	enum mu_dtype t = kernel_in(c, i)->dtype;
	if (t != MU_INT32 && t != MU_INT64)
		return mu_invalid(err, "input %u is %s, want int32 or int64", i, mu_dtype_name(t));
	return 0;
}

int args_ints(const struct kernel_call *c, unsigned i, int64_t *out, int max, int *n,
	      struct mu_err *err)
{
	bool is_int16 = i < c->n_in && kernel_in(c, i)->dtype == MU_INT16;

	if (!is_int16)
		MU_RETURN_IF_ERROR(args_is_int(c, i, err));
	const struct mu_tensor *t = kernel_in(c, i);
	if (t->shape.rank > 1 || t->shape.count > max)
		return mu_invalid(err, "input %u must be a vector of at most %d, not shape %s", i,
				  max, mu_shape_str(&t->shape));
	for (int k = 0; k < (int)t->shape.count; k++)
		out[k] = is_int16 ? MU_DATA(int16_t, t)[k] : mu_tensor_int(t, k);
	*n = (int)t->shape.count;
	return 0;
}

int args_int(const struct kernel_call *c, unsigned i, int64_t *out, struct mu_err *err)
{
	int n, rc = args_ints(c, i, out, 1, &n, err);

	if (!rc && n != 1)
		return mu_invalid(err, "input %u must be a scalar", i);
	return rc;
}

int args_shape(const struct kernel_call *c, unsigned i, struct mu_shape *out, struct mu_err *err)
{
	int64_t dims[MU_MAX_RANK];
	int n;

	MU_RETURN_IF_ERROR(args_ints(c, i, dims, MU_MAX_RANK, &n, err));
	return mu_shape_set(out, n, dims, err);
}

int args_string(const struct kernel_call *c, unsigned i, char **out, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(args_type(c, i, MU_STRING, err));
	const struct mu_tensor *t = kernel_in(c, i);
	if (t->shape.count != 1)
		return mu_invalid(err, "input %u must be one string, not shape %s", i,
				  mu_shape_str(&t->shape));
	struct mu_span s = elems_span(t, 0);
	*out = mu_xstrndup(s.data, s.len);
	return 0;
}

void args_put_numbers(struct mu_buf *b, const int64_t *x, int n, const char *separator)
{
	for (int i = 0; i < n; i++)
		mu_buf_printf(b, "%s%lld", i ? separator : "", (long long)x[i]);
}

void args_put_index(struct mu_buf *b, const struct mu_shape *s, int rank, int64_t at)
{
	int64_t coordinates[MU_MAX_RANK];

	if (rank < 1)
		return;
	for (int d = rank; d-- > 0; at /= s->dim[d])
		coordinates[d] = at % s->dim[d];
	mu_buf_putc(b, '[');
	args_put_numbers(b, coordinates, rank, ",");
	mu_buf_putc(b, ']');
}

int args_fail_position(const struct mu_tensor *indices, int64_t i, int depth,
		       const char *shape_name, const struct mu_shape *shape,
		       const struct mu_node *node, struct mu_err *err)
{
	int64_t row[MU_MAX_RANK];
	MU_AUTO_BUF text = {0};

	for (int d = 0; d < depth; d++)
		row[d] = mu_tensor_int(indices, i * depth + d);
	mu_buf_puts(&text, "indices");
	args_put_index(&text, &indices->shape, indices->shape.rank - 1, i);
	mu_buf_puts(&text, " = [");
	args_put_numbers(&text, row, depth, ", ");
	return mu_invalid(err, "%s] does not index into %s %s%s%s", text.data, shape_name,
			  mu_shape_str(shape), node ? ", node name: " : "", node ? node->name : "");
}

int args_axis(int64_t axis, int rank, int *out, struct mu_err *err)
{
	if (axis < -rank || axis >= rank)
		return mu_invalid(err, "axis %lld is not in [%d, %d)", (long long)axis, -rank,
				  rank);
	*out = (int)(axis < 0 ? axis + rank : axis);
	return 0;
}

int args_no_kernel(const struct kernel_call *c, enum mu_dtype t, struct mu_err *err)
{
	return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s", c->node->op,
		       mu_dtype_name(t));
}

int64_t args_attr_int(const struct mu_node *n, const char *name, int64_t default_value)
{
	const struct mu_attr *a = mu_node_attr(n, name);

	return a && a->kind == MU_ATTR_INT ? a->i : default_value;
}

float args_attr_float(const struct mu_node *n, const char *name, float default_value)
{
	const struct mu_attr *a = mu_node_attr(n, name);

	return a && a->kind == MU_ATTR_FLOAT ? a->f : default_value;
}

bool args_attr_bool(const struct mu_node *n, const char *name, bool default_value)
{
	const struct mu_attr *a = mu_node_attr(n, name);

	return a && a->kind == MU_ATTR_BOOL ? a->b : default_value;
}

enum mu_dtype args_attr_type(const struct mu_node *n, const char *name, enum mu_dtype default_value)
{
	const struct mu_attr *a = mu_node_attr(n, name);

	return a && a->kind == MU_ATTR_TYPE ? a->type : default_value;
}

const char *args_attr_string(const struct mu_node *n, const char *name, const char *default_value)
{
	const struct mu_attr *a = mu_node_attr(n, name);

	return a && a->kind == MU_ATTR_STRING && a->s.data ? a->s.data : default_value;
}

int args_attr_ints(const struct mu_node *n, const char *name, int64_t *out, int max)
{
	const struct mu_attr *a = mu_node_attr(n, name);

	if (!a || a->kind != MU_ATTR_LIST + MU_ATTR_INT)
		return 0;
	if (a->n > (unsigned)max)
		return -1;
	for (unsigned i = 0; i < a->n; i++)
		out[i] = a->is[i];
	return (int)a->n;
}
