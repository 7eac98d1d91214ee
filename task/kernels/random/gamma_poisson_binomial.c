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

/* After this many rejections the parameter is assumed to have no samples: the draw is NaN. */
enum { MAX_TRIES = 1000 };

/* The generator draws numbers in pairs; the second number of a pair is used first. */
struct pairs {
	struct philox at;
	uint64_t element;
	double uniform[2], normal[2];
	int uniforms, normals;
};

/* Moves to the first group of this element; each element has `groups` groups. */
static void distribution_begin(struct pairs *p, uint64_t groups)
{
	philox_skip(&p->at, p->element * groups);
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

/* is_float: the parameters and the constants computed from them are floats. */
struct draw_params {
	double parameter, second, max_value; /* max_value: of the output type */
	bool is_float;
};
typedef double draw_fn(struct pairs *p, const struct draw_params *w);

static double gamma_draw(struct pairs *p, const struct draw_params *w)
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

static double poisson_draw(struct pairs *p, const struct draw_params *w)
{
	double rate = w->parameter, max_value = w->max_value;
	double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, log_rate = log(rate);
	double inverse = 1.1239 + 1.1328 / (b - 3.4);

	distribution_begin(p, DRAWS_RESERVED);
	if (rate < 10)
		return poisson_by_products(p, rate);
	for (int i = 0; isfinite(rate) && i < MAX_TRIES; i++) {
		double u = distribution_uniform(p) - 0.5, v = distribution_uniform(p),
		       us = 0.5 - fabs(u);
		double k = floor((2 * a / us + b) * u + rate + 0.43);
		if (k > max_value)
			continue;
		if (us >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
			return k;
		if (k < 0 || (us < 0.013 && v > us))
			continue;
		if (log(v * inverse / (a / (us * us) + b)) <= -rate + k * log_rate - lgamma(k + 1))
			return k;
	}
	return isnan(rate) ? rate : rate > max_value ? max_value : rate;
}

/* Sums the geometric distances between successes until the sum exceeds `count`. */
static double binomial_by_sums(struct pairs *p, double count, double probability)
{
	double sum = 0;

	for (int events = 0; events < MAX_TRIES; events++) {
		sum += ceil(log(distribution_uniform(p)) / log1p(-probability));
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

static double binomial_by_rejection(struct pairs *p, double count, double probability)
{
	double deviation = sqrt(count * probability * (1 - probability)),
	       b = 1.15 + 2.53 * deviation;
	double a = -0.0873 + 0.0248 * b + 0.01 * probability,
	       odds = probability / (1 - probability);
	double alpha = (2.83 + 5.1 / b) * deviation, mode = floor((count + 1) * probability);

	for (int i = 0; isfinite(count) && i < MAX_TRIES; i++) {
		double u = distribution_uniform(p) - 0.5, v = distribution_uniform(p),
		       us = 0.5 - fabs(u);
		double k = floor((2 * a / us + b) * u + count * probability + 0.5);
		if (us >= 0.07 && v <= 0.92 - 4.2 / b)
			return k;
		if (k < 0 || k > count)
			continue;
		double bound = (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1))) +
			       (count + 1) * log((count - mode + 1) / (count - k + 1)) +
			       (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) +
			       stirling_rest(mode) + stirling_rest(count - mode) -
			       stirling_rest(k) - stirling_rest(count - k);
		if (log(v * alpha / (a / (us * us) + b)) <= bound)
			return k;
	}
	return NAN;
}

static double binomial_draw(struct pairs *p, const struct draw_params *w)
{
	enum { FEW = 42 }; /* groups of an element if few events are expected */
	double count = w->parameter, probability = w->second;
	bool is_mirrored = probability > 0.5;

	if (count <= 0 || probability <= 0)
		return 0;
	if (probability >= 1)
		return count;
	if (isnan(count) || isnan(probability))
		return NAN;
	double small_p = !is_mirrored  ? probability
			 : w->is_float ? 1 - (float)probability
				       : 1 - probability,
	       k;
	if ((w->is_float ? (float)count * (float)small_p : count * small_p) >= 10) {
		distribution_begin(p, DRAWS_RESERVED);
		k = binomial_by_rejection(p, count, small_p);
	} else {
		distribution_begin(p, FEW);
		k = binomial_by_sums(p, count, small_p);
	}
	return is_mirrored ? count - k : k;
}

/* ---- output tensors ---- */

/* The largest value of a type; 0 if the type is not supported. */
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
	const struct mu_tensor *parameters[2]; /* the second may be NULL */
	struct view view[2];                   /* of the parameters, broadcast */
	int64_t n;                             /* elements of the broadcast shape */
	struct mu_tensor *out;
	double max_value;
};

static double parameter_at(const struct draws *d, int i, int64_t element)
{
	const struct mu_tensor *t = d->parameters[i];
	double v = 0;

	if (t)
		convert(MU_DOUBLE, &v, t->dtype,
			(const char *)t->data + (size_t)broadcast_offset(&d->view[i], element) *
						    mu_dtype_size(t->dtype),
			1);
	return v;
}

static void distribution_part(void *arg, int64_t from, int64_t to)
{
	const struct draws *d = arg;
	int64_t n = d->n, samples = d->out->shape.count / n;
	enum mu_dtype to_type = d->out->dtype;

	for (int64_t i = from; i < to; i++) {
		int64_t element = i / samples, at = i % samples * n + element;
		struct pairs p = {.at = d->from, .element = (uint64_t)i};
		struct draw_params w = {parameter_at(d, 0, element), parameter_at(d, 1, element),
					d->max_value, d->parameters[0]->dtype == MU_FLOAT};
		double v = d->draw(&p, &w);
		convert(to_type, (char *)d->out->data + (size_t)at * mu_dtype_size(to_type),
			MU_DOUBLE, &v, 1);
	}
}

/* Fills output 0, of shape `shape`.  Input i has the parameters, input i + 1 the second parameters
 * of binomial.  `param_shape` is their broadcast shape; `shape` ends in it. */
static int distribution_fill(struct kernel_call *c, draw_fn *draw, unsigned i,
			     const struct mu_shape *param_shape, enum mu_dtype t,
			     const struct mu_shape *shape, const struct philox *from,
			     struct mu_err *err)
{
	struct draws d = {
	    .draw = draw,
	    .from = *from,
	    .parameters = {kernel_in(c, i), draw == binomial_draw ? kernel_in(c, i + 1) : NULL},
	    .n = param_shape->count,
	    .max_value = max_of_type(t)};

	for (int k = 0; k < 2 && d.parameters[k]; k++)
		broadcast_view(&d.view[k], &d.parameters[k]->shape, param_shape);
	if (!max_of_type(d.parameters[0]->dtype) || !d.max_value)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for %s from %s",
			       c->node->op, mu_dtype_name(t),
			       mu_dtype_name(d.parameters[0]->dtype));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, shape, &d.out, err));
	if (shape->count)
		kernel_parallel(c, shape->count, 512, distribution_part, &d);
	return 0;
}

/* Draws a tensor of the shape in input 0 for each parameter. */
static int stateful(struct kernel_call *c, draw_fn *draw, enum mu_dtype t, struct mu_err *err)
{
	const struct mu_shape *param_shape = &kernel_in(c, 1)->shape;
	struct mu_shape shape;
	struct philox from;
	int rc = kernel_in(c, 0)->shape.rank != 1
		     ? mu_invalid(err, "shape must be a vector, not %s",
				  mu_shape_str(&kernel_in(c, 0)->shape))
		     : args_shape(c, 0, &shape, err);

	MU_RETURN_IF_ERROR(rc);
	MU_RETURN_IF_ERROR(mu_shape_append(&shape, param_shape->rank, param_shape->dim, err));
	MU_RETURN_IF_ERROR(
	    node_draws(c->state, c, (uint64_t)shape.count * DRAWS_RESERVED, &from, err));
	return distribution_fill(c, draw, 1, param_shape, t, &shape, &from, err);
}

static int check_shape_suffix(const struct mu_shape *shape, const struct mu_shape *suffix,
			      struct mu_err *err)
{
	return mu_shape_part_eq(shape, shape->rank - suffix->rank, suffix, 0, suffix->rank)
		   ? 0
		   : mu_invalid(err, "Shape passed in must end with broadcasted shape: %s and %s",
				mu_shape_str(shape), mu_shape_str(suffix));
}

/* Input 0 is the output shape; it ends in the shape of the parameters, input i. */
static int distribution_stateless(struct kernel_call *c, draw_fn *draw, unsigned i, enum mu_dtype t,
				  const struct philox *from, struct mu_err *err)
{
	const struct mu_shape *param_shape = &kernel_in(c, i)->shape;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(args_shape(c, 0, &shape, err));
	MU_RETURN_IF_ERROR(check_shape_suffix(&shape, param_shape, err));
	return distribution_fill(c, draw, i, param_shape, t, &shape, from, err);
}

/* Inputs i and i + 1 are counts and probabilities; input `s` is the shape.  The generator is the
 * variable in input 0 or comes from the seeds in input 1. */
static int binomials(struct kernel_call *c, unsigned s, unsigned i, bool by_variable,
		     struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(c->node, "dtype", MU_INT64);
	struct mu_shape param_shape, shape;
	struct philox from;

	MU_RETURN_IF_ERROR(broadcast_shape(&kernel_in(c, i)->shape, &kernel_in(c, i + 1)->shape,
					   &param_shape, err));
	MU_RETURN_IF_ERROR(args_shape(c, s, &shape, err));
	MU_RETURN_IF_ERROR(check_shape_suffix(&shape, &param_shape, err));
	uint64_t samples = param_shape.count ? (uint64_t)(shape.count / param_shape.count) : 0;
	uint64_t groups = (uint64_t)param_shape.count * 200 * (samples + 3) / 4 * DRAWS_RESERVED;
	MU_RETURN_IF_ERROR(by_variable ? random_from_variable(c, groups, &from, err)
				       : stateless_draws(c, 1, &from, err));
	return distribution_fill(c, binomial_draw, i, &param_shape, t, &shape, &from, err);
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
