/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors that depend only on their inputs. The first family takes two seeds. The second
 * takes a key and counter, as StatelessRandomGetKeyCounter computes them, and an algorithm number.
 * Both draw the same numbers. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/random/draw.h"
#include "task/kernels/random/node_state.h"

static uint64_t pair(const uint32_t x[2])
{
	return x[0] | (uint64_t)x[1] << 32;
}

static int put_words(struct kernel_call *c, unsigned i, int n, const uint64_t *words,
		     struct mu_err *err)
{
	struct mu_shape shape = {.rank = 1, .dim = {n}, .count = n};
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, i, MU_UINT64, &shape, &out, err));
	for (int k = 0; k < n; k++)
		MU_DATA(uint64_t, out)[k] = words[k];
	return 0;
}

static int put_algorithm(struct kernel_call *c, unsigned i, struct mu_err *err)
{
	struct mu_shape scalar = {.count = 1};
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, i, MU_INT32, &scalar, &out, err));
	*MU_DATA(int32_t, out) = RANDOM_PHILOX;
	return 0;
}

static int get_key_counter(struct kernel_call *c, struct mu_err *err)
{
	struct philox p;

	MU_RETURN_IF_ERROR(stateless_draws(c, 0, &p, err));
	uint64_t key = pair(p.key), counter[2] = {pair(p.counter), pair(p.counter + 2)};
	MU_RETURN_IF_ERROR(put_words(c, 0, 1, &key, err));
	return put_words(c, 1, 2, counter, err);
}

KERNEL_RUN(get_algorithm, put_algorithm(c, 0, err))

static int get_key_counter_algorithm(struct kernel_call *c, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(get_key_counter(c, err));
	return put_algorithm(c, 2, err);
}

/* ---- generator states ---- */

static int from_seeds(const struct kernel_call *c, struct philox *out, struct mu_err *err)
{
	return stateless_draws(c, 1, out, err);
}

static int check_algorithm(const struct kernel_call *c, struct mu_err *err)
{
	int64_t algorithm;

	MU_RETURN_IF_ERROR(args_int(c, 3, &algorithm, err));
	if (algorithm == RANDOM_THREEFRY)
		return mu_invalid(err,
				  "alg is %d, ThreeFry, which no device here draws by: take 1, "
				  "Philox, or 3, whatever the device has",
				  RANDOM_THREEFRY);
	if (algorithm != RANDOM_PHILOX && algorithm != RANDOM_AUTO)
		return mu_invalid(err, "Unsupported algorithm id: %lld", (long long)algorithm);
	return 0;
}

int random_from_key(const struct kernel_call *c, struct philox *out, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(check_algorithm(c, err));
	const struct mu_tensor *key = kernel_in(c, 1), *counter = kernel_in(c, 2);
	if (counter->shape.count < 2)
		return mu_invalid(err,
				  "counter must be a vector with length at least 2; got shape: %s",
				  mu_shape_str(&counter->shape));
	uint64_t k = MU_DATA(uint64_t, key)[0], *at = MU_DATA(uint64_t, counter);
	*out = (struct philox){.key = {(uint32_t)k, (uint32_t)(k >> 32)},
			       .counter = {(uint32_t)at[0], (uint32_t)(at[0] >> 32),
					   (uint32_t)at[1], (uint32_t)(at[1] >> 32)}};
	return 0;
}

/* ---- random tensors ---- */

typedef int from_fn(const struct kernel_call *c, struct philox *out, struct mu_err *err);

static int stateless_random_reals(struct kernel_call *c, const struct distribution *d,
				  from_fn *from, struct mu_err *err)
{
	struct mu_shape shape;
	enum mu_dtype t;
	struct philox p;

	MU_RETURN_IF_ERROR(draw_output_shape(c, 0, &t, &shape, err));
	MU_RETURN_IF_ERROR(from(c, &p, err));
	return draw_reals(c, d, t, &shape, &p, err);
}

/* Integers from input `low` to below input `low` + 1; with low 0, of the full type range. */
static int stateless_random_ints(struct kernel_call *c, unsigned low, from_fn *from,
				 struct mu_err *err)
{
	struct draw_range range = {0};
	struct mu_shape shape;
	enum mu_dtype t;
	struct philox p;

	MU_RETURN_IF_ERROR(draw_output_shape(c, 0, &t, &shape, err));
	MU_RETURN_IF_ERROR(from(c, &p, err));
	if (low)
		MU_RETURN_IF_ERROR(draw_range(c, low, low + 1, shape.count, &range, err));
	return draw_ints(c, t, &shape, range, &p, err);
}

#define DRAW(name, how, what, from) KERNEL_RUN(name, how(c, what, from, err))
DRAW(uniform, stateless_random_reals, &draw_uniform, from_seeds)
DRAW(normal, stateless_random_reals, &draw_normal, from_seeds)
DRAW(truncated, stateless_random_reals, &draw_truncated, from_seeds)
DRAW(uniform_int, stateless_random_ints, 2, from_seeds)
DRAW(full_int, stateless_random_ints, 0, from_seeds)
DRAW(uniform_v2, stateless_random_reals, &draw_uniform, random_from_key)
DRAW(normal_v2, stateless_random_reals, &draw_normal, random_from_key)
DRAW(truncated_v2, stateless_random_reals, &draw_truncated, random_from_key)
DRAW(uniform_int_v2, stateless_random_ints, 4, random_from_key)
DRAW(full_int_v2, stateless_random_ints, 0, random_from_key)

static const struct kernel rows[] = {
    {"StatelessRandomGetAlg", .run = get_algorithm},
    {"StatelessRandomGetKeyCounter", .run = get_key_counter},
    {"StatelessRandomGetKeyCounterAlg", .run = get_key_counter_algorithm},
    {"StatelessRandomNormal", .run = normal},
    {"StatelessRandomNormalV2", .run = normal_v2},
    {"StatelessRandomUniform", .run = uniform},
    {"StatelessRandomUniformFullInt", .run = full_int},
    {"StatelessRandomUniformFullIntV2", .run = full_int_v2},
    {"StatelessRandomUniformInt", .run = uniform_int},
    {"StatelessRandomUniformIntV2", .run = uniform_int_v2},
    {"StatelessRandomUniformV2", .run = uniform_v2},
    {"StatelessTruncatedNormal", .run = truncated},
    {"StatelessTruncatedNormalV2", .run = truncated_v2},
};
KERNEL_TABLE(random_stateless, rows)
