/* SPDX-License-Identifier: Apache-2.0 */
/* Normal distributions between two bounds, each batch of numbers with its own parameters. The
 * numbers are those that TensorFlow draws in one thread. With several threads its numbers depend on
 * the number of threads. 16-bit floats are computed as wider floats, so a candidate may be accepted
 * that TensorFlow rejects. */
#include <math.h>

#include "lib/base/ints.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/random/draw.h"
#include "task/kernels/random/node_state.h"

/* SHARED_BATCH: the size of batches if all batches have the same parameters. */
enum { MAX_REJECTED = 1000, SHARED_BATCH = 100 };

struct bounded_normal {
	double mean, stddev, min, max;
};

static double rounded(enum mu_dtype t, double x)
{
	double narrow = 0; /* room for a number of type t */

	convert(t, &narrow, MU_DOUBLE, &x, 1);
	convert(MU_DOUBLE, &x, t, &narrow, 1);
	return x;
}

/* Sets n elements of the output: first, first + step, …  Candidates come from the normal
 * distribution if the bounds leave enough of it. Else they come from a uniform distribution if the
 * bounds are close, else from an exponential distribution (Robert, "Simulation of truncated normal
 * variables", 1995). */
static int draw_batch(struct mu_tensor *out, int64_t first, int64_t step, int64_t n,
		      struct bounded_normal d, struct philox *from, struct mu_err *err)
{
	if (!(d.stddev > 0 && d.min < d.max && (isfinite(d.min) || isfinite(d.max))))
		return mu_invalid(err, "Invalid parameters");
	if (d.min == -INFINITY || d.max < d.mean) /* mirrored: the lower bound is the finite one */
		d = (struct bounded_normal){d.mean, -d.stddev, d.max, d.min};
	const double low = (d.min - d.mean) / d.stddev, high = (d.max - d.mean) / d.stddev;
	const double root = sqrt(low * low + 4), rate = (low + root) / 2;
	const bool normal = (low < -1.3 && high >= 0) || (high > 1.3 && low <= 0);
	const bool uniform = !normal && high - low < exp(0.5 + low * (low - root) / 4) / rate;
	const struct distribution *candidates = normal ? &draw_normal : &draw_uniform;
	const size_t size = mu_dtype_size(out->dtype);

	for (int64_t k = 0, rejected = 0; k < n;) {
		double x[4], u[4];
		int count = draw_group(candidates, out->dtype, from, x);
		if (uniform)
			draw_group(&draw_uniform, out->dtype, from, u);
		for (int i = 0; i < count && k < n; i++) {
			double z = x[i];
			bool accepted;
			if (normal) {
				accepted = z >= low && z <= high;
			} else if (uniform) {
				z = rounded(out->dtype, z * (high - low) + low);
				accepted = u[i] <= exp(((low < 0 ? 0 : low * low) - z * z) / 2);
			} else {
				z = rounded(out->dtype, -log(z) / rate + low);
				const double off = low < rate ? rate - z : low - rate;
				accepted = x[++i] <= exp(-off * off / 2) && z < high;
			}
			if (accepted) {
				z = z * d.stddev + d.mean;
				convert(out->dtype,
					(char *)out->data + (size_t)(first + k++ * step) * size,
					MU_DOUBLE, &z, 1);
				rejected = 0;
			} else if (++rejected >= MAX_REJECTED) {
				return mu_fail(err, MU_INTERNAL,
					       "TruncatedNormal %s rejection sampler failed to "
					       "accept a sample.",
					       normal    ? "randn"
					       : uniform ? "uniform"
							 : "exponential distribution");
			}
		}
	}
	return 0;
}

/* The parameters are scalars, or vectors of one element for each row of the output. */
static int parameterized_truncated_normal(struct kernel_call *c, struct mu_err *err)
{
	static const char *const names[] = {"means", "stddevs", "minvals", "maxvals"};
	const struct mu_tensor *in[4];
	struct mu_tensor *out;
	struct mu_shape shape;
	struct philox from;
	enum mu_dtype t;

	MU_RETURN_IF_ERROR(draw_output_shape(c, 0, &t, &shape, err));
	if (t == MU_BFLOAT16)
		return args_no_kernel(c, t, err);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, &shape, &out, err));
	if (!shape.rank)
		return mu_invalid(err, "Shape tensor must not be empty");
	for (unsigned i = 0; i < 4; i++) {
		in[i] = kernel_in(c, 1 + i);
		if (in[i]->shape.rank > 1)
			return mu_invalid(err,
					  "Input %s should be a scalar or vector, got shape: %s",
					  names[i], mu_shape_str(&in[i]->shape));
	}
	int64_t batches = out->shape.dim[0], batch_size = batches ? out->shape.count / batches : 0;
	if (in[0]->shape.count == 1 && in[1]->shape.count == 1 && !in[2]->shape.rank &&
	    !in[3]->shape.rank) {
		batch_size = SHARED_BATCH;
		batches = (out->shape.count + batch_size - 1) / batch_size;
	}
	int64_t param_sets = 1;
	for (unsigned i = 0; i < 4; i++) {
		if (in[i]->shape.count != 1 && in[i]->shape.count != batches)
			return mu_invalid(
			    err, "Input %s should have length 1 or shape[0], got shape: %s",
			    names[i], mu_shape_str(&in[i]->shape));
		param_sets = in[i]->shape.count > param_sets ? in[i]->shape.count : param_sets;
	}
	if (!out->shape.count) /* only the parameters are checked */
		batches = mu_min(batches, param_sets);
	MU_RETURN_IF_ERROR(node_draws(
	    c->state, c, (uint64_t)batches * 2 * MAX_REJECTED * (uint64_t)(batch_size + 3) / 4,
	    &from, err));
	for (int64_t b = 0; b < batches; b++) {
		double p[4];
		for (unsigned i = 0; i < 4; i++)
			p[i] = convert_element(in[i], in[i]->shape.count == 1 ? 0 : b);
		int64_t left = out->shape.count - b * batch_size;
		MU_RETURN_IF_ERROR(
		    draw_batch(out, b * batch_size, 1, left < batch_size ? left : batch_size,
			       (struct bounded_normal){p[0], p[1], p[2], p[3]}, &from, err));
	}
	return 0;
}

/* The parameters broadcast to the last dimensions of the output; the others are samples. */
static int stateless_parameterized_truncated_normal(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape shape, batch = {.count = 1};
	const struct mu_tensor *in[4];
	struct mu_tensor *out;
	struct view v[4];
	struct philox from;
	enum mu_dtype t;

	MU_RETURN_IF_ERROR(stateless_draws(c, 1, &from, err));
	for (unsigned i = 0; i < 4; i++) {
		const struct mu_shape previous = batch;
		in[i] = kernel_in(c, 2 + i);
		MU_RETURN_IF_ERROR(broadcast_shape(&previous, &in[i]->shape, &batch, err));
	}
	for (unsigned i = 0; i < 4; i++)
		broadcast_view(&v[i], &in[i]->shape, &batch);
	MU_RETURN_IF_ERROR(draw_output_shape(c, 0, &t, &shape, err));
	const int lead = shape.rank - batch.rank;
	if (lead < 0 ||
	    memcmp(shape.dim + lead, batch.dim, (size_t)batch.rank * sizeof *batch.dim) != 0)
		return mu_invalid(err, "Shape passed in must end with broadcasted shape.");
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, &shape, &out, err));
	const int64_t samples = batch.count ? shape.count / batch.count : 0;
	for (int64_t b = 0; samples && b < batch.count; b++) {
		double p[4];
		for (unsigned i = 0; i < 4; i++)
			p[i] = convert_element(in[i], broadcast_offset(&v[i], b));
		MU_RETURN_IF_ERROR(draw_batch(out, b, batch.count, samples,
					      (struct bounded_normal){p[0], p[1], p[2], p[3]},
					      &from, err));
	}
	return 0;
}

static const struct kernel rows[] = {
    {"ParameterizedTruncatedNormal", KERNEL_EXPENSIVE | KERNEL_NO_FOLD,
     .run = parameterized_truncated_normal, .prepare = node_state_prepare,
     .release = node_state_release},
    {"StatelessParameterizedTruncatedNormal", KERNEL_EXPENSIVE,
     .run = stateless_parameterized_truncated_normal},
};
KERNEL_TABLE(random_truncated_normal, rows)
