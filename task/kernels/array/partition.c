/* SPDX-License-Identifier: Apache-2.0 */
/* DynamicPartition and DynamicStitch: distribute rows by number, and merge them. */
#include <string.h>

#include "task/device/gpu.h"
#include "task/kernels/array/rows.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"

/* Sets *out to n, then the dimensions of s after the first `skip`. */
static int rows_shape(struct mu_shape *out, int64_t n, const struct mu_shape *s, int skip,
		      struct mu_err *err)
{
	return mu_shape_splice(out, s, 0, skip, n >= 0, &n, err);
}

/* ---- DynamicPartition ---- */

/* Checks the partitions and adds the size of each to counts, which must be zero. */
static int count_parts(const struct kernel_call *c, int64_t *counts, struct mu_err *err)
{
	const struct mu_tensor *data = kernel_in(c, 0), *parts = kernel_in(c, 1);

	if (!mu_shape_part_eq(&data->shape, 0, &parts->shape, 0, parts->shape.rank))
		return mu_invalid(err,
				  "data.shape must start with partitions.shape, got data.shape = "
				  "%s, partitions.shape = %s",
				  mu_shape_str(&data->shape), mu_shape_str(&parts->shape));
	for (int64_t i = 0; i < parts->shape.count; i++) {
		int32_t p = MU_DATA(int32_t, parts)[i];
		if (p < 0 || (unsigned)p >= c->n_out)
			return rows_fail_index("partitions", parts, i, c->n_out, err);
		counts[p]++;
	}
	return 0;
}

/* Lists the row indices, sorted by part.  `at` has the sizes of the parts, and afterwards their
 * ends in the list. */
static int list_parts(const struct mu_tensor *parts, unsigned n, int64_t *at,
		      struct mu_tensor *list, struct mu_err *err)
{
	struct mu_shape shape = mu_shape_vec(parts->shape.count);
	int64_t offset = 0;

	MU_RETURN_IF_ERROR(mu_tensor_new(list, MU_INT64, &shape, err));
	for (unsigned p = 0; p < n; p++) {
		int64_t count = at[p];
		at[p] = offset;
		offset += count;
	}
	for (int64_t i = 0; i < parts->shape.count; i++)
		MU_DATA(int64_t, list)[at[MU_DATA(int32_t, parts)[i]]++] = i;
	return 0;
}

static int dynamic_partition(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *data = kernel_in(c, 0), *parts = kernel_in(c, 1);
	MU_AUTO_FREE int64_t *end = MU_NEW_ARRAY(int64_t, c->n_out + 1);
	int64_t row = mu_shape_product(&data->shape, parts->shape.rank, data->shape.rank),
		begin = 0;
	MU_AUTO_TENSOR list = {0};
	MU_AUTO_TENSOR on_device = {0};
	struct mu_shape shape;
	struct mu_tensor *out;
	int rc = count_parts(c, end, err);

	for (unsigned p = 0; p < c->n_out && !rc; p++)
		if (!(rc = rows_shape(&shape, end[p], &data->shape, parts->shape.rank, err)))
			rc = kernel_out_on_device(c, p, data->dtype, &shape, &out, err);
	if (rc || !data->shape.count || (rc = list_parts(parts, c->n_out, end, &list, err)) ||
	    (rc = move_numbers(c, &c->out[0].tensor, &list, &on_device, err)))
		return rc;
	for (unsigned p = 0; p < c->n_out && !rc; begin = end[p++]) {
		struct mu_tensor part_indices = on_device;
		struct picks rows = {1, 1, end[p] - begin, row, parts->shape.count};
		part_indices.data = MU_DATA(int64_t, &on_device) + begin;
		part_indices.shape = mu_shape_vec(rows.count);
		if (rows.count)
			rc = move_picks(&c->out[p].tensor, data, &part_indices, &rows, err);
	}
	return rc;
}

/* ---- DynamicStitch: inputs 0 … n-1 are indices, n … 2n-1 the corresponding rows ---- */

static int stitch_shape(const struct kernel_call *c, unsigned n, struct mu_shape *out,
			struct mu_err *err)
{
	const struct mu_shape *first = &kernel_in(c, n)->shape;
	int64_t max_index = -1;

	for (unsigned k = 0; k < n; k++) {
		const struct mu_tensor *idx = kernel_in(c, k), *data = kernel_in(c, n + k);
		for (int64_t i = 0; i < idx->shape.count; i++) {
			int32_t at = MU_DATA(int32_t, idx)[i];
			if (at < 0)
				return mu_invalid(err, "indices[%u] is out of range", k);
			max_index = at > max_index ? at : max_index;
		}
		if (!mu_shape_part_eq(&data->shape, 0, &idx->shape, 0, idx->shape.rank))
			return mu_invalid(
			    err, "data[%u].shape = %s does not start with indices[%u].shape = %s",
			    k, mu_shape_str(&data->shape), k, mu_shape_str(&idx->shape));
		int skip = kernel_in(c, 0)->shape.rank;
		int n_row_dims = first->rank - skip;
		if (n_row_dims != data->shape.rank - idx->shape.rank ||
		    !mu_shape_part_eq(first, skip, &data->shape, idx->shape.rank, n_row_dims))
			return mu_invalid(err,
					  "Need data[0].shape[%d:] = data[%u].shape[%d:], got "
					  "data[0].shape = %s, data[%u].shape = %s",
					  skip, k, idx->shape.rank, mu_shape_str(first), k,
					  mu_shape_str(&data->shape));
	}
	if (max_index == INT32_MAX)
		return mu_invalid(err, "Expected a non-negative size, got %d", INT32_MIN);
	return rows_shape(out, max_index + 1, first, kernel_in(c, 0)->shape.rank, err);
}

/* On a GPU: concatenates the inputs, then picks each row from its last occurrence. */
static int stitch_gpu(struct kernel_call *c, unsigned n, const struct mu_tensor *out,
		      struct mu_err *err)
{
	struct picks p = {1, 1, out->shape.dim[0],
			  mu_shape_product(&out->shape, 1, out->shape.rank), 0};
	struct mu_shape list = mu_shape_vec(p.count), joined_shape;
	MU_AUTO_TENSOR row_indices = {0};
	MU_AUTO_TENSOR on_device = {0};
	MU_AUTO_TENSOR joined = {0};
	int rc = 0;

	MU_RETURN_IF_ERROR(mu_tensor_new(&row_indices, MU_INT64, &list, err));
	memset(row_indices.data, 0xff, mu_tensor_bytes(&row_indices)); /* -1: zeros */
	for (unsigned k = 0; k < n; k++)
		for (int64_t i = 0; i < kernel_in(c, k)->shape.count; i++)
			MU_DATA(int64_t, &row_indices)
	[MU_DATA(int32_t, kernel_in(c, k))[i]] = p.limit++;
	MU_RETURN_IF_ERROR(mu_shape_set(&joined_shape, 2, (int64_t[]){p.limit, p.inner}, err));
	MU_RETURN_IF_ERROR(move_numbers(c, out, &row_indices, &on_device, err));
	MU_RETURN_IF_ERROR(move_scratch(c, out->dtype, &joined_shape, &joined, err));
	struct runs r = {.rows = 1};
	for (unsigned k = 0; k < n && !rc; k++, r.to.at += r.run) {
		r.run = kernel_in(c, n + k)->shape.count;
		if (r.run)
			rc = move_runs(&joined, kernel_in(c, n + k), &r, err);
	}
	return rc ? rc : move_picks(out, &joined, &on_device, &p, err);
}

static int dynamic_stitch(struct kernel_call *c, struct mu_err *err)
{
	unsigned n = c->n_in / 2;
	struct mu_shape shape;
	struct mu_tensor *out;

	if (!n)
		return mu_invalid(err, "DynamicStitch needs inputs");
	MU_RETURN_IF_ERROR(stitch_shape(c, n, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, kernel_in(c, n)->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	if (gpu_of_tensor(out))
		return stitch_gpu(c, n, out, err);
	int64_t row = mu_shape_product(&shape, 1, shape.rank);
	elems_zero(out->dtype, out->data, 0, shape.count); /* for rows without an index */
	for (unsigned k = 0; k < n; k++) {
		const struct mu_tensor *idx = kernel_in(c, k), *data = kernel_in(c, n + k);
		for (int64_t i = 0; i < idx->shape.count; i++) {
			int32_t at = MU_DATA(int32_t, idx)[i];
			elems_copy(out->dtype, out->data, at * row, data->data, i * row, row);
		}
	}
	return 0;
}

static const struct kernel rows[] = {
    {"DynamicPartition", .run = dynamic_partition},
    {"DynamicStitch ParallelDynamicStitch", .run = dynamic_stitch},
};
KERNEL_TABLE(array_partition, rows)
