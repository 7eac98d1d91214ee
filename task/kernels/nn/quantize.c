/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization: reals to and from integers, with one range for the tensor or one for each slice
 * along an axis.  The ops that narrow the sums of quantized layers have one range. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

enum quantize_mode { MIN_COMBINED, MIN_FIRST, SCALED };

struct quantizer {
	enum quantize_mode mode;
	enum mu_dtype type; /* the integer type behind the quantized one */
	float lowest, highest;
	int bits;
	bool is_signed, narrow_range, rounds_to_even;
	int axis; /* -1: one range for all */
};

static int read_quantizer(const struct kernel_call *c, enum mu_dtype type, struct quantizer *q,
			  struct mu_err *err)
{
	static const struct {
		enum mu_dtype quantized, type;
		int bits;
		bool is_signed;
	} types[] = {{MU_QINT8, MU_INT8, 8, true},
		     {MU_QUINT8, MU_UINT8, 8, false},
		     {MU_QINT16, MU_INT16, 16, true},
		     {MU_QUINT16, MU_UINT16, 16, false},
		     {MU_QINT32, MU_INT32, 32, true}};
	const char *mode = args_attr_string(c->node, "mode", "MIN_COMBINED");
	const int64_t axis = args_attr_int(c->node, "axis", -1);
	unsigned i = 0;

	while (i < MU_COUNT(types) && types[i].quantized != type)
		i++;
	if (i == MU_COUNT(types))
		return args_no_kernel(c, type, err);
	*q = (struct quantizer){
	    .mode = strcmp(mode, "SCALED") == 0      ? SCALED
		    : strcmp(mode, "MIN_FIRST") == 0 ? MIN_FIRST
						     : MIN_COMBINED,
	    .type = types[i].type,
	    .bits = types[i].bits,
	    .is_signed = types[i].is_signed,
	    .narrow_range = args_attr_bool(c->node, "narrow_range", false),
	    .rounds_to_even =
		strcmp(args_attr_string(c->node, "round_mode", ""), "HALF_TO_EVEN") == 0,
	    .axis = axis >= 0 ? (int)axis : -1,
	};
	const double steps = ldexp(1, q->bits);
	q->lowest = q->is_signed ? (float)(-steps / 2) : 0;
	q->highest = (float)(q->lowest + steps - 1);
	if (q->mode == MIN_FIRST && q->axis >= 0)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "MIN_FIRST mode is not implemented for %s with axis != -1.",
			       strcmp(c->node->op, "QuantizeV2") == 0 ? "Quantize" : c->node->op);
	return 0;
}

/* Slices along the axis: element i of [outer, slices, inner] is of slice i / inner % slices. */
struct slices {
	int64_t n, inner;
};

static struct slices slices_of(const struct quantizer *q, const struct mu_shape *s)
{
	if (q->axis < 0)
		return (struct slices){1, s->count ? s->count : 1};
	return (struct slices){s->dim[q->axis], mu_shape_product(s, q->axis + 1, s->rank)};
}

/* ---- QuantizeV2 ---- */

static int check_range(const struct kernel_call *c, const struct quantizer *q, struct mu_err *err)
{
	static const char *const names[] = {"min_range", "max_range"};
	const struct mu_shape *in = &kernel_in(c, 0)->shape;

	if (q->axis >= in->rank)
		return mu_invalid(err,
				  "Axis is on a zero-based index, so its value must always be less "
				  "than number of input's dims, but given axis value was %d and "
				  "input's dims was %d",
				  q->axis, in->rank);
	for (unsigned i = 0; i < 2; i++) {
		const struct mu_shape *s = &kernel_in(c, 1 + i)->shape;
		if (q->axis < 0 && s->count != 1)
			return mu_invalid(err,
					  "If axis is not specified, %s must contain a single "
					  "float element, but it contains %lld elements",
					  names[i], (long long)s->count);
		if (q->axis >= 0 && (s->rank != 1 || s->count != in->dim[q->axis]))
			return mu_invalid(err,
					  "If axis is specified, %s must be a 1-D tensor whose "
					  "size matches the axis dimension of the input and output "
					  "tensors, but %s is a %d-D tensor of size %lld and "
					  "input's axis dimension is of size %lld",
					  names[i], names[i], s->rank, (long long)s->count,
					  (long long)in->dim[q->axis]);
	}
	return 0;
}

/* Widens the range so that it contains 0 and is not empty. */
static int adjust_range(const struct kernel_call *c, float *min, float *max, struct mu_err *err)
{
	const float min_size = args_attr_float(c->node, "ensure_minimum_range", 0.01f);

	if (*max < *min)
		return mu_invalid(err, "input_max_range must be larger than input_min_range.");
	const float size = fmaxf(1, fmaxf(fabsf(*min), fabsf(*max))) * min_size;
	*min = fminf(0, *min);
	*max = fmaxf(0, fmaxf(*max, *min + size));
	return 0;
}

/* Returns the factor of mode SCALED.  Makes the range proportional to that of the type. */
static float scale_range(const struct quantizer *q, float *min, float *max)
{
	const float lowest = q->lowest + (q->narrow_range ? 1 : 0);
	const float min_scale = lowest * *min > 0 ? lowest / *min : FLT_MAX;
	const float max_scale = q->highest * *max > 0 ? q->highest / *max : FLT_MAX;
	const float scale = fminf(min_scale, max_scale);

	*min = lowest / scale;
	*max = q->highest / scale;
	return scale;
}

static float clamp(float x, float min, float max)
{
	return fmaxf(fminf(x, max), min);
}

struct quantize_range {
	float min, max, scale;
};

static float quantize_one(const struct quantizer *q, const struct quantize_range *r, float x)
{
	if (q->mode == SCALED) {
		float scaled = clamp(x, r->min, r->max) * r->scale;
		return q->rounds_to_even ? rintf(scaled) : roundf(scaled);
	}
	if (q->mode == MIN_FIRST) {
		float shifted = roundf(x * r->scale) - (roundf(r->min * r->scale) - q->lowest);
		/* the largest float that int32 can hold */
		return clamp(shifted, q->lowest, q->bits == 32 ? 2147483520.0f : q->highest);
	}
	float steps = (clamp(x, r->min, r->max) - r->min) * r->scale;
	return roundf(q->is_signed ? steps + q->lowest : steps);
}

static struct quantize_range range_of(const struct quantizer *q, float *min, float *max)
{
	const double steps = ldexp(1, q->bits);
	struct quantize_range r;

	if (q->mode == SCALED)
		r.scale = scale_range(q, min, max);
	else if (q->mode == MIN_FIRST)
		r.scale = *max == *min
			      ? 0
			      : (float)(steps / ((double)(*max - *min) * (steps / (steps - 1))));
	else
		r.scale = (float)((steps - 1) / (*max - *min));
	r.min = *min;
	r.max = *max;
	return r;
}

/* Converts as x86 does: values outside int32 become INT32_MIN; smaller types take the low bits. */
static void store_integer(enum mu_dtype t, void *to, int64_t i, float x)
{
	int32_t v = x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN;

	if (t == MU_INT32)
		((int32_t *)to)[i] = v;
	else if (t == MU_INT16 || t == MU_UINT16)
		((uint16_t *)to)[i] = (uint16_t)v;
	else
		((uint8_t *)to)[i] = (uint8_t)v;
}

static int quantize(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const enum mu_dtype type = args_attr_type(c->node, "T", MU_QUINT8);
	struct mu_tensor *out, *min, *max;
	struct quantizer q;

	MU_RETURN_IF_ERROR(read_quantizer(c, type, &q, err));
	MU_RETURN_IF_ERROR(check_range(c, &q, err));
	struct slices s = slices_of(&q, &in->shape);
	const struct mu_shape range_shape = q.axis < 0 ? mu_shape_scalar() : mu_shape_vec(s.n);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &in->shape, &out, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, MU_FLOAT, &range_shape, &min, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 2, MU_FLOAT, &range_shape, &max, err));
	MU_AUTO_FREE struct quantize_range *ranges = mu_xmalloc((size_t)(s.n + 1) * sizeof *ranges);
	for (int64_t k = 0; k < s.n; k++) {
		float *low = &MU_DATA(float, min)[k], *high = &MU_DATA(float, max)[k];
		*low = MU_DATA(float, kernel_in(c, 1))[k];
		*high = MU_DATA(float, kernel_in(c, 2))[k];
		MU_RETURN_IF_ERROR(adjust_range(c, low, high, err));
		ranges[k] = range_of(&q, low, high);
	}
	for (int64_t i = 0; i < in->shape.count; i++)
		store_integer(q.type, out->data, i,
			      quantize_one(&q, &ranges[i / s.inner % s.n], MU_DATA(float, in)[i]));
	return 0;
}

/* ---- Dequantize ---- */

/* x = (v + shift) * scale + min */
struct dequantize_range {
	float shift, scale, min;
};

static struct dequantize_range dequantize_range_of(const struct quantizer *q, float min, float max)
{
	const float steps = (float)(ldexp(1, q->bits) - 1);
	struct dequantize_range r = {-q->lowest, (max - min) / steps, min};

	if (q->mode == SCALED) {
		float max_scale = max / q->highest;
		float lowest = q->lowest + (q->narrow_range ? 1 : 0);
		return (struct dequantize_range){
		    0, q->is_signed ? fmaxf(min / lowest, max_scale) : max_scale, 0};
	}
	if (q->mode == MIN_FIRST) { /* without a shift, small integers of 32 bits stay exact */
		r.min = (max != min ? roundf(min / r.scale) * r.scale : min) - q->lowest * r.scale;
		r.shift = 0;
	}
	return r;
}

static int check_dequantize(const struct kernel_call *c, const struct quantizer *q,
			    enum mu_dtype type, struct mu_err *err)
{
	static const char *const names[] = {"input_min_tensor", "input_max_tensor"};
	const struct mu_shape *in = &kernel_in(c, 0)->shape;

	if (type == MU_BFLOAT16 && q->mode != MIN_COMBINED)
		return mu_invalid(err,
				  "When output type is bfloat16, Mode string must be "
				  "'MIN_COMBINED', is '%s'",
				  q->mode == SCALED ? "SCALED" : "MIN_FIRST");
	if (q->axis >= in->rank)
		return mu_invalid(err, "Axis must be less than input dimension(%d), got %d",
				  in->rank, q->axis);
	const int64_t want = q->axis < 0 ? 1 : in->dim[q->axis];
	for (unsigned i = 0; i < 2; i++)
		if (kernel_in(c, 1 + i)->shape.count != want)
			return mu_invalid(err,
					  "%s must have as many elements as input on the "
					  "dequantization axis (%d), got %lld, expected %lld",
					  names[i], q->axis,
					  (long long)kernel_in(c, 1 + i)->shape.count,
					  (long long)want);
	return 0;
}

static int dequantize(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const enum mu_dtype type = args_attr_type(c->node, "dtype", MU_FLOAT);
	struct quantizer q;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(read_quantizer(c, in->dtype, &q, err));
	MU_RETURN_IF_ERROR(check_dequantize(c, &q, type, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &in->shape, &out, err));
	struct slices s = slices_of(&q, &in->shape);
	const size_t from = mu_dtype_size(q.type), to = mu_dtype_size(type);
	for (int64_t i = 0; i < in->shape.count; i++) {
		const int64_t k = i / s.inner % s.n;
		struct dequantize_range r = dequantize_range_of(
		    &q, MU_DATA(float, kernel_in(c, 1))[k], MU_DATA(float, kernel_in(c, 2))[k]);
		float v;
		convert(MU_FLOAT, &v, q.type, (const char *)in->data + (size_t)i * from, 1);
		v = (v + r.shift) * r.scale + r.min;
		convert(type, (char *)out->data + (size_t)i * to, MU_FLOAT, &v, 1);
	}
	return 0;
}

/* ---- Requantize, RequantizationRange, QuantizeDownAndShrinkRange ---- */

struct real_range {
	float min, max;
};

/* The real number that a qint32 of this range stands for, computed in double. */
static float real_of(int32_t v, struct real_range r)
{
	const double step = (double)(r.max - r.min) / UINT32_MAX;

	if (r.min == r.max)
		return r.min;
	return (float)((double)(roundf(r.min / (float)step) * (float)step) +
		       ((double)v - INT32_MIN) * step);
}

static int input_range(const struct kernel_call *c, struct real_range *r, struct mu_err *err)
{
	if (kernel_in(c, 0)->dtype != MU_QINT32)
		return args_no_kernel(c, kernel_in(c, 0)->dtype, err);
	*r =
	    (struct real_range){*MU_DATA(float, kernel_in(c, 1)), *MU_DATA(float, kernel_in(c, 2))};
	return 0;
}

/* The range of the values of input 0, extended to contain 0 from below. */
static struct real_range used_range(const struct mu_tensor *in, struct real_range r)
{
	int32_t min = INT32_MAX, max = INT32_MIN;

	for (int64_t i = 0; i < in->shape.count; i++) {
		const int32_t v = MU_DATA(int32_t, in)[i];
		min = v < min ? v : min;
		max = v > max ? v : max;
	}
	return (struct real_range){fminf(0, real_of(min, r)), real_of(max, r)};
}

/* Outputs a range as outputs i and i + 1. */
static int output_range(struct kernel_call *c, unsigned i, struct real_range r, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(kernel_out_value(c, i, MU_FLOAT, &r.min, err));
	return kernel_out_value(c, i + 1, MU_FLOAT, &r.max, err);
}

/* Converts as x86 does. */
static int64_t to_int64(double x)
{
	return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

/* TensorFlow converts to quint8 in fixed-point numbers of 16 fraction bits. */
static void requantize_fixed_point(const struct mu_tensor *in, struct real_range from,
				   struct real_range to, uint8_t *out)
{
	const float size = to.max - to.min;
	const float steps = size == 0 ? 0 : 255 / size;
	const float middle = (from.min + from.max) / 2 * steps * 0x1p16f;
	const int64_t scale =
	    size == 0 ? 0 : to_int64(255 * 0x1p16 * (double)(from.max - from.min) / (double)size);
	const int64_t lowest =
	    size == 0 ? 0 : to_int64(0x1p16 * ((double)to.min * 255) / (double)size);
	/* unsigned: a sum or product that overflows wraps around */
	const uint64_t offset = (uint64_t)to_int64((double)middle) - (uint64_t)lowest + (1 << 15);

	for (int64_t i = 0; i < in->shape.count; i++) {
		const int64_t v = MU_DATA(int32_t, in)[i];
		const int64_t scaled = (int64_t)((uint64_t)v * (uint64_t)scale) >> 32;
		const int64_t step = (int64_t)((uint64_t)scaled + offset) >> 16;
		out[i] = (uint8_t)(step < 0 ? 0 : step > 255 ? 255 : step);
	}
}

/* Converts input 0 from one range to integers of another one. */
static int requantize_range(struct kernel_call *c, struct real_range from, struct real_range to,
			    struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const enum mu_dtype type = args_attr_type(c->node, "out_type", MU_QUINT8);
	struct quantizer wide, narrow;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(read_quantizer(c, MU_QINT32, &wide, err));
	MU_RETURN_IF_ERROR(read_quantizer(c, type, &narrow, err));
	wide.mode = narrow.mode = MIN_FIRST;
	const struct dequantize_range d = dequantize_range_of(&wide, from.min, from.max);
	const struct quantize_range q = range_of(&narrow, &to.min, &to.max);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &in->shape, &out, err));
	if (type == MU_QUINT8)
		requantize_fixed_point(in, from, to, out->data);
	for (int64_t i = 0; type != MU_QUINT8 && i < in->shape.count; i++)
		store_integer(
		    narrow.type, out->data, i,
		    quantize_one(&narrow, &q, (float)MU_DATA(int32_t, in)[i] * d.scale + d.min));
	return output_range(c, 1, to, err);
}

static int requantization_range(struct kernel_call *c, struct mu_err *err)
{
	struct real_range r;

	MU_RETURN_IF_ERROR(input_range(c, &r, err));
	return output_range(c, 0, used_range(kernel_in(c, 0), r), err);
}

static int quantize_down(struct kernel_call *c, struct mu_err *err)
{
	struct real_range r;

	MU_RETURN_IF_ERROR(input_range(c, &r, err));
	return requantize_range(c, r, used_range(kernel_in(c, 0), r), err);
}

static int requantize(struct kernel_call *c, struct mu_err *err)
{
	const struct real_range to = {*MU_DATA(float, kernel_in(c, 3)),
				      *MU_DATA(float, kernel_in(c, 4))};
	struct real_range from;

	MU_RETURN_IF_ERROR(input_range(c, &from, err));
	if (!(to.min <= 0))
		return mu_invalid(err, "requested_output_min must be <= 0, but got %g",
				  (double)to.min);
	if (!(to.max >= to.min))
		return mu_invalid(err,
				  "requested_output_max must be >= requested_output_min, but got "
				  "%g and %g",
				  (double)to.max, (double)to.min);
	return requantize_range(c, from, to, err);
}

static const struct kernel rows[] = {
    {"Dequantize", KERNEL_EXPENSIVE, .run = dequantize},
    {"QuantizeDownAndShrinkRange", KERNEL_EXPENSIVE, .run = quantize_down},
    {"QuantizeV2", KERNEL_EXPENSIVE, .run = quantize},
    {"RequantizationRange", KERNEL_EXPENSIVE, .run = requantization_range},
    {"Requantize", KERNEL_EXPENSIVE, .run = requantize},
};
KERNEL_TABLE(nn_quantize, rows)
