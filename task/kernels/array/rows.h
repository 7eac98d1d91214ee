/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and row copies that gathers, scatters and sparse updates share. */
#ifndef MU_TASK_KERNELS_ARRAY_ROWS_H
#define MU_TASK_KERNELS_ARRAY_ROWS_H

#include "task/kernels/engine/elems.h"

/* Fails because element `at` of the tensor `name` is not in [0, limit). */
int rows_fail_index(const char *name, const struct mu_tensor *indices, int64_t at, int64_t limit,
		    struct mu_err *err);
/* Checks that indices are int32 or int64 and in [0, limit): "indices[1] = 7 is not in [0, 3)". */
int rows_check(const struct mu_tensor *indices, int64_t limit, struct mu_err *err);
/* Checks that updates have shape indices.shape + table.shape[1:].  *row: the number of elements of
 * a row. */
int rows_check_update_shape(const struct mu_shape *table, const struct mu_shape *indices,
			    const struct mu_shape *updates, int64_t *row, struct mu_err *err);
/* Also checks that every index is in range. */
int rows_check_updates(const struct mu_shape *table, const struct mu_tensor *indices,
		       const struct mu_shape *updates, int64_t *row, struct mu_err *err);
/* to[o, i, :] = from[o, indices[first + i], :] for o < outer and i < n.  from has `limit` rows of
 * `row` elements for each o.  The indices have been checked. */
void rows_gather(enum mu_dtype t, void *to, const void *from, const struct mu_tensor *indices,
		 int64_t first, int64_t n, int64_t outer, int64_t limit, int64_t row);

#endif
