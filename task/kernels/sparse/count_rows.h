/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a ragged tensor, for ops that count its values in order. */
#ifndef MU_TASK_KERNELS_SPARSE_COUNT_ROWS_H
#define MU_TASK_KERNELS_SPARSE_COUNT_ROWS_H

#include "lib/base/err.h"
#include "lib/tensor/tensor.h"

static inline int check_ragged_rows(const struct mu_tensor *splits, int64_t values,
				    struct mu_err *err)
{
	const int64_t *s = MU_DATA(int64_t, splits), last = s[splits->shape.count - 1];

	if (s[0] != 0)
		return mu_invalid(err, "Splits must start with 0, not with %lld", (long long)s[0]);
	if (last != values)
		return mu_invalid(err,
				  "Splits must end with the number of values, got %lld instead of "
				  "%lld",
				  (long long)last, (long long)values);
	return 0;
}

struct ragged_rows {
	const int64_t *splits; /* checked; the last split is above each i */
	int64_t next;          /* the end of the current row is splits[next] */
};

/* Returns the row of value i; i must not decrease.  As in TensorFlow, a split that is less than its
 * predecessor ends an empty row. */
static inline int64_t ragged_row_next(struct ragged_rows *r, int64_t i)
{
	while (i >= r->splits[r->next])
		r->next++;
	return r->next - 1;
}

#endif
