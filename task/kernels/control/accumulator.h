/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulators of gradients, in which synchronous training aggregates. control/accumulator.c has
 * the part that dense and sparse accumulators share; each kind stores gradients in its own way.
 *
 * A gradient computed at an older step than the accumulator's is dropped. Taking waits until enough
 * gradients have arrived, returns their mean or sum, and moves the accumulator to its next step. */
#ifndef MU_TASK_KERNELS_CONTROL_ACCUMULATOR_H
#define MU_TASK_KERNELS_CONTROL_ACCUMULATOR_H

#include "task/kernels/control/wait_queue.h"

struct accumulator;
struct accumulator_kind {
	struct accumulator *(*make)(void);
	/* All with the queue's lock.  add takes the gradient of inputs 2 and on; give fills the
	 * outputs and forgets what there was. */
	int (*add)(struct accumulator *a, struct kernel_call *c, struct mu_err *err);
	int (*give)(struct accumulator *a, struct kernel_call *c, struct mu_err *err);
	void (*free)(struct accumulator *a);
};
struct accumulator {
	struct resource base;
	const struct accumulator_kind *kind;
	struct wait_queue waiters;
	enum mu_dtype dtype;
	struct mu_pshape shape;
	bool mean;
	int64_t step, count;
};
extern const struct accumulator_kind accumulator_dense, accumulator_sparse;

#endif
