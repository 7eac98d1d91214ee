/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizers, for all devices. TensorFlow has four ops for each algorithm (by reference or
 * handle, dense or sparse). Here an algorithm is one table row, and the names of the op's
 * arguments determine the positions of its inputs. */
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
	int grad, indices; /* input indices; indices -1: a dense gradient */
	int scalar[OPTIMIZER_SCALARS];
};
/* Makes a struct optimizer_plan the node's state. */
int optimizer_prepare(const struct mu_node *n, struct runtime *rt, void **state,
		      struct mu_err *err);
/* True if this scalar is the step, which is an int64. */
bool optimizer_scalar_is_step(const struct optimizer *o, unsigned scalar, enum mu_dtype t);
/* The node's attributes that change the formula, encoded for optimizer_constants.h. */
int optimizer_flag(const struct mu_node *n, const struct optimizer *o);
/* Computes the constants k from the scalar inputs, which are in host memory. */
int optimizer_scalars(const struct kernel_call *c, const struct optimizer_plan *p, enum mu_dtype t,
		      double *k, struct mu_err *err);
/* Checks types and shapes of variable, slots and gradient. */
int optimizer_check(const struct variables *vs, const struct mu_tensor *grad, struct mu_err *err);

#endif
