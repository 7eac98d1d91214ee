/* SPDX-License-Identifier: Apache-2.0 */
/* Bucketize: the index of the interval between sorted boundaries that contains a number.
 * CompareAndBitpack: one bit for each number, 1 if it is above a threshold. */
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

/* The number of boundaries that are not above x; for NaN all of them. */
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
		float as_float; /* TensorFlow compares integers as floats */
		double x;
		if (in->dtype == MU_DOUBLE) {
			x = MU_DATA(double, in)[i];
		} else {
			convert(MU_FLOAT, &as_float, in->dtype, at, 1);
			x = (double)as_float;
		}
		MU_DATA(int32_t, out)[i] = bucket_of(n ? b->fs : NULL, n, x);
	}
	return rc;
}

/* Bit 7 - i is 1 if x[i] is above the threshold. */
static uint8_t bits_above(enum mu_dtype type, const void *x, const void *threshold)
{
	bool is_real = type == MU_HALF || type == MU_FLOAT || type == MU_DOUBLE;
	enum mu_dtype wide = is_real ? MU_DOUBLE : MU_INT64;
	union {
		double d;
		int64_t i;
	} v[8], limit = {.i = 0}; /* TensorFlow ignores the threshold of bools */
	uint8_t bits = 0;

	convert(wide, v, type, x, 8);
	if (type != MU_BOOL)
		convert(wide, &limit, type, threshold, 1);
	for (int i = 0; i < 8; i++)
		bits = (uint8_t)(bits << 1 | (is_real ? v[i].d > limit.d : v[i].i > limit.i));
	return bits;
}

static int compare_and_bitpack(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	size_t block = 8 * mu_dtype_size(in->dtype);
	struct mu_shape shape = in->shape;
	struct mu_tensor *out;
	int last = shape.rank - 1;

	if (last < 0)
		return mu_invalid(err, "Input should be at least a vector, but saw a scalar.");
	if (shape.dim[last] % 8)
		return mu_invalid(
		    err, "Inner dimension of input should be divisible by 8, but saw shape: %s",
		    mu_shape_str(&shape));
	shape.dim[last] /= 8;
	shape.count /= 8;
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_UINT8, &shape, &out, err));
	uint8_t *to = out->data;
	for (int64_t i = 0; i < shape.count; i++)
		to[i] = bits_above(in->dtype, (const char *)in->data + (size_t)i * block,
				   kernel_in(c, 1)->data);
	return 0;
}

static const struct kernel rows[] = {
    {"Bucketize", .run = bucketize},
    {"CompareAndBitpack", .run = compare_and_bitpack},
};
KERNEL_TABLE(math_bucketize, rows)
