/* SPDX-License-Identifier: Apache-2.0 */
/* Draws of classes; each row of logits is a distribution. The numbers are TensorFlow's for the same
 * seeds when TensorFlow draws all rows in one thread. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/random/draw.h"
#include "task/kernels/random/node_state.h"

static int multinomial_check(const struct kernel_call *c, enum mu_dtype *type, int64_t *samples,
			     struct mu_err *err)
{
	const struct mu_tensor *logits = kernel_in(c, 0);

	*type = args_attr_type(c->node, "output_dtype", MU_INT64);
	MU_RETURN_IF_ERROR(args_int(c, 1, samples, err));
	if (*samples < 0)
		return mu_invalid(err, "num_samples should be non-negative, got %lld",
				  (long long)*samples);
	if (logits->shape.dim[1] <= 0)
		return mu_invalid(err, "num_classes should be positive, got 0");
	return 0;
}

/* Running sums of e^(x - largest); elements that are not finite add 0. */
static double running_sums(double *x, int64_t n)
{
	double largest = -INFINITY, sum = 0;

	for (int64_t i = 0; i < n; i++)
		if (isfinite(x[i]) && x[i] > largest)
			largest = x[i];
	for (int64_t i = 0; i < n; i++) {
		sum += isfinite(x[i]) ? exp(x[i] - largest) : 0;
		x[i] = sum;
	}
	return sum;
}

/* The index of the first sum above x; n: none. */
static int64_t first_above(const double *sums, int64_t n, double x)
{
	int64_t low = 0, high = n;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (sums[middle] > x)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int multinomial_draw_gpu(struct kernel_call *c, struct gpu *g, const struct philox *from,
				const struct mu_tensor *sums, const struct mu_tensor *out,
				int64_t samples, struct mu_err *err)
{
	const struct mu_tensor *logits = kernel_in(c, 0);
	struct classes_args a = {.out = gpu_address(out),
				 .in = gpu_address(logits),
				 .sums = gpu_address(sums),
				 .rows = logits->shape.dim[0],
				 .n = logits->shape.dim[1],
				 .samples = samples,
				 .wide = out->dtype == MU_INT64};

	memcpy(a.draws.counter, from->counter, sizeof a.draws.counter);
	memcpy(a.draws.key, from->key, sizeof a.draws.key);
	MU_RETURN_IF_ERROR(gpu_run_type(g, "class_sums", logits->dtype, a.rows, &a, err));
	return gpu_run(g, "class_draw", out->shape.count, &a, err);
}

static int multinomial_draw(struct kernel_call *c, const struct philox *from, enum mu_dtype type,
			    int64_t samples, struct mu_err *err)
{
	const struct mu_tensor *logits = kernel_in(c, 0);
	int64_t rows = logits->shape.dim[0], n = logits->shape.dim[1];
	struct philox_stream draws = {.from = *from};
	struct mu_shape shape, row = mu_shape_vec(n);
	struct gpu *g = gpu_of_tensor(logits);
	MU_AUTO_TENSOR scratch = {0};
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 2, (int64_t[]){rows, samples}, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, type, &shape, &out, err));
	MU_RETURN_IF_ERROR(move_scratch(c, MU_DOUBLE, g ? &logits->shape : &row, &scratch, err));
	if (g)
		return multinomial_draw_gpu(c, g, from, &scratch, out, samples, err);
	double *sums = scratch.data;
	for (int64_t r = 0; r < rows; r++) {
		convert(MU_DOUBLE, sums, logits->dtype,
			(const char *)logits->data + (size_t)(r * n) * mu_dtype_size(logits->dtype),
			n);
		double total = running_sums(sums, n);
		for (int64_t i = r * samples; i < (r + 1) * samples; i++) {
			int64_t class = first_above(sums, n, philox_unit(&draws) * total);
			mu_tensor_set_int(out, i, class);
		}
	}
	return 0;
}

static int multinomial(struct kernel_call *c, struct mu_err *err)
{
	struct philox from;
	enum mu_dtype type;
	int64_t samples;

	MU_RETURN_IF_ERROR(multinomial_check(c, &type, &samples, err));
	uint64_t rounded = ((uint64_t)samples + 3) / 4 * 4; /* two numbers a sample */
	uint64_t elements = (uint64_t)kernel_in(c, 0)->shape.dim[0] * rounded * 2;
	if (samples && elements)
		MU_RETURN_IF_ERROR(node_draws(c->state, c, elements * DRAWS_RESERVED, &from, err));
	return multinomial_draw(c, &from, type, samples, err);
}

static int stateless(struct kernel_call *c, struct mu_err *err)
{
	struct philox from;
	enum mu_dtype type;
	int64_t samples;

	MU_RETURN_IF_ERROR(multinomial_check(c, &type, &samples, err));
	MU_RETURN_IF_ERROR(stateless_draws(c, 2, &from, err));
	return multinomial_draw(c, &from, type, samples, err);
}

static const struct kernel rows[] = {
    {"Multinomial", KERNEL_NO_FOLD, .run = multinomial, .prepare = node_state_prepare,
     .release = node_state_release},
    {"StatelessMultinomial", .run = stateless},
};
KERNEL_TABLE(random_multinomial, rows)
