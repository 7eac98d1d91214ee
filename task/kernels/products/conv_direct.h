/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions that read the image in place, tile by tile. */
#ifndef MU_TASK_KERNELS_PRODUCTS_CONV_DIRECT_H
#define MU_TASK_KERNELS_PRODUCTS_CONV_DIRECT_H

#include "task/kernels/products/conv.h"

/* False for groups, dilations, outputs of few columns, and borders that would dwarf the image. */
bool conv_direct_fits(const struct conv *g);
int conv_direct(struct kernel_call *c, const struct conv *g, const void *input, const void *filter,
		void *output, struct mu_err *err);
/* Only for strides of 1. */
bool conv_direct_input_fits(const struct conv *g);
int conv_direct_input(struct kernel_call *c, const struct conv *g, const void *filter,
		      const void *grad, void *input, struct mu_err *err);
int conv_direct_filter(struct kernel_call *c, const struct conv *g, const void *input,
		       const void *grad, void *filter, struct mu_err *err);

#endif
