/* SPDX-License-Identifier: Apache-2.0 */
/* Random tensors from a generator stored in a variable, a vector of int64: two for the counter, one
 * for the key. The program may read, set and save the variable. A kernel advances the counter by
 * 256 groups per element under the variable's lock, and then draws without the lock. */
#include <sys/random.h>

#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/random/draw.h"
#include "task/kernels/state/variables.h"

enum { COUNTER_WORDS = 2, STATE_WORDS = 3 };

static int check_state(const struct mu_tensor *t, int64_t words, struct mu_err *err)
{
	if (t->dtype != MU_INT64)
		return mu_invalid(err, "dtype of RNG state variable must be int64, not %s",
				  mu_dtype_name(t->dtype));
	if (t->shape.rank != 1)
		return mu_invalid(err, "RNG state must have one and only one dimension, not %d",
				  t->shape.rank);
	if (t->shape.count < words)
		return mu_invalid(
		    err,
		    "For the Philox algorithm, the size of state must be at least %lld; got %lld",
		    (long long)words, (long long)t->shape.count);
	return 0;
}

/* Advances the generator in input 0 by `groups` groups and returns its previous state.  With
 * in_state the first word of the state is the algorithm, else `algorithm` is. */
static int stateful_random_advance(const struct kernel_call *c, bool in_state, int64_t algorithm,
				   uint64_t groups, struct philox *out, struct mu_err *err)
{
	VARIABLES_AUTO vs = {0};
	int rc = variables_lock(c, 1, &vs, err), header_words = in_state ? 1 : 0;

	if (rc || (rc = check_state(vs.t[0], header_words, err)))
		return rc;
	int64_t *word = MU_DATA(int64_t, vs.t[0]);
	algorithm = in_state ? word[0] : algorithm;
	if (algorithm == RANDOM_THREEFRY)
		return mu_fail(err, MU_UNIMPLEMENTED, "no device here draws by ThreeFry, alg %d",
			       RANDOM_THREEFRY);
	if (algorithm != RANDOM_PHILOX && algorithm != RANDOM_AUTO)
		return mu_invalid(err, "Unsupported algorithm id: %lld", (long long)algorithm);
	MU_RETURN_IF_ERROR(check_state(vs.t[0], header_words + STATE_WORDS, err));
	word += header_words;
	memcpy(out->counter, word, sizeof out->counter);
	memcpy(out->key, word + COUNTER_WORDS, sizeof out->key);
	struct philox next = *out;
	philox_skip(&next, groups);
	memcpy(word, next.counter, sizeof next.counter);
	return 0;
}

int random_from_variable(const struct kernel_call *c, uint64_t groups, struct philox *out,
			 struct mu_err *err)
{
	int64_t algorithm;

	MU_RETURN_IF_ERROR(args_int(c, 1, &algorithm, err));
	return stateful_random_advance(c, false, algorithm, groups, out, err);
}

static int stateful_random_reals(struct kernel_call *c, const struct distribution *d,
				 struct mu_err *err)
{
	struct mu_shape shape;
	enum mu_dtype t;
	struct philox p;

	MU_RETURN_IF_ERROR(draw_output_shape(c, 2, &t, &shape, err));
	MU_RETURN_IF_ERROR(
	    random_from_variable(c, (uint64_t)shape.count * DRAWS_RESERVED, &p, err));
	return draw_reals(c, d, t, &shape, &p, err);
}

KERNEL_RUN(uniform, stateful_random_reals(c, &draw_uniform, err))
KERNEL_RUN(normal, stateful_random_reals(c, &draw_normal, err))
KERNEL_RUN(truncated, stateful_random_reals(c, &draw_truncated, err))

/* The first version of the op, which reads the algorithm from the state. */
static int normal_by_state(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape shape;
	enum mu_dtype t;
	struct philox p;

	MU_RETURN_IF_ERROR(draw_output_shape(c, 1, &t, &shape, err));
	MU_RETURN_IF_ERROR(
	    stateful_random_advance(c, true, 0, (uint64_t)shape.count * DRAWS_RESERVED, &p, err));
	return draw_reals(c, &draw_normal, t, &shape, &p, err);
}

static int stateful_random_ints(struct kernel_call *c, bool full_range, struct mu_err *err)
{
	struct draw_range range = {0};
	struct mu_shape shape;
	enum mu_dtype t;
	struct philox p;

	MU_RETURN_IF_ERROR(draw_output_shape(c, 2, &t, &shape, err));
	if (!full_range)
		MU_RETURN_IF_ERROR(draw_range(c, 3, 4, 1, &range, err));
	MU_RETURN_IF_ERROR(
	    random_from_variable(c, (uint64_t)shape.count * DRAWS_RESERVED, &p, err));
	return draw_ints(c, t, &shape, range, &p, err);
}

KERNEL_RUN(uniform_int, stateful_random_ints(c, false, err))
KERNEL_RUN(full_int, stateful_random_ints(c, true, err))

/* Skips the draws of n elements; n is input 2, up to 2^64 - 1. */
static int skip_elements(const struct kernel_call *c, struct philox *out, struct mu_err *err)
{
	int64_t algorithm;

	MU_RETURN_IF_ERROR(args_int(c, 1, &algorithm, err));
	return stateful_random_advance(
	    c, false, algorithm, *MU_DATA(uint64_t, kernel_in(c, 2)) * DRAWS_RESERVED, out, err);
}

static int stateful_random_skip(struct kernel_call *c, struct mu_err *err)
{
	struct philox p;

	return skip_elements(c, &p, err);
}

/* Outputs the counter and the key from before the skip. */
static int read_and_skip(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape shape = {.rank = 1, .dim = {STATE_WORDS}, .count = STATE_WORDS};
	struct mu_tensor *out;
	struct philox p;

	MU_RETURN_IF_ERROR(skip_elements(c, &p, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT64, &shape, &out, err));
	memcpy(MU_DATA(int64_t, out), p.counter, sizeof p.counter);
	memcpy(MU_DATA(int64_t, out) + COUNTER_WORDS, p.key, sizeof p.key);
	return 0;
}

static int non_deterministic_ints(struct kernel_call *c, struct mu_err *err)
{
	struct draw_range full_range = {0};
	struct mu_shape shape;
	enum mu_dtype t;
	struct philox p;

	MU_RETURN_IF_ERROR(draw_output_shape(c, 0, &t, &shape, err));
	if (getrandom(&p, sizeof p, 0) != sizeof p)
		return mu_fail(err, MU_INTERNAL, "the system has no random numbers");
	return draw_ints(c, t, &shape, full_range, &p, err);
}

static const struct kernel rows[] = {
    {"NonDeterministicInts", .flags = KERNEL_NO_FOLD, .run = non_deterministic_ints},
    {"RngReadAndSkip", .run = read_and_skip},
    {"RngSkip", .run = stateful_random_skip},
    {"StatefulStandardNormal", .run = normal_by_state},
    {"StatefulStandardNormalV2", .run = normal},
    {"StatefulTruncatedNormal", .run = truncated},
    {"StatefulUniform", .run = uniform},
    {"StatefulUniformFullInt", .run = full_int},
    {"StatefulUniformInt", .run = uniform_int},
};
KERNEL_TABLE(random_stateful, rows)
