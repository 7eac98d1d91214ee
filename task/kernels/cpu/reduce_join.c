/* SPDX-License-Identifier: Apache-2.0 */
/* Strings joined along some dimensions, in the order in which these are named: the first runs
 * fastest. */
#include "task/kernels/args.h"
#include "task/kernels/elems.h"
#include "task/kernels/kernel_table.h"

struct joining {
	int n;
	int axis[MU_MAX_RANK];
	bool joined[MU_MAX_RANK];
	struct view view; /* what stays, then what is joined */
	struct mu_shape shape;
};

static int read_axes(const struct kernel_call *c, struct joining *j, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	int64_t axes[MU_MAX_RANK];
	int rc = args_ints(c, 1, axes, MU_MAX_RANK, &j->n, err);

	for (int i = 0; i < j->n && !rc; i++) {
		if (args_axis(axes[i], in->rank, &j->axis[i], err))
			return mu_fail(err, MU_OUT_OF_RANGE, "Invalid reduction dimension %lld",
				       (long long)axes[i]);
		if (j->joined[j->axis[i]])
			return mu_fail(err, MU_INVALID_ARGUMENT, "Duplicate reduction dimension %d",
				       j->axis[i]);
		j->joined[j->axis[i]] = true;
	}
	return rc;
}

static int plan(const struct kernel_call *c, struct joining *j, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	bool keep = args_attr_bool(c->node, "keep_dims", false);
	struct view v;
	int rc, k = 0;

	*j = (struct joining){.shape = mu_shape_scalar()};
	if ((rc = args_type(c, 0, MU_STRING, err)) || (rc = read_axes(c, j, err)))
		return rc;
	view_of(&v, in);
	j->view.rank = in->rank;
	for (int d = 0; d < in->rank; d++) {
		if ((keep || !j->joined[d]) &&
		    (rc = mu_shape_push(&j->shape, j->joined[d] ? 1 : in->dim[d], err)))
			return rc;
		if (j->joined[d])
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
	const char *between = args_attr_string(c->node, "separator", "");
	MU_AUTO_TENSOR turned = {0};
	struct mu_tensor *out;
	MU_AUTO_BUF b = {0};
	struct joining j;
	int rc = plan(c, &j, err);

	if (rc || (rc = mu_tensor_new(&turned, MU_STRING, &kernel_in(c, 0)->shape, err)) ||
	    (rc = kernel_out(c, 0, MU_STRING, &j.shape, &out, err)))
		return rc;
	view_read(MU_STRING, turned.data, kernel_in(c, 0)->data, &j.view);
	int64_t each = j.shape.count ? turned.shape.count / j.shape.count : 0;
	for (int64_t i = 0; i < j.shape.count; i++) {
		mu_buf_clear(&b);
		for (int64_t k = 0; k < each; k++) {
			struct mu_span s = elems_span(&turned, i * each + k);
			if (k)
				mu_buf_puts(&b, between);
			mu_buf_put(&b, s.data, s.len);
		}
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data ? b.data : "", b.len);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"ReduceJoin", .run = reduce_join},
};
KERNEL_TABLE(reduce_join, rows)
