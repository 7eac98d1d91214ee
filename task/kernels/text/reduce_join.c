/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceJoin: joins strings along dimensions in the given order; the first dimension varies
 * fastest. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

struct reduce_join {
	int n;
	int axis[MU_MAX_RANK];
	bool is_joined[MU_MAX_RANK];
	struct view view; /* the axes of the output, then the joined axes */
	struct mu_shape shape;
};

static int read_axes(const struct kernel_call *c, struct reduce_join *j, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	int64_t axes[MU_MAX_RANK];

	MU_RETURN_IF_ERROR(args_ints(c, 1, axes, MU_MAX_RANK, &j->n, err));
	for (int i = 0; i < j->n; i++) {
		if (args_axis(axes[i], in->rank, &j->axis[i], err))
			return mu_fail(err, MU_OUT_OF_RANGE, "Invalid reduction dimension %lld",
				       (long long)axes[i]);
		if (j->is_joined[j->axis[i]])
			return mu_invalid(err, "Duplicate reduction dimension %d", j->axis[i]);
		j->is_joined[j->axis[i]] = true;
	}
	return 0;
}

static int reduce_join_plan(const struct kernel_call *c, struct reduce_join *j, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	bool keep_dims = args_attr_bool(c->node, "keep_dims", false);
	struct view v;
	int k = 0;

	*j = (struct reduce_join){.shape = mu_shape_scalar()};
	MU_RETURN_IF_ERROR(read_axes(c, j, err));
	view_of(&v, in);
	j->view.rank = in->rank;
	for (int d = 0; d < in->rank; d++) {
		if (keep_dims || !j->is_joined[d])
			MU_RETURN_IF_ERROR(
			    mu_shape_push(&j->shape, j->is_joined[d] ? 1 : in->dim[d], err));
		if (j->is_joined[d])
			continue;
		j->view.dim[k] = in->dim[d];
		j->view.stride[k++] = v.stride[d];
	}
	for (int i = j->n; i-- > 0; k++) {
		j->view.dim[k] = in->dim[j->axis[i]];
		j->view.stride[k] = v.stride[j->axis[i]];
	}
	return 0;
}

static int reduce_join(struct kernel_call *c, struct mu_err *err)
{
	const char *separator = args_attr_string(c->node, "separator", "");
	MU_AUTO_TENSOR transposed = {0};
	struct mu_tensor *out;
	MU_AUTO_BUF b = {0};
	struct reduce_join j;

	MU_RETURN_IF_ERROR(reduce_join_plan(c, &j, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&transposed, MU_STRING, &kernel_in(c, 0)->shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &j.shape, &out, err));
	view_read(MU_STRING, transposed.data, kernel_in(c, 0)->data, &j.view);
	int64_t n_joined = j.shape.count ? transposed.shape.count / j.shape.count : 0;
	for (int64_t i = 0; i < j.shape.count; i++) {
		mu_buf_clear(&b);
		for (int64_t k = 0; k < n_joined; k++) {
			struct mu_span s = elems_span(&transposed, i * n_joined + k);
			if (k)
				mu_buf_puts(&b, separator);
			mu_buf_put(&b, s.data, s.len);
		}
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
	}
	return 0;
}

/* ---- UnsortedSegmentJoin ---- */

static int check_segments(const struct kernel_call *c, int64_t *n, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape, *ids = &kernel_in(c, 1)->shape;

	if (kernel_in(c, 2)->shape.count != 1)
		return mu_invalid(err, "Number of segments cannot be empty.");
	*n = mu_tensor_int(kernel_in(c, 2), 0);
	if (*n < 0)
		return mu_invalid(err, "Number of segments must not be negative: %lld",
				  (long long)*n);
	if (!ids->rank)
		return mu_invalid(err, "Segment_id cannot have rank 0");
	if (ids->rank > in->rank)
		return mu_fail(err, MU_OUT_OF_RANGE,
			       "Invalid segment_id rank %d for input with %d dimension(s)",
			       ids->rank, in->rank);
	for (int d = 0; d < ids->rank; d++)
		if (ids->dim[d] != in->dim[d])
			return mu_invalid(
			    err,
			    "Segment dimension is %lld while input dimension is %lld in rank %d",
			    (long long)ids->dim[d], (long long)in->dim[d], d);
	for (int64_t i = 0; i < ids->count; i++) {
		int64_t id = mu_tensor_int(kernel_in(c, 1), i);
		if (id < 0 || id >= *n)
			return mu_invalid(
			    err,
			    "segment_ids are not allowed to exceed num_segments or to have "
			    "negative values. There are %lld of them, and id %lld",
			    (long long)*n, (long long)id);
	}
	return 0;
}

/* Sorts the row indices by segment: segment k has rows[first[k + 1]] to rows[first[k + 2] - 1].
 * `first` has n + 2 zeros. */
static void rows_by_segment(const struct mu_tensor *ids, int64_t n, int64_t *first, int64_t *rows)
{
	for (int64_t i = 0; i < ids->shape.count; i++)
		first[mu_tensor_int(ids, i) + 1]++;
	for (int64_t k = 0; k < n; k++)
		first[k + 1] += first[k];
	first[n + 1] = first[n];
	for (int64_t i = ids->shape.count; i-- > 0;)
		rows[--first[mu_tensor_int(ids, i) + 1]] = i;
}

static int segment_join(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *ids = kernel_in(c, 1);
	const char *separator = args_attr_string(c->node, "separator", "");
	struct mu_shape shape = mu_shape_scalar();
	MU_AUTO_BUF b = {0};
	struct mu_tensor *out;
	int64_t n = 0, row_elements = mu_shape_product(&in->shape, ids->shape.rank, in->shape.rank);

	MU_RETURN_IF_ERROR(check_segments(c, &n, err));
	MU_RETURN_IF_ERROR(mu_shape_splice(&shape, &in->shape, 0, ids->shape.rank, 1, &n, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &shape, &out, err));
	if (!shape.count)
		return 0;
	MU_AUTO_FREE int64_t *first = MU_NEW_ARRAY(int64_t, (size_t)n + 2);
	MU_AUTO_FREE int64_t *row = MU_NEW_ARRAY(int64_t, (size_t)ids->shape.count + 1);
	rows_by_segment(ids, n, first, row);
	for (int64_t i = 0; i < shape.count; i++) {
		int64_t k = i / row_elements;
		mu_buf_clear(&b);
		for (int64_t r = first[k + 1]; r < first[k + 2]; r++) {
			struct mu_span s = elems_span(in, row[r] * row_elements + i % row_elements);
			if (b.len) /* no separator before the first non-empty string */
				mu_buf_puts(&b, separator);
			mu_buf_put(&b, s.data, s.len);
		}
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"ReduceJoin", .run = reduce_join},
    {"UnsortedSegmentJoin", .run = segment_join},
};
KERNEL_TABLE(text_reduce_join, rows)
