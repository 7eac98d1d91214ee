/* SPDX-License-Identifier: Apache-2.0 */
/* Logits of examples: sums of the leaves that they reach in the trees of an ensemble. */
#include "lib/base/pb.h"
#include "task/kernels/boosted_trees/ensemble.h"
#include "task/kernels/engine/kernel_table.h"

struct walk {
	const struct kernel_call *c;
	const struct trees *trees;
	unsigned first, features, logits; /* first: the input of feature 0 */
	int64_t batch;
};

static int walk_begin(struct walk *w, struct kernel_call *c, const struct ensemble *e,
		      unsigned first, struct mu_err *err)
{
	int64_t logits = args_attr_int(c->node, "logits_dimension", 1);

	if (logits < 1 || logits > 1 << 20)
		return mu_invalid(err, "logits_dimension must be positive, got %lld",
				  (long long)logits);
	*w = (struct walk){.c = c,
			   .trees = &e->trees,
			   .first = first,
			   .features = c->n_in - first,
			   .logits = (unsigned)logits,
			   .batch = kernel_in(c, first)->shape.count};
	return 0;
}

/* The child of a split that example i belongs to. */
static int next_node(const struct walk *w, const struct tree_node *node, int64_t i, int64_t *out,
		     struct mu_err *err)
{
	if (node->kind != NODE_BUCKETIZED && node->kind != NODE_CATEGORICAL)
		return mu_invalid(err, "A node of a tree is neither leaf nor split");
	if (node->feature < 0 || (unsigned)node->feature >= w->features)
		return mu_invalid(err, "A split needs feature %d, but there are %u features",
				  node->feature, w->features);
	int32_t x = MU_DATA(int32_t, kernel_in(w->c, w->first + (unsigned)node->feature))[i];
	bool left = node->kind == NODE_BUCKETIZED ? x <= node->threshold : x == node->threshold;
	*out = left ? node->left : node->right;
	return 0;
}

/* Follows example i from a node to the leaf of the last tree.  Adds `partial`, which becomes zero,
 * and the leaves to `sum`, each times the weight of its tree. */
static int walk_trees(const struct walk *w, int64_t i, int64_t *tree, int64_t *node, float *partial,
		      float *sum, struct mu_err *err)
{
	const struct tree_node *at;
	const float *values;

	for (;;) {
		MU_RETURN_IF_ERROR(trees_node(w->trees, *tree, *node, &at, err));
		if (at->kind != NODE_LEAF) {
			MU_RETURN_IF_ERROR(next_node(w, at, i, node, err));
			continue;
		}
		MU_RETURN_IF_ERROR(node_values(at, w->logits, &values, err));
		float weight = w->trees->trees[*tree].weight;
		for (unsigned j = 0; j < w->logits; j++) {
			sum[j] += weight * (partial[j] + values[j]);
			partial[j] = 0;
		}
		if (*tree == (int64_t)w->trees->n - 1)
			return 0;
		++*tree;
		*node = 0;
	}
}

static int predict(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(ensemble_put) struct ensemble *e = NULL;
	struct walk w;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(ensemble_get(c, &e, err));
	MU_RETURN_IF_ERROR(walk_begin(&w, c, e, 1, err));
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 0, MU_FLOAT, 2, (int64_t[]){w.batch, w.logits}, &out, err));
	if (out->shape.count)
		memset(out->data, 0, (size_t)out->shape.count * sizeof(float));
	MU_AUTO_FREE float *partial = MU_NEW_ARRAY(float, w.logits);
	for (int64_t i = 0; i < w.batch && e->trees.n; i++) {
		int64_t tree = 0, node = 0;
		MU_RETURN_IF_ERROR(walk_trees(&w, i, &tree, &node, partial,
					      MU_DATA(float, out) + i * w.logits, err));
	}
	return 0;
}

/* Resumes at a cached node: sets *node to its id after pruning, and `partial` to the correction of
 * the logits that include its value. */
static int resume(const struct walk *w, int64_t tree, int64_t *node, float *partial,
		  struct mu_err *err)
{
	const struct tree_node *at;
	const float *values;

	if (tree < 0 || tree >= w->trees->n)
		return mu_invalid(err, "Tree %lld is not in an ensemble of %u trees",
				  (long long)tree, w->trees->n);
	const struct tree *t = &w->trees->trees[tree];
	if (t->is_finalized && t->n_pruned) {
		if (*node >= t->n_pruned || t->pruned[*node].n != w->logits)
			return mu_invalid(err, "Node %lld is not in pruned tree %lld",
					  (long long)*node, (long long)tree);
		memcpy(partial, t->pruned[*node].change, w->logits * sizeof *partial);
		*node = t->pruned[*node].new_id;
	}
	MU_RETURN_IF_ERROR(trees_node(w->trees, tree, *node, &at, err));
	MU_RETURN_IF_ERROR(node_values(at, w->logits, &values, err));
	for (unsigned j = 0; values && j < w->logits; j++)
		partial[j] -= values[j];
	return 0;
}

/* Outputs the change of the logits of each example since its cached tree and node. */
static int training_predict(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(ensemble_put) struct ensemble *e = NULL;
	struct walk w;
	struct mu_tensor *logits, *trees, *nodes;

	MU_RETURN_IF_ERROR(ensemble_get(c, &e, err));
	MU_RETURN_IF_ERROR(walk_begin(&w, c, e, 3, err));
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 0, MU_FLOAT, 2, (int64_t[]){w.batch, w.logits}, &logits, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, MU_INT32, w.batch, &trees, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 2, MU_INT32, w.batch, &nodes, err));
	if (logits->shape.count)
		memset(logits->data, 0, (size_t)logits->shape.count * sizeof(float));
	MU_AUTO_FREE float *partial = MU_NEW_ARRAY(float, w.logits);
	for (int64_t i = 0; i < w.batch; i++) {
		int64_t tree = MU_DATA(int32_t, kernel_in(c, 1))[i];
		int64_t node = MU_DATA(int32_t, kernel_in(c, 2))[i];
		if (!e->trees.n) {
			node = 0;
		} else {
			memset(partial, 0, w.logits * sizeof *partial);
			if (node < 0)
				node = 0;
			else
				MU_RETURN_IF_ERROR(resume(&w, tree, &node, partial, err));
			MU_RETURN_IF_ERROR(walk_trees(&w, i, &tree, &node, partial,
						      MU_DATA(float, logits) + i * w.logits, err));
		}
		MU_DATA(int32_t, trees)[i] = (int32_t)tree;
		MU_DATA(int32_t, nodes)[i] = (int32_t)node;
	}
	return 0;
}

/* The weighted value of a node on the path of an example. */
static int path_value(const struct walk *w, int64_t tree, int64_t node, float *out,
		      const struct tree_node **at, struct mu_err *err)
{
	const float *values;

	MU_RETURN_IF_ERROR(trees_node(w->trees, tree, node, at, err));
	MU_RETURN_IF_ERROR(node_values(*at, 1, &values, err));
	if (!values)
		return mu_invalid(err,
				  "Node %lld of tree %lld has no value. Was the bias centered?",
				  (long long)node, (long long)tree);
	*out = w->trees->trees[tree].weight * *values;
	return 0;
}

/* Writes a DebugOutput message: the features of the splits that example i passes, and its logit
 * before the first split and after each split. */
static int debug_path(const struct walk *w, int64_t i, struct mu_buf *out, struct mu_err *err)
{
	MU_AUTO_BUF features = {0};
	MU_AUTO_BUF logits = {0};
	const struct tree_node *at;
	float value, sum = 0;

	MU_RETURN_IF_ERROR(path_value(w, 0, 0, &value, &at, err));
	mu_buf_put(&logits, &value, sizeof value);
	for (int64_t tree = 0; tree < w->trees->n; tree++) {
		int64_t node = 0;
		MU_RETURN_IF_ERROR(trees_node(w->trees, tree, node, &at, err));
		while (at->kind != NODE_LEAF) {
			MU_RETURN_IF_ERROR(next_node(w, at, i, &node, err));
			mu_pb_put_varint(&features, (uint64_t)(int64_t)at->feature);
			MU_RETURN_IF_ERROR(path_value(w, tree, node, &value, &at, err));
			float logit = value + sum;
			mu_buf_put(&logits, &logit, sizeof logit);
		}
		if (tree == 0 || node > 0)
			sum += value;
	}
	if (features.len)
		mu_pb_put_bytes(out, 1, mu_buf_span(&features));
	mu_pb_put_bytes(out, 2, mu_buf_span(&logits));
	return 0;
}

static int debug_outputs(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(ensemble_put) struct ensemble *e = NULL;
	struct walk w;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(ensemble_get(c, &e, err));
	MU_RETURN_IF_ERROR(walk_begin(&w, c, e, 1, err));
	if (w.logits != 1)
		return mu_invalid(err, "Currently only one dimensional outputs are supported.");
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, MU_STRING, w.batch, &out, err));
	for (int64_t i = 0; i < w.batch; i++) {
		MU_AUTO_BUF message = {0};
		MU_RETURN_IF_ERROR(debug_path(&w, i, &message, err));
		mu_string_set(&MU_DATA(struct mu_string, out)[i], message.data, message.len);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"BoostedTreesPredict", KERNEL_EXPENSIVE, .run = predict},
    {"BoostedTreesTrainingPredict", KERNEL_EXPENSIVE, .run = training_predict},
    {"BoostedTreesExampleDebugOutputs", KERNEL_EXPENSIVE, .run = debug_outputs},
};
KERNEL_TABLE(boosted_trees_predict, rows)
