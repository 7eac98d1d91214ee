/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulators, in which synchronous training aggregates gradients. accumulator.c has the part that
 * dense and sparse accumulators share; each kind stores gradients differently.
 *
 * A gradient computed at an older step than the accumulator's is dropped. TakeGradient waits until
 * enough gradients have arrived and returns their mean or sum. Then the accumulator is at its next
 * step. */
#ifndef MU_TASK_KERNELS_CONTROL_ACCUMULATOR_H
#define MU_TASK_KERNELS_CONTROL_ACCUMULATOR_H

#include "task/kernels/control/wait_queue.h"

struct accumulator;
struct accumulator_kind {
	struct accumulator *(*make)(void);
	/* All are called with the queue's lock.  `add` adds the gradient, which is input 2 and on.
	 * `output` sets the outputs and clears the sum. */
	int (*add)(struct accumulator *a, struct kernel_call *c, struct mu_err *err);
	int (*output)(struct accumulator *a, struct kernel_call *c, struct mu_err *err);
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
