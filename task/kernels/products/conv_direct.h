/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions that read the input where it lies, tile by tile; for conv_fast.c. */
#ifndef MU_TASK_KERNELS_PRODUCTS_CONV_DIRECT_H
#define MU_TASK_KERNELS_PRODUCTS_CONV_DIRECT_H

#include "task/kernels/products/conv.h"

/* Each returns false, having done nothing, when the shape is not one for it: groups, outputs of
 * few columns, padding that would dwarf the input, strides of an input's gradient.  Else *rc is the
 * result. */
bool conv_direct(struct kernel_call *c, const struct conv *g, const void *input, const void *filter,
		 void *output, int *rc, struct mu_err *err);
bool conv_direct_input(struct kernel_call *c, const struct conv *g, const void *filter,
		       const void *grad, void *input, int *rc, struct mu_err *err);
bool conv_direct_filter(struct kernel_call *c, const struct conv *g, const void *input,
			const void *grad, void *filter, int *rc, struct mu_err *err);

#endif
