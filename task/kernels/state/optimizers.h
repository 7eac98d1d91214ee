/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizers, for all devices. TensorFlow has four ops for each algorithm (by reference or
 * handle, dense or sparse). Here an algorithm is one table row, and the op's argument names give
 * the positions of its inputs. */
#ifndef MU_TASK_KERNELS_STATE_OPTIMIZERS_H
#define MU_TASK_KERNELS_STATE_OPTIMIZERS_H

#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/state/variables.h"

enum { OPTIMIZER_SCALARS = 6 };
struct optimizer {
	const char *name;
	unsigned slots;
	const char *scalars[OPTIMIZER_SCALARS]; /* input names */
	enum optimizer_kind kind;
};
struct optimizer_plan {
	const struct optimizer *a;
	int grad, indices; /* input numbers; indices -1: dense */
	int scalar[OPTIMIZER_SCALARS];
};
/* A struct optimizer_plan as the node's state. */
int optimizer_prepare(const struct mu_node *n, struct runtime *rt, void **state,
		      struct mu_err *err);
/* True if this scalar is a number of steps, which is an int64. */
bool optimizer_counts(const struct optimizer *o, unsigned scalar, enum mu_dtype t);
/* The node's attributes that change the formula, as optimizer_constants.h wants them. */
int optimizer_flag(const struct mu_node *n, const struct optimizer *o);
/* The scalar inputs, in host memory, as k. */
int optimizer_scalars(const struct kernel_call *c, const struct optimizer_plan *p, enum mu_dtype t,
		      double *k, struct mu_err *err);
/* Types and shapes of variable, slots and gradient. */
int optimizer_check(const struct variables *vs, const struct mu_tensor *grad, struct mu_err *err);

#endif
