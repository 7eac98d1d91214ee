/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of nodes and inputs, and the shapes that follow, for the kernels of every device. */
#ifndef MU_TASK_KERNELS_ARRAY_CHECKS_H
#define MU_TASK_KERNELS_ARRAY_CHECKS_H

#include "task/runtime/kernel.h"

/* ---- order.c ---- */

/* LowerBound, UpperBound; *type: of the places. */
int check_bound(const struct kernel_call *c, enum mu_dtype *type, struct mu_err *err);

/* ---- scatter.c, scatter_nd.c: shapes and types; whether indices are in range is
 * another question ---- */

/* *row: elements in a row.  A scalar update serves all rows. */
int check_scatter(const struct mu_tensor *table, const struct mu_shape *indices,
		  const struct mu_tensor *updates, int64_t *row, struct mu_err *err);
/* The shape of the result, and elements in a row of it. */
int check_unsorted_segment(const struct kernel_call *c, struct mu_shape *shape, int64_t *row,
			   struct mu_err *err);
/* Positions, input `in`, count the table's dimensions from the first on, *depth of them; updates,
 * the input after it, have one slice of the remaining dimensions for each position. */
int check_scatter_nd(const struct kernel_call *c, unsigned in, const struct mu_shape *table,
		     enum mu_dtype t, int *depth, struct mu_err *err);

#endif
