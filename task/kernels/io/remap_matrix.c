/* SPDX-License-Identifier: Apache-2.0 */
/* LoadAndRemapMatrix: reads a matrix of a checkpoint and reorders its rows and columns for a new
 * vocabulary. The elements of new rows and columns are the initializing_values, in order. */
#include "lib/checkpoint/bundle.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"

static int check_size(const struct kernel_call *c, unsigned in, int64_t want, const char *what,
		      struct mu_err *err)
{
	const struct mu_shape *s = &kernel_in(c, in)->shape;

	if (s->rank != 1)
		return mu_invalid(err,
				  "The `%s_remapping` tensor must be 1-D, got a tensor of shape %s",
				  what, mu_shape_str(s));
	return s->count == want
		   ? 0
		   : mu_invalid(
			 err, "Size of %s_remapping is %lld instead of being equal to num_%ss=%lld",
			 what, (long long)s->count, what, (long long)want);
}

/* Checks a remapping: old indices in range, each at most once; negative: new. */
static int check_remapping(const struct kernel_call *c, unsigned in, int64_t want, int64_t old_size,
			   const char *what, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, in);

	MU_AUTO_FREE bool *is_used = calloc((size_t)old_size + 1, 1);
	if (!is_used)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld flags",
			       (long long)old_size);
	for (int64_t i = 0; i < want; i++) {
		int64_t index = MU_DATA(int64_t, t)[i];
		if (index < 0)
			continue;
		if (index >= old_size)
			return mu_invalid(
			    err, "%s_remapping[%lld] is %lld; the old matrix has %lld %ss", what,
			    (long long)i, (long long)index, (long long)old_size, what);
		if (is_used[index])
			return mu_fail(err, MU_UNIMPLEMENTED,
				       "Key %lld found more than once in %s_remapping",
				       (long long)index, what);
		is_used[index] = true;
	}
	return 0;
}

static int remap_matrix_fill(struct kernel_call *c, const struct mu_tensor *old, int64_t rows,
			     int64_t cols, struct mu_err *err)
{
	const int64_t *row = kernel_in(c, 2)->data, *col = kernel_in(c, 3)->data;
	const struct mu_tensor *initial = kernel_in(c, 4);
	bool has_col_remapping = kernel_in(c, 3)->shape.count > 0;
	struct mu_tensor *out;
	int64_t n_used = 0;

	MU_RETURN_IF_ERROR(kernel_out_dims(c, 0, MU_FLOAT, 2, (int64_t[]){rows, cols}, &out, err));
	float *to = out->data;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; k < cols; k++, to++) {
			int64_t from = has_col_remapping ? col[k] : k;
			if (row[i] >= 0 && from >= 0)
				*to = MU_DATA(float, old)[row[i] * old->shape.dim[1] + from];
			else if (n_used < initial->shape.count)
				*to = MU_DATA(float, initial)[n_used++];
			else
				return mu_invalid(err,
						  "initializing_values contained %lld elements, "
						  "but more missing values were needed",
						  (long long)n_used);
		}
	return n_used == initial->shape.count
		   ? 0
		   : mu_invalid(err,
				"initializing_values contained %lld elements, but only %lld "
				"elements were used to fill in missing values.",
				(long long)initial->shape.count, (long long)n_used);
}

static int load_and_remap(struct kernel_call *c, struct mu_err *err)
{
	int64_t rows = args_attr_int(c->node, "num_rows", -1);
	int64_t cols = args_attr_int(c->node, "num_cols", -1);
	MU_AUTO(mu_bundle_reader_free) struct mu_bundle_reader *b = NULL;
	MU_AUTO_FREE char *path = NULL;
	MU_AUTO_FREE char *name = NULL;
	MU_AUTO_TENSOR old = {0};
	int rc;

	if (rows < 0 || cols < 1)
		return mu_invalid(err, "num_rows must be >= 0 and num_cols >= 1");
	if ((rc = check_size(c, 2, rows, "row", err)) ||
	    (kernel_in(c, 3)->shape.count && (rc = check_size(c, 3, cols, "col", err))) ||
	    (rc = args_string(c, 0, &path, err)) || (rc = args_string(c, 1, &name, err)) ||
	    (rc = mu_bundle_open(&b, path, err)) || (rc = mu_bundle_read(b, name, &old, err)))
		return rc;
	if (old.shape.rank != 2 || old.dtype != MU_FLOAT)
		return mu_invalid(err, "tensor %s must be a matrix of float, not %s of shape %s",
				  name, mu_dtype_name(old.dtype), mu_shape_str(&old.shape));
	MU_RETURN_IF_ERROR(check_remapping(c, 2, rows, old.shape.dim[0], "row", err));
	if (kernel_in(c, 3)->shape.count) {
		MU_RETURN_IF_ERROR(check_remapping(c, 3, cols, old.shape.dim[1], "col", err));
	} else if (cols != old.shape.dim[1]) {
		return mu_invalid(
		    err, "num_cols is %lld, but the matrix has %lld and col_remapping is empty",
		    (long long)cols, (long long)old.shape.dim[1]);
	}
	return remap_matrix_fill(c, &old, rows, cols, err);
}

static const struct kernel table[] = {
    {"LoadAndRemapMatrix", KERNEL_SLOW | KERNEL_NO_FOLD, .run = load_and_remap},
};
KERNEL_TABLE(io_remap_matrix, table)
