/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/array/strided.h"

struct spec {
	int n; /* entries */
	int64_t begin[VIEW_MAX_RANK], end[VIEW_MAX_RANK], stride[VIEW_MAX_RANK];
	int64_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
};

static int strided_read_spec(struct spec *s, const struct kernel_call *c, unsigned at,
			     struct mu_err *err)
{
	const struct mu_shape *begin = &kernel_in(c, at)->shape;
	const struct mu_shape *end = &kernel_in(c, at + 1)->shape;
	const struct mu_shape *stride = &kernel_in(c, at + 2)->shape;

	if (begin->rank != 1 || !mu_shape_eq(begin, end) || !mu_shape_eq(begin, stride))
		return mu_invalid(err,
				  "Expected begin, end, and strides to be 1D equal size tensors, "
				  "but got shapes %s, %s, and %s instead.",
				  mu_shape_str(begin), mu_shape_str(end), mu_shape_str(stride));
	MU_RETURN_IF_ERROR(args_ints(c, at, s->begin, VIEW_MAX_RANK, &s->n, err));
	MU_RETURN_IF_ERROR(args_ints(c, at + 1, s->end, VIEW_MAX_RANK, &s->n, err));
	MU_RETURN_IF_ERROR(args_ints(c, at + 2, s->stride, VIEW_MAX_RANK, &s->n, err));
	s->begin_mask = args_attr_int(c->node, "begin_mask", 0);
	s->end_mask = args_attr_int(c->node, "end_mask", 0);
	s->ellipsis_mask = args_attr_int(c->node, "ellipsis_mask", 0);
	s->new_axis_mask = args_attr_int(c->node, "new_axis_mask", 0);
	s->shrink_axis_mask = args_attr_int(c->node, "shrink_axis_mask", 0);
	if (s->ellipsis_mask & (s->ellipsis_mask - 1))
		return mu_invalid(err, "Multiple ellipses in slice spec not allowed");
	s->ellipsis_mask &= ((int64_t)1 << s->n) - 1; /* ignore bits after the last entry */
	return 0;
}

static bool bit(int64_t mask, int i)
{
	return mask >> i & 1;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
	return x < low ? low : x > high ? high : x;
}

/* Entry i of the specification applied to input dimension d of size n. */
static int one_dim(struct strided *out, const struct spec *s, int i, int d, int64_t n,
		   struct mu_err *err)
{
	int64_t step = s->stride[i], begin = s->begin[i], end = s->end[i], size;
	int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;

	if (step == 0)
		return mu_invalid(err, "strides[%d] must be non-zero", i);
	if (bit(s->shrink_axis_mask, i)) {
		if (step < 0)
			return mu_invalid(err, "only stride 1 allowed on non-range indexing.");
		begin = begin < 0 ? begin + n : begin;
		if (begin < 0 || begin >= n)
			return mu_invalid(err, "slice index %lld of dimension %d out of bounds.",
					  (long long)s->begin[i], d);
		size = 1;
		step = 1;
	} else {
		begin = bit(s->begin_mask, i) ? (step > 0 ? low : high)
					      : clamp(begin < 0 ? begin + n : begin, low, high);
		end = bit(s->end_mask, i) ? (step > 0 ? high : low)
					  : clamp(end < 0 ? end + n : end, low, high);
		int64_t span = step > 0 ? end - begin : begin - end;
		/* A step larger than the span selects one element, so INT64_MIN, which has no
		 * absolute value, can be INT64_MAX here. */
		int64_t abs_step = step == INT64_MIN ? INT64_MAX : step > 0 ? step : -step;
		size = span <= 0 ? 0 : (span - 1) / abs_step + 1;
		if (size <= 1)
			step = 1;
	}
	if (size > 0)
		out->view.offset += begin * out->view.stride[d];
	out->view.dim[d] = size;
	out->view.stride[d] *= step;
	return bit(s->shrink_axis_mask, i) ? 0 : mu_shape_push(&out->shape, size, err);
}

int strided_read(struct strided *out, const struct kernel_call *c, unsigned at,
		 const struct mu_shape *in, struct mu_err *err)
{
	struct spec s = {0};
	int rc = strided_read_spec(&s, c, at, err), n_used = 0, d = 0;

	if (rc)
		return rc;
	view_of(&out->view, in);
	out->shape = mu_shape_scalar();
	for (int i = 0; i < s.n; i++)
		n_used += !bit(s.ellipsis_mask, i) && !bit(s.new_axis_mask, i);
	if (n_used > in->rank)
		return mu_invalid(err,
				  "Index out of range using input dim %d; input has only %d dims",
				  in->rank, in->rank);
	for (int i = 0; i <= s.n; i++) {
		/* At the ellipsis, or else at the end: select all elements of the dimensions
		 * without an entry. */
		if (i == s.n ? !s.ellipsis_mask : bit(s.ellipsis_mask, i))
			for (int k = in->rank - n_used; k > 0; k--, d++)
				MU_RETURN_IF_ERROR(mu_shape_push(&out->shape, in->dim[d], err));
		if (i == s.n || bit(s.ellipsis_mask, i))
			continue;
		if (bit(s.new_axis_mask, i))
			rc = mu_shape_push(&out->shape, 1, err);
		else
			rc = one_dim(out, &s, i, d, in->dim[d], err), d++;
		if (rc)
			return rc;
	}
	return 0;
}
