/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes of one op, with the same attributes, inputs and control inputs, compute the same. */
#include <string.h>

#include "task/graph/optimize.h"

/* Larger constants are not compared. */
enum { SMALL_BYTES = 1024 };

static bool has_large(const struct mu_node *n)
{
	for (unsigned i = 0; i < n->n_attrs; i++) {
		const struct mu_attr *a = &n->attrs[i].value;
		if (a->kind == MU_ATTR_TENSOR && mu_tensor_bytes(a->tensor) > SMALL_BYTES)
			return true;
	}
	return false;
}

/* Attributes that start with '_' speak of placement and inference. */
static void identity_of(const struct mu_node *n, struct mu_buf *key)
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
	MU_AUTO_BUF key = {0};
	struct mu_node *twin;
	enum mu_dtype *types;
	unsigned n_out;

	if (!n->def || !n->def->n_outputs || !optimize_is_pure(n) || has_large(n))
		return false;
	if (!o->data_users[n->id] && !o->control_users[n->id])
		return false;
	identity_of(n, &key);
	twin = mu_map_get_n(&o->same, key.data, key.len);
	if (!twin) {
		mu_map_put_n(&o->same, key.data, key.len, n);
		return false;
	}
	if (mu_op_output_types(n, &o->scratch, &types, &n_out, NULL))
		return false;
	struct mu_input *to = MU_ARENA_ARRAY(&o->scratch, struct mu_input, n_out + 1);
	for (unsigned i = 0; i < n_out || i == 0; i++)
		to[i] = (struct mu_input){twin, (int)i};
	o->instead[n->id] = to;
	return o->gone[n->id] = true;
}
