/* SPDX-License-Identifier: Apache-2.0 */
/* Max and average pooling over windows of differing sizes, and their gradients (Graham,
 * "Fractional max-pooling", 2014).
 *
 * A pooling sequence holds the first index of each window along an axis, and the end of the last
 * window.  It comes from TensorFlow's generator, so that a seed gives the same windows. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/nn/pool.h"
#include "task/kernels/random/node_state.h"

enum { RANK = 4, CHANNELS = 3 };

/* ---- pooling sequences ---- */

static uint64_t sequence_groups(int64_t windows, bool pseudo_random)
{
	return pseudo_random ? 1 : ((uint64_t)windows + 3) / 4;
}

/* Window i begins at ceil(alpha * (i + u)) - 1 for one random u. */
static void sequence_pseudo_random(const struct window_axis *x, const struct philox *from,
				   int64_t *bounds)
{
	struct philox_stream random = {.from = *from};
	const double alpha = (double)x->in / (double)x->out;
	const int64_t size = x->in / x->out;
	const double inner = (double)(size + 2) / alpha - 1;
	const double last = (double)(x->in + 1 - size) / alpha - (double)(x->out - 1);
	const double u = philox_unit(&random) * fmin(inner, last);

	bounds[0] = 0;
	for (int64_t i = 1; i < x->out; i++)
		bounds[i] = (int64_t)ceil(alpha * ((double)i + u)) - 1;
	bounds[x->out] = x->in;
}

/* Windows of two sizes, in random order. */
static void sequence_random(const struct window_axis *x, const struct philox *from, int64_t *bounds)
{
	struct philox_stream random = {.from = *from};
	int64_t *size = bounds + 1;

	for (int64_t i = 0; i < x->out; i++)
		size[i] = x->in / x->out + (i < x->in % x->out);
	for (int64_t i = 0; i + 1 < x->out; i++) {
		int64_t other = i + (int64_t)(philox_32(&random) % (uint32_t)(x->out - i));
		int64_t swapped = size[i];
		size[i] = size[other];
		size[other] = swapped;
	}
	bounds[0] = 0;
	for (int64_t i = 0; i < x->out; i++)
		bounds[i + 1] += bounds[i];
}

/* Creates output i: the pooling sequence of axis x. */
static int make_sequence(struct kernel_call *c, unsigned i, const struct window_axis *x,
			 bool pseudo_random, struct philox *draws, const int64_t **bounds,
			 struct mu_err *err)
{
	struct mu_tensor *t;

	MU_RETURN_IF_ERROR(kernel_out_vec(c, i, MU_INT64, x->out + 1, &t, err));
	(pseudo_random ? sequence_pseudo_random : sequence_random)(x, draws, t->data);
	philox_skip(draws, sequence_groups(x->out, pseudo_random));
	*bounds = t->data;
	return 0;
}

/* ---- pools ---- */

static int check_attributes(const struct mu_node *n, bool average, struct mu_err *err)
{
	const struct mu_attr *ratio = mu_node_attr(n, "pooling_ratio");

	if (!ratio || ratio->n != RANK)
		return mu_invalid(err, "pooling_ratio field must specify 4 dimensions");
	for (int i = 0; i < RANK; i++)
		if (!(ratio->fs[i] >= 1))
			return mu_invalid(err, "pooling_ratio cannot be smaller than 1, got: %g",
					  (double)ratio->fs[i]);
	if (ratio->fs[0] != 1 || ratio->fs[CHANNELS] != 1)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "Fractional %s pooling is not yet supported on the batch nor "
			       "channel dimension.",
			       average ? "average" : "max");
	if (!args_attr_bool(n, "deterministic", false) &&
	    (args_attr_int(n, "seed", 0) || args_attr_int(n, "seed2", 0)))
		return mu_invalid(err,
				  "Both seed and seed2 should be 0 if deterministic is false.");
	return 0;
}

/* A pool over input 0 by the attribute pooling_ratio. */
static int pool_of_ratio(const struct kernel_call *c, struct pool *p, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const float *ratio = mu_node_attr(c->node, "pooling_ratio")->fs;
	struct window_axis axes[RANK];

	if (in->shape.rank != RANK)
		return mu_invalid(err, "tensor_in must be 4-dimensional");
	for (int i = 0; i < RANK; i++) {
		const int64_t n = in->shape.dim[i];
		if (n > INT_MAX)
			return mu_invalid(err, "tensor_in is too large: %s",
					  mu_shape_str(&in->shape));
		if ((float)n < ratio[i])
			return mu_invalid(err,
					  "Pooling ratio is higher than input dimension size for "
					  "dimension %d. Input dim size: %lld pooling ratio: %g",
					  i, (long long)n, (double)ratio[i]);
		axes[i] =
		    (struct window_axis){.in = n, .out = (int64_t)floorf((float)n / ratio[i])};
	}
	*p = (struct pool){.type = in->dtype,
			   .size = mu_dtype_size(in->dtype),
			   .batch = in->shape.dim[0],
			   .channels = in->shape.dim[CHANNELS],
			   .plane = {1, 1, 1, 1, 1, 0},
			   .row = axes[1],
			   .column = axes[2],
			   .overlapping = args_attr_bool(c->node, "overlapping", false)};
	return 0;
}

static int fractional_pool(struct kernel_call *c, bool average, struct mu_err *err)
{
	const bool pseudo_random = args_attr_bool(c->node, "pseudo_random", false);
	const bool deterministic = args_attr_bool(c->node, "deterministic", false);
	struct mu_shape shape;
	struct philox draws;
	struct pool p;

	MU_RETURN_IF_ERROR(check_attributes(c->node, average, err));
	MU_RETURN_IF_ERROR(pool_of_ratio(c, &p, err));
	p.average = average;
	uint64_t groups = sequence_groups(p.row.out, pseudo_random) +
			  sequence_groups(p.column.out, pseudo_random);
	/* Deterministic windows are the same in each run. */
	MU_RETURN_IF_ERROR(node_draws(c->state, c, deterministic ? 0 : groups, &draws, err));
	MU_RETURN_IF_ERROR(make_sequence(c, 1, &p.row, pseudo_random, &draws, &p.row_bounds, err));
	MU_RETURN_IF_ERROR(
	    make_sequence(c, 2, &p.column, pseudo_random, &draws, &p.column_bounds, err));
	MU_RETURN_IF_ERROR(mu_shape_set(
	    &shape, RANK, (int64_t[]){p.batch, p.row.out, p.column.out, p.channels}, err));
	return pool_run(c, &p, &shape, err);
}

/* ---- gradients ---- */

/* A pool from a tensor of shape `in` to one of shape `out`, with the sequences in inputs
 * sequences_at and sequences_at + 1, which the caller has checked. */
static struct pool pool_of_sequences(const struct kernel_call *c, enum mu_dtype type,
				     const struct mu_shape *in, const struct mu_shape *out,
				     unsigned sequences_at)
{
	return (struct pool){.type = type,
			     .size = mu_dtype_size(type),
			     .batch = in->dim[0],
			     .channels = in->dim[CHANNELS],
			     .plane = {1, 1, 1, 1, 1, 0},
			     .row = {.in = in->dim[1], .out = out->dim[1]},
			     .column = {.in = in->dim[2], .out = out->dim[2]},
			     .row_bounds = kernel_in(c, sequences_at)->data,
			     .column_bounds = kernel_in(c, sequences_at + 1)->data,
			     .overlapping = args_attr_bool(c->node, "overlapping", false)};
}

/* The window of position i along an axis of `in` elements has no negative bound. */
static bool is_window_valid(const struct mu_tensor *bounds, int64_t i, int64_t in, bool overlapping)
{
	const int64_t *b = MU_DATA(int64_t, bounds);
	int64_t end = b[i + 1] < in ? b[i + 1] : in;

	return b[i] >= 0 && end - (overlapping ? 0 : 1) >= 0;
}

static int check_sequence(const struct kernel_call *c, unsigned at, int64_t windows, int64_t in,
			  const char *name, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, at);
	const bool overlapping = args_attr_bool(c->node, "overlapping", false);

	for (int64_t i = 0; i < windows; i++) {
		if (is_window_valid(t, i, in, overlapping))
			continue;
		MU_AUTO_BUF list = {0};
		int64_t n = t->shape.count < 16 ? t->shape.count : 16;
		args_put_numbers(&list, MU_DATA(int64_t, t), (int)n, " ");
		return mu_invalid(err, "%s sequence tensor values must not be negative, got %.*s",
				  name, (int)list.len, list.data);
	}
	return 0;
}

static int check_max_grad(const struct kernel_call *c, struct mu_err *err)
{
	static const char *const names[] = {"orig_input", "orig_output", "out_backprop",
					    "row_pooling_sequence", "col_pooling_sequence"};
	const struct mu_shape *in = &kernel_in(c, 0)->shape, *out = &kernel_in(c, 1)->shape;

	if (out->rank != RANK)
		return mu_invalid(err, "%s should be a tensor of rank 4, got shape %s", names[1],
				  mu_shape_str(out));
	for (unsigned i = 0; i < 2; i++)
		if (!kernel_in(c, i)->shape.count)
			return mu_invalid(err, "%s must not be empty, got shape %s", names[i],
					  mu_shape_str(&kernel_in(c, i)->shape));
	for (unsigned i = 3; i < 5; i++)
		if (kernel_in(c, i)->shape.rank != 1)
			return mu_invalid(err, "%s must be a vector, received shape %s", names[i],
					  mu_shape_str(&kernel_in(c, i)->shape));
	if (out->count != kernel_in(c, 2)->shape.count)
		return mu_invalid(err, "orig_output is %s, out_backprop %s", mu_shape_str(out),
				  mu_shape_str(&kernel_in(c, 2)->shape));
	for (unsigned i = 0; i < 2; i++)
		if (kernel_in(c, 3 + i)->shape.count != out->dim[1 + i] + 1)
			return mu_invalid(err, "tensor_out_dup is not the same as tensor_out");
	if (in->dim[0] != out->dim[0] || in->dim[CHANNELS] != out->dim[CHANNELS])
		return mu_invalid(err, "tensor_out_dup is not the same as tensor_out");
	MU_RETURN_IF_ERROR(check_sequence(c, 3, out->dim[1], in->dim[1], "Row", err));
	return check_sequence(c, 4, out->dim[2], in->dim[2], "Column", err);
}

/* Fails unless input 1 is the output of the pool for input 0. */
static int check_pooled(struct kernel_call *c, struct pool p, struct mu_err *err)
{
	const struct mu_tensor *top = kernel_in(c, 1);
	const size_t bytes = (size_t)top->shape.count * p.size;
	MU_AUTO_FREE char *pooled = malloc(bytes);

	if (bytes && !pooled)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "out of memory to pool %s",
			       mu_shape_str(&kernel_in(c, 0)->shape));
	if (!bytes)
		return 0;
	p.in = kernel_in(c, 0)->data;
	p.out = pooled;
	int64_t lines = p.batch * p.row.out;
	kernel_parallel(c, lines, 1 + 16384 * lines / (top->shape.count + 1), pool_lines, &p);
	if (memcmp(pooled, top->data, bytes) != 0)
		return mu_invalid(err, "tensor_out_dup is not the same as tensor_out");
	return 0;
}

static int fractional_max_pool_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	MU_RETURN_IF_ERROR(check_max_grad(c, err));
	struct pool p = pool_of_sequences(c, in->dtype, &in->shape, &kernel_in(c, 1)->shape, 3);
	MU_RETURN_IF_ERROR(check_pooled(c, p, err));
	p.in = in->data;
	return pool_run_backward(c, &p, &in->shape, 2, err);
}

static int check_average_grad(const struct kernel_call *c, struct mu_shape *in, struct mu_err *err)
{
	static const char *const dims[] = {"Batch", "Rows", "Columns", "Depth"};
	static const char *const names[] = {"row_seq_tensor", "col_seq_tensor"};
	const struct mu_shape *out = &kernel_in(c, 1)->shape, *in_sizes = &kernel_in(c, 0)->shape;

	if (in_sizes->rank != 1 || in_sizes->count != RANK)
		return mu_invalid(
		    err, "original input tensor shape must be1-dimensional and 4 elements");
	if (out->rank != RANK)
		return mu_invalid(err, "out_backprop must be 4-dimensional");
	for (int i = 0; i < RANK; i++)
		if (!out->dim[i])
			return mu_invalid(err,
					  "out_backprop must be positive for all dimension, got:0");
	for (unsigned i = 0; i < 2; i++)
		if (kernel_in(c, 2 + i)->shape.count <= out->dim[1 + i])
			return mu_invalid(
			    err,
			    "Given out_backprop shape %s, %s must have at least %lld elements, "
			    "but got %lld",
			    mu_shape_str(out), names[i], (long long)out->dim[1 + i] + 1,
			    (long long)kernel_in(c, 2 + i)->shape.count);
	for (int i = 0; i < RANK; i++)
		if (!MU_DATA(int64_t, kernel_in(c, 0))[i])
			return mu_invalid(err, "%s dimension of input must not be 0", dims[i]);
	MU_RETURN_IF_ERROR(args_shape(c, 0, in, err));
	if (out->count && (in->dim[0] != out->dim[0] || in->dim[CHANNELS] != out->dim[CHANNELS]))
		return mu_invalid(err, "out_backprop is %s for an input of %s", mu_shape_str(out),
				  mu_shape_str(in));
	MU_RETURN_IF_ERROR(check_sequence(c, 2, out->dim[1], in->dim[1], "Row", err));
	return check_sequence(c, 3, out->dim[2], in->dim[2], "Column", err);
}

/* As in TensorFlow, sums of all types are sums of doubles. */
static int fractional_avg_pool_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, 1);
	MU_AUTO_TENSOR wide = {0};
	MU_AUTO_TENSOR sums = {0};
	struct mu_tensor *out;
	struct mu_shape in;

	MU_RETURN_IF_ERROR(check_average_grad(c, &in, err));
	struct pool p = pool_of_sequences(c, MU_DOUBLE, &in, &grad->shape, 2);
	p.average = true;
	MU_RETURN_IF_ERROR(mu_tensor_new(&wide, MU_DOUBLE, &grad->shape, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&sums, MU_DOUBLE, &in, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, grad->dtype, &in, &out, err));
	convert(MU_DOUBLE, wide.data, grad->dtype, grad->data, grad->shape.count);
	p.grad = wide.data;
	p.out = sums.data;
	kernel_parallel(c, p.batch, 1 + 16384 * p.batch / in.count, pool_images_backward, &p);
	convert(grad->dtype, out->data, MU_DOUBLE, sums.data, in.count);
	return 0;
}

KERNEL_RUN(fractional_max_pool, fractional_pool(c, false, err))
KERNEL_RUN(fractional_avg_pool, fractional_pool(c, true, err))

#define POOL(op, fn)                                                                               \
	{                                                                                          \
		op, KERNEL_EXPENSIVE | KERNEL_NO_FOLD, .run = fn, .prepare = node_state_prepare,   \
						       .release = node_state_release               \
	}
static const struct kernel rows[] = {
    POOL("FractionalMaxPool", fractional_max_pool),
    POOL("FractionalAvgPool", fractional_avg_pool),
    {"FractionalMaxPoolGrad", KERNEL_EXPENSIVE, .run = fractional_max_pool_grad},
    {"FractionalAvgPoolGrad", KERNEL_EXPENSIVE, .run = fractional_avg_pool_grad},
};
KERNEL_TABLE(nn_fractional_pool, rows)
