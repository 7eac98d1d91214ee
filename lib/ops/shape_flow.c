/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of control flow and variables, and of elements of lists, tensor arrays, tables and
 * iterators.
 *
 * The node that creates a resource declares the shape of its elements.  The shape is known if this
 * node itself is the input. */
#include <string.h>

#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

int shape_unknown(struct mu_shape_ctx *c, struct mu_err *err)
{
	return 0;
}

/* _Arg has no `output_shapes`, but TensorFlow's exporter adds `_output_shapes`. */
int shape_listed(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_attr *a = mu_node_attr(c->node, "output_shapes");

	if (!a)
		a = mu_node_attr(c->node, "_output_shapes");
	if (!a || a->kind != MU_ATTR_LIST + MU_ATTR_SHAPE)
		return 0;
	if (a->n != c->n_out)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "`output_shapes` must be the same length as num outputs (%u vs. %u)",
			       a->n, c->n_out);
	memcpy(c->out, a->shapes, a->n * sizeof *c->out);
	return 0;
}

int shape_loop(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_attr *a = mu_node_attr(c->node, "output_shapes");

	return a && a->n ? shape_listed(c, err) : shape_each(c, err);
}

int shape_merge_op(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape merged = c->in[0];

	for (unsigned i = 1; i < c->n_in; i++) {
		if (c->in[i].rank != merged.rank)
			merged.rank = -1;
		for (int d = 0; d < merged.rank; d++)
			if (c->in[i].dim[d] != merged.dim[d])
				merged.dim[d] = -1;
	}
	c->out[0] = merged;
	if (c->n_out > 1)
		c->out[1].rank = 0;
	return 0;
}

int shape_switch(struct mu_shape_ctx *c, struct mu_err *err)
{
	bool known;
	int rc = mu_shape_want_rank(c, 1, 0, &known, err);

	for (unsigned i = 0; i < c->n_out && !rc; i++)
		c->out[i] = c->in[0];
	return rc;
}

static bool is_full(const struct mu_pshape *s)
{
	for (int i = 0; i < s->rank; i++)
		if (s->dim[i] < 0)
			return false;
	return s->rank >= 0;
}

static bool is_same(const struct mu_pshape *a, const struct mu_pshape *b)
{
	return a->rank == b->rank &&
	       !memcmp(a->dim, b->dim, (size_t)(a->rank > 0 ? a->rank : 0) * sizeof a->dim[0]);
}

int shape_ref_select(struct mu_shape_ctx *c, struct mu_err *err)
{
	for (unsigned i = 1; i < c->n_in; i++)
		if (!is_full(&c->in[i]) || !is_same(&c->in[i], &c->in[1]))
			return 0;
	if (c->n_in > 1)
		c->out[0] = c->in[1];
	return 0;
}

/* ---- batches ---- */

int shape_batch(struct mu_shape_ctx *c, struct mu_err *err)
{
	unsigned n = c->n_in < c->n_out ? c->n_in : 0;

	for (unsigned i = 0; i < n; i++) {
		MU_RETURN_IF_ERROR(mu_shape_want_min_rank(c, i, 1, err));
		c->out[i] = c->in[i];
		c->out[i].dim[0] = -1;
	}
	if (n + 2 == c->n_out) {
		c->out[n] = (struct mu_pshape){2, {-1, 3}};
		c->out[n + 1].rank = 0;
	}
	return 0;
}

/* Only the rank is known. */
int shape_unbatch_grad(struct mu_shape_ctx *c, struct mu_err *err)
{
	c->out[0] = mu_pshape_unknown(c->in[2].rank);
	return 0;
}

/* Each output has one row for each row of the arguments. */
int shape_map_defun(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_attr *args = mu_node_attr(c->node, "Targuments");
	struct mu_pshape rows = mu_pshape_unknown(1);

	MU_RETURN_IF_ERROR(shape_listed(c, err));
	for (unsigned i = 0; args && i < args->n && i < c->n_in; i++) {
		if (c->in[i].rank == 0)
			return mu_fail(
			    err, MU_INVALID_ARGUMENT,
			    "Arguments must have rank at least 1. Input %u has rank of 0.", i);
		if (c->in[i].rank > 0 &&
		    mu_shape_merge_dim(rows.dim[0], c->in[i].dim[0], &rows.dim[0], err))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Arguments must have the same dimension 0.");
	}
	for (unsigned i = 0; i < c->n_out; i++)
		c->out[i] = mu_pshape_join(&rows, &c->out[i]);
	return 0;
}

/* ---- variables ---- */

int shape_assign(struct mu_shape_ctx *c, struct mu_err *err)
{
	return mu_shape_flag(c, "validate_shape") ? shape_all_equal(c, err) : shape_second(c, err);
}

/* Merges a gradient of rows: its first dimension is *n, the number of indices. */
static int merge_rows(const struct mu_shape_ctx *c, unsigned i, struct mu_pshape *merged,
		      int64_t *n, struct mu_err *err)
{
	struct mu_pshape rows = c->in[i];

	MU_RETURN_IF_ERROR(mu_shape_want_min_rank(c, i, 1, err));
	if (rows.rank > 0) {
		MU_RETURN_IF_ERROR(mu_shape_merge_dim(*n, rows.dim[0], n, err));
		rows.dim[0] = -1;
	}
	return mu_shape_merge(merged, &rows, merged, err);
}

/* Optimizer update: variable, slots and gradient have one shape; all other inputs are scalars. */
int shape_apply(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_op_def *op = c->node->def;
	bool is_sparse = strncmp(op->name, "Sparse", strlen("Sparse")) == 0, known;
	struct mu_pshape merged = c->in[0];
	int64_t n = -1;
	int rc = 0;

	for (unsigned i = 1; i < op->n_inputs && i < c->n_in && !rc; i++) {
		const struct mu_arg_def *arg = &op->inputs[i];
		bool is_gradient = !strcmp(arg->name, "grad") || !strcmp(arg->name, "delta");
		if (is_gradient && is_sparse)
			rc = merge_rows(c, i, &merged, &n, err);
		else if (is_gradient || arg->is_ref)
			rc = mu_shape_merge(&merged, &c->in[i], &merged, err);
		else if (strcmp(arg->name, "indices") == 0)
			rc = mu_shape_want_rank(c, i, 1, &known, err) ||
				     (known && mu_shape_merge_dim(n, c->in[i].dim[0], &n, err))
				 ? -MU_INVALID_ARGUMENT
				 : 0;
		else
			rc = mu_shape_want_rank(c, i, 0, &known, err);
	}
	if (!rc)
		c->out[0] = merged;
	return rc;
}

/* ---- tables ---- */

int shape_table_find(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_node *table = c->node->n_inputs ? c->node->inputs[0].node : NULL;
	const struct mu_attr *value = table ? mu_node_attr(table, "value_shape") : NULL;
	struct mu_pshape keys = c->in[1], scalar = {.rank = 0};

	if (table && strstr(table->op, "MutableDenseHashTable"))
		return 0; /* a key may be a tensor with the shape of empty_key */
	if (value ? value->kind == MU_ATTR_SHAPE : table && strstr(table->op, "MutableHashTable"))
		c->out[0] = mu_pshape_join(&keys, value ? value->shape : &scalar);
	return 0;
}

/* ---- tensor arrays and lists ---- */

/* Sets *out to the element shape.  Returns false if it is unknown. */
static bool array_element(const struct mu_shape_ctx *c, struct mu_pshape *out)
{
	const struct mu_node *array = c->node->n_inputs ? c->node->inputs[0].node : NULL;
	const struct mu_attr *shape, *identical;

	if (!array || strcmp(array->op, "TensorArrayV3"))
		return false;
	shape = mu_node_attr(array, "element_shape");
	identical = mu_node_attr(array, "identical_element_shapes");
	if (!shape || shape->kind != MU_ATTR_SHAPE ||
	    !(is_full(shape->shape) || (identical && identical->b)))
		return false;
	*out = *shape->shape;
	return true;
}

int shape_array_read(struct mu_shape_ctx *c, struct mu_err *err)
{
	array_element(c, &c->out[0]);
	return 0;
}

static struct mu_pshape vector_of(const struct mu_pshape *indices)
{
	return (struct mu_pshape){.rank = 1, .dim = {indices->rank == 1 ? indices->dim[0] : -1}};
}

int shape_array_gather(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_attr *attr = mu_node_attr(c->node, "element_shape");
	struct mu_pshape element = mu_pshape_unknown(-1), leading = vector_of(&c->in[1]);
	bool known;

	MU_RETURN_IF_ERROR(mu_shape_want_rank(c, 1, 1, &known, err));
	if (!array_element(c, &element) && attr && attr->kind == MU_ATTR_SHAPE)
		element = *attr->shape;
	c->out[0] = mu_pshape_join(&leading, &element);
	return 0;
}

int shape_list_item(struct mu_shape_ctx *c, struct mu_err *err)
{
	return mu_shape_read(c, c->n_in - 1, true, &c->out[0], err);
}

int shape_list_stack(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape element = mu_pshape_unknown(-1), leading = {.rank = 1};

	if (mu_node_attr_int(c->node, "num_elements", &leading.dim[0], NULL) || leading.dim[0] < 0)
		leading.dim[0] = -1;
	MU_RETURN_IF_ERROR(mu_shape_read(c, 1, true, &element, err));
	c->out[0] = mu_pshape_join(&leading, &element);
	return 0;
}

int shape_list_gather(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape element = mu_pshape_unknown(-1);

	MU_RETURN_IF_ERROR(mu_shape_read(c, 2, true, &element, err));
	c->out[0] = mu_pshape_join(&c->in[1], &element);
	return 0;
}

/* The elements are concatenated along their first dimension. */
int shape_list_concat(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape element = mu_pshape_unknown(-1);

	MU_RETURN_IF_ERROR(mu_shape_read(c, 1, true, &element, err));
	if (element.rank == 0)
		element.rank = 1;
	element.dim[0] = -1;
	c->out[0] = element;
	return 0;
}
