/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of the segment reductions, read and checked on the host:
 *
 *	out[ids[i]] op= data[indices[i]]   for each i; without indices: data[i]
 *
 * Mean and SqrtN then divide each segment.  The gradient is:
 *
 *	out[indices[i]] += data[ids[i]] / divisor of segment ids[i] */
#ifndef MU_TASK_KERNELS_MATH_SEGMENT_H
#define MU_TASK_KERNELS_MATH_SEGMENT_H

#include "task/kernels/engine/loops/loops.h"
#include "task/runtime/kernel.h"

enum segment_divide { DIVIDE_BY_NOTHING, DIVIDE_BY_COUNT, DIVIDE_BY_SQRT_COUNT };

struct segments {
	const struct mu_tensor *data, *indices, *ids; /* of data only the shape is read */
	enum reduce_op op;
	enum segment_divide divide;
	int64_t n, row_size;   /* rows of the output, elements of a row */
	struct mu_shape shape; /* of the output */
	int64_t *distinct;     /* the V2 gradients output these rows only; NULL: all n rows */
};
int segments_read(struct kernel_call *c, enum reduce_op op, enum segment_divide how,
		  struct segments *s, struct mu_err *err);
int segments_read_sparse(struct kernel_call *c, enum segment_divide how, struct segments *s,
			 struct mu_err *err);
/* Also sets output 1 of the V2 gradients: the distinct indices. */
int segments_read_grad(struct kernel_call *c, enum segment_divide how, struct segments *s,
		       struct mu_err *err);
void segments_fini(struct segments *s);
#define SEGMENTS_AUTO __attribute__((cleanup(segments_fini))) struct segments

/* For a gradient: the output row of the ith index. */
int64_t segments_row_of(const struct segments *s, int64_t i);
/* The divisors of n segments, as doubles.  DIVIDE_BY_NOTHING: *out stays empty. */
int segments_divisors(const struct mu_tensor *ids, int64_t n, enum segment_divide how,
		      struct mu_tensor *out, struct mu_err *err);

#endif
