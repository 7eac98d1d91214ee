/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers are those of TensorFlow's boosted_trees.proto. Zeros are omitted and lists are
 * packed, as in proto3. */
#include "task/kernels/boosted_trees/ensemble.h"

#include <limits.h>

#include "lib/base/pb.h"

/* ---- parsing ---- */

static int parse_failed(struct mu_err *err)
{
	return mu_invalid(err, "Unable to parse tree ensemble proto.");
}

/* Appends the floats of a packed or single field. */
static int parse_floats(const struct mu_pb_field *f, float **list, unsigned *n, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(f->bytes);
	uint32_t bits = (uint32_t)f->value;
	size_t count = f->type == MU_PB_BYTES ? f->bytes.len / 4 : 1;

	if ((f->type != MU_PB_BYTES && f->type != MU_PB_FIXED32) || f->bytes.len % 4 ||
	    count > UINT_MAX - *n)
		return parse_failed(err);
	*list = mu_xrealloc(*list, (*n + count) * sizeof **list + 1);
	for (size_t i = 0; i < count; i++) {
		if (f->type == MU_PB_BYTES)
			mu_pb_fixed32(&m, &bits);
		memcpy(&(*list)[(*n)++], &bits, 4);
	}
	return 0;
}

static void leaf_fini(struct tree_leaf *leaf)
{
	free(leaf->vector);
	*leaf = (struct tree_leaf){0};
}

static int parse_vector(struct tree_leaf *leaf, struct mu_span s, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(s);
	struct mu_pb_field f;

	leaf->is_vector = true;
	while (mu_pb_next(&m, &f))
		if (f.number == 1)
			MU_RETURN_IF_ERROR(parse_floats(&f, &leaf->vector, &leaf->n, err));
	return m.bad ? parse_failed(err) : 0;
}

static int parse_leaf(struct tree_leaf *leaf, struct mu_span s, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(s);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			MU_RETURN_IF_ERROR(parse_vector(leaf, f.bytes, err));
		if (f.number == 2)
			return mu_fail(err, MU_UNIMPLEMENTED,
				       "Leaves of trees with sparse vectors are not supported");
		if (f.number == 3)
			leaf->scalar = mu_pb_float(&f);
	}
	return m.bad ? parse_failed(err) : 0;
}

static int parse_split(struct tree_node *node, struct mu_span s, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(s);
	struct mu_pb_field f;
	int32_t *const fields[] = {
	    NULL,         &node->feature,   &node->threshold,        &node->left,
	    &node->right, &node->dimension, &node->default_direction};

	while (mu_pb_next(&m, &f))
		if (f.number && f.number < MU_COUNT(fields))
			*fields[f.number] = (int32_t)f.value;
	return m.bad ? parse_failed(err) : 0;
}

static int parse_node_metadata(struct tree_node *node, struct mu_span s, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(s);
	struct mu_pb_field f;

	node->has_metadata = true;
	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			node->gain = mu_pb_float(&f);
		if (f.number == 2) {
			node->has_original = true;
			MU_RETURN_IF_ERROR(parse_leaf(&node->original, f.bytes, err));
		}
	}
	return m.bad ? parse_failed(err) : 0;
}

static int parse_node(struct tree_node *node, struct mu_span s, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(s);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			MU_RETURN_IF_ERROR(parse_leaf(&node->leaf, f.bytes, err));
		if (f.number == 2 || f.number == 3)
			MU_RETURN_IF_ERROR(parse_split(node, f.bytes, err));
		if (f.number == 4)
			return mu_fail(err, MU_UNIMPLEMENTED,
				       "Dense splits of trees are not supported");
		if (f.number == 777)
			MU_RETURN_IF_ERROR(parse_node_metadata(node, f.bytes, err));
		if (f.number >= 1 && f.number <= 3)
			node->kind = (enum node_kind)f.number;
	}
	return m.bad ? parse_failed(err) : 0;
}

/* Each child must have a larger index than its parent, and only one parent, also after pruning.
 * Then every walk ends. */
static int check_children(const struct tree *t, struct mu_err *err)
{
	MU_AUTO_FREE bool *has_parent = MU_NEW_ARRAY(bool, t->n_nodes + 1);

	for (unsigned i = 0; i < t->n_nodes; i++) {
		const struct tree_node *n = &t->nodes[i];
		const int32_t children[] = {n->left, n->right};

		if (n->kind != NODE_BUCKETIZED && n->kind != NODE_CATEGORICAL)
			continue;
		for (unsigned k = 0; k < 2; k++) {
			int64_t child = children[k];
			if (child <= (int64_t)i || child >= (int64_t)t->n_nodes ||
			    has_parent[child])
				return mu_invalid(err,
						  "Node %u of a tree of %u nodes has the children "
						  "%d and %d",
						  i, t->n_nodes, n->left, n->right);
			has_parent[child] = true;
		}
	}
	return 0;
}

static int parse_tree(struct tree *t, struct mu_span s, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(s);
	struct mu_pb_field f;
	unsigned count = mu_pb_count(s, 1);

	t->nodes = MU_NEW_ARRAY(struct tree_node, count + 1);
	while (mu_pb_next(&m, &f))
		if (f.number == 1 && f.type == MU_PB_BYTES)
			MU_RETURN_IF_ERROR(parse_node(&t->nodes[t->n_nodes++], f.bytes, err));
	return m.bad ? parse_failed(err) : check_children(t, err);
}

static int parse_pruned(struct pruned_node *p, struct mu_span s, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(s);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			p->new_id = (int32_t)f.value;
		if (f.number == 2)
			MU_RETURN_IF_ERROR(parse_floats(&f, &p->change, &p->n, err));
	}
	return m.bad ? parse_failed(err) : 0;
}

static int parse_tree_metadata(struct tree *t, struct mu_span s, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(s);
	struct mu_pb_field f;
	unsigned count = mu_pb_count(s, 4);

	if (count)
		t->pruned = MU_NEW_ARRAY(struct pruned_node, count);
	while (mu_pb_next(&m, &f)) {
		if (f.number == 2)
			t->layers_grown = (int32_t)f.value;
		if (f.number == 3)
			t->is_finalized = f.value;
		if (f.number == 4 && f.type == MU_PB_BYTES)
			MU_RETURN_IF_ERROR(parse_pruned(&t->pruned[t->n_pruned++], f.bytes, err));
	}
	return m.bad ? parse_failed(err) : 0;
}

static int parse_growing(struct trees *t, struct mu_span s, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(s);
	struct mu_pb_field f;

	t->has_growing = true;
	while (mu_pb_next(&m, &f)) {
		if (f.number == 1)
			t->trees_attempted = (int64_t)f.value;
		if (f.number == 2)
			t->layers_attempted = (int64_t)f.value;
		if (f.number == 3)
			t->last_layer_start = (int32_t)f.value;
		if (f.number == 4)
			t->last_layer_end = (int32_t)f.value;
	}
	return m.bad ? parse_failed(err) : 0;
}

int trees_parse(struct trees *t, struct mu_span message, struct mu_err *err)
{
	struct mu_pb m = mu_pb_of(message);
	struct mu_pb_field f;
	MU_AUTO_FREE float *weights = NULL;
	unsigned n_weights = 0, n_metadata = 0;

	t->n = mu_pb_count(message, 1);
	if (mu_pb_count(message, 3) > t->n)
		return parse_failed(err);
	t->trees = MU_NEW_ARRAY(struct tree, t->n + 1);
	for (unsigned i = 0; mu_pb_next(&m, &f);) {
		if (f.number == 1 && f.type == MU_PB_BYTES)
			MU_RETURN_IF_ERROR(parse_tree(&t->trees[i++], f.bytes, err));
		if (f.number == 2)
			MU_RETURN_IF_ERROR(parse_floats(&f, &weights, &n_weights, err));
		if (f.number == 3 && f.type == MU_PB_BYTES)
			MU_RETURN_IF_ERROR(
			    parse_tree_metadata(&t->trees[n_metadata++], f.bytes, err));
		if (f.number == 4)
			MU_RETURN_IF_ERROR(parse_growing(t, f.bytes, err));
	}
	for (unsigned i = 0; i < t->n; i++)
		t->trees[i].weight = i < n_weights ? weights[i] : 1;
	return m.bad ? parse_failed(err) : 0;
}

/* ---- serialization ---- */

static void put_int(struct mu_buf *b, uint32_t number, int64_t v)
{
	if (v)
		mu_pb_put_int(b, number, v);
}

static void put_float(struct mu_buf *b, uint32_t number, float v)
{
	if (!(v == 0))
		mu_pb_put_float(b, number, v);
}

static void put_floats(struct mu_buf *b, uint32_t number, const float *v, unsigned n)
{
	if (n)
		mu_pb_put_bytes(b, number, (struct mu_span){(const char *)v, n * sizeof *v});
}

static void put_leaf(struct mu_buf *b, uint32_t number, const struct tree_leaf *leaf)
{
	size_t at = mu_pb_begin(b, number);

	if (leaf->is_vector) {
		size_t vector = mu_pb_begin(b, 1);
		put_floats(b, 1, leaf->vector, leaf->n);
		mu_pb_end(b, vector);
	}
	put_float(b, 3, leaf->scalar);
	mu_pb_end(b, at);
}

static void put_node(struct mu_buf *b, const struct tree_node *n)
{
	size_t at = mu_pb_begin(b, 1), inner;

	if (n->kind == NODE_LEAF)
		put_leaf(b, NODE_LEAF, &n->leaf);
	if (n->kind == NODE_BUCKETIZED || n->kind == NODE_CATEGORICAL) {
		inner = mu_pb_begin(b, n->kind);
		put_int(b, 1, n->feature);
		put_int(b, 2, n->threshold);
		put_int(b, 3, n->left);
		put_int(b, 4, n->right);
		put_int(b, 5, n->dimension);
		put_int(b, 6, n->default_direction);
		mu_pb_end(b, inner);
	}
	if (n->has_metadata) {
		inner = mu_pb_begin(b, 777);
		put_float(b, 1, n->gain);
		if (n->has_original)
			put_leaf(b, 2, &n->original);
		mu_pb_end(b, inner);
	}
	mu_pb_end(b, at);
}

static void put_tree_metadata(struct mu_buf *b, const struct tree *t)
{
	size_t at = mu_pb_begin(b, 3);

	put_int(b, 2, t->layers_grown);
	put_int(b, 3, t->is_finalized);
	for (unsigned i = 0; i < t->n_pruned; i++) {
		size_t inner = mu_pb_begin(b, 4);
		put_int(b, 1, t->pruned[i].new_id);
		put_floats(b, 2, t->pruned[i].change, t->pruned[i].n);
		mu_pb_end(b, inner);
	}
	mu_pb_end(b, at);
}

void trees_serialize(const struct trees *t, struct mu_buf *b)
{
	MU_AUTO_FREE float *weights = MU_NEW_ARRAY(float, t->n + 1);

	for (unsigned i = 0; i < t->n; i++) {
		size_t at = mu_pb_begin(b, 1);
		for (unsigned k = 0; k < t->trees[i].n_nodes; k++)
			put_node(b, &t->trees[i].nodes[k]);
		mu_pb_end(b, at);
		weights[i] = t->trees[i].weight;
	}
	put_floats(b, 2, weights, t->n);
	for (unsigned i = 0; i < t->n; i++)
		put_tree_metadata(b, &t->trees[i]);
	if (t->has_growing) {
		size_t at = mu_pb_begin(b, 4);
		put_int(b, 1, t->trees_attempted);
		put_int(b, 2, t->layers_attempted);
		put_int(b, 3, t->last_layer_start);
		put_int(b, 4, t->last_layer_end);
		mu_pb_end(b, at);
	}
}

/* ---- trees ---- */

static void node_fini(struct tree_node *n)
{
	leaf_fini(&n->leaf);
	leaf_fini(&n->original);
}

void trees_fini(struct trees *t)
{
	for (unsigned i = 0; i < t->n && t->trees; i++) {
		struct tree *tree = &t->trees[i];
		for (unsigned k = 0; k < tree->n_nodes; k++)
			node_fini(&tree->nodes[k]);
		for (unsigned k = 0; k < tree->n_pruned; k++)
			free(tree->pruned[k].change);
		free(tree->nodes);
		free(tree->pruned);
	}
	free(t->trees);
	*t = (struct trees){0};
}

struct tree_node *tree_add_leaf(struct tree *t, float value)
{
	t->nodes = mu_xrealloc(t->nodes, (t->n_nodes + 1) * sizeof *t->nodes);
	t->nodes[t->n_nodes] = (struct tree_node){.kind = NODE_LEAF, .leaf = {.scalar = value}};
	return &t->nodes[t->n_nodes++];
}

struct tree *trees_add(struct trees *t, float leaf)
{
	t->trees = mu_xrealloc(t->trees, (t->n + 1) * sizeof *t->trees);
	t->trees[t->n] = (struct tree){.weight = 1};
	tree_add_leaf(&t->trees[t->n], leaf);
	return &t->trees[t->n++];
}

/* Turns splits of negative gain whose children are leaves back into leaves.  Sets `parent` to the
 * node that a removed node is merged into, and `change` to the change of its value. */
static unsigned merge_leaves(struct tree *t, unsigned *parent, float *change)
{
	unsigned removed = 0;

	for (unsigned i = t->n_nodes; i-- > 0;) { /* children have larger indices */
		struct tree_node *n = &t->nodes[i];
		parent[i] = i;
		if ((n->kind != NODE_BUCKETIZED && n->kind != NODE_CATEGORICAL) || !(n->gain < 0) ||
		    t->nodes[n->left].kind != NODE_LEAF || t->nodes[n->right].kind != NODE_LEAF)
			continue;
		leaf_fini(&n->leaf);
		n->leaf = n->original;
		const int32_t children[] = {n->left, n->right};
		for (unsigned k = 0; k < 2; k++) {
			parent[children[k]] = i;
			change[children[k]] = n->leaf.scalar - t->nodes[children[k]].leaf.scalar;
		}
		*n = (struct tree_node){.kind = NODE_LEAF, .leaf = n->leaf};
		removed += 2;
	}
	return removed;
}

void tree_prune(struct tree *t)
{
	MU_AUTO_FREE unsigned *parent = MU_NEW_ARRAY(unsigned, t->n_nodes + 1);
	MU_AUTO_FREE unsigned *new_id = MU_NEW_ARRAY(unsigned, t->n_nodes + 1);
	MU_AUTO_FREE float *change = MU_NEW_ARRAY(float, t->n_nodes + 1);
	unsigned n_kept = 0;

	if (!merge_leaves(t, parent, change) || t->pruned)
		return;
	t->pruned = MU_NEW_ARRAY(struct pruned_node, t->n_nodes);
	t->n_pruned = t->n_nodes;
	for (unsigned i = 0; i < t->n_nodes; i++) {
		struct pruned_node *p = &t->pruned[i];
		unsigned at = i;
		p->n = 1;
		p->change = MU_NEW_ARRAY(float, 1);
		for (; parent[at] != at; at = parent[at])
			*p->change += change[at];
		new_id[i] = at == i ? n_kept++ : new_id[at];
		p->new_id = (int32_t)new_id[i];
	}
	for (unsigned i = 0; i < t->n_nodes; i++) {
		struct tree_node *n = &t->nodes[i];
		if (parent[i] != i) {
			node_fini(n);
			continue;
		}
		if (n->kind != NODE_LEAF) {
			n->left = (int32_t)new_id[n->left];
			n->right = (int32_t)new_id[n->right];
		}
		t->nodes[new_id[i]] = *n;
	}
	t->n_nodes = n_kept;
}

int trees_node(const struct trees *t, int64_t tree, int64_t node, const struct tree_node **out,
	       struct mu_err *err)
{
	if (tree < 0 || tree >= t->n)
		return mu_invalid(err, "Tree %lld is not in an ensemble of %u trees",
				  (long long)tree, t->n);
	if (node < 0 || node >= t->trees[tree].n_nodes)
		return mu_invalid(err, "Node %lld is not in tree %lld, which has %u nodes",
				  (long long)node, (long long)tree, t->trees[tree].n_nodes);
	*out = &t->trees[tree].nodes[node];
	return 0;
}

int node_values(const struct tree_node *node, unsigned n, const float **out, struct mu_err *err)
{
	const struct tree_leaf *leaf = node->kind == NODE_LEAF ? &node->leaf : &node->original;
	unsigned n_values = leaf->is_vector ? leaf->n : 1;

	*out = NULL;
	if (node->kind != NODE_LEAF && !node->has_original)
		return 0;
	if (n_values != n)
		return mu_invalid(err, "A leaf has %u values, but logits_dimension is %u", n_values,
				  n);
	*out = leaf->is_vector ? leaf->vector : &leaf->scalar;
	return 0;
}
