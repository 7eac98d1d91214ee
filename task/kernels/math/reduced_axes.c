/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/math/checks.h"

int check_axes(const struct kernel_call *c, bool *reduced, struct mu_err *err)
{
	const struct mu_shape *s = &kernel_in(c, 0)->shape;
	const struct mu_tensor *axes = kernel_in(c, 1);

	for (int64_t i = 0; i < axes->shape.count; i++) {
		int64_t a = mu_tensor_int(axes, i);
		if (a < -s->rank || a >= s->rank)
			return mu_invalid(
			    err, "Invalid reduction dimension (%lld for input with %d dimension(s)",
			    (long long)a, s->rank);
		a = a < 0 ? a + s->rank : a;
		if (reduced[a])
			return mu_invalid(
			    err,
			    "Invalid reduction arguments: Axes contains duplicate dimension: %lld",
			    (long long)a);
		reduced[a] = true;
	}
	return 0;
}

int reduced_shape(const struct mu_shape *in, const bool *reduced, bool keep, struct mu_shape *out,
		  struct mu_err *err)
{
	struct mu_shape s = mu_shape_scalar();
	int rc = 0;

	for (int i = 0; i < in->rank && !rc; i++)
		if (!reduced[i] || keep)
			rc = mu_shape_push(&s, reduced[i] ? 1 : in->dim[i], err);
	*out = s;
	return rc;
}

void reduced_dims_init(struct reduced_dims *f, const struct mu_shape *in, const bool *reduced)
{
	f->rank = 0;
	for (int i = 0; i < in->rank; i++) {
		if (in->dim[i] == 1)
			continue;
		if (f->rank && f->reduced[f->rank - 1] == reduced[i]) {
			f->dim[f->rank - 1] *= in->dim[i];
			continue;
		}
		f->dim[f->rank] = in->dim[i];
		f->reduced[f->rank++] = reduced[i];
	}
	if (!f->rank) {
		f->rank = 1;
		f->dim[0] = 1;
		f->reduced[0] = false;
	}
	int64_t in_stride = 1, out_stride = 1;
	for (int i = f->rank; i-- > 0;) {
		f->in_stride[i] = in_stride;
		f->out_stride[i] = f->reduced[i] ? 0 : out_stride;
		in_stride *= f->dim[i];
		out_stride *= f->reduced[i] ? 1 : f->dim[i];
	}
}
