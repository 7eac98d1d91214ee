/* SPDX-License-Identifier: Apache-2.0 */
/* Bucketize: which interval between sorted boundaries a number lies in. */
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

/* The number of boundaries that are not above x; all for NaN. */
static int32_t bucket_of(const float *boundaries, unsigned n, double x)
{
	unsigned from = 0;

	while (from < n) {
		unsigned mid = from + (n - from) / 2;
		if (x < (double)boundaries[mid])
			n = mid;
		else
			from = mid + 1;
	}
	return (int32_t)from;
}

static int bucketize(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const struct mu_attr *b = mu_node_attr(c->node, "boundaries");
	unsigned n = b ? b->n : 0;
	struct mu_tensor *out;

	for (unsigned i = 1; i < n; i++)
		if (b->fs[i] < b->fs[i - 1])
			return mu_invalid(err, "Expected sorted boundaries");
	int rc = kernel_out(c, 0, MU_INT32, &in->shape, &out, err);
	for (int64_t i = 0; !rc && i < in->shape.count; i++) {
		const char *at = (const char *)in->data + (size_t)i * mu_dtype_size(in->dtype);
		float narrow; /* what integers are compared as */
		double x;
		if (in->dtype == MU_DOUBLE) {
			x = MU_DATA(double, in)[i];
		} else {
			convert(MU_FLOAT, &narrow, in->dtype, at, 1);
			x = (double)narrow;
		}
		MU_DATA(int32_t, out)[i] = bucket_of(n ? b->fs : NULL, n, x);
	}
	return rc;
}

static const struct kernel rows[] = {
    {"Bucketize", .run = bucketize},
};
KERNEL_TABLE(math_bucketize, rows)
