/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated quantisation, which quantisation-aware training inserts between layers.
 *
 * FakeQuant shifts its range so that zero is representable; float only. QuantizeAndDequantize
 * scales its range instead, so that zero stays zero. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"

/* ---- FakeQuant ---- */

struct fake_range {
	float low, high, scale, inverse, zero; /* zero: the integer of 0 */
};

struct fake_spec {
	float lowest, highest; /* integers */
};

static int fake_quant_read_spec(const struct mu_node *n, struct fake_spec *s, struct mu_err *err)
{
	int64_t bits = args_attr_int(n, "num_bits", 8);

	if (bits < 2 || bits > 16)
		return mu_invalid(err, "num_bits must be between 2 and 16, inclusive");
	s->lowest = args_attr_bool(n, "narrow_range", false);
	s->highest = (float)((1 << bits) - 1);
	return 0;
}

static struct fake_range nudge_range(const struct fake_spec *s, float min, float max)
{
	float scale = (max - min) / (s->highest - s->lowest), zero = s->lowest - min / scale;

	zero = zero < s->lowest ? s->lowest : zero > s->highest ? s->highest : roundf(zero);
	struct fake_range f = {.low = (s->lowest - zero) * scale,
			       .high = (s->highest - zero) * scale,
			       .scale = scale,
			       .inverse = (s->highest - s->lowest) / (max - min)};
	f.zero = floorf(-f.low * f.inverse + 0.5f);
	return f;
}

static float fake_quantize(const struct fake_range *f, float x)
{
	float in = x > f->high ? f->high : x; /* NaN stays */

	in = in < f->low ? f->low : in;
	return floorf((in - f->low) * f->inverse - f->zero + 0.5f) * f->scale;
}

static bool fake_quant_within(const struct fake_range *f, float x)
{
	return x >= f->low && x <= f->high;
}

static int check_same_size(const struct kernel_call *c, struct mu_err *err)
{
	return mu_shape_eq(&kernel_in(c, 0)->shape, &kernel_in(c, 1)->shape)
		   ? 0
		   : mu_invalid(err, "gradient and input must be the same size");
}

/* The range of the attributes min and max. */
static int range_of_attrs(const struct kernel_call *c, struct fake_range *f, struct mu_err *err)
{
	float min = args_attr_float(c->node, "min", -6), max = args_attr_float(c->node, "max", 6);
	struct fake_spec s;

	MU_RETURN_IF_ERROR(fake_quant_read_spec(c->node, &s, err));
	if (!(min < max))
		return mu_invalid(err, "min has to be smaller than max, was: %g >= %g", (double)min,
				  (double)max);
	*f = nudge_range(&s, min, max);
	return 0;
}

static int fake_quant_args(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 0);
	struct mu_tensor *out;
	struct fake_range f;

	MU_RETURN_IF_ERROR(range_of_attrs(c, &f, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &x->shape, &out, err));
	for (int64_t i = 0; i < x->shape.count; i++)
		MU_DATA(float, out)[i] = fake_quantize(&f, MU_DATA(float, x)[i]);
	return 0;
}

static int fake_quant_args_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *g = kernel_in(c, 0), *x = kernel_in(c, 1);
	struct mu_tensor *out;
	struct fake_range f;

	MU_RETURN_IF_ERROR(range_of_attrs(c, &f, err));
	MU_RETURN_IF_ERROR(check_same_size(c, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &x->shape, &out, err));
	for (int64_t i = 0; i < x->shape.count; i++)
		MU_DATA(float, out)
	[i] = MU_DATA(float, g)[i] * (float)fake_quant_within(&f, MU_DATA(float, x)[i]);
	return 0;
}

/* Reads the attributes, and the number of channels that each have a range; 1 if all share one.
 * at: the index of input min. */
static int fake_quant_read_channels(const struct kernel_call *c, unsigned at, int64_t *channels,
				    struct fake_spec *s, struct mu_err *err)
{
	const struct mu_shape *x = &kernel_in(c, at - 1)->shape;
	bool per_channel = strstr(c->node->op, "PerChannel");

	MU_RETURN_IF_ERROR(fake_quant_read_spec(c->node, s, err));
	*channels = per_channel ? x->dim[x->rank - 1] : 1;
	return 0;
}

static int fake_quant_vars(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 0), *min = kernel_in(c, 1), *max = kernel_in(c, 2);
	struct fake_spec s;
	struct mu_tensor *out;
	int64_t channels;

	MU_RETURN_IF_ERROR(fake_quant_read_channels(c, 1, &channels, &s, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &x->shape, &out, err));
	for (int64_t k = 0; k < channels; k++) {
		float low = MU_DATA(float, min)[k], high = MU_DATA(float, max)[k];
		bool is_unset = low == 0 && high == 0; /* no range has been recorded yet */
		struct fake_range f = nudge_range(&s, low, high);
		for (int64_t i = k; i < x->shape.count; i += channels)
			MU_DATA(float, out)
		[i] = is_unset ? 0 : fake_quantize(&f, MU_DATA(float, x)[i]);
	}
	return 0;
}

static int fake_quant_vars_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *g = kernel_in(c, 0), *x = kernel_in(c, 1);
	struct fake_spec s;
	struct mu_tensor *out, *min_grad, *max_grad;
	int64_t channels;

	MU_RETURN_IF_ERROR(fake_quant_read_channels(c, 2, &channels, &s, err));
	MU_RETURN_IF_ERROR(check_same_size(c, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &x->shape, &out, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, MU_FLOAT, &kernel_in(c, 2)->shape, &min_grad, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 2, MU_FLOAT, &kernel_in(c, 3)->shape, &max_grad, err));
	for (int64_t k = 0; k < channels; k++) {
		float low = MU_DATA(float, kernel_in(c, 2))[k],
		      high = MU_DATA(float, kernel_in(c, 3))[k];
		bool is_unset = low == 0 && high == 0;
		struct fake_range f = nudge_range(&s, low, high);
		double min_sum = 0, max_sum = 0;
		for (int64_t i = k; i < x->shape.count; i += channels) {
			float v = MU_DATA(float, x)[i], d = MU_DATA(float, g)[i];
			MU_DATA(float, out)[i] = d * (float)(is_unset || fake_quant_within(&f, v));
			min_sum += !is_unset && v < f.low ? d : 0;
			max_sum += !is_unset && v > f.high ? d : 0;
		}
		MU_DATA(float, min_grad)[k] = (float)min_sum;
		MU_DATA(float, max_grad)[k] = (float)max_sum;
	}
	return 0;
}

/* ---- QuantizeAndDequantize ---- */

struct fake_quant {
	double lowest, highest;           /* integers */
	bool range_given, rounds_half_up; /* otherwise halves round to even */
	int64_t outer, depth, inner;
};

/* Splits input `in` along the attribute axis into slices that each have a range. */
static int fake_quant_channels(const struct kernel_call *c, unsigned in, struct fake_quant *b,
			       struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, in);
	int64_t axis = args_attr_int(c->node, "axis", -1);

	if (x->dtype != MU_FLOAT && x->dtype != MU_DOUBLE)
		return args_no_kernel(c, x->dtype, err);
	if (axis < -1)
		return mu_invalid(err, "Axis must be at least -1. Found %lld", (long long)axis);
	if (axis >= x->shape.rank)
		return mu_invalid(err, "Shape must be at least rank %lld but is rank %d",
				  (long long)axis + 1, x->shape.rank);
	b->outer = b->depth = 1;
	b->inner = axis < 0 ? x->shape.count : 1;
	for (int64_t i = 0; axis >= 0 && i < x->shape.rank; i++)
		*(i < axis ? &b->outer : i == axis ? &b->depth : &b->inner) *= x->shape.dim[i];
	return 0;
}

static int check_range_shapes(const struct kernel_call *c, unsigned at, const struct fake_quant *b,
			      struct mu_err *err)
{
	static const char *const name[] = {"input_min", "input_max"};
	bool per_channel = args_attr_int(c->node, "axis", -1) >= 0;

	for (unsigned i = 0; i < 2; i++) {
		const struct mu_tensor *t = kernel_in(c, at + i);
		if (t->shape.count != b->depth || (per_channel && t->shape.rank != 1))
			return mu_invalid(err, "%s has incorrect size, was %lld expected %lld",
					  name[i], (long long)t->shape.count, (long long)b->depth);
	}
	return 0;
}

#define QUANTIZE_DEQUANTIZE(T, rint_of, floor_of, LARGEST)                                         \
	/* Sets the scale so that zero stays zero and both ends are in range. */                   \
	static void fit_##T(const struct fake_quant *b, T *low, T *high, T *scale, T *inverse)     \
	{                                                                                          \
		T lowest = (T)b->lowest, highest = (T)b->highest;                                  \
		T low_scale = lowest * *low > 0 ? lowest / *low : LARGEST;                         \
		T high_scale = highest * *high > 0 ? highest / *high : LARGEST;                    \
		if (low_scale < high_scale) {                                                      \
			*scale = low_scale;                                                        \
			*inverse = *low / lowest;                                                  \
			*high = highest * *inverse;                                                \
		} else {                                                                           \
			*scale = high_scale;                                                       \
			*inverse = *high / highest;                                                \
			*low = lowest * *inverse;                                                  \
		}                                                                                  \
	}                                                                                          \
	static void dequantize_channel_##T(const struct fake_quant *b, const T *x, T *out, T low,  \
					   T high)                                                 \
	{                                                                                          \
		T scale, inverse;                                                                  \
		int64_t stride = b->depth * b->inner;                                              \
		for (int64_t o = 0; !b->range_given && o < b->outer; o++)                          \
			for (int64_t i = 0; i < b->inner; i++) {                                   \
				T v = x[o * stride + i];                                           \
				bool first = !o && !i;                                             \
				low = first || v < low ? v : low;                                  \
				high = first || v > high ? v : high;                               \
			}                                                                          \
		fit_##T(b, &low, &high, &scale, &inverse);                                         \
		for (int64_t o = 0; o < b->outer; o++)                                             \
			for (int64_t i = 0; i < b->inner; i++) {                                   \
				T v = x[o * stride + i];                                           \
				if (b->range_given) {                                              \
					v = v > high ? high : v;                                   \
					v = v < low ? low : v;                                     \
				}                                                                  \
				v *= scale;                                                        \
				v = b->rounds_half_up ? floor_of(v + (T)0.5) : rint_of(v);         \
				out[o * stride + i] = v * inverse;                                 \
			}                                                                          \
	}                                                                                          \
	static int dequantize_all_##T(struct kernel_call *c, const struct fake_quant *b,           \
				      struct mu_tensor *out, struct mu_err *err)                   \
	{                                                                                          \
		const T range[] = {(T)args_attr_float(c->node, "input_min", 0),                    \
				   (T)args_attr_float(c->node, "input_max", 0)};                   \
		const T *low = c->n_in > 1 ? kernel_in(c, 1)->data : &range[0];                    \
		const T *high = c->n_in > 1 ? kernel_in(c, 2)->data : &range[1];                   \
		/* TensorFlow checks the range of a whole tensor, not the ranges of slices */      \
		for (int64_t k = 0; b->range_given && b->depth == 1 && k < b->depth; k++)          \
			if (!(low[k] <= high[k]))                                                  \
				return mu_invalid(err,                                             \
						  "Invalid range: input_min %g > input_max %g",    \
						  (double)low[k], (double)high[k]);                \
		for (int64_t k = 0; k < b->depth && out->shape.count; k++)                         \
			dequantize_channel_##T(b, MU_DATA(T, kernel_in(c, 0)) + k * b->inner,      \
					       MU_DATA(T, out) + k * b->inner,                     \
					       b->range_given ? low[k] : 0,                        \
					       b->range_given ? high[k] : 0);                      \
		return 0;                                                                          \
	}                                                                                          \
	static void gradient_##T(struct kernel_call *c, const struct fake_quant *b,                \
				 struct mu_tensor *out)                                            \
	{                                                                                          \
		const T *g = kernel_in(c, 0)->data, *x = kernel_in(c, 1)->data;                    \
		const T *low = kernel_in(c, 2)->data, *high = kernel_in(c, 3)->data;               \
		for (int64_t i = 0; i < out->shape.count; i++) {                                   \
			int64_t k = i / b->inner % b->depth;                                       \
			MU_DATA(T, out)[i] = g[i] * (T)(x[i] >= low[k] && x[i] <= high[k]);        \
		}                                                                                  \
	}
QUANTIZE_DEQUANTIZE(float, rintf, floorf, FLT_MAX)
QUANTIZE_DEQUANTIZE(double, rint, floor, DBL_MAX)

static int quantize_dequantize(struct kernel_call *c, int64_t bits, struct mu_err *err)
{
	bool signed_ = args_attr_bool(c->node, "signed_input", true);
	bool narrow_range = args_attr_bool(c->node, "narrow_range", false);
	struct fake_quant b = {.range_given = args_attr_bool(c->node, "range_given", false)};
	struct mu_tensor *out;
	int rc;

	if (bits < 1 || bits > (signed_ ? 62 : 63))
		return mu_invalid(err, "num_bits is out of range: %lld with signed_input_ %d",
				  (long long)bits, signed_);
	b.rounds_half_up = strcmp(args_attr_string(c->node, "round_mode", ""), "HALF_UP") == 0;
	double half = ldexp(1, (int)bits - 1);
	b.lowest = signed_ ? narrow_range - half : 0;
	b.highest = signed_ ? half - 1 : 2 * half - 1;
	if ((rc = fake_quant_channels(c, 0, &b, err)) ||
	    (b.range_given && c->n_in > 1 && (rc = check_range_shapes(c, 1, &b, err))) ||
	    (rc = kernel_out(c, 0, kernel_in(c, 0)->dtype, &kernel_in(c, 0)->shape, &out, err)))
		return rc;
	return (out->dtype == MU_FLOAT ? dequantize_all_float : dequantize_all_double)(c, &b, out,
										       err);
}

/* The first version has its range in attributes. */
KERNEL_RUN(quantize_dequantize_v2,
	   quantize_dequantize(c, args_attr_int(c->node, "num_bits", 8), err))

static int quantize_dequantize_v3(struct kernel_call *c, struct mu_err *err)
{
	int64_t bits;

	MU_RETURN_IF_ERROR(args_int(c, 3, &bits, err));
	return quantize_dequantize(c, bits, err);
}

static int quantize_dequantize_v4_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 1);
	struct mu_tensor *out, *zero;
	struct fake_quant b = {0};

	MU_RETURN_IF_ERROR(fake_quant_channels(c, 1, &b, err));
	MU_RETURN_IF_ERROR(check_same_size(c, err));
	MU_RETURN_IF_ERROR(check_range_shapes(c, 2, &b, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, x->dtype, &x->shape, &out, err));
	(x->dtype == MU_FLOAT ? gradient_float : gradient_double)(c, &b, out);
	for (unsigned i = 1; i < 3; i++) { /* the range inputs get no gradient */
		MU_RETURN_IF_ERROR(
		    kernel_out(c, i, x->dtype, &kernel_in(c, 1 + i)->shape, &zero, err));
		memset(zero->data, 0, mu_tensor_bytes(zero));
	}
	return 0;
}

static const struct kernel rows[] = {
    {"FakeQuantWithMinMaxArgs", .run = fake_quant_args},
    {"FakeQuantWithMinMaxArgsGradient", .run = fake_quant_args_grad},
    {"FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel", .run = fake_quant_vars},
    {"FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannelGradient",
     .run = fake_quant_vars_grad},
    {"QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV4",
     .run = quantize_dequantize_v2},
    {"QuantizeAndDequantizeV3", .run = quantize_dequantize_v3},
    {"QuantizeAndDequantizeV4Grad", .run = quantize_dequantize_v4_grad},
};
KERNEL_TABLE(nn_fake_quant, rows)
