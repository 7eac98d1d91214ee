/* SPDX-License-Identifier: Apache-2.0 */
/* An ensemble of decision trees as a resource; in checkpoints it is a boosted_trees.TreeEnsemble
 * message.  Children have larger indices than their parent, so that every walk ends. */
#ifndef MU_TASK_KERNELS_BOOSTED_TREES_ENSEMBLE_H
#define MU_TASK_KERNELS_BOOSTED_TREES_ENSEMBLE_H

#include "task/kernels/state/handles.h"

/* The value of a leaf: a number, or a vector of one number per logit. */
struct tree_leaf {
	float scalar;
	bool is_vector;
	unsigned n;
	float *vector; /* owned */
};

enum node_kind { NODE_UNSET, NODE_LEAF, NODE_BUCKETIZED, NODE_CATEGORICAL }; /* field numbers */
struct tree_node {
	enum node_kind kind;
	struct tree_leaf leaf;
	/* split: `left` if the feature is at most (bucketized) or equals (categorical) the
	 * threshold */
	int32_t feature, threshold, dimension, default_direction, left, right;
	bool has_metadata, has_original;
	float gain;
	struct tree_leaf original; /* the leaf before the split of the node */
};

/* The id of a node after its tree was pruned, and the change of its value. */
struct pruned_node {
	int32_t new_id;
	unsigned n;
	float *change; /* owned */
};

struct tree {
	struct tree_node *nodes;
	unsigned n_nodes, n_pruned;
	struct pruned_node *pruned; /* one for each node before pruning; NULL: none was pruned */
	float weight;
	int32_t layers_grown;
	bool is_finalized;
};

struct trees {
	struct tree *trees;
	unsigned n;
	bool has_growing;
	int64_t trees_attempted, layers_attempted;
	int32_t last_layer_start, last_layer_end; /* nodes of the newest layer; end is exclusive */
};

/* Parses the message into empty `t`. */
int trees_parse(struct trees *t, struct mu_span message, struct mu_err *err);
void trees_serialize(const struct trees *t, struct mu_buf *b);
void trees_fini(struct trees *t);
/* Adds a tree of weight 1 that is one leaf. */
struct tree *trees_add(struct trees *t, float leaf);
struct tree_node *tree_add_leaf(struct tree *t, float value); /* may move t->nodes */
/* Merges the leaves of splits with negative gain, and records the new ids of nodes. */
void tree_prune(struct tree *t);

struct ensemble {
	struct resource base;
	pthread_mutex_t lock; /* guards the rest */
	int64_t stamp;
	struct trees trees;
};
extern const struct resource_type ensemble_type;
/* Finds the ensemble of input 0 and locks it.  ensemble_put unlocks it and drops the reference. */
int ensemble_get(const struct kernel_call *c, struct ensemble **out, struct mu_err *err);
void ensemble_put(struct ensemble *e);
MU_AUTO_DEFINE(ensemble_put, struct ensemble)

/* Finds node `node` of tree `tree`. */
int trees_node(const struct trees *t, int64_t tree, int64_t node, const struct tree_node **out,
	       struct mu_err *err);
/* Sets *out to the n values of a leaf, or of a split's original leaf; NULL if it has none. */
int node_values(const struct tree_node *node, unsigned n, const float **out, struct mu_err *err);

#endif
