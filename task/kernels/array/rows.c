/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/array/rows.h"

#include "task/kernels/engine/args.h"

int rows_fail_index(const char *name, const struct mu_tensor *indices, int64_t at, int64_t limit,
		    struct mu_err *err)
{
	MU_AUTO_BUF where = {0};

	mu_buf_puts(&where, name);
	args_put_index(&where, &indices->shape, indices->shape.rank, at);
	return mu_invalid(err, "%s = %lld is not in [0, %lld)", where.data,
			  (long long)mu_tensor_int(indices, at), (long long)limit);
}

int rows_check(const struct mu_tensor *indices, int64_t limit, struct mu_err *err)
{
	if (indices->dtype != MU_INT32 && indices->dtype != MU_INT64)
		return mu_invalid(err, "indices are %s, want int32 or int64",
				  mu_dtype_name(indices->dtype));
	for (int64_t i = 0; i < indices->shape.count; i++) {
		int64_t k = mu_tensor_int(indices, i);
		if (k < 0 || k >= limit)
			return rows_fail_index("indices", indices, i, limit, err);
	}
	return 0;
}

int rows_check_update_shape(const struct mu_shape *table, const struct mu_shape *indices,
			    const struct mu_shape *updates, int64_t *row, struct mu_err *err)
{
	if (table->rank < 1)
		return mu_invalid(err, "var must be at least 1 dimensional");
	if (updates->rank != indices->rank + table->rank - 1 ||
	    !mu_shape_part_eq(updates, 0, indices, 0, indices->rank) ||
	    !mu_shape_part_eq(updates, indices->rank, table, 1, table->rank - 1))
		return mu_invalid(
		    err,
		    "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = "
		    "[], got updates.shape %s, indices.shape %s, params.shape %s",
		    mu_shape_str(updates), mu_shape_str(indices), mu_shape_str(table));
	*row = mu_shape_product(table, 1, table->rank);
	return 0;
}

int rows_check_updates(const struct mu_shape *table, const struct mu_tensor *indices,
		       const struct mu_shape *updates, int64_t *row, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(rows_check_update_shape(table, &indices->shape, updates, row, err));
	return rows_check(indices, table->dim[0], err);
}

void rows_gather(enum mu_dtype t, void *to, const void *from, const struct mu_tensor *indices,
		 int64_t first, int64_t n, int64_t outer, int64_t limit, int64_t row)
{
	for (int64_t o = 0, at = 0; row && o < outer; o++)
		for (int64_t i = 0; i < n; i++, at += row)
			elems_copy(t, to, at, from,
				   (o * limit + mu_tensor_int(indices, first + i)) * row, row);
}
