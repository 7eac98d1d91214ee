/* SPDX-License-Identifier: Apache-2.0 */
/* Gains and weights of leaves (Chen and Guestrin, "XGBoost: A Scalable Tree Boosting System"). */
#ifndef MU_TASK_KERNELS_BOOSTED_TREES_SPLIT_H
#define MU_TASK_KERNELS_BOOSTED_TREES_SPLIT_H

#include <math.h>
#include <stdbool.h>

/* Gains that differ by less are equal. */
#define GAIN_TOLERANCE 1e-15f

static inline bool gain_is_larger(float a, float b)
{
	return a - b >= GAIN_TOLERANCE;
}

/* The best weight of a leaf with these sums of gradients and Hessians, and its gain. */
void leaf_weight(float gradient, float hessian, float l1, float l2, float *weight, float *gain);

#endif
