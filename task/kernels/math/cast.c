/* SPDX-License-Identifier: Apache-2.0 */
/* Cast and Bitcast. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

/* Copies n numbers of `size` bytes; the steps are strides in numbers. */
static void copy_strided(char *to, int to_step, const char *from, int from_step, size_t size,
			 int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		memcpy(to + (size_t)(i * to_step) * size, from + (size_t)(i * from_step) * size,
		       size);
}

/* Casts from or to a complex type: only the real part is converted, and the imaginary part of a
 * real number is 0. */
static int cast_real_part(struct mu_tensor *out, const struct mu_tensor *in, struct mu_err *err)
{
	enum mu_dtype from = mu_dtype_part(in->dtype), to = mu_dtype_part(out->dtype);
	bool from_complex = from != in->dtype;
	int64_t n = in->shape.count;
	struct mu_tensor real;

	if (from_complex && to != out->dtype) {
		convert(to, out->data, from, in->data, 2 * n);
		return 0;
	}
	MU_RETURN_IF_ERROR(mu_tensor_new(&real, from_complex ? from : to, &in->shape, err));
	if (from_complex) {
		copy_strided(real.data, 1, in->data, 2, mu_dtype_size(from), n);
		convert(to, out->data, from, real.data, n);
	} else {
		convert(to, real.data, from, in->data, n);
		memset(out->data, 0, mu_tensor_bytes(out));
		copy_strided(out->data, 2, real.data, 1, mu_dtype_size(to), n);
	}
	mu_tensor_unref(&real);
	return 0;
}

/* The bits of the mantissa that a cast with Truncate clears first, so that it rounds to zero. */
static int truncated_bits(enum mu_dtype from, enum mu_dtype to)
{
	static const struct {
		enum mu_dtype from, to;
		int bits;
	} casts[] = {{MU_FLOAT, MU_HALF, 13},
		     {MU_FLOAT, MU_BFLOAT16, 16},
		     {MU_DOUBLE, MU_HALF, 42},
		     {MU_DOUBLE, MU_BFLOAT16, 45},
		     {MU_DOUBLE, MU_FLOAT, 29}};

	for (unsigned i = 0; i < MU_COUNT(casts); i++)
		if (casts[i].from == mu_dtype_part(from) && casts[i].to == mu_dtype_part(to))
			return casts[i].bits;
	return 0;
}

static void clear_low_bits(struct mu_tensor *t, int bits)
{
	size_t bytes = mu_tensor_bytes(t);

	if (mu_dtype_part(t->dtype) == MU_FLOAT)
		for (size_t i = 0; i < bytes / 4; i++)
			((uint32_t *)t->data)[i] &= UINT32_MAX << bits;
	else
		for (size_t i = 0; i < bytes / 8; i++)
			((uint64_t *)t->data)[i] &= UINT64_MAX << bits;
}

static int cast_values(struct mu_tensor *out, const struct mu_tensor *in, struct mu_err *err)
{
	if (convert(out->dtype, out->data, in->dtype, in->data, in->shape.count) ||
	    !in->shape.count)
		return 0;
	return cast_real_part(out, in, err);
}

static int cast_truncated(struct mu_tensor *out, const struct mu_tensor *in, int bits,
			  struct mu_err *err)
{
	struct mu_tensor copy;
	int rc;

	MU_RETURN_IF_ERROR(mu_tensor_new(&copy, in->dtype, &in->shape, err));
	if (in->shape.count)
		memcpy(copy.data, in->data, mu_tensor_bytes(in));
	clear_low_bits(&copy, bits);
	rc = cast_values(out, &copy, err);
	mu_tensor_unref(&copy);
	return rc;
}

/* Quantized numbers are cast as the integers that represent them. */
static enum mu_dtype without_quantization(enum mu_dtype t)
{
	switch (t) {
	case MU_QINT8:
		return MU_INT8;
	case MU_QUINT8:
		return MU_UINT8;
	case MU_QINT16:
		return MU_INT16;
	case MU_QUINT16:
		return MU_UINT16;
	case MU_QINT32:
		return MU_INT32;
	default:
		return t;
	}
}

static int cast(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype dst_type = args_attr_type(c->node, "DstT", MU_DT_INVALID);
	enum mu_dtype to = without_quantization(dst_type);
	struct mu_tensor in = *kernel_in(c, 0), *out;

	if (dst_type == in.dtype) {
		kernel_out_take(c, 0, mu_tensor_ref(&in));
		return 0;
	}
	in.dtype = without_quantization(in.dtype);
	if ((unsigned)to >= MU_DT_COUNT ||
	    !convert_supports(mu_dtype_part(to), mu_dtype_part(in.dtype)))
		return mu_fail(err, MU_UNIMPLEMENTED, "Cast %s to %s is not supported",
			       mu_dtype_name(kernel_in(c, 0)->dtype), mu_dtype_name(dst_type));

	MU_RETURN_IF_ERROR(kernel_out(c, 0, dst_type, &in.shape, &out, err));
	out->dtype = to;
	int bits = args_attr_bool(c->node, "Truncate", false) ? truncated_bits(in.dtype, to) : 0;
	int rc = bits ? cast_truncated(out, &in, bits, err) : cast_values(out, &in, err);
	out->dtype = dst_type;
	return rc;
}

/* The shape of a bitcast: a larger type removes the last dimension, a smaller one appends one. */
static int bitcast_shape(const struct mu_tensor *in, enum mu_dtype to, struct mu_shape *out,
			 struct mu_err *err)
{
	int64_t from_size = (int64_t)mu_dtype_size(in->dtype), to_size = (int64_t)mu_dtype_size(to);
	int rank = in->shape.rank;

	*out = in->shape;
	if (!from_size || !to_size)
		return mu_fail(err, MU_UNIMPLEMENTED, "Bitcast from %s to %s is not supported",
			       mu_dtype_name(in->dtype), mu_dtype_name(to));
	if (from_size > to_size)
		return mu_shape_push(out, from_size / to_size, err);
	if (from_size == to_size)
		return 0;
	if (!rank || in->shape.dim[rank - 1] != to_size / from_size)
		return mu_invalid(err, "Cannot bitcast from %s to %s", mu_dtype_name(in->dtype),
				  mu_dtype_name(to));
	return mu_shape_set(out, rank - 1, in->shape.dim, err);
}

static int bitcast(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	enum mu_dtype to = args_attr_type(c->node, "type", MU_DT_INVALID);
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(bitcast_shape(in, to, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, to, &shape, &out, err));
	if (shape.count)
		memcpy(out->data, in->data, mu_tensor_bytes(out));
	return 0;
}

static const struct kernel rows[] = {
    {"Cast", .run = cast},
    {"Bitcast", .run = bitcast},
};
KERNEL_TABLE(math_cast, rows)
