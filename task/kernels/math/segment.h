/* SPDX-License-Identifier: Apache-2.0 */
/* Rows reduced by segment, as the ops ask for it: read and checked, on the host.
 *
 * out[ids[i]] op= data[rows[i]], for each i, then what a mean divides by; rows absent: data[i].  A
 * gradient goes the other way: out[rows[i]] += data[ids[i]] / divisor of ids[i]. */
#ifndef MU_TASK_KERNELS_MATH_SEGMENT_H
#define MU_TASK_KERNELS_MATH_SEGMENT_H

#include "task/kernels/engine/loops/loops.h"
#include "task/runtime/kernel.h"

enum segment_divide { BY_NOTHING, BY_COUNT, BY_ROOT };

struct segments {
	const struct mu_tensor *data, *picked, *ids; /* of the data only its shape is looked at */
	enum reduce_op op;
	enum segment_divide divide;
	int64_t n, row;        /* rows that come out; elements in one */
	struct mu_shape shape; /* of what comes out */
	int64_t *numbers;      /* by a gradient's newer ops: which rows come out, in order */
};
int segments_read(struct kernel_call *c, enum reduce_op op, enum segment_divide how,
		  struct segments *s, struct mu_err *err);
int segments_read_sparse(struct kernel_call *c, enum segment_divide how, struct segments *s,
			 struct mu_err *err);
/* Gives output 1, too, where there is one. */
int segments_read_grad(struct kernel_call *c, enum segment_divide how, struct segments *s,
		       struct mu_err *err);
void segments_fini(struct segments *s);
#define SEGMENTS_AUTO __attribute__((cleanup(segments_fini))) struct segments

/* For a gradient: the row of the result for the ith index. */
int64_t segments_row_of(const struct segments *s, int64_t i);
/* The number that the sum of each of n segments is divided by, as doubles.  BY_NOTHING: *out stays
 * empty. */
int segments_divisors(const struct mu_tensor *ids, int64_t n, enum segment_divide how,
		      struct mu_tensor *out, struct mu_err *err);

#endif
