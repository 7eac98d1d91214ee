/* SPDX-License-Identifier: Apache-2.0 */
/* The selection of StridedSlice's begin, end, strides and masks. */
#ifndef MU_TASK_KERNELS_ARRAY_STRIDED_H
#define MU_TASK_KERNELS_ARRAY_STRIDED_H

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"

struct strided {
	struct view view;      /* the selected elements, over the input's dimensions */
	struct mu_shape shape; /* of the result, with the new axes and without the shrunk ones */
};

/* Reads the specification from the inputs `at`, at + 1 and at + 2 (begin, end, strides) and from
 * the masks of the node.  `in` is the shape of the sliced tensor. */
int strided_read(struct strided *s, const struct kernel_call *c, unsigned at,
		 const struct mu_shape *in, struct mu_err *err);

#endif
