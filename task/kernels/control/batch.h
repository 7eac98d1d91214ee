/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the rows of several calls in one tensor, and copies rows of a tensor. */
#ifndef MU_TASK_KERNELS_CONTROL_BATCH_H
#define MU_TASK_KERNELS_CONTROL_BATCH_H

#include "task/runtime/kernel.h"

/* Joins n tensors, first[0], first[stride], and so on, along their first dimension.  Pads the
 * result to `size` rows with copies of the first row. */
int batch_join_rows(const struct mu_tensor *first, unsigned n, unsigned stride, int64_t size,
		    struct mu_tensor *out, struct mu_err *err);
/* Copies rows [from, from + n) of t. */
int batch_copy_rows(const struct mu_tensor *t, int64_t from, int64_t n, struct mu_tensor *out,
		    struct mu_err *err);

#endif
