/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/random/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/move.h"

/* ---- from bits to numbers ---- */

/* Two normal numbers from two uniform numbers (Box-Muller). */
static void normal_floats(uint32_t x0, uint32_t x1, float out[2])
{
	float u = philox_float(x0), angle = (float)(2.0 * M_PI * (double)philox_float(x1));
	float r = sqrtf(-2.0f * logf(u < 1e-7f ? 1e-7f : u));

	out[0] = sinf(angle) * r;
	out[1] = cosf(angle) * r;
}

static void normal_doubles(const uint32_t x[4], double out[2])
{
	double u = philox_double(x[0], x[1]), angle = 2.0 * M_PI * philox_double(x[2], x[3]);
	double r = sqrt(-2.0 * log(u < 1e-7 ? 1e-7 : u));

	out[0] = sin(angle) * r;
	out[1] = cos(angle) * r;
}

/* A group is the numbers from one block of the generator: four floats or two doubles.  16-bit
 * floats are drawn as floats. */
typedef void group_fn(struct philox *p, void *out);

static void uniform_floats_group(struct philox *p, void *out)
{
	uint32_t x[4];

	philox_next(p, x);
	for (int i = 0; i < 4; i++)
		((float *)out)[i] = philox_float(x[i]);
}

/* Uses as many bits as the 16-bit format has in its fraction, so that nothing is rounded. */
static void uniform_bits_group(struct philox *p, int bits, float *out)
{
	uint32_t x[4];

	philox_next(p, x);
	for (int i = 0; i < 4; i++)
		out[i] = ldexpf((float)(x[i] & ((1u << bits) - 1)), -bits);
}

static void uniform_halves_group(struct philox *p, void *out)
{
	uniform_bits_group(p, 10, out);
}

static void uniform_bfloats_group(struct philox *p, void *out)
{
	uniform_bits_group(p, 7, out);
}

static void uniform_doubles_group(struct philox *p, void *out)
{
	uint32_t x[4];

	philox_next(p, x);
	((double *)out)[0] = philox_double(x[0], x[1]);
	((double *)out)[1] = philox_double(x[2], x[3]);
}

static void normal_floats_group(struct philox *p, void *out)
{
	uint32_t x[4];

	philox_next(p, x);
	normal_floats(x[0], x[1], out);
	normal_floats(x[2], x[3], (float *)out + 2);
}

static void normal_doubles_group(struct philox *p, void *out)
{
	uint32_t x[4];

	philox_next(p, x);
	normal_doubles(x, out);
}

void draw_two_normals(struct philox *p, double out[2])
{
	normal_doubles_group(p, out);
}

/* Fills a group, the four numbers of a Philox block: draws until four are within two standard
 * deviations. */
static void truncated_floats_group(struct philox *p, void *out)
{
	for (int n_accepted = 0; n_accepted < 4;) {
		uint32_t x[4];
		float f[4];
		philox_next(p, x);
		normal_floats(x[0], x[1], f);
		normal_floats(x[2], x[3], f + 2);
		for (int i = 0; i < 4 && n_accepted < 4; i++)
			if (fabsf(f[i]) < 2.0f)
				((float *)out)[n_accepted++] = f[i];
	}
}

static void truncated_doubles_group(struct philox *p, void *out)
{
	for (int n_accepted = 0; n_accepted < 2;) {
		uint32_t x[4];
		double d[2];
		philox_next(p, x);
		normal_doubles(x, d);
		for (int i = 0; i < 2 && n_accepted < 2; i++)
			if (fabs(d[i]) < 2.0)
				((double *)out)[n_accepted++] = d[i];
	}
}

const struct distribution {
	const char *name; /* of the GPU kernel */
	group_fn *floats, *doubles, *halves, *bfloats;
	int64_t skip; /* blocks between the starts of two groups; 0: groups are consecutive */
} draw_uniform = {"uniform", .floats = uniform_floats_group, .doubles = uniform_doubles_group,
		  .halves = uniform_halves_group, .bfloats = uniform_bfloats_group},
  draw_normal = {"normal", .floats = normal_floats_group, .doubles = normal_doubles_group,
		 .halves = normal_floats_group, .bfloats = normal_floats_group},
  draw_truncated = {"truncated",
		    .floats = truncated_floats_group,
		    .doubles = truncated_doubles_group,
		    .halves = truncated_floats_group,
		    .bfloats = truncated_floats_group,
		    .skip = DRAWS_RESERVED};

/* NULL: the type is not supported. */
static group_fn *group_of(const struct distribution *d, enum mu_dtype t)
{
	switch (t) {
	case MU_FLOAT:
		return d->floats;
	case MU_DOUBLE:
		return d->doubles;
	case MU_HALF:
		return d->halves;
	case MU_BFLOAT16:
		return d->bfloats;
	default:
		return NULL;
	}
}

int draw_group(const struct distribution *d, enum mu_dtype t, struct philox *p, double out[4])
{
	float floats[4];

	if (t == MU_DOUBLE) {
		d->doubles(p, out);
		return 2;
	}
	group_of(d, t)(p, floats);
	for (int i = 0; i < 4; i++)
		out[i] = (double)floats[i];
	return 4;
}

int draw_output_shape(const struct kernel_call *c, unsigned i, enum mu_dtype *t,
		      struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_shape *s = &kernel_in(c, i)->shape;

	*t = args_attr_type(c->node, "dtype", MU_FLOAT);
	if (s->rank != 1)
		return mu_invalid(err, "shape must be a vector of {int32,int64}, got shape %s",
				  mu_shape_str(s));
	return args_shape(c, i, shape, err);
}

/* draw_reals() and draw_ints() on the GPU whose memory holds `out`. */
static int draw_gpu(struct gpu *g, const char *kernel_name, const struct mu_tensor *out,
		    int64_t group, int64_t skip, struct draw_range range, const struct philox *from,
		    struct mu_err *err)
{
	struct random_args a = {.out = gpu_address(out),
				.n = out->shape.count,
				.each = skip,
				.low = range.low,
				.span = range.span};

	memcpy(a.counter, from->counter, sizeof a.counter);
	memcpy(a.key, from->key, sizeof a.key);
	return gpu_run(g, kernel_name, (a.n + group - 1) / group, &a, err);
}

int draw_reals(struct kernel_call *c, const struct distribution *d, enum mu_dtype t,
	       const struct mu_shape *shape, const struct philox *from, struct mu_err *err)
{
	int64_t group = t == MU_DOUBLE ? 2 : 4, skip = d->skip * group / 4;
	group_fn *draw = group_of(d, t);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(draw ? kernel_out_on_device(c, 0, t, shape, &out, err)
				: args_no_kernel(c, t, err));
	struct gpu *g = gpu_of_tensor(out);
	if (g) {
		char name[32];
		snprintf(name, sizeof name, "%s_%s", d->name, gpu_type_name(t));
		return draw_gpu(g, name, out, group, skip, (struct draw_range){0}, from, err);
	}
	size_t size = mu_dtype_size(t);
	struct philox at = *from;
	for (int64_t i = 0; i < shape->count; i += group) {
		double values[4];
		int64_t n = shape->count - i < group ? shape->count - i : group;
		char *to = (char *)out->data + (size_t)i * size;
		if (skip) {
			at = *from;
			philox_skip(&at, (uint64_t)(i / group * skip));
		}
		draw(&at, values);
		if (size == 2)
			convert(t, to, MU_FLOAT, values, n);
		else
			memcpy(to, values, (size_t)n * size);
	}
	return 0;
}

/* ---- integers ---- */

int draw_range(const struct kernel_call *c, unsigned low, unsigned high, int64_t n,
	       struct draw_range *out, struct mu_err *err)
{
	int64_t from, to;

	MU_RETURN_IF_ERROR(args_int(c, low, &from, err));
	MU_RETURN_IF_ERROR(args_int(c, high, &to, err));
	if (from >= to && n)
		return mu_invalid(err, "Need minval < maxval, got %lld >= %lld", (long long)from,
				  (long long)to);
	*out = (struct draw_range){(uint64_t)from, (uint64_t)to - (uint64_t)from};
	return 0;
}

int draw_ints(struct kernel_call *c, enum mu_dtype t, const struct mu_shape *shape,
	      struct draw_range range, const struct philox *from, struct mu_err *err)
{
	bool is_32_bit = t == MU_INT32 || t == MU_UINT32;
	int per_block = is_32_bit ? 4 : 2;
	struct philox p = *from;
	struct mu_tensor *out;
	uint32_t x[4] = {0};

	if (!is_32_bit && t != MU_INT64 && t != MU_UINT64)
		return args_no_kernel(c, t, err);
	int rc = kernel_out_on_device(c, 0, t, shape, &out, err);
	struct gpu *g = rc ? NULL : gpu_of_tensor(out);
	if (g)
		return draw_gpu(g, is_32_bit ? "whole_32" : "whole_64", out, per_block, 0, range,
				from, err);
	for (int64_t i = 0; !rc && i < shape->count; i++) {
		int k = (int)(i % per_block);
		if (k == 0)
			philox_next(&p, x);
		uint64_t bits = is_32_bit ? x[k] : x[2 * k] | (uint64_t)x[2 * k + 1] << 32;
		if (range.span)
			bits = range.low + bits % range.span;
		if (is_32_bit)
			MU_DATA(uint32_t, out)[i] = (uint32_t)bits;
		else
			MU_DATA(uint64_t, out)[i] = bits;
	}
	return rc;
}
