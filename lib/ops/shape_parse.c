/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of ops that parse bytes: tf.Example, protos and images.
 *
 * parsed_shape recognizes the kind of an output by the suffix of its name, such as "dense_values".
 * Dense outputs begin with the dimensions of the serialized examples. */
#include <string.h>

#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

/* Returns the shape of dense feature k: the batch dimensions, the steps (feature lists only), and
 * the shape attribute. */
static struct mu_pshape dense_values(const struct mu_shape_ctx *c, const char *name, unsigned k,
				     const struct mu_pshape *batch)
{
	struct mu_pshape steps = mu_pshape_unknown(1), leading = *batch;
	const struct mu_op_def *op = c->node->def;
	const struct mu_attr *a = NULL;
	size_t len = strlen(name) - strlen("values");

	for (unsigned i = 0; i < op->n_attrs; i++)
		if (!strncmp(op->attrs[i].name, name, len) &&
		    !strcmp(op->attrs[i].name + len, "shapes"))
			a = mu_node_attr(c->node, op->attrs[i].name);
	if (!a || a->kind != MU_ATTR_LIST + MU_ATTR_SHAPE || k >= a->n)
		return mu_pshape_unknown(-1);
	if (strncmp(name, "feature_list", strlen("feature_list")) == 0)
		leading = mu_pshape_join(batch, &steps);
	return mu_pshape_join(&leading, &a->shapes[k]);
}

static struct mu_pshape parsed_shape(const struct mu_shape_ctx *c, const char *name, unsigned k,
				     const struct mu_pshape *batch)
{
	bool is_list = strncmp(name, "feature_list", strlen("feature_list")) == 0;
	int64_t rank = batch->rank < 0 ? -1 : batch->rank + 1 + is_list,
		n = batch->rank == 1 ? batch->dim[0] : -1;

	/* Without a batch, TensorFlow's kernel returns some splits as scalars. */
	if (batch->rank == 0 && mu_ends_with(name, "splits"))
		return mu_pshape_unknown(-1);
	if (mu_ends_with(name, "sparse_indices"))
		return (struct mu_pshape){.rank = 2, .dim = {-1, rank}};
	if (mu_ends_with(name, "sparse_shapes"))
		return (struct mu_pshape){.rank = 1, .dim = {rank}};
	if (mu_ends_with(name, "row_splits") || mu_ends_with(name, "outer_splits"))
		return (struct mu_pshape){.rank = 1, .dim = {n < 0 ? -1 : n + 1}};
	if (mu_ends_with(name, "dense_values"))
		return dense_values(c, name, k, batch);
	return mu_ends_with(name, "dense_lengths") ? *batch : mu_pshape_unknown(1);
}

/* Returns the number of tensors of an output. */
static unsigned count_of(const struct mu_shape_ctx *c, const struct mu_arg_def *a)
{
	const struct mu_attr *types = mu_node_attr(c->node, a->type_attr ? a->type_attr : "");

	if (a->kind == MU_ARG_REPEAT)
		return (unsigned)mu_shape_attr_int(c, a->number_attr);
	return a->kind == MU_ARG_TYPE_LIST ? types ? types->n : 0 : 1;
}

int shape_parse(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_op_def *op = c->node->def;
	struct mu_pshape batch = c->in[0];
	unsigned at = 0;

	if (!mu_ends_with(op->name, "V2")) {
		int rank = strstr(op->name, "Single") ? 0 : 1;
		bool known;
		MU_RETURN_IF_ERROR(mu_shape_want_rank(c, 0, rank, &known, err));
		if (!known)
			batch = mu_pshape_unknown(rank);
	}
	for (unsigned i = 0; i < op->n_outputs; i++) {
		unsigned n = count_of(c, &op->outputs[i]);
		for (unsigned k = 0; k < n && at < c->n_out; k++)
			c->out[at++] = parsed_shape(c, op->outputs[i].name, k, &batch);
	}
	return 0;
}

/* Output 0 (`sizes`): the shape of the input, then the number of fields.  Every other output: the
 * shape of the input, then an unknown number of values. */
int shape_decode_proto(struct mu_shape_ctx *c, struct mu_err *err)
{
	struct mu_pshape last = {.rank = 1, .dim = {c->n_out - 1}};

	for (unsigned i = 0; i < c->n_out; i++) {
		c->out[i] = mu_pshape_join(&c->in[0], &last);
		last.dim[0] = -1;
	}
	return 0;
}

int shape_image(struct mu_shape_ctx *c, struct mu_err *err)
{
	int64_t channels = mu_shape_attr_int(c, "channels");

	if (channels < 0 || channels == 2 || channels > 4)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "channels must be 0, 1, 3 or 4 but is %lld", (long long)channels);
	if (!mu_shape_flag(c, "expand_animations"))
		c->out[0] =
		    (struct mu_pshape){.rank = 3, .dim = {-1, -1, channels ? channels : -1}};
	return 0;
}
