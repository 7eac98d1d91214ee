/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors.  With seeds that are not both zero the numbers are those TensorFlow draws: each
 * run reserves 256 draws an element. */
#include <math.h>
#include <string.h>

#include "task/kernels/args.h"
#include "task/kernels/cuda/args.h"
#include "task/kernels/elems.h"
#include "task/kernels/gpu_table.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/move.h"
#include "task/kernels/node_state.h"

enum { DRAWS_RESERVED = 256 };

/* Where this run's draws begin. */
static int reserve(struct kernel_call *c, int64_t elements, struct philox *out, struct mu_err *err)
{
	return node_draws(c->state, c, (uint64_t)elements * DRAWS_RESERVED, out, err);
}

/* ---- from bits to numbers ---- */

/* Two normal numbers from two uniform ones (Box and Muller). */
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

/* A group is what one element count of the generator gives: four floats or two doubles. */
typedef void group_fn(struct philox *p, void *out);

static void uniform_floats_group(struct philox *p, void *out)
{
	uint32_t x[4];

	philox_next(p, x);
	for (int i = 0; i < 4; i++)
		((float *)out)[i] = philox_float(x[i]);
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

/* Draws until four of them lie within two standard deviations. */
static void truncated_floats_group(struct philox *p, void *out)
{
	for (int have = 0; have < 4;) {
		uint32_t x[4];
		float f[4];
		philox_next(p, x);
		normal_floats(x[0], x[1], f);
		normal_floats(x[2], x[3], f + 2);
		for (int i = 0; i < 4 && have < 4; i++)
			if (fabsf(f[i]) < 2.0f)
				((float *)out)[have++] = f[i];
	}
}

static void truncated_doubles_group(struct philox *p, void *out)
{
	for (int have = 0; have < 2;) {
		uint32_t x[4];
		double d[2];
		philox_next(p, x);
		normal_doubles(x, d);
		for (int i = 0; i < 2 && have < 2; i++)
			if (fabs(d[i]) < 2.0)
				((double *)out)[have++] = d[i];
	}
}

static const struct distribution {
	const char *name; /* of the GPU's kernel */
	group_fn *floats, *doubles;
	int64_t skip; /* draws between the starts of two groups; 0: they follow one another */
} uniform = {"uniform", uniform_floats_group, uniform_doubles_group, 0},
  normal = {"normal", normal_floats_group, normal_doubles_group, 0},
  truncated = {"truncated", truncated_floats_group, truncated_doubles_group, DRAWS_RESERVED};

/* The same by the GPU that out lies on. */
static int draw_there(struct gpu *g, const char *name, const struct mu_tensor *out, int64_t group,
		      int64_t skip, const struct philox *base, struct mu_err *err)
{
	struct random_args a = {.out = gpu_address(out), .n = out->shape.count, .each = skip};
	void *kernel;
	int rc = gpu_find(g, name, out->dtype, &kernel, err);

	memcpy(a.counter, base->counter, sizeof a.counter);
	memcpy(a.key, base->key, sizeof a.key);
	return rc ? rc : gpu_run(g, kernel, (a.n + group - 1) / group, &a, err);
}

/* Output 0 as shape of draws from `base` on. */
static int draw(struct kernel_call *c, const struct distribution *d, enum mu_dtype t,
		const struct mu_shape *shape, const struct philox *base, struct mu_err *err)
{
	struct mu_tensor *out;
	int64_t group = t == MU_FLOAT ? 4 : 2, skip = d->skip * group / 4;
	int rc = move_out(c, 0, t, shape, &out, err);

	if (rc)
		return rc;
	struct gpu *g = gpu_of_tensor(out);
	if (g)
		return draw_there(g, d->name, out, group, skip, base, err);
	size_t size = mu_dtype_size(t);
	struct philox at = *base;
	for (int64_t i = 0; i < shape->count; i += group) {
		double room[4];
		int64_t n = shape->count - i < group ? shape->count - i : group;
		if (skip) {
			at = *base;
			philox_skip(&at, (uint64_t)(i / group * skip));
		}
		(t == MU_FLOAT ? d->floats : d->doubles)(&at, room);
		memcpy((char *)out->data + (size_t)i * size, room, (size_t)n * size);
	}
	return 0;
}

/* What all distributions are asked for. */
static int wanted(const struct kernel_call *c, enum mu_dtype *t, struct mu_shape *shape,
		  struct mu_err *err)
{
	*t = args_attr_type(c->node, "dtype", MU_FLOAT);
	if (*t != MU_FLOAT && *t != MU_DOUBLE)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s", c->node->op,
			       mu_dtype_name(*t));
	return args_shape(c, 0, shape, err);
}

static int fill(struct kernel_call *c, const struct distribution *d, struct mu_err *err)
{
	struct mu_shape shape;
	struct philox base;
	enum mu_dtype t;
	int rc;

	if ((rc = wanted(c, &t, &shape, err)) || (rc = reserve(c, shape.count, &base, err)))
		return rc;
	return draw(c, d, t, &shape, &base, err);
}

/* From two seeds that the caller gives. */
static int fill_stateless(struct kernel_call *c, const struct distribution *d, struct mu_err *err)
{
	struct mu_shape shape;
	struct philox base;
	enum mu_dtype t;
	int rc;

	if ((rc = wanted(c, &t, &shape, err)) || (rc = stateless_draws(c, 1, &base, err)))
		return rc;
	return draw(c, d, t, &shape, &base, err);
}

#define DRAW(name, how, distribution)                                                              \
	static int name(struct kernel_call *c, struct mu_err *err)                                 \
	{                                                                                          \
		return how(c, &(distribution), err);                                               \
	}
DRAW(random_uniform, fill, uniform)
DRAW(random_normal, fill, normal)
DRAW(truncated_normal, fill, truncated)
DRAW(stateless_uniform, fill_stateless, uniform)
DRAW(stateless_normal, fill_stateless, normal)
DRAW(stateless_truncated, fill_stateless, truncated)

static int random_uniform_int(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape shape;
	struct mu_tensor *out;
	int64_t low, high;
	int rc;

	if ((rc = args_shape(c, 0, &shape, err)) || (rc = args_int(c, 1, &low, err)) ||
	    (rc = args_int(c, 2, &high, err)) || (rc = args_same_type(c, 1, 2, err)))
		return rc;
	if (low >= high)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Need minval < maxval, got %lld >= %lld",
			       (long long)low, (long long)high);
	enum mu_dtype t = kernel_in(c, 1)->dtype;
	struct philox p;
	if ((rc = kernel_out(c, 0, t, &shape, &out, err)) ||
	    (rc = reserve(c, shape.count, &p, err)))
		return rc;
	uint64_t span = (uint64_t)high - (uint64_t)low;
	int per = t == MU_INT32 ? 4 : 2;
	uint32_t x[4] = {0};
	for (int64_t i = 0; i < shape.count; i++) {
		int k = (int)(i % per);
		if (k == 0)
			philox_next(&p, x);
		if (t == MU_INT32)
			MU_DATA(int32_t, out)[i] = (int32_t)(low + x[k] % (uint32_t)span);
		else
			MU_DATA(int64_t, out)
		[i] = (int64_t)((uint64_t)low + (x[2 * k] | (uint64_t)x[2 * k + 1] << 32) % span);
	}
	return 0;
}

/* The rows in random order. */
static int random_shuffle(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t n = in->shape.rank ? in->shape.dim[0] : 1, row = n ? in->shape.count / n : 0;
	MU_AUTO_FREE int64_t *order = malloc((size_t)(n + 1) * sizeof *order);
	struct mu_tensor *out;
	uint32_t x[4];

	if (!order)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "out of memory to shuffle %lld rows",
			       (long long)n);
	struct philox p;
	int rc = kernel_out(c, 0, in->dtype, &in->shape, &out, err);
	if (rc || (rc = reserve(c, n, &p, err)))
		return rc;
	for (int64_t i = 0; i < n; i++)
		order[i] = i;
	for (int64_t i = n - 1; i > 0; i--) {
		philox_next(&p, x);
		int64_t k = (int64_t)((x[0] | (uint64_t)x[1] << 32) % (uint64_t)(i + 1));
		int64_t swap = order[i];
		order[i] = order[k];
		order[k] = swap;
	}
	for (int64_t i = 0; i < n; i++)
		elems_copy(in->dtype, out->data, i * row, in->data, order[i] * row, row);
	return 0;
}

#define RANDOM(op, fn)                                                                             \
	{                                                                                          \
		op, KERNEL_NO_FOLD, .run = fn, .prepare = node_state_prepare,                      \
				    .release = node_state_release                                  \
	}
static const struct kernel rows[] = {
    RANDOM("RandomUniform", random_uniform),
    RANDOM("RandomStandardNormal", random_normal),
    RANDOM("TruncatedNormal", truncated_normal),
    RANDOM("RandomUniformInt", random_uniform_int),
    RANDOM("RandomShuffle", random_shuffle),
    {"StatelessRandomUniform", .run = stateless_uniform},
    {"StatelessRandomNormal", .run = stateless_normal},
    {"StatelessTruncatedNormal", .run = stateless_truncated},
};
KERNEL_TABLE(random, rows)
