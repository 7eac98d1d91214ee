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

/* The nodes that stand for themselves, by what they compute. */
struct same {
	uint64_t hash;
	struct mu_node *node;
};

static struct same *place_of(struct opt *o, uint64_t hash)
{
	if (!o->same) {
		for (o->cap_same = 64; o->cap_same / 2 < o->n;)
			o->cap_same *= 2;
		o->same = MU_NEW_ARRAY(struct same, o->cap_same);
	}
	unsigned i = (unsigned)hash & (o->cap_same - 1);
	while (o->same[i].node && o->same[i].hash != hash)
		i = (i + 1) & (o->cap_same - 1);
	return &o->same[i];
}

void merge_end(struct opt *o)
{
	free(o->same);
	mu_buf_fini(&o->key[0]);
	mu_buf_fini(&o->key[1]);
}

static struct mu_span key_of(struct opt *o, unsigned which, const struct mu_node *n)
{
	o->key[which].len = 0;
	identity_of(n, &o->key[which]);
	return mu_buf_span(&o->key[which]);
}

bool merge_node(struct opt *o, struct mu_node *n)
{
	enum mu_dtype *types;
	unsigned n_out;

	if (!n->def->n_outputs || (!o->data_users[n->id] && !o->control_users[n->id]) ||
	    !optimize_is_pure(o, n) || has_large(n))
		return false;
	struct mu_span key = key_of(o, 0, n);
	uint64_t hash = mu_hash(key.data, key.len, o->seed);
	struct same *same = place_of(o, hash);
	if (!same->node) {
		*same = (struct same){hash, n};
		return false;
	}
	struct mu_node *twin = same->node;
	if (!mu_span_eq(key, key_of(o, 1, twin)) ||
	    mu_op_output_types(n, &o->scratch, &types, &n_out, NULL))
		return false;
	struct mu_input *to = MU_ARENA_ARRAY(&o->scratch, struct mu_input, n_out + 1);
	for (unsigned i = 0; i < n_out || i == 0; i++)
		to[i] = (struct mu_input){twin, (int)i};
	o->instead[n->id] = to;
	return o->gone[n->id] = true;
}
