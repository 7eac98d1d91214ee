/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors.  If the seeds are not both zero, the numbers are TensorFlow's: each run reserves
 * 256 draws per element. */
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/random/draw.h"
#include "task/kernels/random/node_state.h"

/* Reserves the random numbers of this run. */
static int random_reserve(struct kernel_call *c, int64_t elements, struct philox *out,
			  struct mu_err *err)
{
	return node_draws(c->state, c, (uint64_t)elements * DRAWS_RESERVED, out, err);
}

static int random_fill(struct kernel_call *c, const struct distribution *d, struct mu_err *err)
{
	struct mu_shape shape;
	struct philox base;
	enum mu_dtype t;

	MU_RETURN_IF_ERROR(draw_output_shape(c, 0, &t, &shape, err));
	MU_RETURN_IF_ERROR(random_reserve(c, shape.count, &base, err));
	return draw_reals(c, d, t, &shape, &base, err);
}

#define DRAW(name, distribution) KERNEL_RUN(name, random_fill(c, &(distribution), err))
DRAW(random_uniform, draw_uniform)
DRAW(random_normal, draw_normal)
DRAW(truncated_normal, draw_truncated)

static int random_uniform_int(struct kernel_call *c, struct mu_err *err)
{
	struct draw_range range;
	struct mu_shape shape;
	struct philox from;
	enum mu_dtype t;

	MU_RETURN_IF_ERROR(draw_output_shape(c, 0, &t, &shape, err));
	MU_RETURN_IF_ERROR(draw_range(c, 1, 2, shape.count, &range, err));
	MU_RETURN_IF_ERROR(random_reserve(c, shape.count, &from, err));
	return draw_ints(c, kernel_in(c, 1)->dtype, &shape, range, &from, err);
}

/* Shuffles the rows. TensorFlow draws one number for each row but the last. */
static int shuffle_rows(struct kernel_call *c, struct philox_stream *random, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t n = in->shape.rank && in->shape.count ? in->shape.dim[0] : 1;
	int64_t row = in->shape.count / n;
	MU_AUTO_FREE int64_t *order = malloc((size_t)n * sizeof *order);
	struct mu_tensor *out;

	if (!order)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "out of memory to shuffle %lld rows",
			       (long long)n);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &in->shape, &out, err));
	for (int64_t i = 0; i < n; i++)
		order[i] = i;
	for (int64_t i = 0; i < n - 1; i++) {
		int64_t k = i + philox_32(random) % (n - i);
		int64_t swap = order[i];
		order[i] = order[k];
		order[k] = swap;
	}
	for (int64_t i = 0; i < n; i++)
		elems_copy(in->dtype, out->data, i * row, in->data, order[i] * row, row);
	return 0;
}

static int random_shuffle(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *s = &kernel_in(c, 0)->shape;
	int64_t n = s->rank && s->count ? s->dim[0] : 1;
	struct philox_stream random = {0};

	MU_RETURN_IF_ERROR(node_draws(c->state, c, (uint64_t)(n + 2) / 4, &random.from, err));
	return shuffle_rows(c, &random, err);
}

static int stateless_shuffle(struct kernel_call *c, struct mu_err *err)
{
	struct philox_stream random = {0};

	MU_RETURN_IF_ERROR(random_from_key(c, &random.from, err));
	return shuffle_rows(c, &random, err);
}

#define RANDOM(op, fn)                                                                             \
	{                                                                                          \
		op, KERNEL_NO_FOLD, .run = fn, .prepare = node_state_prepare,                      \
				    .release = node_state_release                                  \
	}
static const struct kernel rows[] = {
    RANDOM("RandomUniform", random_uniform),     RANDOM("RandomStandardNormal", random_normal),
    RANDOM("TruncatedNormal", truncated_normal), RANDOM("RandomUniformInt", random_uniform_int),
    RANDOM("RandomShuffle", random_shuffle),     {"StatelessShuffle", .run = stateless_shuffle},
};
KERNEL_TABLE(random_random, rows)
