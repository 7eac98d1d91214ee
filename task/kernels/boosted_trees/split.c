/* SPDX-License-Identifier: Apache-2.0 */
/* The best split of each node by one feature: the last bucket of the left child with the largest
 * gain of both children. */
#include "task/kernels/boosted_trees/split.h"

#include <float.h>

#include "task/kernels/boosted_trees/ensemble.h"
#include "task/kernels/engine/kernel_table.h"

void leaf_weight(float gradient, float hessian, float l1, float l2, float *weight, float *gain)
{
	const float min_hessian = 1e-15f;

	*weight = *gain = 0;
	if (l1 > 0 && !(gradient > l1) && !(gradient < -l1))
		return;
	if (l1 > 0)
		gradient += gradient > l1 ? -l1 : l1;
	if (hessian + l2 <= min_hessian)
		return;
	*weight = -gradient / (hessian + l2);
	*gain = -gradient * *weight;
}

struct penalties {
	float l1, l2, complexity, min_weight;
};

static struct penalties penalties_in(const struct kernel_call *c, unsigned first)
{
	return (struct penalties){
	    MU_DATA(float, kernel_in(c, first))[0], MU_DATA(float, kernel_in(c, first + 1))[0],
	    MU_DATA(float, kernel_in(c, first + 2))[0], MU_DATA(float, kernel_in(c, first + 3))[0]};
}

struct split {
	int32_t node, bucket;
	float gain, left, right;
};

/* The best split of a node by its sums [buckets, 2]; false: its Hessian is too small. */
static bool best_split(const float *sums, int64_t buckets, const struct penalties *p,
		       struct split *best)
{
	float gradient = 0, hessian = 0, left_gradient = 0, left_hessian = 0, parent_gain, unused;

	for (int64_t b = 0; b < buckets; b++) {
		gradient += sums[2 * b];
		hessian += sums[2 * b + 1];
	}
	if (hessian < p->min_weight)
		return false;
	leaf_weight(gradient, hessian, p->l1, p->l2, &unused, &parent_gain);
	best->gain = -FLT_MAX;
	best->bucket = 0;
	best->left = best->right = 0;
	for (int64_t b = 0; b < buckets; b++) {
		float left, right, left_gain, right_gain;
		left_gradient += sums[2 * b];
		left_hessian += sums[2 * b + 1];
		leaf_weight(left_gradient, left_hessian, p->l1, p->l2, &left, &left_gain);
		leaf_weight(gradient - left_gradient, hessian - left_hessian, p->l1, p->l2, &right,
			    &right_gain);
		if (gain_is_larger(left_gain + right_gain, best->gain)) {
			best->gain = left_gain + right_gain;
			best->bucket = (int32_t)b;
			best->left = left;
			best->right = right;
		}
	}
	best->gain = best->gain - parent_gain - p->complexity;
	return true;
}

/* Writes the splits of feature f; the op's five outputs are lists of one tensor per feature. */
static int put_splits(struct kernel_call *c, unsigned features, unsigned f, const struct split *s,
		      int64_t n, struct mu_err *err)
{
	struct mu_tensor *nodes, *gains, *thresholds, *left, *right;
	int64_t column[] = {n, 1};

	MU_RETURN_IF_ERROR(kernel_out_vec(c, f, MU_INT32, n, &nodes, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, features + f, MU_FLOAT, n, &gains, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 2 * features + f, MU_INT32, n, &thresholds, err));
	MU_RETURN_IF_ERROR(kernel_out_dims(c, 3 * features + f, MU_FLOAT, 2, column, &left, err));
	MU_RETURN_IF_ERROR(kernel_out_dims(c, 4 * features + f, MU_FLOAT, 2, column, &right, err));
	for (int64_t i = 0; i < n; i++) {
		MU_DATA(int32_t, nodes)[i] = s[i].node;
		MU_DATA(float, gains)[i] = s[i].gain;
		MU_DATA(int32_t, thresholds)[i] = s[i].bucket;
		MU_DATA(float, left)[i] = s[i].left;
		MU_DATA(float, right)[i] = s[i].right;
	}
	return 0;
}

/* Reads the range of nodes and checks that it is within the sums. */
static int node_range(const struct kernel_call *c, int64_t nodes, int32_t *first, int32_t *end,
		      struct mu_err *err)
{
	*first = MU_DATA(int32_t, kernel_in(c, 0))[0];
	*end = MU_DATA(int32_t, kernel_in(c, 0))[1];
	if (*first < *end && (*first < 0 || *end > nodes))
		return mu_invalid(err, "Nodes %d to %d are not in the sums of %lld nodes", *first,
				  *end, (long long)nodes);
	return 0;
}

static int best_gains_per_feature(struct kernel_call *c, struct mu_err *err)
{
	unsigned features = (unsigned)args_attr_int(c->node, "num_features", 1);
	struct penalties p = penalties_in(c, 1 + features);

	for (unsigned f = 0; f < features; f++) {
		const struct mu_tensor *sums = kernel_in(c, 1 + f);
		int64_t buckets = sums->shape.dim[1], n = 0;
		int32_t first, end;
		MU_RETURN_IF_ERROR(node_range(c, sums->shape.dim[0], &first, &end, err));
		MU_AUTO_FREE struct split *s =
		    MU_NEW_ARRAY(struct split, first < end ? (size_t)(end - first) : 1);
		for (int32_t node = first; node < end; node++) {
			s[n].node = node;
			n += best_split(MU_DATA(float, sums) + node * buckets * 2, buckets, &p,
					&s[n]);
		}
		MU_RETURN_IF_ERROR(put_splits(c, features, f, s, n, err));
	}
	return 0;
}

static const struct kernel rows[] = {
    {"BoostedTreesCalculateBestGainsPerFeature", KERNEL_EXPENSIVE, .run = best_gains_per_feature},
};
KERNEL_TABLE(boosted_trees_split, rows)
