/* SPDX-License-Identifier: Apache-2.0 */
/* SkipGramGenerateCandidates: pairs of each token and its neighbours in a window of random size.
 * The random numbers equal TensorFlow's for the same seed. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/random/node_state.h"

struct skip_grams {
	int64_t first, end; /* token indices */
	int32_t min, max;   /* limits of the window size */
	bool emit_self;
};

static int read_skip_grams(const struct kernel_call *c, struct skip_grams *s, struct mu_err *err)
{
	int64_t n = kernel_in(c, 0)->shape.dim[0];
	int64_t start = *MU_DATA(int32_t, kernel_in(c, 3));
	int64_t limit = *MU_DATA(int32_t, kernel_in(c, 4));

	s->min = *MU_DATA(int32_t, kernel_in(c, 1));
	s->max = *MU_DATA(int32_t, kernel_in(c, 2));
	s->emit_self = *MU_DATA(bool, kernel_in(c, 5));
	if (s->min < 0 || s->max < 0)
		return mu_invalid(err, "Both min_skips and max_skips must be >= 0.");
	if (s->min > s->max)
		return mu_invalid(err, "min_skips must be <= max_skips.");
	if (start < 0)
		return mu_invalid(err, "start must be >= 0, got %lld", (long long)start);
	s->first = start < n ? start : n;
	s->end = limit < 0 || limit > n - s->first ? n : s->first + limit;
	return 0;
}

/* Sets *low and *high to the first and the last token in the window around token i. */
static void window_around(const struct skip_grams *s, int64_t i, int64_t size, int64_t *low,
			  int64_t *high)
{
	*low = i - size < s->first ? s->first : i - size;
	*high = i + size >= s->end ? s->end - 1 : i + size;
}

static int skip_grams(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO_TENSOR sizes = {0};
	struct mu_tensor *tokens, *labels;
	struct philox_stream random = {0};
	struct skip_grams s = {0};
	int64_t total = 0, at = 0, low, high;

	MU_RETURN_IF_ERROR(read_skip_grams(c, &s, err));
	int64_t n = s.end - s.first;
	struct mu_shape shape = mu_shape_vec(n);
	MU_RETURN_IF_ERROR(mu_tensor_new(&sizes, MU_INT32, &shape, err));
	MU_RETURN_IF_ERROR(node_draws(c->state, c, (uint64_t)n / 4 + 1, &random.from, err));
	int32_t *size = MU_DATA(int32_t, &sizes);
	for (int64_t i = 0; i < n; i++) {
		uint32_t range = (uint32_t)(s.max - s.min) + 1;
		size[i] = s.min + (int32_t)philox_below_32(&random, range);
		window_around(&s, s.first + i, size[i], &low, &high);
		total += high - low + s.emit_self;
	}
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, in->dtype, total, &tokens, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, in->dtype, total, &labels, err));
	for (int64_t i = s.first; i < s.end; i++) {
		window_around(&s, i, size[i - s.first], &low, &high);
		for (int64_t k = low; k <= high; k++)
			if (k != i || s.emit_self) {
				elems_copy(in->dtype, tokens->data, at, in->data, i, 1);
				elems_copy(in->dtype, labels->data, at++, in->data, k, 1);
			}
	}
	return 0;
}

static const struct kernel rows[] = {
    {"SkipGramGenerateCandidates", KERNEL_EXPENSIVE | KERNEL_NO_FOLD, .run = skip_grams,
     .prepare = node_state_prepare, .release = node_state_release},
};
KERNEL_TABLE(text_skip_gram, rows)
