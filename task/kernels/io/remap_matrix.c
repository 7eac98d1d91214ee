/* SPDX-License-Identifier: Apache-2.0 */
/* LoadAndRemapMatrix: reads a matrix of a checkpoint and reorders its rows and columns for a new
 * vocabulary. Rows and columns that the old vocabulary lacks come from the initializing values, in
 * order. */
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

/* Old positions, -1 for none, no position twice. */
static int check_remapping(const struct kernel_call *c, unsigned in, int64_t want, int64_t old,
			   const char *what, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, in);

	MU_AUTO_FREE bool *seen = calloc((size_t)old + 1, 1);
	if (!seen)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld flags",
			       (long long)old);
	for (int64_t i = 0; i < want; i++) {
		int64_t from = MU_DATA(int64_t, t)[i];
		if (from < 0)
			continue;
		if (from >= old)
			return mu_invalid(
			    err, "%s_remapping[%lld] is %lld; the old matrix has %lld %ss", what,
			    (long long)i, (long long)from, (long long)old, what);
		if (seen[from])
			return mu_fail(err, MU_UNIMPLEMENTED,
				       "Key %lld found more than once in %s_remapping",
				       (long long)from, what);
		seen[from] = true;
	}
	return 0;
}

static int remap_matrix_fill(struct kernel_call *c, const struct mu_tensor *old, int64_t rows,
			     int64_t cols, struct mu_err *err)
{
	const int64_t *row = kernel_in(c, 2)->data, *col = kernel_in(c, 3)->data;
	const struct mu_tensor *fresh = kernel_in(c, 4);
	bool moves = kernel_in(c, 3)->shape.count > 0;
	struct mu_tensor *out;
	int64_t taken = 0;

	MU_RETURN_IF_ERROR(kernel_out_dims(c, 0, MU_FLOAT, 2, (int64_t[]){rows, cols}, &out, err));
	float *to = out->data;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; k < cols; k++, to++) {
			int64_t from = moves ? col[k] : k;
			if (row[i] >= 0 && from >= 0)
				*to = MU_DATA(float, old)[row[i] * old->shape.dim[1] + from];
			else if (taken < fresh->shape.count)
				*to = MU_DATA(float, fresh)[taken++];
			else
				return mu_invalid(err,
						  "initializing_values contained %lld elements, "
						  "but more missing values were needed",
						  (long long)taken);
		}
	return taken == fresh->shape.count
		   ? 0
		   : mu_invalid(err,
				"initializing_values contained %lld elements, but only %lld "
				"elements were used to fill in missing values.",
				(long long)fresh->shape.count, (long long)taken);
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
    {"LoadAndRemapMatrix", KERNEL_EXPENSIVE | KERNEL_NO_FOLD, .run = load_and_remap},
};
KERNEL_TABLE(io_remap_matrix, table)
