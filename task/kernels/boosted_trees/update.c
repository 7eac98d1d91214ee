/* SPDX-License-Identifier: Apache-2.0 */
/* Growth of an ensemble: one layer of splits per call, a new tree when the newest has max_depth
 * layers. */
#include <math.h>

#include "task/kernels/boosted_trees/ensemble.h"
#include "task/kernels/boosted_trees/split.h"
#include "task/kernels/engine/kernel_table.h"

enum pruning { PRUNING_NONE, PRUNING_PRE, PRUNING_POST };
/* Numbers of the message's enums; splits of V1 send missing values to the left. */
enum { DEFAULT_LEFT = 0, DEFAULT_RIGHT = 1 };

struct candidate {
	bool is_set;
	enum node_kind kind;
	int32_t feature, threshold, dimension, default_direction;
	float gain, left, right; /* the children's weights times the learning rate */
};

/* The positions of the op's inputs; each list has one tensor for each of `features`. */
struct inputs {
	unsigned features, dimension_ids, node_ids, gains, thresholds, left, right, split_types;
	bool has_v2; /* dimension_ids and split_types */
	int32_t max_depth;
	float learning_rate;
	enum pruning pruning;
};

static const char *const split_types[] = {"INEQUALITY_DEFAULT_LEFT", "INEQUALITY_DEFAULT_RIGHT",
					  "EQUALITY_DEFAULT_RIGHT", NULL};

static int set_split_type(struct candidate *s, const struct mu_string *name, struct mu_err *err)
{
	MU_AUTO_FREE char *text = mu_xstrndup(name->data ? name->data : "", name->len);
	int type = mu_word_index(text, split_types);

	if (type < 0)
		return mu_invalid(err, "Unknown split type '%s'", text);
	s->kind = type == 2 ? NODE_CATEGORICAL : NODE_BUCKETIZED;
	s->default_direction = type == 1 ? DEFAULT_RIGHT : DEFAULT_LEFT;
	return 0;
}

/* Checks that the tensors of feature f have as many elements as its node ids. */
static int check_feature(const struct kernel_call *c, const struct inputs *in, unsigned f,
			 struct mu_err *err)
{
	const unsigned lists[] = {in->gains, in->thresholds,    in->left,
				  in->right, in->dimension_ids, in->split_types};
	int64_t n = kernel_in(c, in->node_ids + f)->shape.count;

	for (unsigned i = 0; i < (in->has_v2 ? 6 : 4); i++)
		if (kernel_in(c, lists[i] + f)->shape.count != n)
			return mu_invalid(
			    err, "Input %u has %lld elements, but %lld nodes", lists[i] + f,
			    (long long)kernel_in(c, lists[i] + f)->shape.count, (long long)n);
	return 0;
}

static bool is_better(const struct candidate *s, const struct candidate *best)
{
	if (best->is_set && fabsf(s->gain - best->gain) < GAIN_TOLERANCE)
		return s->feature < best->feature;
	return !best->is_set || gain_is_larger(s->gain, best->gain);
}

/* Finds for each of the tree's nodes the split with the largest gain among all features. */
static int find_best(const struct kernel_call *c, const struct inputs *in, const struct tree *tree,
		     struct candidate *best, struct mu_err *err)
{
	for (unsigned f = 0; f < in->features; f++) {
		const int32_t *ids = MU_DATA(int32_t, kernel_in(c, in->node_ids + f));
		MU_RETURN_IF_ERROR(check_feature(c, in, f, err));
		for (int64_t i = 0; i < kernel_in(c, in->node_ids + f)->shape.count; i++) {
			if (ids[i] < 0 || ids[i] >= (tree ? (int64_t)tree->n_nodes : 1))
				return mu_invalid(err, "Node %d is not in the tree", ids[i]);
			if (tree && tree->nodes[ids[i]].kind != NODE_LEAF)
				return mu_invalid(err, "Node %d is not a leaf", ids[i]);
			struct candidate s = {
			    .is_set = true,
			    .kind = NODE_BUCKETIZED,
			    .feature = MU_DATA(int32_t, kernel_in(c, 1))[f],
			    .gain = MU_DATA(float, kernel_in(c, in->gains + f))[i],
			    .threshold = MU_DATA(int32_t, kernel_in(c, in->thresholds + f))[i],
			    .left =
				in->learning_rate * MU_DATA(float, kernel_in(c, in->left + f))[i],
			    .right =
				in->learning_rate * MU_DATA(float, kernel_in(c, in->right + f))[i]};
			if (in->has_v2) {
				s.dimension =
				    MU_DATA(int32_t, kernel_in(c, in->dimension_ids + f))[i];
				MU_RETURN_IF_ERROR(
				    set_split_type(&s,
						   &MU_DATA(struct mu_string,
							    kernel_in(c, in->split_types + f))[i],
						   err));
			}
			if (is_better(&s, &best[ids[i]]))
				best[ids[i]] = s;
		}
	}
	return 0;
}

static void count_attempt(struct trees *t)
{
	t->has_growing = true;
	t->layers_attempted++;
	if (t->n == 0 ||
	    ((t->n == 1 || t->trees[t->n - 2].is_finalized) && t->trees[t->n - 1].n_nodes == 1))
		t->trees_attempted++;
}

static void split_node(struct tree *t, unsigned id, const struct candidate *s)
{
	float value = t->nodes[id].leaf.scalar;
	int32_t left = (int32_t)t->n_nodes;

	tree_add_leaf(t, value + s->left);
	tree_add_leaf(t, value + s->right);
	struct tree_node *n = &t->nodes[id];
	struct tree_node split = {.kind = s->kind,
				  .feature = s->feature,
				  .threshold = s->threshold,
				  .dimension = s->dimension,
				  .default_direction = s->default_direction,
				  .left = left,
				  .right = left + 1,
				  .has_metadata = true,
				  .gain = s->gain};
	if (id != 0 || value != 0) {
		split.has_original = true;
		split.original = n->leaf;
	} else {
		free(n->leaf.vector);
	}
	*n = split;
}

static void grow(struct trees *t, const struct inputs *in, const struct candidate *best)
{
	struct tree *tree = &t->trees[t->n - 1];
	unsigned n_before = tree->n_nodes;

	for (unsigned id = 0; id < n_before; id++)
		if (best[id].is_set && !(in->pruning == PRUNING_PRE && best[id].gain < 0))
			split_node(tree, id, &best[id]);
	if (tree->n_nodes == n_before)
		return; /* the next call tries the same nodes with other examples */
	t->last_layer_start = (int32_t)n_before;
	t->last_layer_end = (int32_t)tree->n_nodes;
	if (++tree->layers_grown < in->max_depth)
		return;
	tree->is_finalized = true;
	if (in->pruning == PRUNING_POST)
		tree_prune(tree);
	trees_add(t, 0);
	t->last_layer_start = 0;
	t->last_layer_end = 1;
}

static int update(struct kernel_call *c, const struct inputs *in, struct mu_err *err)
{
	MU_AUTO(ensemble_put) struct ensemble *e = NULL;

	if (kernel_in(c, 1)->shape.count != in->features)
		return mu_invalid(err, "Expected %u feature ids, got %lld", in->features,
				  (long long)kernel_in(c, 1)->shape.count);
	MU_RETURN_IF_ERROR(ensemble_get(c, &e, err));
	struct trees *t = &e->trees;
	struct tree *tree = t->n ? &t->trees[t->n - 1] : NULL;
	unsigned nodes = tree ? tree->n_nodes : 1;
	MU_AUTO_FREE struct candidate *best = MU_NEW_ARRAY(struct candidate, nodes + 1);
	MU_RETURN_IF_ERROR(find_best(c, in, tree, best, err));
	e->stamp++;
	count_attempt(t);
	if (!tree)
		trees_add(t, 0);
	grow(t, in, best);
	return 0;
}

static int update_v1(struct kernel_call *c, struct mu_err *err)
{
	unsigned n = (unsigned)args_attr_int(c->node, "num_features", 0), first = 2;
	struct inputs in = {.features = n,
			    .node_ids = first,
			    .gains = first + n,
			    .thresholds = first + 2 * n,
			    .left = first + 3 * n,
			    .right = first + 4 * n};

	in.max_depth = MU_DATA(int32_t, kernel_in(c, first + 5 * n))[0];
	in.learning_rate = MU_DATA(float, kernel_in(c, first + 5 * n + 1))[0];
	in.pruning = (enum pruning)args_attr_int(c->node, "pruning_mode", 0);
	return update(c, &in, err);
}

static int update_v2(struct kernel_call *c, struct mu_err *err)
{
	unsigned n = (unsigned)args_attr_int(c->node, "num_features", 0), first = 2;
	struct inputs in = {.features = n,
			    .has_v2 = true,
			    .dimension_ids = first,
			    .node_ids = first + n,
			    .gains = first + 2 * n,
			    .thresholds = first + 3 * n,
			    .left = first + 4 * n,
			    .right = first + 5 * n,
			    .split_types = first + 6 * n};

	in.max_depth = MU_DATA(int32_t, kernel_in(c, first + 7 * n))[0];
	in.learning_rate = MU_DATA(float, kernel_in(c, first + 7 * n + 1))[0];
	in.pruning = (enum pruning)MU_DATA(int32_t, kernel_in(c, first + 7 * n + 2))[0];
	return update(c, &in, err);
}

/* Moves the bias, the leaf of the first tree, by a Newton step. */
static int center_bias(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO(ensemble_put) struct ensemble *e = NULL;
	float step, gain;
	bool continue_centering = true;

	if (kernel_in(c, 1)->shape.count != 1)
		return mu_invalid(err, "Expected one mean gradient, got %lld",
				  (long long)kernel_in(c, 1)->shape.count);
	MU_RETURN_IF_ERROR(ensemble_get(c, &e, err));
	struct trees *t = &e->trees;
	if (t->n && (!t->trees[0].n_nodes || t->trees[0].nodes[0].kind != NODE_LEAF))
		return mu_invalid(err, "The first tree has splits: its bias cannot be centered");
	e->stamp++;
	leaf_weight(MU_DATA(float, kernel_in(c, 1))[0], MU_DATA(float, kernel_in(c, 2))[0],
		    MU_DATA(float, kernel_in(c, 3))[0], MU_DATA(float, kernel_in(c, 4))[0], &step,
		    &gain);
	if (t->n == 0) {
		trees_add(t, step);
	} else {
		float *bias = &t->trees[0].nodes[0].leaf.scalar;
		continue_centering = fabsf(step / *bias) > 0.01f;
		*bias += step;
	}
	return kernel_out_value(c, 0, MU_BOOL, &continue_centering, err);
}

static const struct kernel rows[] = {
    {"BoostedTreesUpdateEnsemble", .run = update_v1},
    {"BoostedTreesUpdateEnsembleV2", .run = update_v2},
    {"BoostedTreesCenterBias", .run = center_bias},
};
KERNEL_TABLE(boosted_trees_update, rows)
