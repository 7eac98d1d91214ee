/* SPDX-License-Identifier: Apache-2.0 */
/* Draws from distributions with parameters. Gamma: Marsaglia and Tsang, 2000. Poisson: Knuth's
 * method for small rates, else Hörmann's rejection, 1993. Binomial: sums of geometric draws for
 * small expectations, else Hörmann's rejection.
 *
 * The position of a draw determines its groups of the generator, so the numbers are TensorFlow's
 * for any number of threads. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/random/draw.h"
#include "task/kernels/random/node_state.h"

/* After so many rejections the parameter counts as one that has no samples: the draw is NaN. */
enum { MAX_TRIES = 1000 };

/* Numbers come two at a time, and the second is used first. */
struct pairs {
	struct philox at;
	uint64_t place;
	double uniform[2], normal[2];
	int uniforms, normals;
};

/* Moves to the first group of this element; each element has `groups` groups. */
static void distribution_begin(struct pairs *p, uint64_t groups)
{
	philox_skip(&p->at, p->place * groups);
}

static double distribution_uniform(struct pairs *p)
{
	uint32_t x[4];

	if (!p->uniforms) {
		philox_next(&p->at, x);
		p->uniform[0] = philox_double(x[0], x[1]);
		p->uniform[1] = philox_double(x[2], x[3]);
		p->uniforms = 2;
	}
	return p->uniform[--p->uniforms];
}

static double distribution_normal(struct pairs *p)
{
	if (!p->normals) {
		draw_two_normals(&p->at, p->normal);
		p->normals = 2;
	}
	return p->normal[--p->normals];
}

/* single: the parameters are floats, and so are the constants computed from them. */
struct wanted {
	double parameter, second, most; /* most: the largest number of the result's type */
	bool single;
};
typedef double draw_fn(struct pairs *p, const struct wanted *w);

static double gamma_draw(struct pairs *p, const struct wanted *w)
{
	double alpha = w->parameter;
	double d = alpha + (alpha < 1 ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);

	distribution_begin(p, DRAWS_RESERVED);
	if (alpha == 1)
		return -log1p(-distribution_uniform(p));
	for (int i = 0; i < MAX_TRIES; i++) {
		double x = distribution_normal(p), v = 1 + c * x, u;
		if (v <= 0)
			continue;
		v = v * v * v;
		u = distribution_uniform(p);
		if (u < 1 - 0.0331 * (x * x) * (x * x) ||
		    log(u) < 0.5 * x * x + d * (1 - v + log(v)))
			return d * v * (alpha < 1 ? pow(distribution_uniform(p), 1 / alpha) : 1);
	}
	return NAN;
}

static double poisson_by_products(struct pairs *p, double rate)
{
	double left = exp(-rate), product = 1, events = 0;

	for (; events < MAX_TRIES; events++) {
		product *= distribution_uniform(p);
		if (product <= left)
			break;
	}
	return events;
}

static double poisson_draw(struct pairs *p, const struct wanted *w)
{
	double rate = w->parameter, most = w->most;
	double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, log_rate = log(rate);
	double inverse = 1.1239 + 1.1328 / (b - 3.4);

	distribution_begin(p, DRAWS_RESERVED);
	if (rate < 10)
		return poisson_by_products(p, rate);
	for (int i = 0; isfinite(rate) && i < MAX_TRIES; i++) {
		double u = distribution_uniform(p) - 0.5, v = distribution_uniform(p),
		       inside = 0.5 - fabs(u);
		double k = floor((2 * a / inside + b) * u + rate + 0.43);
		if (k > most)
			continue;
		if (inside >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
			return k;
		if (k < 0 || (inside < 0.013 && v > inside))
			continue;
		if (log(v * inverse / (a / (inside * inside) + b)) <=
		    -rate + k * log_rate - lgamma(k + 1))
			return k;
	}
	return isnan(rate) ? rate : rate > most ? most : rate;
}

/* Each of the draws before the one at which there is a success takes one of `count`. */
static double binomial_by_sums(struct pairs *p, double count, double chance)
{
	double sum = 0;

	for (int events = 0; events < MAX_TRIES; events++) {
		sum += ceil(log(distribution_uniform(p)) / log1p(-chance));
		if (sum > count)
			return events;
	}
	return NAN;
}

/* The logarithm of k! less Stirling's approximation of it. */
static double stirling_rest(double k)
{
	return lgamma(k + 1) - ((k + 0.5) * log(k + 1) - (k + 1) + 0.5 * log(2 * M_PI));
}

static double binomial_by_rejection(struct pairs *p, double count, double chance)
{
	double deviation = sqrt(count * chance * (1 - chance)), b = 1.15 + 2.53 * deviation;
	double a = -0.0873 + 0.0248 * b + 0.01 * chance, odds = chance / (1 - chance);
	double alpha = (2.83 + 5.1 / b) * deviation, mode = floor((count + 1) * chance);

	for (int i = 0; isfinite(count) && i < MAX_TRIES; i++) {
		double u = distribution_uniform(p) - 0.5, v = distribution_uniform(p),
		       inside = 0.5 - fabs(u);
		double k = floor((2 * a / inside + b) * u + count * chance + 0.5);
		if (inside >= 0.07 && v <= 0.92 - 4.2 / b)
			return k;
		if (k < 0 || k > count)
			continue;
		double most = (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1))) +
			      (count + 1) * log((count - mode + 1) / (count - k + 1)) +
			      (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) +
			      stirling_rest(mode) + stirling_rest(count - mode) - stirling_rest(k) -
			      stirling_rest(count - k);
		if (log(v * alpha / (a / (inside * inside) + b)) <= most)
			return k;
	}
	return NAN;
}

static double binomial_draw(struct pairs *p, const struct wanted *w)
{
	enum { FEW = 42 }; /* groups where few events are expected */
	double count = w->parameter, chance = w->second;
	bool likely = chance > 0.5;

	if (count <= 0 || chance <= 0)
		return 0;
	if (chance >= 1)
		return count;
	if (isnan(count) || isnan(chance))
		return NAN;
	double rare = !likely ? chance : w->single ? 1 - (float)chance : 1 - chance, k;
	if ((w->single ? (float)count * (float)rare : count * rare) >= 10) {
		distribution_begin(p, DRAWS_RESERVED);
		k = binomial_by_rejection(p, count, rare);
	} else {
		distribution_begin(p, FEW);
		k = binomial_by_sums(p, count, rare);
	}
	return likely ? count - k : k;
}

/* ---- tensors of them ---- */

/* The largest number of a type; 0: there are no draws of it. */
static double max_of_type(enum mu_dtype t)
{
	return t == MU_DOUBLE  ? 0x1.fffffffffffffp1023
	       : t == MU_FLOAT ? 0x1.fffffep127
	       : t == MU_HALF  ? 65504
	       : t == MU_INT64 ? 0x1p63
	       : t == MU_INT32 ? INT32_MAX
			       : 0;
}

struct draws {
	draw_fn *draw;
	struct philox from;
	const struct mu_tensor *parameters[2]; /* the second, or NULL */
	struct view view[2];                   /* of them as their common shape, … */
	int64_t n;                             /* of so many elements */
	struct mu_tensor *out;
	double most;
};

static double parameter_at(const struct draws *d, int i, int64_t which)
{
	const struct mu_tensor *t = d->parameters[i];
	double v = 0;

	if (t)
		convert(MU_DOUBLE, &v, t->dtype,
			(const char *)t->data +
			    (size_t)broadcast_offset(&d->view[i], which) * mu_dtype_size(t->dtype),
			1);
	return v;
}

static void distribution_part(void *arg, int64_t from, int64_t to)
{
	const struct draws *d = arg;
	int64_t n = d->n, samples = d->out->shape.count / n;
	enum mu_dtype to_type = d->out->dtype;

	for (int64_t i = from; i < to; i++) {
		int64_t which = i / samples, at = i % samples * n + which;
		struct pairs p = {.at = d->from, .place = (uint64_t)i};
		struct wanted w = {parameter_at(d, 0, which), parameter_at(d, 1, which), d->most,
				   d->parameters[0]->dtype == MU_FLOAT};
		double v = d->draw(&p, &w);
		convert(to_type, (char *)d->out->data + (size_t)at * mu_dtype_size(to_type),
			MU_DOUBLE, &v, 1);
	}
}

/* Input i has the parameters, and the one behind it if there are two; the result is of this shape,
 * which ends in theirs. */
static int distribution_fill(struct kernel_call *c, draw_fn *draw, unsigned i,
			     const struct mu_shape *of, enum mu_dtype t,
			     const struct mu_shape *shape, const struct philox *from,
			     struct mu_err *err)
{
	struct draws d = {
	    .draw = draw,
	    .from = *from,
	    .parameters = {kernel_in(c, i), draw == binomial_draw ? kernel_in(c, i + 1) : NULL},
	    .n = of->count,
	    .most = max_of_type(t)};

	for (int k = 0; k < 2 && d.parameters[k]; k++)
		broadcast_view(&d.view[k], &d.parameters[k]->shape, of);
	if (!max_of_type(d.parameters[0]->dtype) || !d.most)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for %s from %s",
			       c->node->op, mu_dtype_name(t),
			       mu_dtype_name(d.parameters[0]->dtype));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, shape, &d.out, err));
	if (shape->count)
		kernel_parallel(c, shape->count, 512, distribution_part, &d);
	return 0;
}

/* As many draws of each parameter as the shape of input 0 says. */
static int stateful(struct kernel_call *c, draw_fn *draw, enum mu_dtype t, struct mu_err *err)
{
	const struct mu_shape *of = &kernel_in(c, 1)->shape;
	struct mu_shape shape;
	struct philox from;
	int rc = kernel_in(c, 0)->shape.rank != 1
		     ? mu_invalid(err, "shape must be a vector, not %s",
				  mu_shape_str(&kernel_in(c, 0)->shape))
		     : args_shape(c, 0, &shape, err);

	MU_RETURN_IF_ERROR(rc);
	MU_RETURN_IF_ERROR(mu_shape_append(&shape, of->rank, of->dim, err));
	MU_RETURN_IF_ERROR(
	    node_draws(c->state, c, (uint64_t)shape.count * DRAWS_RESERVED, &from, err));
	return distribution_fill(c, draw, 1, of, t, &shape, &from, err);
}

static int ends_in(const struct mu_shape *shape, const struct mu_shape *of, struct mu_err *err)
{
	return mu_shape_part_eq(shape, shape->rank - of->rank, of, 0, of->rank)
		   ? 0
		   : mu_invalid(err, "Shape passed in must end with broadcasted shape: %s and %s",
				mu_shape_str(shape), mu_shape_str(of));
}

/* Input 0 is the whole shape, which ends in that of the parameters, input i. */
static int distribution_stateless(struct kernel_call *c, draw_fn *draw, unsigned i, enum mu_dtype t,
				  const struct philox *from, struct mu_err *err)
{
	const struct mu_shape *of = &kernel_in(c, i)->shape;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(args_shape(c, 0, &shape, err));
	MU_RETURN_IF_ERROR(ends_in(&shape, of, err));
	return distribution_fill(c, draw, i, of, t, &shape, from, err);
}

/* Counts and chances are inputs i and i + 1, the shape is input `s`; the draws come from the
 * variable that is input 0 or from the seeds of input 1. */
static int binomials(struct kernel_call *c, unsigned s, unsigned i, bool by_variable,
		     struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(c->node, "dtype", MU_INT64);
	struct mu_shape of, shape;
	struct philox from;

	MU_RETURN_IF_ERROR(
	    broadcast_shape(&kernel_in(c, i)->shape, &kernel_in(c, i + 1)->shape, &of, err));
	MU_RETURN_IF_ERROR(args_shape(c, s, &shape, err));
	MU_RETURN_IF_ERROR(ends_in(&shape, &of, err));
	uint64_t samples = of.count ? (uint64_t)(shape.count / of.count) : 0;
	uint64_t taken = (uint64_t)of.count * 200 * (samples + 3) / 4 * DRAWS_RESERVED;
	MU_RETURN_IF_ERROR(by_variable ? random_from_variable(c, taken, &from, err)
				       : stateless_draws(c, 1, &from, err));
	return distribution_fill(c, binomial_draw, i, &of, t, &shape, &from, err);
}

KERNEL_RUN(stateful_binomial, binomials(c, 2, 3, true, err))
KERNEL_RUN(stateless_binomial, binomials(c, 0, 2, false, err))
KERNEL_RUN(random_gamma, stateful(c, gamma_draw, kernel_in(c, 1)->dtype, err))
KERNEL_RUN(random_poisson,
	   stateful(c, poisson_draw, args_attr_type(c->node, "dtype", MU_INT64), err))

static int stateless_gamma(struct kernel_call *c, struct mu_err *err)
{
	struct philox from;

	MU_RETURN_IF_ERROR(stateless_draws(c, 1, &from, err));
	return distribution_stateless(c, gamma_draw, 2, kernel_in(c, 2)->dtype, &from, err);
}

static int stateless_gamma_by_key(struct kernel_call *c, struct mu_err *err)
{
	struct philox from;

	MU_RETURN_IF_ERROR(random_from_key(c, &from, err));
	return distribution_stateless(c, gamma_draw, 4, kernel_in(c, 4)->dtype, &from, err);
}

static int stateless_poisson(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(c->node, "dtype", MU_INT64);
	struct philox from;

	MU_RETURN_IF_ERROR(stateless_draws(c, 1, &from, err));
	return distribution_stateless(c, poisson_draw, 2, t, &from, err);
}

#define STATEFUL(op, fn)                                                                           \
	{                                                                                          \
		op, KERNEL_NO_FOLD, .run = fn, .prepare = node_state_prepare,                      \
				    .release = node_state_release                                  \
	}
static const struct kernel rows[] = {
    STATEFUL("RandomGamma", random_gamma),
    STATEFUL("RandomPoissonV2 RandomPoisson", random_poisson),
    {"StatefulRandomBinomial", .run = stateful_binomial},
    {"StatelessRandomBinomial", .run = stateless_binomial},
    {"StatelessRandomGammaV2", .run = stateless_gamma},
    {"StatelessRandomGammaV3", .run = stateless_gamma_by_key},
    {"StatelessRandomPoisson", .run = stateless_poisson},
};
KERNEL_TABLE(random_gamma_poisson_binomial, rows)
