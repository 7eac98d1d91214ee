/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures whose op does not say what their file is: each format's kernels hand on the others'. */
#ifndef MU_TASK_KERNELS_IMAGE_IMAGE_H
#define MU_TASK_KERNELS_IMAGE_IMAGE_H

#include "task/runtime/kernel.h"

/* Input 0, one string, begins like such a file. */
bool image_is_png(const struct kernel_call *c);
bool image_is_jpeg(const struct kernel_call *c);
bool image_is_bmp(const struct kernel_call *c);
/* Why what is none of them cannot be decoded. */
int image_unknown(const struct kernel_call *c, struct mu_err *err);
/* Output 0 from such a file, by the node's attributes; pixels of type t: as they are, or between 0
 * and 1. */
int image_from_png(struct kernel_call *c, struct mu_err *err);
int image_from_jpeg(struct kernel_call *c, enum mu_dtype t, struct mu_err *err);
int image_from_bmp(struct kernel_call *c, enum mu_dtype t, struct mu_err *err);
/* The bytes of output 0 as pixels of type t. */
int image_widen(struct kernel_call *c, enum mu_dtype t, struct mu_err *err);

#endif
