/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of a stream of weighted numbers, with a bound of the error: summaries of blocks, merged
 * and compressed level by level (Greenwald and Khanna, 2004; Zhang and Wang, 2007; the weighted
 * form is in the paper on XGBoost). */
#ifndef MU_TASK_KERNELS_BOOSTED_TREES_QUANTILE_STREAM_H
#define MU_TASK_KERNELS_BOOSTED_TREES_QUANTILE_STREAM_H

#include "lib/base/err.h"
#include "lib/base/mem.h"

/* A number of a summary; the ranks bound the weight of all smaller numbers, and with its own. */
struct quantile_entry {
	float value, weight, min_rank, max_rank;
};
struct quantile_summary {
	struct quantile_entry *entries; /* sorted by value */
	size_t n;
};

struct quantile_stream {
	double epsilon;
	int64_t block_size, buffer_size;
	struct quantile_entry *buffer; /* numbers that no summary has yet */
	size_t n_buffer, buffer_capacity;
	struct quantile_summary *levels, final;
	unsigned n_levels;
};

/* Fails unless 0 < epsilon < 1 and max_elements > 0. */
int quantile_stream_init(struct quantile_stream *s, float epsilon, int64_t max_elements,
			 struct mu_err *err);
void quantile_stream_fini(struct quantile_stream *s);
void quantile_stream_push(struct quantile_stream *s, float value, float weight);
void quantile_stream_push_summary(struct quantile_stream *s, const struct quantile_entry *entries,
				  size_t n);
/* Makes s->final of all that was pushed. */
void quantile_stream_finish(struct quantile_stream *s);

/* At least n numbers (as far as there are), without duplicates; returns new. */
float *quantile_boundaries(const struct quantile_summary *s, int64_t n, size_t *count);
/* The numbers at n + 1 ranks of equal distance; returns new. */
float *quantile_values(const struct quantile_summary *s, int64_t n, size_t *count);

#endif
