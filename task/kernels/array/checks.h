/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of attributes and inputs, with the output shapes, for the kernels of all devices. */
#ifndef MU_TASK_KERNELS_ARRAY_CHECKS_H
#define MU_TASK_KERNELS_ARRAY_CHECKS_H

#include "task/runtime/kernel.h"

/* ---- order.c ---- */

/* LowerBound, UpperBound; *type: the type of the output. */
int check_bound(const struct kernel_call *c, enum mu_dtype *type, struct mu_err *err);

/* ---- scatter.c, scatter_nd.c: shapes and types, not the range of indices ---- */

/* *row: the number of elements of a row.  A scalar update applies to all rows. */
int check_scatter(const struct mu_tensor *table, const struct mu_shape *indices,
		  const struct mu_tensor *updates, int64_t *row, struct mu_err *err);
/* *shape: the shape of the output; *row: the number of elements of one of its rows. */
int check_unsorted_segment(const struct kernel_call *c, struct mu_shape *shape, int64_t *row,
			   struct mu_err *err);
/* Input `in` has positions in the first *depth dimensions of the table.  The next input, the
 * updates, has a slice of the other dimensions for each position. */
int check_scatter_nd(const struct kernel_call *c, unsigned in, const struct mu_shape *table,
		     enum mu_dtype t, int *depth, struct mu_err *err);

#endif
